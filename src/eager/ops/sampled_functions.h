// Integrals and derivatives of functions that are given by samples along a dim.
#pragma once
#include <vector>

#include "eager/ops/functions.h"

namespace ingot {

/// The integral by the trapezoidal rule, of samples `dx` apart or at `x` (one dim, or a shape that broadcasts).
/// Integers give f32; the products of integers with an integer x wrap, as PyTorch's. No bools.
INGOT_API Tensor trapezoid(const TensorArg& y, const ScalarArg& dx = 1, int64_t dim = -1);
INGOT_API Tensor trapezoid(const TensorArg& y, const TensorArg& x, int64_t dim = -1);
/// As trapezoid.
INGOT_API Tensor trapz(const TensorArg& y, const ScalarArg& dx = 1, int64_t dim = -1);
INGOT_API Tensor trapz(const TensorArg& y, const TensorArg& x, int64_t dim = -1);
/// The integrals up to each sample but the first.
INGOT_API Tensor cumulative_trapezoid(const TensorArg& y, const ScalarArg& dx = 1, int64_t dim = -1);
INGOT_API Tensor cumulative_trapezoid(const TensorArg& y, const TensorArg& x, int64_t dim = -1);

/// The partial derivative along each of the dims (all, unless given), by central differences; at both ends one-sided
/// ones of first or second order (edge_order). Samples stand `spacing` apart, ...
INGOT_API std::vector<Tensor> gradient(const TensorArg& self, const ScalarArg& spacing = 1, const IntList& dim = {},
                                       int64_t edge_order = 1);
/// ... one number a dim, ...
INGOT_API std::vector<Tensor> gradient(const TensorArg& self, const std::vector<double>& spacing,
                                       const IntList& dim = {}, int64_t edge_order = 1);
/// ... or at these coordinates, one line a dim.
INGOT_API std::vector<Tensor> gradient(const TensorArg& self, const TensorList& spacing, const IntList& dim = {},
                                       int64_t edge_order = 1);

}  // namespace ingot
