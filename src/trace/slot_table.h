// Which slot a tensor from outside has in the segment in progress: a lookup that does not grow with their number.
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"

namespace ingot::detail {
struct TensorImpl;
}

namespace ingot::trace {

/// The slots of a segment, in order; the last ones may be those of a comparison in progress, which are given up by
/// cutting the list. Few are found by looking at each, many by address.
class SlotTable {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint32_t size() const { return size_; }
  std::span<detail::TensorImpl* const> tensors() const { return {bound_.data(), size_}; }
  detail::TensorImpl* operator[](uint32_t slot) const { return bound_[slot]; }
  uint32_t find(const detail::TensorImpl* tensor) const {
    if (size_ <= kFew) {
      for (uint32_t slot = 0; slot < size_; ++slot)
        if (bound_[slot] == tensor) return slot;
      return kNone;
    }
    for (size_t at = place(tensor);; at = (at + 1) & (entries_.size() - 1)) {
      const Entry& entry = entries_[at];
      if (entry.round != round_) return kNone;
      // What a longer list has left behind, before it was cut, counts no more.
      if (entry.slot < size_ && bound_[entry.slot] == tensor) return entry.slot;
    }
  }
  /// A tensor that has no slot gets the next one.
  void add(detail::TensorImpl* tensor) {
    if (size_ == bound_.size()) bound_.resize(size_ + 16);
    bound_[size_++] = tensor;
    if (size_ == kFew + 1)
      rebuild();
    else if (size_ > kFew)
      enter(size_ - 1);
  }
  void cut(uint32_t size) { size_ = size; }
  void clear() { size_ = 0; }

 private:
  static constexpr uint32_t kFew = 8;
  struct Entry {
    uint32_t round = 0, slot = 0;
  };
  size_t place(const detail::TensorImpl* tensor) const {
    return hash_mix(reinterpret_cast<uintptr_t>(tensor), 0x9e3779b97f4a7c15ull) & (entries_.size() - 1);
  }
  void enter(uint32_t slot) {
    if (2 * ++entered_ > entries_.size()) return rebuild();
    size_t at = place(bound_[slot]);
    while (entries_[at].round == round_) at = (at + 1) & (entries_.size() - 1);
    entries_[at] = {round_, slot};
  }
  void rebuild() {
    if (4 * size_t{size_} > entries_.size()) entries_.assign(std::bit_ceil(8 * size_t{size_}), {});
    if (++round_ == 0) {
      entries_.assign(entries_.size(), {});
      round_ = 1;
    }
    entered_ = 0;
    for (uint32_t slot = 0; slot < size_; ++slot) enter(slot);
  }

  std::vector<detail::TensorImpl*> bound_;
  std::vector<Entry> entries_;
  uint32_t size_ = 0, round_ = 0;
  size_t entered_ = 0;
};

}  // namespace ingot::trace
