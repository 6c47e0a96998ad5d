// Frozen mode: after two checked calls that agree, only the arguments are looked at and the program runs.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "compile/leaves.h"
#include "eager/script.h"
#include "trace/recorder.h"

namespace ingot::detail {

/// What must hold of one argument leaf.
struct LeafGuard {
  Leaf::Kind kind = Leaf::Kind::tensor;
  DType dtype = DType::f32;
  bool defined = false, requires_grad = false;
  int32_t same_as = -1;  // an earlier leaf that is the same tensor
  Ints sizes, strides;
  uint64_t bits = 0;
  std::string text;
  /// Not 0: only the tensor on this storage. As long as only one tensor was seen here, it may be one that is captured
  /// as well.
  uint64_t storage = 0;
  LeafGuard(const std::vector<Leaf>& leaves, size_t i);
  bool holds(const std::vector<Leaf>& leaves, size_t i) const;
  bool equal_but_storage(const LeafGuard& other) const;
};

/// The arguments of a call as they were before it; the callable may move from them.
struct Arguments {
  std::vector<LeafGuard> guards;
  std::vector<Tensor> tensors;  // one a leaf; undefined where it is no tensor
  explicit Arguments(const LeafList& leaves);
};

/// Where a tensor comes from in a frozen call.
struct FrozenTensor {
  enum class Source : uint8_t { argument, captured, live } source = Source::argument;
  size_t number = 0;  // of the argument leaf, of the live value
  Tensor captured;
  friend bool operator==(const FrozenTensor& a, const FrozenTensor& b) {
    return a.source == b.source && a.number == b.number && a.captured.is_same(b.captured);
  }
};

/// One call as it was seen, ready to be repeated without its callable.
struct FrozenCall {
  std::vector<LeafGuard> guards;
  eager::CodeLevel level;                    // of the call
  std::shared_ptr<trace::CacheEntry> entry;  // null: nothing is computed
  runtime::BoundProgramPtr bound;
  trace::SegmentBinding binding;
  std::vector<FrozenTensor> slots;
  std::vector<uint64_t> scalars;
  std::vector<trace::RunDraw> draws;  // of random numbers, taken anew in each call
  std::vector<int64_t> output_bytes;
  struct Live {
    DType dtype;
    Ints sizes, strides;
    int64_t offset = 0;  // within its storage; of a view of a slot: beyond the slot's own offset
  };
  std::vector<Live> live;
  std::vector<FrozenTensor> result;    // tensors of the result, in order
  std::vector<LeafGuard> result_rest;  // its other leaves
  std::shared_ptr<const void> result_copy;
  const FrozenCall* next = nullptr;

  std::vector<trace::RunCheck> checks;

  bool holds(const LeafList& arguments, const eager::CodeLevel& level) const;
  const Tensor& slot(size_t number, const LeafList& arguments) const;
  /// Runs the program; gives the tensors of the result.
  void run(const LeafList& arguments, std::span<Tensor> results) const;
};

/// A call that was seen with arguments of several sizes, which its script foretold: it holds for any sizes of the dims
/// in which they differed.
struct GeneralCall {
  std::vector<LeafGuard> guards;
  std::vector<std::vector<bool>> free;  // the dims of each leaf
  eager::CodeLevel level;
  eager::Script script;
  std::vector<eager::ScriptTensor> result;
  std::vector<LeafGuard> result_rest;
  std::shared_ptr<const void> result_copy;
  bool holds(const LeafList& arguments, const eager::CodeLevel& level) const;
};

class Freezer {
 public:
  ~Freezer();
  /// The frozen call for these arguments, or null. Takes no lock.
  const FrozenCall* find(const LeafList& arguments, std::optional<Numerics> own) const;
  /// Calls that may be repeated for these arguments, of sizes that were not seen yet.
  std::vector<std::shared_ptr<const GeneralCall>> find_general(const LeafList& arguments,
                                                               std::optional<Numerics> own) const;
  /// Repeats it and freezes it for these sizes. False, with nothing computed, where it would go another way.
  bool repeat(const GeneralCall& call, const Arguments& arguments, trace::Recorder& recorder,
              std::vector<Tensor>& results);
  /// Told of a checked call that ended well, at its level; `sources` says where the tensors of its result come from.
  /// May repeat it with the recorder.
  void observe(const Arguments& arguments, trace::Recorder& recorder, const LeafList* result,
               std::vector<eager::ScriptTensor> sources, std::shared_ptr<const void> result_copy);
  bool refused() const { return refused_.load(std::memory_order_relaxed); }
  std::string state() const;

 private:
  void refuse(std::string reason);
  void publish(std::unique_ptr<FrozenCall> call, const FrozenCall& before);
  void publish(std::unique_ptr<FrozenCall> call);
  void learn(const Arguments& arguments, const FrozenCall& seen, trace::Recorder& recorder);
  std::atomic<const FrozenCall*> frozen_{nullptr};
  std::atomic<bool> refused_{false};
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<FrozenCall>> seen_once_;
  std::vector<std::shared_ptr<const GeneralCall>> general_;
  size_t published_ = 0;
  std::string reason_;
};

}  // namespace ingot::detail
