// Steps that work along one dim: where each line begins, for every operand.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "runtime/drivers/step_driver.h"

namespace ingot::runtime {

/// A tensor of a host step with its shape; dims that the step adds have stride 0.
struct BoundTensor {
  BoundArgument place;
  std::span<const int64_t> sizes;
  DType dtype = DType::f32;
  /// A zero-dim tensor has one dim of one element.
  BoundTensor(const HostStep::Tensor& tensor, const BindContext& context)
      : place(context.argument(tensor.place)), sizes(context.values_of(tensor.shape)), dtype(tensor.dtype) {
    if (!sizes.empty()) return;
    sizes = context.list({1});
    place.strides = context.list({0});
  }
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
};

/// Walks all dims of a shape but some: a line is one choice of coordinates of the others, in row-major order.
class Lines {
 public:
  Lines() = default;
  Lines(std::span<const int64_t> sizes, std::initializer_list<int64_t> left_out) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (std::find(left_out.begin(), left_out.end(), static_cast<int64_t>(d)) != left_out.end()) continue;
      dims_.push_back(static_cast<int64_t>(d));
      sizes_.push_back(sizes[d]);
      count *= sizes[d];
    }
  }
  int64_t count = 1;

  /// Bytes from the start of an operand with these strides to the line.
  int64_t offset(int64_t line, std::span<const int64_t> strides) const {
    int64_t bytes = 0;
    for (size_t i = sizes_.size(); i-- > 0; line /= sizes_[i]) bytes += line % sizes_[i] * strides[dims_[i]];
    return bytes;
  }
  /// Whether the line's coordinates lie inside of another shape.
  bool inside(int64_t line, std::span<const int64_t> sizes) const {
    for (size_t i = sizes_.size(); i-- > 0; line /= sizes_[i])
      if (line % sizes_[i] >= sizes[dims_[i]]) return false;
    return true;
  }

 private:
  Ints dims_, sizes_;
};

/// The last dim, whose elements a step takes side by side; -1 where that is the dim it works along.
inline int64_t column_dim(std::span<const int64_t> sizes, int64_t dim) {
  int64_t last = static_cast<int64_t>(sizes.size()) - 1;
  return last == dim ? -1 : last;
}

}  // namespace ingot::runtime
