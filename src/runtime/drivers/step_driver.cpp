#include "runtime/drivers/step_driver.h"

#include <algorithm>

#include "base/error.h"
#include "base/hot.h"
#include "base/thread_object.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/checked_memory.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kStepGrainBytes = 32 << 10;
constexpr int64_t kStepGrainOperations = 200'000;

struct Scratch {
  char* memory = nullptr;
  int64_t bytes = 0;
  uint64_t epoch = 0;
  int64_t reserved = 0;
  uintptr_t latest_panels = 0;
  ~Scratch() { deallocate_scratch(memory, bytes); }
};
constinit thread_local ThreadObject<Scratch> mine;

}  // namespace

int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int threads_for(int64_t bytes, int64_t operations) {
  return static_cast<int>(
      std::clamp<int64_t>(std::max(bytes / kStepGrainBytes, operations / kStepGrainOperations), 1, kMostThreads));
}

char* thread_scratch(int64_t bytes) {
  Scratch& scratch = *mine;
  bytes = std::max(bytes, scratch.reserved);
  const bool stale = scratch.epoch != trim_epoch();
  if (scratch.bytes < bytes || ((stale || checks_memory()) && scratch.bytes != bytes)) {
    char* memory = static_cast<char*>(allocate_scratch(bytes));
    deallocate_scratch(scratch.memory, scratch.bytes);
    scratch.memory = memory, scratch.bytes = bytes;
  }
  if (stale) scratch.epoch = trim_epoch();
  return scratch.memory;
}

uintptr_t& latest_panels() { return mine->latest_panels; }

ReservedScratch::ReservedScratch(int64_t bytes) : before_(mine->reserved) {
  if (bytes > 0) thread_scratch(bytes);
  mine->reserved = std::max(before_, bytes);
}
ReservedScratch::~ReservedScratch() { mine->reserved = before_; }

PlaneConstants::PlaneConstants(const KernelPtr& source, const Dims& space_dims, const std::vector<Argument>& arguments,
                               const BindContext& context)
    : kernel(context.kernel(source)),
      scratch_bytes(source->scratch_bytes),
      space(space_dims.begin(), space_dims.end()),
      arguments({}, arguments, space.size()) {
  INGOT_CHECK(space.size() >= 2, source->name);
}

Planes::Planes(const PlaneConstants& constants, const BindContext& context)
    : kernel_(constants.kernel), arguments_(constants.arguments, context) {
  const std::span<const int64_t> space = context.values_of(constants.space);
  columns_ = space.back();
  rows_ = space[space.size() - 2];
  outer_ = space.first(space.size() - 2);
  for (int64_t n : outer_) planes_ = saturating_product(planes_, n);
}

PlaneDriver::PlaneDriver(const PlaneStepConstants& constants, const BindContext& context) : Planes(constants, context) {
  int64_t elements = saturating_product(planes_, saturating_product(rows_, columns_));
  int64_t bytes = context.value(constants.bytes);
  if (bytes == 0) bytes = saturating_product(elements, 4 * static_cast<int64_t>(arguments_.size()));
  useful_threads = threads_for(bytes, context.value(constants.operations));
}

INGOT_HOT PlaneWalk::PlaneWalk(std::span<const int64_t> outer, const BoundArguments& arguments, const StepState& state,
                               char** at, int64_t plane)
    : outer_(outer), arguments_(arguments), at_(at) {
  for (size_t i = 0; i < arguments.size(); ++i) at[i] = arguments.at(state, i);
  for (size_t d = outer.size(); d-- > 0; plane /= outer[d]) {
    int64_t index = plane % outer[d];
    index_.push_back(index);
    const int64_t* strides = arguments.strides(d);
    for (size_t i = 0; i < arguments.size(); ++i) at[i] += index * strides[i];
  }
}

void PlaneWalk::next() {
  for (size_t d = outer_.size(), inside = 0; d-- > 0; ++inside) {
    bool wraps = ++index_[inside] == outer_[d];
    const int64_t steps = wraps ? 1 - outer_[d] : 1;
    const int64_t* strides = arguments_.strides(d);
    for (size_t i = 0; i < arguments_.size(); ++i) at_[i] += steps * strides[i];
    if (!wraps) return;
    index_[inside] = 0;
  }
}

}  // namespace ingot::runtime
