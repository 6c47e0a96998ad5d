// Products of vectors and matrices beyond the op table and eager/ops/contractions.h.
#pragma once
#include <optional>

#include "eager/ops/functions.h"

namespace ingot {

/// The Kronecker product: each element of self times all of other, as blocks. Missing dims count as 1.
INGOT_API Tensor kron(const TensorArg& self, const TensorArg& other);
/// linalg::cross along a dim; without one, along the first of size 3.
INGOT_API Tensor cross(const TensorArg& self, const TensorArg& other, std::optional<int64_t> dim = {});
/// linalg::multi_dot of matrices; one is given back as it is.
INGOT_API Tensor chain_matmul(const TensorList& matrices);
/// As linalg::matrix_power.
INGOT_API Tensor matrix_power(const TensorArg& self, int64_t n);
/// Powers of one dim of numbers as columns, the highest first, of integers i64; N: how many, else as many as there are
/// numbers.
INGOT_API Tensor vander(const TensorArg& x, std::optional<int64_t> N = {}, bool increasing = false);
/// The p-norm of the difference, which broadcasts.
INGOT_API Tensor dist(const TensorArg& self, const TensorArg& other, double p = 2);
/// Slices along a dim whose p-norm is larger than `maxnorm`, brought to that norm; floats with at least two dims.
INGOT_API Tensor renorm(const TensorArg& self, double p, int64_t dim, double maxnorm);

namespace linalg {

/// Of vectors of size 3 along a dim; other dims broadcast.
INGOT_API Tensor cross(const TensorArg& self, const TensorArg& other, int64_t dim = -1);
/// The product of at least two matrices, in the order that takes the fewest multiplications. The first and the last may
/// be vectors.
INGOT_API Tensor multi_dot(const TensorList& tensors);
/// Square matrices in the last two dims to the n; negative: of the inverse; 0: the identity, with a gradient of zeros.
INGOT_API Tensor matrix_power(const TensorArg& self, int64_t n);
/// Powers 0, 1, ... of each number along a new last dim; N (not 1): how many, else as many as there are numbers in the
/// last dim. Of integers i64. Without a dim it is one number.
INGOT_API Tensor vander(const TensorArg& x, std::optional<int64_t> N = {});

}  // namespace linalg
}  // namespace ingot
