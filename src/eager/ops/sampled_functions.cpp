#include "eager/ops/sampled_functions.h"

#include <algorithm>

#include "base/function_scope.h"
#include "eager/ops/checks.h"

namespace ingot {
namespace {

using eager::dtype_text;
using eager::fail;
using eager::present;
using eager::shape_text;

Tensor samples_of(const char* op, const TensorArg& y, int64_t* dim) {
  const Tensor& samples = present(op, "y", y);
  if (samples.dtype() == kBool) fail(op, "y", dtype_text(samples), "integers or floats", y.location);
  if (samples.dim() == 0) fail(op, "y", "a zero-dim tensor", "at least one dim", y.location);
  *dim = eager::wrapped_dim(op, "dim", *dim, samples.dim(), y.location);
  return samples;
}

/// Of neighbours along a dim that is not empty.
Tensor sums_of_neighbours(const Tensor& y, int64_t dim) {
  const Size gaps = y.size(dim) - 1;
  return y.narrow(dim, 0, gaps) + y.narrow(dim, 1, gaps);
}

Tensor floats(const Tensor& x) { return is_floating(x.dtype()) ? x : x.to(kFloat32); }

/// The area between each sample and the next, twice; none for no samples.
Tensor double_areas(const char* op, const TensorArg& y, const ScalarArg& dx, int64_t* dim) {
  const Tensor samples = floats(samples_of(op, y, dim));
  return samples.size(*dim) == 0 ? samples : sums_of_neighbours(samples, *dim) * dx.value;
}
Tensor double_areas(const char* op, const TensorArg& y, const TensorArg& x, int64_t* dim) {
  const Tensor samples = samples_of(op, y, dim);
  Tensor at = present(op, "x", x);
  if (at.dtype() == kBool) fail(op, "x", dtype_text(at), "integers or floats", y.location);
  if (samples.size(*dim) == 0) return samples;
  if (at.dim() == 0 || (at.dim() == 1 && at.size(0) != samples.size(*dim)))
    fail(op, "x", shape_text(at), std::to_string(samples.size(*dim)) + " numbers, one for each sample", y.location);
  // One line is along the dim; fewer dims than y's are its last ones.
  if (at.dim() == 1)
    for (int64_t d = samples.dim() - 1 - *dim; d > 0; --d) at = at.unsqueeze(-1);
  const int64_t from_the_end = *dim - samples.dim();
  while (at.dim() < samples.dim()) at = at.unsqueeze(0);
  return sums_of_neighbours(samples, *dim) * diff(at, 1, from_the_end);
}

Tensor integral(const char* op, const TensorArg& y, const TensorArg& x, int64_t dim) {
  const FunctionScope scope(op, y.location);
  const Tensor areas = double_areas(op, y, x, &dim);
  return areas.sum(dim) / 2;
}
/// Equal spacing counts all samples alike, but for half of the first and the last one.
Tensor integral(const char* op, const TensorArg& y, const ScalarArg& dx, int64_t dim) {
  const FunctionScope scope(op, y.location);
  const Tensor samples = floats(samples_of(op, y, &dim)), sum = samples.sum(dim);
  if (samples.size(dim) == 0) return sum;
  return (sum - (samples.select(dim, 0) + samples.select(dim, -1)) / 2) * dx.value;
}
template <class Spacing>
Tensor integrals(const TensorArg& y, const Spacing& spacing, int64_t dim) {
  const FunctionScope scope("cumulative_trapezoid", y.location);
  return double_areas("cumulative_trapezoid", y, spacing, &dim).cumsum(dim) / 2;
}

/// The dims that are asked for, each once and with enough samples.
std::vector<int64_t> dims_of(const Tensor& x, const IntList& dim, int64_t edge_order, Location location) {
  std::vector<int64_t> dims;
  if (!dim.present())
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  for (int64_t d : dim.items()) dims.push_back(eager::wrapped_dim("gradient", "dim", d, x.dim(), location));
  if (x.dtype() == kBool) fail("gradient", "self", dtype_text(x), "integers or floats", location);
  if (edge_order != 1 && edge_order != 2)
    fail("gradient", "edge_order", std::to_string(edge_order), "1 or 2", location);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (std::count(dims.begin(), dims.end(), dims[i]) > 1)
      fail("gradient", "dim", std::to_string(dims[i]) + " twice", "each dim once", location);
    if (x.dim() == 0 || x.size(dims[i]) < edge_order + 1)
      fail("gradient", "self", shape_text(x),
           "at least " + std::to_string(edge_order + 1) + " samples in dim " + std::to_string(dims[i]), location);
  }
  return dims;
}

/// Some neighbouring samples from each of three of them.
struct Three {
  Tensor before, here, after;
};
Three three_from(const Tensor& x, int64_t dim, const Size& first, const Size& count) {
  return {x.narrow(dim, first, count), x.narrow(dim, first + 1, count), x.narrow(dim, first + 2, count)};
}

/// The derivative along one dim of samples that are `h` apart.
Tensor derivative(const Tensor& samples, double h, int64_t dim, int64_t edge_order) {
  const Tensor x = floats(samples);
  const Size n = x.size(dim);
  std::vector<Tensor> parts;
  const auto slope = [&](const Size& first) { return (x.narrow(dim, first + 1, 1) - x.narrow(dim, first, 1)) / h; };
  if (edge_order == 1) {
    parts.push_back(slope(Size::of(0)));
  } else {
    const auto [a, b, c] = three_from(x, dim, Size::of(0), Size::of(1));
    parts.push_back((a * -1.5 + b * 2 - c * 0.5) / h);
  }
  if (n > 2) parts.push_back((x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / (2 * h));
  if (edge_order == 1) {
    parts.push_back(slope(n - 2));
  } else {
    const auto [a, b, c] = three_from(x, dim, n - 3, Size::of(1));
    parts.push_back((c * 1.5 - b * 2 + a * 0.5) / h);
  }
  return cat(parts, dim);
}

/// The same of samples that have gaps[i] between two neighbours: that of the parabola through three of them.
Tensor derivative(const Tensor& samples, const Tensor& gaps, int64_t dim, int64_t edge_order) {
  const Tensor x = floats(samples);
  const Size n = x.size(dim);
  // At the first, the second and the third sample of three, weighed by what the gaps left and right of the second are.
  const auto parabola = [&](int64_t at, const Size& first, const Size& count) {
    const auto [a, b, c] = three_from(x, dim, first, count);
    const Tensor h = gaps.narrow(dim, first, count), g = gaps.narrow(dim, first + 1, count), both = h + g;
    if (at == 0) return -(h + both) / (h * both) * a + both / (h * g) * b - h / (g * both) * c;
    if (at == 1) return -g / (h * both) * a + (g - h) / (h * g) * b + h / (g * both) * c;
    return g / (h * both) * a - both / (h * g) * b + (g + both) / (g * both) * c;
  };
  const auto slope = [&](const Size& first) {
    return (x.narrow(dim, first + 1, 1) - x.narrow(dim, first, 1)) / gaps.narrow(dim, first, 1);
  };
  std::vector<Tensor> parts;
  parts.push_back(edge_order == 1 ? slope(Size::of(0)) : parabola(0, Size::of(0), Size::of(1)));
  if (n > 2) parts.push_back(parabola(1, Size::of(0), n - 2));
  parts.push_back(edge_order == 1 ? slope(n - 2) : parabola(2, n - 3, Size::of(1)));
  return cat(parts, dim);
}

}  // namespace

Tensor trapezoid(const TensorArg& y, const ScalarArg& dx, int64_t dim) { return integral("trapezoid", y, dx, dim); }
Tensor trapezoid(const TensorArg& y, const TensorArg& x, int64_t dim) { return integral("trapezoid", y, x, dim); }
Tensor trapz(const TensorArg& y, const ScalarArg& dx, int64_t dim) { return integral("trapz", y, dx, dim); }
Tensor trapz(const TensorArg& y, const TensorArg& x, int64_t dim) { return integral("trapz", y, x, dim); }
Tensor cumulative_trapezoid(const TensorArg& y, const ScalarArg& dx, int64_t dim) { return integrals(y, dx, dim); }
Tensor cumulative_trapezoid(const TensorArg& y, const TensorArg& x, int64_t dim) { return integrals(y, x, dim); }

std::vector<Tensor> gradient(const TensorArg& self, const ScalarArg& spacing, const IntList& dim, int64_t edge_order) {
  const FunctionScope scope("gradient", self.location);
  const Tensor& x = present("gradient", "self", self);
  std::vector<Tensor> results;
  for (int64_t d : dims_of(x, dim, edge_order, self.location))
    results.push_back(derivative(x, spacing.present ? spacing.value.to_double() : 1, d, edge_order));
  return results;
}

std::vector<Tensor> gradient(const TensorArg& self, const std::vector<double>& spacing, const IntList& dim,
                             int64_t edge_order) {
  const FunctionScope scope("gradient", self.location);
  const Tensor& x = present("gradient", "self", self);
  const std::vector<int64_t> dims = dims_of(x, dim, edge_order, self.location);
  if (spacing.size() != dims.size())
    fail("gradient", "spacing", std::to_string(spacing.size()) + " numbers",
         std::to_string(dims.size()) + ", one for each dim", self.location);
  std::vector<Tensor> results;
  for (size_t i = 0; i < dims.size(); ++i) results.push_back(derivative(x, spacing[i], dims[i], edge_order));
  return results;
}

std::vector<Tensor> gradient(const TensorArg& self, const TensorList& spacing, const IntList& dim, int64_t edge_order) {
  const FunctionScope scope("gradient", self.location);
  const Tensor& x = present("gradient", "self", self);
  const std::vector<int64_t> dims = dims_of(x, dim, edge_order, self.location);
  if (spacing.size != dims.size())
    fail("gradient", "spacing", std::to_string(spacing.size) + " tensors",
         std::to_string(dims.size()) + ", one for each dim", self.location);
  std::vector<Tensor> results;
  for (size_t i = 0; i < dims.size(); ++i) {
    const std::string name = "spacing[" + std::to_string(i) + "]";
    Tensor at = present("gradient", name, {spacing.data[i], self.location});
    if (at.dim() != 1 || at.size(0) != x.size(dims[i]))
      fail("gradient", name, shape_text(at), std::to_string(x.size(dims[i])) + " coordinates, one for each sample",
           self.location);
    Tensor gaps = diff(at);
    for (int64_t d = x.dim() - 1; d > dims[i]; --d) gaps = gaps.unsqueeze(-1);
    for (int64_t d = 0; d < dims[i]; ++d) gaps = gaps.unsqueeze(0);
    results.push_back(derivative(x, gaps, dims[i], edge_order));
  }
  return results;
}

}  // namespace ingot
