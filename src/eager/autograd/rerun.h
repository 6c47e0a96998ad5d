// What checkpoint() keeps off the tape, and how it is computed again: its function runs a second time when a backward
// pass comes to one of its nodes. (T. Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016)
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "eager/autograd/node.h"
#include "eager/call/dispatch.h"
#include "eager/ops/generator.h"

namespace ingot::autograd {

class Region;
class SavedTensor;

/// Stands for a tensor that a node would have kept.
struct Recomputed {
  explicit Recomputed(Edge to) : edge(std::move(to)) {}
  virtual ~Recomputed() = default;
  Recomputed(const Recomputed&) = delete;
  /// The tensor, in `room` where it is not kept; null where it was written to.
  virtual const Tensor* intact(Tensor& room) = 0;
  /// A tensor that was made, at the place on the tape of the one that it stands for.
  Tensor placed(const Tensor& made) const;

  const Edge edge;
  Tensor tensor;  // that was made, and is kept until it is let go of
  uint64_t version = 0;
};

/// Of a region, which computes it when it runs again.
struct RegionTensor final : Recomputed {
  RegionTensor(std::shared_ptr<Region> from, size_t at, const Tensor& of, Edge to);
  ~RegionTensor() override;
  const Tensor* intact(Tensor& room) override;
  /// The second run is where this is made.
  void take(const Tensor& made);

  const std::shared_ptr<Region> region;
  const size_t number;  // among those that the region's run keeps
  const DType dtype;
  const Ints sizes;
};

/// A call of checkpoint(): what it takes to run its function again. Nodes hold it by what they wait for.
class Region : public std::enable_shared_from_this<Region> {
 public:
  /// Of the inputs; gives its results to the second argument, which is null where nobody wants them.
  using Function = std::function<void(const std::vector<Tensor>&, void*)>;
  Region(Function function, const std::vector<Tensor>& inputs, Location location);
  ~Region();
  Region(const Region&) = delete;
  void run(const std::vector<Tensor>& inputs, void* results);
  void run_again();
  void forget(size_t number) { waiting_[number] = nullptr; }

 private:
  class FirstRun;
  class SecondRun;
  /// A call of an op: what must be the same again.
  struct Called {
    OpId op;
    const ir::Derivative* derivative;
    bool inplace;
    size_t operands;
  };
  struct CalledWith {
    uint64_t value;  // the version of a tensor, the bits of a number
    uint64_t name;   // of a number
  };

  const Function function_;
  std::vector<SavedTensor> inputs_;  // handles that lead nowhere
  std::vector<bool> tracked_;        // by input
  const Location location_;
  const std::string* const module_;  // that called it
  eager::Interceptor* const autocast_;
  std::vector<Called> calls_;
  std::vector<CalledWith> operands_;  // of all calls
  std::vector<eager::Draws> draws_;
  std::vector<RegionTensor*> waiting_;  // by number; null: kept as it is, or not wanted any more
};

/// Stands in the chain of a thread that runs a region's function.
class RegionRun : public eager::Interceptor {
 public:
  /// Of this thread, or null.
  static RegionRun* current() { return static_cast<RegionRun*>(eager::interceptor(eager::Stage::checkpoint)); }
  RegionRun() : Interceptor(eager::Stage::checkpoint) {}

  using Interceptor::call;
  void call(const eager::OpCall& call, std::span<Tensor> outputs) final;
  /// What a node keeps of this tensor; null: the tensor.
  virtual std::unique_ptr<Recomputed> keep(const Tensor& tensor) = 0;
  /// The draws of the first run, where this is the second.
  virtual std::optional<eager::Draws> known_draws() = 0;
  virtual void note(eager::Draws draws) = 0;
  /// Whether all of this has run before.
  virtual bool is_second() const = 0;

 protected:
  virtual void begin(const eager::OpCall& call) = 0;
  /// The next operand, of which this is the same in both runs. Returns the name of a number.
  virtual uint64_t operand(const eager::OpCall& call, size_t i, uint64_t value) = 0;
};

/// What code does beside its results, as running statistics: once, though checkpoint() may run it twice. No region sees
/// what is called while it lives.
class SideEffect {
 public:
  SideEffect();
  ~SideEffect() { eager::set_interceptor(eager::Stage::checkpoint, outer_); }
  SideEffect(const SideEffect&) = delete;
  bool is_due() const { return due_; }

 private:
  RegionRun* const outer_;
  const bool due_;
};

}  // namespace ingot::autograd
