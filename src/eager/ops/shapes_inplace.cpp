#include "eager/call/call.h"
#include "eager/ops/shapes.h"

namespace ingot {
namespace {

/// Makes a handle one of a view of its tensor.
Tensor& become(const char* op, Tensor& self, Tensor view, Location location) {
  if (self.requires_grad() && self.is_leaf())
    eager::fail(op, "self", "a leaf that requires grad", "a tensor whose gradient does not stay with this handle",
                location);
  return self = std::move(view);
}

}  // namespace

Tensor& Tensor::squeeze_(const IntList& dim, Location location) & {
  return become("squeeze_", *this, squeeze(dim, location), location);
}
Tensor& Tensor::unsqueeze_(int64_t dim, Location location) & {
  return become("unsqueeze_", *this, unsqueeze(dim, location), location);
}
Tensor& Tensor::t_(Location location) & { return become("t_", *this, t(location), location); }
Tensor& Tensor::transpose_(int64_t dim0, int64_t dim1, Location location) & {
  return become("transpose_", *this, transpose(dim0, dim1, location), location);
}
Tensor& Tensor::swapaxes_(int64_t axis0, int64_t axis1, Location location) & {
  return become("swapaxes_", *this, transpose(axis0, axis1, location), location);
}
Tensor& Tensor::swapdims_(int64_t dim0, int64_t dim1, Location location) & {
  return become("swapdims_", *this, transpose(dim0, dim1, location), location);
}

}  // namespace ingot
