// What runs one step of a bound program: all sizes are known, only addresses and scalars are missing.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/program.h"
#include "base/small_vector.h"
#include "runtime/drivers/bind_context.h"

namespace ingot::runtime {

/// Runs its step as often as wanted, in any number of shares, with the same bits. A phase begins when the one before
/// has ended.
class StepDriver {
 public:
  /// One of `shares` shares of a phase; any thread may run it, in any order.
  virtual void run(const StepState& state, int phase, int share, int shares) const = 0;
  /// Whether a phase has nothing to do in this run.
  virtual bool idle(const StepState&, int /*phase*/) const { return false; }
  /// Called by the thread that starts a run, before any step, if `weight_buffer` is set: brings state.weights up to
  /// date.
  virtual void prepare(const StepState&, const InputIdentity&, WeightSlot&) const {}
  /// The most that a thread asks thread_scratch() for while it runs shares, once it is prepared.
  virtual int64_t scratch_bytes(const StepState&) const { return 0; }

  int useful_threads = 1;  // more would not pay
  int phases = 1;
  bool alone = false;          // nothing else runs meanwhile, and it may share its work out to the pool by itself
  int64_t weight_buffer = -1;  // that it packs once and keeps
  int64_t shared_bytes = 0;    // arena memory that it needs for itself
  char* shared(const StepState& state) const { return state.buffers[shared_buffer]; }
  uint32_t shared_buffer = 0;

 protected:
  ~StepDriver() = default;  // its memory destroys it
};

/// A kernel that works on planes of rows x columns, whatever their sizes: each argument with a stride a dim.
struct PlaneConstants {
  PlaneConstants(const KernelPtr& source, const Dims& space, const std::vector<Argument>& arguments,
                 const BindContext& context);
  const LoadedKernel& kernel;
  int64_t scratch_bytes;  // of the kernel
  std::vector<Dim> space;
  ArgumentTable arguments;
};

/// Such a kernel at given sizes.
class Planes {
 protected:
  Planes(const PlaneConstants& constants, const BindContext& context);
  /// A frame for all columns; what varies by rows is for the caller.
  KernelFrame frame_of(const StepState& state, char** at) const {
    KernelFrame frame;
    frame.buffers = at;
    frame.row_strides = arguments_.row_strides();
    frame.column_strides = arguments_.column_strides();
    frame.index_strides = arguments_.index_strides();
    frame.scalars = state.scalars;
    frame.columns = columns_;
    frame.context = kernel_.context;
    return frame;
  }

  const LoadedKernel& kernel_;
  int64_t planes_ = 1, rows_ = 0, columns_ = 0;
  std::span<const int64_t> outer_;
  BoundArguments arguments_;
};

/// What the drivers of a step have in common that is such a kernel.
struct PlaneStepConstants : PlaneConstants {
  PlaneStepConstants(const KernelPtr& source, const Dims& space, const std::vector<Argument>& arguments,
                     const Step& costs, const BindContext& context)
      : PlaneConstants(source, space, arguments, context), bytes(costs.bytes), operations(costs.operations) {}
  Dim bytes, operations;  // of the step
};

/// A step that is such a kernel.
class PlaneDriver : public StepDriver, protected Planes {
 protected:
  PlaneDriver(const PlaneStepConstants& constants, const BindContext& context);
};

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
/// What this thread noted of the product before (product_loops.cpp).
uintptr_t& latest_panels();
/// While one lives, thread_scratch() on this thread gives this much without allocating. Throws OutOfMemory.
class ReservedScratch {
 public:
  explicit ReservedScratch(int64_t bytes);
  ~ReservedScratch();
  ReservedScratch(const ReservedScratch&) = delete;
  ReservedScratch& operator=(const ReservedScratch&) = delete;

 private:
  int64_t before_;
};

/// Walks the planes of a space whose last two dims are rows and columns, with the address of each argument.
class PlaneWalk {
 public:
  /// `outer` are the sizes of the outer dims; `at` receives the addresses in the first plane.
  PlaneWalk(std::span<const int64_t> outer, const BoundArguments& arguments, const StepState& state, char** at,
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
