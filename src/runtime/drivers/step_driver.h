// What runs one step of a bound program: all sizes are known, only addresses and scalars are missing.
#pragma once
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/program.h"
#include "base/small_vector.h"
#include "runtime/code/kernel_cache.h"
#include "runtime/drivers/driver_memory.h"
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
  std::span<const int64_t> strides;
  int64_t index_stride = 0;
  char* at(const RunState& state) const { return state.buffers[buffer] + offset; }
};

/// The kernels of a program, each once.
using KernelTable = std::unordered_map<const KernelSource*, const LoadedKernel*>;

/// What the drivers of one step have in common, whatever the sizes.
struct StepConstants {
  MadeOnce constants, weight_format;
};

/// What binding a step needs to know. It notes which sizes it is asked for: while they stay, so does the driver.
class BindContext {
 public:
  BindContext(std::span<const int64_t> values, int threads, uint32_t step, uint32_t first_scalar,
              const KernelTable& kernels, StepConstants& constants, DriverMemory& memory)
      : threads(threads),
        step(step),
        first_scalar(first_scalar),
        values_(values),
        kernels_(kernels),
        constants_(constants),
        memory_(memory) {}

  const int threads;  // for which work is divided; any number may run it
  const uint32_t step;
  const uint32_t first_scalar;  // of the step, in RunState::scalars

  int64_t value(Dim d) const {
    if (d.is_constant()) return d.code;
    asked_ |= mark(static_cast<size_t>(d.index()));
    return values_[static_cast<size_t>(d.index())];
  }
  std::span<int64_t> values_of(std::span<const Dim> dims) const;
  BoundArgument argument(const Argument& a) const;
  const LoadedKernel& kernel(const KernelPtr& source) const { return *kernels_.at(source.get()); }

  /// What make() gives for this step at its first binding.
  template <class Make>
  const auto& constants(Make make) const {
    return constants_.constants.get(make);
  }
  template <class Make>
  const std::shared_ptr<const WeightFormat>& weight_format(Make make) const {
    return constants_.weight_format.get(make);
  }

  /// A driver, or what one owns. Lasts as long as the drivers do.
  template <class T, class... Arguments>
  T* make(Arguments&&... arguments) const {
    return memory_.make<T>(std::forward<Arguments>(arguments)...);
  }
  template <class T>
  std::span<T> array(size_t n) const {
    return memory_.array<T>(n);
  }
  std::span<const int64_t> list(std::initializer_list<int64_t> numbers) const;

  /// One bit an expression, where there are more than 64 one for several.
  static uint64_t mark(size_t expression) { return uint64_t{1} << (expression % 64); }
  uint64_t asked() const { return asked_; }

 private:
  std::span<const int64_t> values_;  // of the program's expressions
  const KernelTable& kernels_;
  StepConstants& constants_;
  DriverMemory& memory_;
  mutable uint64_t asked_ = 0;
};

/// The numbers of some arguments over one space: a line of buffers, of offsets, of index strides, and of the strides of
/// each dim, one number an argument. Side by side they are read at once; in a step they are apart.
struct ArgumentTable {
  ArgumentTable(std::initializer_list<const Argument*> first, const std::vector<Argument>& rest, size_t rank);
  size_t count, rank;
  std::vector<Dim> numbers;
  static constexpr size_t kOffsets = 1, kIndexStrides = 2, kStrides = 3;  // lines
};

/// Such a table with its numbers worked out.
class BoundArguments {
 public:
  BoundArguments() = default;
  BoundArguments(const ArgumentTable& table, const BindContext& context);
  /// To be followed by set() of each.
  BoundArguments(size_t count, size_t rank, const BindContext& context);
  /// With these strides instead of its own.
  void set(size_t i, const BoundArgument& a, std::initializer_list<int64_t> strides);

  size_t size() const { return count_; }
  size_t rank() const { return rank_; }
  int64_t stride(size_t i, size_t dim) const { return strides(dim)[i]; }
  /// One an argument.
  const int64_t* index_strides() const { return line(ArgumentTable::kIndexStrides); }
  const int64_t* strides(size_t dim) const { return line(ArgumentTable::kStrides + dim); }
  const int64_t* row_strides() const { return strides(rank_ - 2); }
  const int64_t* column_strides() const { return strides(rank_ - 1); }
  char* at(const RunState& state, size_t i) const {
    return state.buffers[static_cast<size_t>(numbers_[i])] + line(ArgumentTable::kOffsets)[i];
  }

 private:
  const int64_t* line(size_t number) const { return numbers_ + number * count_; }
  int64_t* numbers_ = nullptr;
  size_t count_ = 0, rank_ = 0;
};

/// Runs its step as often as wanted, in any number of shares, with the same bits. A phase begins when the one before
/// has ended.
class StepDriver {
 public:
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
  char* shared(const RunState& state) const { return state.buffers[shared_buffer]; }
  uint32_t shared_buffer = 0;

 protected:
  ~StepDriver() = default;  // its memory destroys it
};

/// What a step's drivers have in common whose kernel works on planes.
struct PlaneConstants {
  PlaneConstants(const KernelPtr& source, const Dims& space, const std::vector<Argument>& arguments, const Step& costs,
                 const BindContext& context);
  const LoadedKernel& kernel;
  int64_t scratch_bytes;  // of the kernel
  Dim bytes, operations;  // of the step
  std::vector<Dim> space;
  ArgumentTable arguments;
};

/// A step whose kernel works on planes of rows x columns, each argument with a stride a dim.
class PlaneDriver : public StepDriver {
 protected:
  PlaneDriver(const PlaneConstants& constants, const BindContext& context);
  /// A frame for all columns; what varies by rows is for the caller.
  KernelFrame frame_of(const RunState& state, char** at) const {
    KernelFrame frame;
    frame.buffers = at;
    frame.row_strides = arguments_.row_strides();
    frame.column_strides = arguments_.column_strides();
    frame.index_strides = arguments_.index_strides();
    frame.scalars = state.scalars.data() + first_scalar_;
    frame.columns = columns_;
    frame.context = kernel_.context;
    return frame;
  }

  const LoadedKernel& kernel_;
  const uint32_t first_scalar_;
  int64_t planes_ = 1, rows_ = 0, columns_ = 0;
  std::span<const int64_t> outer_;
  BoundArguments arguments_;
};

/// Drivers of the kinds of step, in the memory of the context; `costs` is the step as a whole.
StepDriver* bind(const LoopStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const ColumnStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const MatmulStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const Conv2dStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const Conv2dWeightStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const AttentionStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const AttentionBackwardStep& step, const Step& costs, const BindContext& context);
/// Throws InternalError, with the names that exist, if there is no such host op.
StepDriver* bind(const HostStep& step, const Step& costs, const BindContext& context);
/// For few long rows, over which threads then work together; null where rows are better left whole.
StepDriver* bind_split_reduction(const LoopStep& step, const PlaneConstants& constants, const BindContext& context);

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
  PlaneWalk(std::span<const int64_t> outer, const BoundArguments& arguments, const RunState& state, char** at,
            int64_t plane);
  void next();
  /// Indices of the plane, from the inside out.
  const int64_t* index() const { return index_.data(); }

 private:
  std::span<const int64_t> outer_;
  const BoundArguments& arguments_;
  char** at_;
  Ints index_;
};

}  // namespace ingot::runtime
