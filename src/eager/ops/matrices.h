// Matrices in the last two dims, as functions of linalg.h take them. Not in the API.
#pragma once
#include <initializer_list>

#include "eager/call/check_values.h"
#include "eager/ops/checks.h"
#include "eager/ops/functions.h"

namespace ingot::eager {

inline Ints batch_of(const Tensor& t) { return Ints(t.sizes().begin(), t.sizes().end() - 2); }
inline Ints shape_of(Ints batch, std::initializer_list<int64_t> sizes) {
  for (int64_t s : sizes) batch.push_back(s);
  return batch;
}
/// Square matrices, or any, of f64: what is made of these is rounded to the caller's dtype. `halves`: of 16-bit floats,
/// too.
inline Tensor wide(const char* op, const char* argument, const TensorArg& a, bool square, bool finite = false,
                   bool halves = false) {
  const Tensor& t = present(op, argument, a);
  if (t.dtype() != kFloat32 && t.dtype() != kFloat64 && !(halves && is_half(t.dtype())))
    fail(op, argument, dtype_text(t), halves ? "a floating dtype" : "f32 or f64", a.location);
  if (t.dim() < 2) fail(op, argument, shape_text(t), "matrices: at least two dims", a.location);
  if (square && t.size(-1) != t.size(-2)) fail(op, argument, shape_text(t), "square matrices", a.location);
  const Tensor result = t.to(kFloat64);
  if (finite) require({op, argument, "elements that are not finite", "finite ones"}, isfinite(result.detach()));
  return result;
}

}  // namespace ingot::eager
