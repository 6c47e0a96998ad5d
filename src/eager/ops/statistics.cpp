#include "eager/ops/statistics.h"

#include <cmath>
#include <limits>

#include "base/function_scope.h"
#include "eager/call/check_values.h"
#include "eager/ops/checks.h"

namespace ingot {
namespace {

using eager::dtype_text;
using eager::fail;
using eager::kInfinity;
using eager::present;
using eager::present_floating;
using eager::shape_text;

/// How many elements of each line along a dim are no NaN, with the dim kept.
Tensor numbers_along(const Tensor& x, int64_t dim) { return x.isnan().logical_not().sum(dim, true); }

const Tensor& present_ordered(const char* op, const TensorArg& self) {
  const Tensor& x = present(op, "self", self);
  if (x.dtype() == kBool) fail(op, "self", dtype_text(x), "integers or floats", self.location);
  return x;
}

// Where there is a NaN, the first of them. Sorted, it comes last.
std::tuple<Tensor, Tensor> median_along(const char* op, const TensorArg& self, int64_t dim, bool keepdim,
                                        bool skip_nan) {
  const FunctionScope scope(op, self.location);
  const Tensor& x = present_ordered(op, self);
  const int64_t d = eager::wrapped_dim(op, "dim", dim, x.dim(), self.location);
  const Tensor lines = x.dim() ? x : x.unsqueeze(0);
  const Size n = lines.size(d);
  if (n == 0) fail(op, "dim", std::to_string(dim) + ", of size 0", "a dim with elements", self.location);
  if (!skip_nan) {
    auto [value, place] = lines.kthvalue((n + 1) / 2, d, true);
    if (is_floating(x.dtype())) {
      const auto [largest, at] = lines.max(d, true);
      place = where(largest.isnan(), at, place);
      value = lines.gather(d, place);
    }
    if (keepdim && x.dim()) return {value, place};
    return {value.squeeze(d), place.squeeze(d)};
  }
  auto [sorted, order] = lines.sort(d, false, true);
  const Tensor numbers = numbers_along(lines, d);
  const Tensor middle = floor_divide(clamp_min(numbers - 1, 0), 2);
  const Tensor value = sorted.gather(d, middle), place = order.gather(d, middle);
  if (keepdim && x.dim()) return {value, place};
  return {value.squeeze(d), place.squeeze(d)};
}

Tensor median_of_all(const char* op, const TensorArg& self, bool skip_nan) {
  const FunctionScope scope(op, self.location);
  const Tensor& x = present_ordered(op, self);
  const Tensor all = x.reshape({-1});
  if (all.size(0) == 0) {
    if (!is_floating(x.dtype())) fail(op, "self", "no elements", "at least one integer", self.location);
    return full(IntList(Ints()), std::numeric_limits<double>::quiet_NaN(), x.dtype());
  }
  const Tensor value = std::get<0>(median_along(op, {all.detach(), self.location}, 0, false, skip_nan));
  if (!x.requires_grad()) return value;
  // As the largest of those that are equal to it, for the gradient of amax is shared out; a NaN as the mean of all
  // NaNs.
  const Tensor missing = isnan(all), same = where(isnan(value), missing, all == value);
  const Tensor largest = where(same, where(missing, 0, all), -kInfinity).amax();
  return where(isnan(value), where(same, all, 0).sum() / same.sum(), largest);
}

Tensor quantile_of(const char* op, const TensorArg& self, const OperandArg& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation, bool skip_nan) {
  const FunctionScope scope(op, self.location);
  const Tensor& x = present(op, "self", self);
  if (x.dtype() != kFloat32 && x.dtype() != kFloat64) fail(op, "self", dtype_text(x), "f32 or f64", self.location);
  const int64_t d = dim ? eager::wrapped_dim(op, "dim", *dim, x.dim(), self.location) : 0;
  if (x.numel() == 0) fail(op, "self", shape_text(x), "at least one element", self.location);
  const bool midpoint = interpolation == "midpoint", between = midpoint || interpolation == "linear";
  if (!between && interpolation != "lower" && interpolation != "higher" && interpolation != "nearest")
    fail(op, "interpolation", "\"" + std::string(interpolation) + "\"",
         "one of \"linear\", \"lower\", \"higher\", \"midpoint\", \"nearest\"", self.location);
  if (!q.tensor && !(q.value.to_double() >= 0 && q.value.to_double() <= 1))
    fail(op, "q", std::to_string(q.value.to_double()), "a number from 0 to 1", self.location);
  const Tensor wanted = q.tensor ? present(op, "q", {*q.tensor, q.location}) : scalar_tensor(q.value, x.dtype());
  if (wanted.dtype() != x.dtype())
    fail(op, "q", dtype_text(wanted), std::string(name_of(x.dtype())) + ", the dtype of self", self.location);
  if (wanted.dim() > 1) fail(op, "q", shape_text(wanted), "at most one dim", self.location);
  if (q.tensor)
    eager::require({op, "q", "a number below 0 or above 1", "numbers from 0 to 1"},
                   logical_and(wanted >= 0, wanted <= 1));

  const Tensor lines = !dim || x.dim() == 0 ? x.reshape({-1}) : x.movedim(d, -1);
  const Size n = lines.size(-1);
  const Tensor sorted = std::get<0>(lines.sort(-1)), numbers = numbers_along(lines, -1);
  const Tensor some = wanted.reshape({-1});
  // The place of a quantile in its sorted line. Of a line with NaN: the last one, where NaN stands.
  Tensor rank = skip_nan ? some * clamp_min(numbers - 1, 0) : where(numbers == n, some * (n - 1), n - 1);
  rank = rank.to(x.dtype());
  if (interpolation == "nearest") rank = rank.round();
  const Tensor lower = rank.floor(), upper = rank.ceil();
  Tensor result = sorted.gather(-1, (interpolation == "higher" ? upper : lower).to(kInt64));
  if (between)
    result = lerp(result, sorted.gather(-1, upper.to(kInt64)), midpoint ? full_like(rank, 0.5) : rank - lower);

  result = result.movedim(-1, 0);  // [quantiles, lines]
  if (keepdim && dim && x.dim()) result = result.unsqueeze(d + 1);
  if (keepdim && !dim)
    for (int64_t i = 0; i < x.dim(); ++i) result = result.unsqueeze(-1);
  return wanted.dim() ? result : result.squeeze(0);
}

/// Sums of weights, or counts, by the bin of each element; bin `bins` stands for none.
Tensor sums_by_bin(const Tensor& bin, const Tensor& weights, int64_t bins) {
  return zeros({bins + 1}, weights.dtype()).index_add(0, bin, weights).narrow(0, 0, bins);
}

/// The ends that are divided into bins, as zero-dim tensors: those that are given, or of the elements.
struct Ends {
  Tensor low, high;
};
/// `spread`: how far ends that are equal are taken apart.
Ends ends_of(const char* op, const Tensor& x, const double* given, double spread) {
  Ends ends;
  if (given) {
    ends = {scalar_tensor(given[0], x.dtype()), scalar_tensor(given[1], x.dtype())};
  } else {
    ends = {x.amin(), x.amax()};
    eager::require({op, "self", "an element that is infinite or NaN", "finite ones, or ends of the bins"},
                   logical_and(isfinite(ends.low), isfinite(ends.high)));
  }
  const Tensor apart = where(ends.low == ends.high, scalar_tensor(spread, x.dtype()), 0);
  return {ends.low - apart, ends.high + apart};
}

std::tuple<Tensor, Tensor> histogram_of(const Tensor& x, const Tensor& edges, const TensorArg& weight, bool density,
                                        Location location) {
  const Tensor flat = x.reshape({-1}).detach();
  if (weight.tensor && (weight.tensor->sizes() != x.sizes() || weight.tensor->dtype() != x.dtype()))
    fail("histogram", "weight", dtype_text(*weight.tensor) + " with " + shape_text(*weight.tensor),
         "dtype and shape of self, " + std::string(name_of(x.dtype())) + " and " + eager::text(x.sizes()), location);
  const Tensor weights = weight.tensor ? weight.tensor->reshape({-1}).detach() : ones_like(flat);
  const int64_t bins = edges.size(0) - 1;
  const Tensor low = edges[0], high = edges[-1];
  // What is as large as the last edge belongs to the bin before it.
  const Tensor bin = clamp(searchsorted(edges, flat, false, true) - 1, 0, bins - 1);
  const Tensor inside = logical_and(flat >= low, flat <= high);
  Tensor sums = sums_by_bin(where(inside, bin, bins), weights, bins);
  if (density) sums = sums / sums.sum() / diff(edges);
  return {sums, edges};
}

const Tensor& histogram_input(const TensorArg& self) {
  const Tensor& x = present("histogram", "self", self);
  if (x.dtype() != kFloat32 && x.dtype() != kFloat64)
    fail("histogram", "self", dtype_text(x), "f32 or f64", self.location);
  return x;
}

/// Weights of observations: one dim, none of them negative.
Tensor observation_weights(const char* name, const TensorArg& given, Category category, int64_t observations,
                           Location location) {
  const Tensor& w = *given.tensor;
  if (w.dim() > 1 || w.numel() != observations)
    fail("cov", name, shape_text(w), std::to_string(observations) + " numbers, one for each observation", location);
  if (category_of(w.dtype()) != category)
    fail("cov", name, dtype_text(w), category == Category::integer ? "integers" : "floats", location);
  eager::require({"cov", name, "a weight that is negative or NaN", "no such weight"}, w >= 0);
  return w.reshape({-1});
}

}  // namespace

Tensor median(const TensorArg& self) { return median_of_all("median", self, false); }
Tensor nanmedian(const TensorArg& self) { return median_of_all("nanmedian", self, true); }
std::tuple<Tensor, Tensor> median(const TensorArg& self, int64_t dim, bool keepdim) {
  return median_along("median", self, dim, keepdim, false);
}
std::tuple<Tensor, Tensor> nanmedian(const TensorArg& self, int64_t dim, bool keepdim) {
  return median_along("nanmedian", self, dim, keepdim, true);
}

Tensor quantile(const TensorArg& self, const OperandArg& q, std::optional<int64_t> dim, bool keepdim,
                Word interpolation) {
  return quantile_of("quantile", self, q, dim, keepdim, interpolation, false);
}
Tensor nanquantile(const TensorArg& self, const OperandArg& q, std::optional<int64_t> dim, bool keepdim,
                   Word interpolation) {
  return quantile_of("nanquantile", self, q, dim, keepdim, interpolation, true);
}

Tensor bincount(const TensorArg& self, const TensorArg& weights, int64_t minlength) {
  const FunctionScope scope("bincount", self.location);
  const Tensor& x = eager::present_with_dims("bincount", "self", self, 1);
  if (!is_integral(x.dtype())) fail("bincount", "self", dtype_text(x), "integers", self.location);
  if (minlength < 0) fail("bincount", "minlength", std::to_string(minlength), "no negative number", self.location);
  if (weights.tensor && weights.tensor->sizes() != x.sizes())
    fail("bincount", "weights", shape_text(*weights.tensor), eager::text(x.sizes()) + ", the shape of self",
         self.location);
  if (x.numel() == 0) return zeros({minlength}, kInt64);
  auto [least, largest] = x.aminmax();
  const int64_t highest = largest.item<int64_t>();
  if (const int64_t lowest = least.item<int64_t>(); lowest < 0)
    fail("bincount", "self", std::to_string(lowest), "no negative number", self.location);
  const int64_t bins = std::max(highest + 1, minlength);
  const Tensor each = weights.tensor
                          ? weights.tensor->detach().to(weights.tensor->dtype() == kFloat32 ? kFloat32 : kFloat64)
                          : ones({x.size(0)}, kInt64);
  return sums_by_bin(x.to(kInt64), each, bins);
}

Tensor histc(const TensorArg& self, int64_t bins, double min, double max) {
  const FunctionScope scope("histc", self.location);
  const Tensor& x = present_floating("histc", "self", self);
  if (bins < 1) fail("histc", "bins", std::to_string(bins), "at least 1", self.location);
  if (min > max || !std::isfinite(min) || !std::isfinite(max))
    fail("histc", "max", std::to_string(max), "a finite number that is not below min, " + std::to_string(min),
         self.location);
  if (x.numel() == 0) return zeros({bins}, x.dtype());
  const Tensor flat = x.reshape({-1}).detach();
  const double given[] = {min, max};
  const auto [low, high] = ends_of("histc", flat, min == max ? nullptr : given, 1);
  const Tensor place = (flat - low) * bins / (high - low);
  const Tensor inside = logical_and(flat >= low, flat <= high);
  const Tensor bin = where(inside, clamp(where(inside, place, 0).to(kInt64), 0, bins - 1), bins);
  return sums_by_bin(bin, ones_like(flat), bins);
}

std::tuple<Tensor, Tensor> histogram(const TensorArg& self, int64_t bins, const std::vector<double>& range,
                                     const TensorArg& weight, bool density) {
  const FunctionScope scope("histogram", self.location);
  const Tensor& x = histogram_input(self);
  if (bins < 1) fail("histogram", "bins", std::to_string(bins), "at least 1", self.location);
  if (!range.empty() && (range.size() != 2 || !(range[0] <= range[1]) || !std::isfinite(range[1] - range[0])))
    fail("histogram", "range",
         range.size() == 2 ? std::to_string(range[0]) + " and " + std::to_string(range[1])
                           : std::to_string(range.size()) + " numbers",
         "two finite numbers, the smaller one first", self.location);
  constexpr double kOfNothing[] = {0, 1};
  const double* given = !range.empty() ? range.data() : x.numel() == 0 ? kOfNothing : nullptr;
  const auto [low, high] = ends_of("histogram", x.detach(), given, 0.5);
  return histogram_of(x, linspace(low, high, bins + 1, x.dtype()), weight, density, self.location);
}

std::tuple<Tensor, Tensor> histogram(const TensorArg& self, const TensorArg& bins, const TensorArg& weight,
                                     bool density) {
  const FunctionScope scope("histogram", self.location);
  const Tensor& x = histogram_input(self);
  const Tensor& edges = eager::present_with_dims("histogram", "bins", bins, 1);
  if (edges.dtype() != x.dtype())
    fail("histogram", "bins", dtype_text(edges), std::string(name_of(x.dtype())) + ", the dtype of self",
         self.location);
  if (edges.size(0) < 2) fail("histogram", "bins", shape_text(edges), "at least two edges", self.location);
  eager::require({"histogram", "bins", "an edge that is NaN or below the one before it", "edges in ascending order"},
                 edges.slice(0, 1) >= edges.slice(0, 0, -1));
  return histogram_of(x, edges.detach(), weight, density, self.location);
}

Tensor cov(const TensorArg& self, int64_t correction, const TensorArg& fweights, const TensorArg& aweights) {
  const FunctionScope scope("cov", self.location);
  const Tensor& x = present("cov", "self", self);
  if (x.dim() > 2) fail("cov", "self", shape_text(x), "at most two dims", self.location);
  if (x.dtype() == kBool) fail("cov", "self", dtype_text(x), "integers or floats", self.location);
  // 16-bit floats are computed in f32 and rounded once.
  const DType working = working_dtype(is_floating(x.dtype()) ? x.dtype() : kFloat32);
  const bool wider = aweights.tensor && !is_half(aweights.tensor->dtype());
  const auto rounded = [&](const Tensor& t) { return is_half(x.dtype()) && !wider ? t.to(x.dtype()) : t; };
  const Tensor table = (x.dim() < 2 ? x.reshape({1, -1}) : x).to(working);
  const Size observations = table.size(1);
  Tensor weights, factors;
  if (fweights.tensor)
    weights = observation_weights("fweights", fweights, Category::integer, observations, self.location);
  if (aweights.tensor) {
    const Tensor w = observation_weights("aweights", aweights, Category::floating, observations, self.location);
    factors = w.to(working_dtype(w.dtype()));
    weights = weights.defined() ? weights * factors : factors;
  }
  if (!weights.defined()) {
    const Tensor centred = table - table.mean(1, true);
    const Size freedom = observations - correction;
    return rounded((matmul(centred, centred.t()) / (freedom < 0 ? 0 : int64_t{freedom})).squeeze());
  }
  const Tensor total = weights.sum();
  if (observations > 0)
    eager::require({"cov", fweights.tensor ? "fweights" : "aweights", "weights whose sum is 0", "another sum"},
                   total != 0);
  const Tensor centred = table - (table * weights).sum(1, true) / total;
  const Tensor freedom = factors.defined() && correction != 0 ? total - correction * (weights * factors).sum() / total
                                                              : total - correction;
  return rounded((matmul(centred, (centred * weights).t()) / clamp_min(freedom, 0)).squeeze());
}

Tensor corrcoef(const TensorArg& self) {
  const FunctionScope scope("corrcoef", self.location);
  const Tensor& x = present("corrcoef", "self", self);
  if (x.dim() > 2) fail("corrcoef", "self", shape_text(x), "at most two dims", self.location);
  const Tensor c = cov(self);
  if (c.dim() == 0) return c / c;
  const Tensor deviation = c.diagonal().sqrt();
  return clamp(c / deviation.unsqueeze(1) / deviation.unsqueeze(0), -1, 1);
}

Tensor Tensor::median(Location location) const { return ingot::median({*this, location}); }
std::tuple<Tensor, Tensor> Tensor::median(int64_t dim, bool keepdim, Location location) const {
  return ingot::median({*this, location}, dim, keepdim);
}
Tensor Tensor::nanmedian(Location location) const { return ingot::nanmedian({*this, location}); }
std::tuple<Tensor, Tensor> Tensor::nanmedian(int64_t dim, bool keepdim, Location location) const {
  return ingot::nanmedian({*this, location}, dim, keepdim);
}
Tensor Tensor::quantile(const OperandArg& q, std::optional<int64_t> dim, bool keepdim, Word interpolation,
                        Location location) const {
  return ingot::quantile({*this, location}, q, dim, keepdim, interpolation);
}
Tensor Tensor::nanquantile(const OperandArg& q, std::optional<int64_t> dim, bool keepdim, Word interpolation,
                           Location location) const {
  return ingot::nanquantile({*this, location}, q, dim, keepdim, interpolation);
}
Tensor Tensor::bincount(const TensorArg& weights, int64_t minlength, Location location) const {
  return ingot::bincount({*this, location}, weights, minlength);
}
Tensor Tensor::histc(int64_t bins, double min, double max, Location location) const {
  return ingot::histc({*this, location}, bins, min, max);
}
std::tuple<Tensor, Tensor> Tensor::histogram(int64_t bins, const std::vector<double>& range, const TensorArg& weight,
                                             bool density, Location location) const {
  return ingot::histogram({*this, location}, bins, range, weight, density);
}
std::tuple<Tensor, Tensor> Tensor::histogram(const TensorArg& bins, const TensorArg& weight, bool density,
                                             Location location) const {
  return ingot::histogram({*this, location}, bins, weight, density);
}
Tensor Tensor::cov(int64_t correction, const TensorArg& fweights, const TensorArg& aweights, Location location) const {
  return ingot::cov({*this, location}, correction, fweights, aweights);
}
Tensor Tensor::corrcoef(Location location) const { return ingot::corrcoef({*this, location}); }

}  // namespace ingot
