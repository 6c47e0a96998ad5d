// Order statistics, histograms and covariances.
#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include "eager/ops/functions.h"

namespace ingot {

/// The lower median of all elements, NaN where one of them is; its gradient is shared out to all that are equal to it.
/// nanmedian passes over NaN. Integers and floats; of no elements NaN, for integers an Error.
INGOT_API Tensor median(const TensorArg& self);
INGOT_API Tensor nanmedian(const TensorArg& self);
/// Along a dim, with the place of it (i64): of equal elements the one in the middle of a stable order.
INGOT_API std::tuple<Tensor, Tensor> median(const TensorArg& self, int64_t dim, bool keepdim = false);
INGOT_API std::tuple<Tensor, Tensor> nanmedian(const TensorArg& self, int64_t dim, bool keepdim = false);

/// Quantiles along a dim, or of all elements, of f32 or f64. `q`: a number in [0, 1], or a tensor of them (of self's
/// dtype, at most one dim, which becomes the first one of the result). Interpolation between two elements: linear,
/// lower, higher, midpoint, nearest. A NaN gives NaN; nanquantile passes over it.
INGOT_API Tensor quantile(const TensorArg& self, const OperandArg& q, std::optional<int64_t> dim = {},
                          bool keepdim = false, Word interpolation = "linear");
INGOT_API Tensor nanquantile(const TensorArg& self, const OperandArg& q, std::optional<int64_t> dim = {},
                             bool keepdim = false, Word interpolation = "linear");

/// How often each number from 0 on occurs in one dim of integers, none of them negative; with weights (of its shape)
/// their sums, f32 for f32 and else f64. i64 [largest + 1], at least `minlength`. Reads the values: a graph break in
/// compiled code. Without a gradient.
INGOT_API Tensor bincount(const TensorArg& self, const TensorArg& weights = {}, int64_t minlength = 0);
/// How many elements lie in each of `bins` parts of [min, max], of self's dtype (a float); the last part has its end,
/// too, and what lies outside counts nowhere. min = max: from the smallest to the largest element. No gradient. Of
/// elements that are not all finite, an Error, here and for histogram.
INGOT_API Tensor histc(const TensorArg& self, int64_t bins = 100, double min = 0, double max = 0);
/// The same of f32 or f64 and with the edges of the bins: counts, or sums of weights (shape and dtype of self), as
/// shares of their sum by width with `density`. `range`: two numbers, or nothing: the smallest and the largest element.
INGOT_API std::tuple<Tensor, Tensor> histogram(const TensorArg& self, int64_t bins = 100,
                                               const std::vector<double>& range = {}, const TensorArg& weight = {},
                                               bool density = false);
/// Between given edges: one dim, in ascending order (else an Error).
INGOT_API std::tuple<Tensor, Tensor> histogram(const TensorArg& self, const TensorArg& bins,
                                               const TensorArg& weight = {}, bool density = false);

/// The covariance matrix of variables (rows) over observations (columns); of one dim the variance. `fweights`: how
/// often each observation counts (integers); `aweights`: how much (floats). A negative weight, or a sum of 0, is an
/// Error.
INGOT_API Tensor cov(const TensorArg& self, int64_t correction = 1, const TensorArg& fweights = {},
                     const TensorArg& aweights = {});
/// Pearson's correlation coefficients of the rows, from -1 to 1.
INGOT_API Tensor corrcoef(const TensorArg& self);

}  // namespace ingot
