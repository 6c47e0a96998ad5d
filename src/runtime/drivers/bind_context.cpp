#include "runtime/drivers/bind_context.h"

#include <algorithm>

#include "base/error.h"

namespace ingot::runtime {

std::span<int64_t> BindContext::values_of(std::span<const Dim> dims) const {
  const std::span<int64_t> result = array<int64_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) result[i] = value(dims[i]);
  return result;
}

BoundArgument BindContext::argument(const Argument& a) const {
  return {a.buffer, value(a.offset), values_of(a.strides), value(a.index_stride)};
}

std::span<const int64_t> BindContext::list(std::initializer_list<int64_t> numbers) const {
  const std::span<int64_t> result = array<int64_t>(numbers.size());
  std::copy(numbers.begin(), numbers.end(), result.begin());
  return result;
}

ArgumentTable::ArgumentTable(std::initializer_list<const Argument*> first, const std::vector<Argument>& rest,
                             size_t rank)
    : count(first.size() + rest.size()), rank(rank), numbers(count * (kStrides + rank)) {
  auto set = [&, i = size_t{0}](const Argument& a) mutable {
    INGOT_CHECK(a.strides.size() == rank, "an argument has a stride a dim");
    numbers[i] = a.buffer, numbers[kOffsets * count + i] = a.offset,
    numbers[kIndexStrides * count + i] = a.index_stride;
    for (size_t dim = 0; dim < rank; ++dim) numbers[(kStrides + dim) * count + i] = a.strides[dim];
    ++i;
  };
  for (const Argument* a : first) set(*a);
  for (const Argument& a : rest) set(a);
}

BoundArguments::BoundArguments(const ArgumentTable& table, const BindContext& context)
    : numbers_(context.values_of(table.numbers).data()), count_(table.count), rank_(table.rank) {}

BoundArguments::BoundArguments(size_t count, size_t rank, const BindContext& context)
    : numbers_(context.array<int64_t>(count * (ArgumentTable::kStrides + rank)).data()), count_(count), rank_(rank) {}

void BoundArguments::set(size_t i, const BoundArgument& a, std::initializer_list<int64_t> strides) {
  INGOT_CHECK(strides.size() == rank_);
  numbers_[i] = a.buffer;
  numbers_[ArgumentTable::kOffsets * count_ + i] = a.offset;
  numbers_[ArgumentTable::kIndexStrides * count_ + i] = a.index_stride;
  for (size_t line = ArgumentTable::kStrides; int64_t stride : strides) numbers_[line++ * count_ + i] = stride;
}

}  // namespace ingot::runtime
