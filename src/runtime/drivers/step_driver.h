// What runs one step of a bound program: all sizes are known, only addresses and scalars are missing.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/program.h"
#include "base/small_vector.h"
#include "runtime/code/kernel_cache.h"
#include "runtime/memory/weight_cache.h"
#include "runtime/thread_pool.h"

namespace ingot::runtime {

/// How far the shares of one phase of one step are. A share is begun by whoever claims it.
class alignas(64) Progress {
 public:
  void reset() {
    for (auto& word : claimed_) word.store(0, std::memory_order_relaxed);
    done.store(0, std::memory_order_relaxed);
  }
  bool claim(int share) {
    const uint64_t bit = uint64_t{1} << (share % 64);
    std::atomic<uint64_t>& word = claimed_[share / 64];
    return !(word.load(std::memory_order_relaxed) & bit) && !(word.fetch_or(bit, std::memory_order_relaxed) & bit);
  }
  std::atomic<int> done{0};

 private:
  std::atomic<uint64_t> claimed_[kMostThreads / 64] = {};
};

/// What one run of a program owns.
struct RunState {
  std::vector<char*> buffers;      // base address of each buffer of the program, then of each step's own
  std::vector<uint64_t> scalars;   // of all steps, as their kernels expect them
  std::vector<WeightUse> weights;  // one a step; without data where B is packed as it is used
  char* arena = nullptr;
  int64_t arena_bytes = 0;
  std::unique_ptr<Progress[]> progress;  // one a phase, where threads share the run
  size_t phases = 0;
  RunState() = default;
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;
  ~RunState();
};

/// An argument with its numbers worked out.
struct BoundArgument {
  uint32_t buffer = 0;
  int64_t offset = 0;
  Ints strides;
  int64_t index_stride = 0;
  char* at(const RunState& state) const { return state.buffers[buffer] + offset; }
};

/// The kernels of a program, each once.
using KernelTable = std::unordered_map<const KernelSource*, const LoadedKernel*>;
class StepDriver;

/// What binding a step needs to know. It notes which sizes it is asked for: while they stay, so does the driver.
class BindContext {
 public:
  BindContext(std::span<const int64_t> values, int threads, uint32_t step, uint32_t first_scalar,
              const KernelTable& kernels, const StepDriver* before)
      : threads(threads), step(step), first_scalar(first_scalar), before_(before), values_(values), kernels_(kernels) {}

  const int threads;  // for which work is divided; any number may run it
  const uint32_t step;
  const uint32_t first_scalar;  // of the step, in RunState::scalars

  int64_t value(Dim d) const {
    if (d.is_constant()) return d.code;
    asked_ |= mark(static_cast<size_t>(d.index()));
    return values_[static_cast<size_t>(d.index())];
  }
  Ints values_of(const Dims& dims) const;
  BoundArgument argument(const Argument& a) const;
  const LoadedKernel& kernel(const KernelPtr& source) const { return *kernels_.at(source.get()); }
  /// The step's driver for other sizes, whose kernels may be shared; or null.
  template <class Driver>
  const Driver* before() const {
    return dynamic_cast<const Driver*>(before_);
  }

  /// One bit an expression, where there are more than 64 one for several.
  static uint64_t mark(size_t expression) { return uint64_t{1} << (expression % 64); }
  uint64_t asked() const { return asked_; }

 private:
  const StepDriver* before_;
  std::span<const int64_t> values_;  // of the program's expressions
  const KernelTable& kernels_;
  mutable uint64_t asked_ = 0;
};

/// Runs its step as often as wanted, in any number of shares, with the same bits. A phase begins when the one before
/// has ended.
class StepDriver {
 public:
  virtual ~StepDriver() = default;
  /// One of `shares` shares of a phase; any thread may run it, in any order.
  virtual void run(RunState& state, int phase, int share, int shares) const = 0;
  /// Whether a phase has nothing to do in this run.
  virtual bool idle(const RunState&, int /*phase*/) const { return false; }
  /// Called by the thread that starts a run, before any step, if `weight_buffer` is set: brings state.weights up to
  /// date.
  virtual void prepare(RunState&, const InputIdentity&, WeightSlot&) const {}

