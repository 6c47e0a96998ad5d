#include "trace/write_back.h"

#include <algorithm>
#include <tuple>

#include "base/scratch_array.h"
#include "eager/data.h"
#include "eager/execute/execute.h"

namespace ingot::trace {

bool find_aliases(std::span<const detail::TensorImpl* const> slots, std::span<const uint32_t> written,
                  std::vector<uint32_t>& aliases) {
  aliases.clear();
  if (written.empty()) return true;
  struct Reach {
    eager::Extent extent;
    uint32_t slot;
    bool written;
  };
  ScratchArray<Reach, 32> reaches(slots.size());
  std::vector<uint32_t> elsewhere;
  for (uint32_t s = 0; s < slots.size(); ++s) {
    reaches[s] = {eager::extent_of(*slots[s]), s, false};
    aliases.push_back(s);
  }
  for (uint32_t slot : written) reaches[slot].written = true;
  // In the order of addresses, what meets stands side by side.
  std::sort(reaches.begin(), reaches.end(), [](const Reach& a, const Reach& b) {
    return std::tie(a.extent.begin, a.slot) < std::tie(b.extent.begin, b.slot);
  });
  for (size_t first = 0, end; first < reaches.size(); first = end) {
    const char* reach = reaches[first].extent.end;
    for (end = first + 1; end < reaches.size() && reaches[end].extent.begin < reach; ++end)
      reach = std::max(reach, reaches[end].extent.end);
    const std::span<const Reach> group(&reaches[first], end - first);
    for (const Reach& one : group) {
      if (!one.written) continue;
      for (const Reach& other : group) {
        if (other.slot == one.slot || !one.extent.meets(other.extent)) continue;
        if (!eager::same_places(*slots[one.slot], *slots[other.slot])) {
          if (other.written || slots[one.slot]->storage != slots[other.slot]->storage) return false;
          elsewhere.push_back(one.slot), elsewhere.push_back(other.slot);
          continue;
        }
        aliases[other.slot] = aliases[one.slot] = std::min(aliases[other.slot], aliases[one.slot]);
      }
    }
  }
  for (uint32_t slot : elsewhere) {
    aliases[first_alias(aliases[slot])] |= kSeenElsewhere;
    aliases[slot] |= kSeenElsewhere;
  }
  return true;
}

void* donated_memory(const OutputTarget& target, const Tensor& slot) {
  const detail::TensorImpl& impl = *slot.impl();
  return target.donated && target.strides(impl.sizes) == impl.strides ? eager::data_of(impl) : nullptr;
}

void write_back(const OutputTarget& target, const Tensor& slot, runtime::StoragePtr result, uint64_t writes) {
  const detail::TensorImpl& to = *slot.impl();
  const eager::Extent reach = eager::extent_of(to);
  for (uint64_t i = 1; i < writes; ++i) to.storage->bump_version(reach.begin, reach.end);
  if (!result) {
    to.storage->bump_version(reach.begin, reach.end);
    return;
  }
  const Tensor source = eager::make_tensor(to.dtype, to.sizes, target.strides(to.sizes), 0, result.get());
  const eager::Operand operands[] = {slot, source};
  Tensor written;
  eager::execute({OpId::copy, true, operands, {}, Location::none()}, {&written, 1});
}

}  // namespace ingot::trace
