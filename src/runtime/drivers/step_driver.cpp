#include "runtime/drivers/step_driver.h"

#include <algorithm>

#include "base/error.h"
#include "base/thread_object.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/checked_memory.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kGrainBytes = 32 << 10;
constexpr int64_t kGrainOperations = 200'000;

struct Scratch {
  char* memory = nullptr;
  int64_t bytes = 0;
  uint64_t epoch = 0;
  ~Scratch() { deallocate(memory, bytes); }
};
constinit thread_local ThreadObject<Scratch> mine;

}  // namespace

RunState::~RunState() { deallocate(arena, arena_bytes); }

Ints BindContext::values_of(const Dims& dims) const {
  Ints result(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) result[i] = value(dims[i]);
  return result;
}

BoundArgument BindContext::argument(const Argument& a) const {
  return {a.buffer, value(a.offset), values_of(a.strides), value(a.index_stride)};
}

int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int threads_for(int64_t bytes, int64_t operations) {
  return static_cast<int>(
      std::clamp<int64_t>(std::max(bytes / kGrainBytes, operations / kGrainOperations), 1, kMostThreads));
}

char* thread_scratch(int64_t bytes) {
  Scratch& scratch = *mine;
  const bool stale = scratch.epoch != trim_epoch();
  if (scratch.bytes < bytes || ((stale || checks_memory()) && scratch.bytes != bytes)) {
    char* memory = static_cast<char*>(allocate(bytes));
    deallocate(scratch.memory, scratch.bytes);
    scratch.memory = memory, scratch.bytes = bytes;
  }
  if (stale) scratch.epoch = trim_epoch();
  return scratch.memory;
}

PlaneDriver::PlaneDriver(const KernelPtr& kernel, const Dims& space_dims, const std::vector<Argument>& arguments,
                         const Step& costs, const BindContext& context)
    : kernel_(context.kernel(kernel)), first_scalar_(context.first_scalar) {
  Ints space = context.values_of(space_dims);
  INGOT_CHECK(space.size() >= 2, costs.name);
  columns_ = space.back();
  rows_ = space[space.size() - 2];
  outer_.assign(space.begin(), space.end() - 2);
  for (int64_t n : outer_) planes_ = saturating_product(planes_, n);
  arguments_.reserve(arguments.size());
  for (const Argument& a : arguments) {
    BoundArgument bound = context.argument(a);
    INGOT_CHECK(bound.strides.size() == space.size(), costs.name);
    row_strides_.push_back(bound.strides[space.size() - 2]);
    column_strides_.push_back(bound.strides.back());
    index_strides_.push_back(bound.index_stride);
    arguments_.push_back(std::move(bound));
  }
  int64_t elements = saturating_product(planes_, saturating_product(rows_, columns_));
  int64_t bytes = context.value(costs.bytes);
  if (bytes == 0) bytes = saturating_product(elements, 4 * static_cast<int64_t>(arguments_.size()));
  useful_threads = threads_for(bytes, context.value(costs.operations));
}

PlaneWalk::PlaneWalk(std::span<const int64_t> outer, std::span<const BoundArgument> arguments, const RunState& state,
                     char** at, int64_t plane)
    : outer_(outer), arguments_(arguments), at_(at) {
  for (size_t i = 0; i < arguments.size(); ++i) at[i] = arguments[i].at(state);
  for (size_t d = outer.size(); d-- > 0; plane /= outer[d]) {
    int64_t index = plane % outer[d];
    index_.push_back(index);
    for (size_t i = 0; i < arguments.size(); ++i) at[i] += index * arguments[i].strides[d];
  }
}

void PlaneWalk::next() {
  for (size_t d = outer_.size(), inside = 0; d-- > 0; ++inside) {
    bool wraps = ++index_[inside] == outer_[d];
    for (size_t i = 0; i < arguments_.size(); ++i)
      at_[i] += wraps ? -arguments_[i].strides[d] * (outer_[d] - 1) : arguments_[i].strides[d];
    if (!wraps) return;
    index_[inside] = 0;
  }
}

}  // namespace ingot::runtime
