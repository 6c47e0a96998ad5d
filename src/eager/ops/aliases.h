// Second names of functions, as PyTorch has them, beside those of the op table (ALIAS in ir/ops.def). Arguments are
// those of the function that is named.
#pragma once
#include "eager/ops/functions.h"
#include "eager/ops/special.h"
#include "runtime/thread_pool.h"

namespace ingot {

inline Tensor concatenate(const TensorList& tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor row_stack(const TensorList& tensors) { return vstack(tensors); }
inline Tensor vdot(const TensorArg& self, const TensorArg& other) { return dot(self, other); }
/// PyTorch's pieces of these names may not be written to while others are read; here they are views as any others.
inline std::vector<Tensor> unsafe_chunk(const TensorArg& self, int64_t chunks, int64_t dim = 0) {
  return chunk(self, chunks, dim);
}
inline std::vector<Tensor> unsafe_split(const TensorArg& self, int64_t split_size, int64_t dim = 0) {
  return split(self, split_size, dim);
}
inline std::vector<Tensor> unsafe_split_with_sizes(const TensorArg& self, const IntList& split_sizes, int64_t dim = 0) {
  return split_with_sizes(self, split_sizes, dim);
}
/// eye with its options in the second place.
inline Tensor eye(const SizeArg& n, const TensorOptions& options, Location location = Location()) {
  return eye(n, std::nullopt, options, location);
}
inline Tensor swapaxes(const TensorArg& self, int64_t axis0, int64_t axis1) { return transpose(self, axis0, axis1); }
inline Tensor swapdims(const TensorArg& self, int64_t dim0, int64_t dim1) { return transpose(self, dim0, dim1); }
inline Tensor moveaxis(const TensorArg& self, const IntList& source, const IntList& destination) {
  return movedim(self, source, destination);
}

inline int get_num_threads() { return num_threads(); }

namespace special {

#define INGOT_ALIAS(alias, function) \
  inline Tensor alias(const TensorArg& self) { return function(self); }
INGOT_ALIAS(digamma, ingot::digamma)
INGOT_ALIAS(psi, ingot::digamma)
INGOT_ALIAS(erf, ingot::erf)
INGOT_ALIAS(erfc, ingot::erfc)
INGOT_ALIAS(erfcx, ingot::erfcx)
INGOT_ALIAS(erfinv, ingot::erfinv)
INGOT_ALIAS(exp2, ingot::exp2)
INGOT_ALIAS(expit, ingot::sigmoid)
INGOT_ALIAS(expm1, ingot::expm1)
INGOT_ALIAS(gammaln, ingot::lgamma)
INGOT_ALIAS(log1p, ingot::log1p)
INGOT_ALIAS(modified_bessel_i0, special::i0)
INGOT_ALIAS(modified_bessel_i1, special::i1)
INGOT_ALIAS(sinc, ingot::sinc)
#undef INGOT_ALIAS

inline Tensor xlogy(const OperandArg& self, const OperandArg& other) { return ingot::xlogy(self, other); }
inline Tensor logit(const TensorArg& self, const ScalarArg& eps = {}) { return ingot::logit(self, eps); }
inline Tensor polygamma(int64_t n, const TensorArg& self, Location location = Location()) {
  return ingot::polygamma(n, self, location);
}
inline Tensor round(const TensorArg& self, int64_t decimals = 0) { return ingot::round(self, decimals); }
inline Tensor logsumexp(const TensorArg& self, const IntList& dim, bool keepdim = false) {
  return ingot::logsumexp(self, dim, keepdim);
}
inline Tensor softmax(const TensorArg& self, int64_t dim, std::optional<DType> dtype = {}) {
  return ingot::softmax(self, dim, dtype);
}
inline Tensor log_softmax(const TensorArg& self, int64_t dim, std::optional<DType> dtype = {}) {
  return ingot::log_softmax(self, dim, dtype);
}

}  // namespace special

namespace linalg {

inline Tensor matmul(const TensorArg& self, const TensorArg& other) { return ingot::matmul(self, other); }
inline Tensor vecdot(const TensorArg& x, const TensorArg& y, int64_t dim = -1) { return ingot::vecdot(x, y, dim); }
inline Tensor vector_norm(const TensorArg& self, double ord = 2, const IntList& dim = {}, bool keepdim = false,
                          std::optional<DType> dtype = {}) {
  return ingot::vector_norm(self, ord, dim, keepdim, dtype);
}
inline Tensor diagonal(const TensorArg& self, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) {
  return ingot::diagonal(self, offset, dim1, dim2);
}

}  // namespace linalg

}  // namespace ingot
