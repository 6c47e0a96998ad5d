#include "trace/call_memory.h"

#include <algorithm>

namespace ingot::trace {

void CallMemory::begin(std::span<const detail::TensorImpl* const> arguments, bool captures) {
  captures_ = captures;
  arguments_.assign(arguments.begin(), arguments.end());
  made_.clear();
  handed_out_.clear();
}

bool CallMemory::is_captured(const detail::TensorImpl& impl) const {
  return captures_ && std::find(arguments_.begin(), arguments_.end(), &impl) == arguments_.end() &&
         std::find(made_.begin(), made_.end(), impl.storage->id()) == made_.end();
}

void CallMemory::hand_out(const runtime::Storage& storage, bool writable) {
  const char* data = static_cast<const char*>(storage.data());
  handed_out_.push_back({data, data + storage.bytes(), writable});
}

// By address, as two storages may be one memory. Through a pointer that can be written, any op over the memory may see
// or miss a write that is not announced; one that can only be read shows what in-place ops have done.
bool CallMemory::is_in_use(const runtime::Storage& storage, bool written) const {
  const char *begin = static_cast<const char*>(storage.data()), *end = begin + storage.bytes();
  return std::any_of(handed_out_.begin(), handed_out_.end(), [&](const HandedOut& memory) {
    return (memory.writable || written) && begin < memory.end && memory.begin < end;
  });
}

}  // namespace ingot::trace
