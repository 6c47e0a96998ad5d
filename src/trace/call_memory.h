// The memory of one call: what it was given, what it has made, and what its callable holds pointers to.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "eager/tensor.h"
#include "runtime/memory/storage.h"

namespace ingot::trace {

class CallMemory {
 public:
  /// `captures`: whether there may be tensors that come again in the calls to come.
  void begin(std::span<const detail::TensorImpl* const> arguments, bool captures = true);
  void note_made(const runtime::Storage& storage) { made_.push_back(storage.id()); }
  /// Neither an argument nor made by the call: what is derived from it may be kept for the calls to come.
  bool is_captured(const detail::TensorImpl& impl) const;

  /// The callable holds a pointer to it from here on: ops that touch it run at once, in the callable's order.
  void hand_out(const runtime::Storage& storage, bool writable);
  bool anything_handed_out() const { return !handed_out_.empty(); }
  /// True if an op that reads the storage, or writes it, may miss or change what the callable sees through a pointer.
  bool is_in_use(const runtime::Storage& storage, bool written) const;

 private:
  struct HandedOut {
    const char *begin, *end;
    bool writable;
  };
  bool captures_ = true;
  std::vector<const detail::TensorImpl*> arguments_;
  std::vector<uint64_t> made_;  // ids of storages
  std::vector<HandedOut> handed_out_;
};

}  // namespace ingot::trace
