// Guards on tensors: what a call must match of them. Compared here and nowhere else, with the words for what did not.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "eager/call/stride_class.h"
#include "eager/tensor.h"

namespace ingot::eager {

/// What every guard compares of a tensor but sizes and strides, in one word: dtype, rank, requires_grad, and a device
/// (0: the processor, all there is).
class TensorFacts {
 public:
  /// Those of no tensor.
  TensorFacts() = default;
  TensorFacts(DType dtype, size_t rank, bool requires_grad = false)
      : word_(kTensor | static_cast<uint64_t>(dtype) | static_cast<uint64_t>(requires_grad) << 8 |
              static_cast<uint64_t>(rank) << 32) {}
  explicit TensorFacts(const detail::TensorImpl& t) : TensorFacts(t.dtype, t.sizes.size(), t.requires_grad) {}

  bool tensor() const { return word_ != 0; }
  DType dtype() const { return static_cast<DType>(word_ & 0xff); }
  bool requires_grad() const { return word_ >> 8 & 1; }
  size_t rank() const { return static_cast<size_t>(word_ >> 32); }
  uint64_t word() const { return word_; }
  friend bool operator==(TensorFacts, TensorFacts) = default;

 private:
  static constexpr uint64_t kTensor = 1u << 24;  // bits 16 to 23 are the device's
  uint64_t word_ = 0;
};

/// What a guard held and what it met.
struct Mismatch {
  const char* fact;
  std::string before, after;
};
/// The first of the facts that differs.
std::optional<Mismatch> mismatch(TensorFacts guarded, TensorFacts met);

/// A tensor as a guard keeps it. One that was not computed yet matches none.
struct TensorGuard {
  TensorFacts facts;
  Ints sizes, strides;  // of the tensor it was made of, or the latest that it let pass
  StrideClass classes;

  TensorGuard() = default;
  explicit TensorGuard(const detail::TensorImpl& t);
  /// The same facts, sizes and strides.
  bool equals(const detail::TensorImpl& t) const { return t.storage && TensorFacts(t) == facts && same_layout(t); }
  /// The same facts; its sizes may be others, if its strides follow from them in the same way.
  bool holds(const detail::TensorImpl& t) const;
  /// Of a tensor with the same rank.
  bool same_layout(const detail::TensorImpl& t) const {
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] != t.sizes[d] || strides[d] != t.strides[d]) return false;
    return true;
  }
  /// What holds() missed first; absent if nothing.
  std::optional<Mismatch> why_not(const detail::TensorImpl& t) const;
  std::string str() const;
  friend bool operator==(const TensorGuard&, const TensorGuard&) = default;
};

/// "f32[4, 784]", with the strides where they are not dense.
std::string describe(DType dtype, const Ints& sizes, const Ints& strides);

}  // namespace ingot::eager
