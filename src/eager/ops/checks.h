// What functions of this folder say in their errors of a tensor that they do not take.
#pragma once
#include <limits>
#include <string>

#include "eager/call/call.h"

namespace ingot::eager {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// "[2, 3]"
inline std::string text(IntArrayRef sizes) {
  std::string s = "[";
  for (size_t i = 0; i < sizes.size(); ++i) s += (i ? ", " : "") + std::to_string(sizes[i]);
  return s + "]";
}
/// "shape [2, 3]"
inline std::string shape_text(const Tensor& t) { return "shape " + text(t.sizes()); }
/// "a tensor of f32"
inline std::string dtype_text(const Tensor& t) { return "a tensor of " + std::string(name_of(t.dtype())); }

/// The tensor of an argument, which must have a floating dtype.
inline const Tensor& present_floating(const char* op, const char* argument, const TensorArg& a) {
  const Tensor& t = present(op, argument, a);
  if (!is_floating(t.dtype())) fail(op, argument, dtype_text(t), "a floating dtype", a.location);
  return t;
}
/// The tensor of an argument, which must have as many dims.
inline const Tensor& present_with_dims(const char* op, const char* argument, const TensorArg& a, int64_t dims) {
  const Tensor& t = present(op, argument, a);
  if (t.dim() != dims)
    fail(op, argument, shape_text(t), dims == 1 ? "one dim" : std::to_string(dims) + " dims", a.location);
  return t;
}

}  // namespace ingot::eager