  int useful_threads = 1;  // more would not pay
  int phases = 1;
  int64_t weight_buffer = -1;  // the program's buffer that it packs once and keeps
  int64_t shared_bytes = 0;    // arena memory that it needs for itself
  uint64_t asked = 0;          // the sizes from which it follows (see BindContext)
  char* shared(const RunState& state) const { return state.buffers[shared_buffer]; }
  uint32_t shared_buffer = 0;
};

/// A step whose kernel works on planes of rows x columns, each argument with a stride a dim.
class PlaneDriver : public StepDriver {
 protected:
  PlaneDriver(const KernelPtr& kernel, const Dims& space, const std::vector<Argument>& arguments, const Step& costs,
              const BindContext& context);
  /// A frame for all columns; what varies by rows is for the caller.
  KernelFrame frame_of(const RunState& state, char** at) const {
    KernelFrame frame;
    frame.buffers = at;
    frame.row_strides = row_strides_.data();
    frame.column_strides = column_strides_.data();
    frame.index_strides = index_strides_.data();
    frame.scalars = state.scalars.data() + first_scalar_;
    frame.columns = columns_;
    frame.context = kernel_.context;
    return frame;
  }

  const LoadedKernel& kernel_;
  const uint32_t first_scalar_;
  int64_t planes_ = 1, rows_ = 0, columns_ = 0;
  Ints outer_;
  std::vector<BoundArgument> arguments_;
  using Strides = SmallVector<int64_t, 4>;  // one an argument
  Strides row_strides_, column_strides_, index_strides_;
};

/// Drivers of the kinds of step; `costs` is the step as a whole.
std::shared_ptr<StepDriver> bind(const LoopStep& step, const Step& costs, const BindContext& context);
std::shared_ptr<StepDriver> bind(const ColumnStep& step, const Step& costs, const BindContext& context);
std::shared_ptr<StepDriver> bind(const MatmulStep& step, const Step& costs, const BindContext& context);
std::shared_ptr<StepDriver> bind(const Conv2dStep& step, const Step& costs, const BindContext& context);
std::shared_ptr<StepDriver> bind(const Conv2dWeightStep& step, const Step& costs, const BindContext& context);
std::shared_ptr<StepDriver> bind(const AttentionStep& step, const Step& costs, const BindContext& context);
std::shared_ptr<StepDriver> bind(const AttentionBackwardStep& step, const Step& costs, const BindContext& context);
/// Throws InternalError, with the names that exist, if there is no such host op.
std::shared_ptr<StepDriver> bind(const HostStep& step, const Step& costs, const BindContext& context);
/// For few long rows, over which threads then work together; null where rows are better left whole.
std::shared_ptr<StepDriver> bind_split_reduction(const LoopStep& step, const Step& costs, const BindContext& context);

/// How many threads pay for this much work: about 32 KB of memory or 20 us of arithmetic each.
int threads_for(int64_t bytes, int64_t operations);
/// a * b, or a large number where that overflows.
int64_t saturating_product(int64_t a, int64_t b);

/// Pairs up the `count` partial accumulators at `first`, `stride` bytes apart, as the canonical order does (each is a
/// whole subtree, but for the last): combine(a, b) adds b to a. The first is left with the sum.
template <class F>
void pair_up(char* first, int64_t count, int64_t stride, F combine) {
  for (int64_t distance = 1; distance < count; distance *= 2)
    for (int64_t i = 0; i + distance < count; i += 2 * distance)
      combine(first + i * stride, first + (i + distance) * stride);
}

/// Memory of the calling thread, aligned to 64, valid until its next call on this thread.
char* thread_scratch(int64_t bytes);

/// Walks the planes of a space whose last two dims are rows and columns, with the address of each argument.
class PlaneWalk {
 public:
  /// `outer` are the sizes of the outer dims; `at` receives the addresses in the first plane.
  PlaneWalk(std::span<const int64_t> outer, std::span<const BoundArgument> arguments, const RunState& state, char** at,
            int64_t plane);
  void next();
  /// Indices of the plane, from the inside out.
  const int64_t* index() const { return index_.data(); }

 private:
  std::span<const int64_t> outer_;
  std::span<const BoundArgument> arguments_;
  char** at_;
  Ints index_;
};

}  // namespace ingot::runtime
