#include "eager/nn/fractional_pool.h"

#include <string>

#include "base/function_scope.h"
#include "eager/nn/checks.h"
#include "eager/ops/checks.h"

namespace ingot::nn::functional {
namespace {

using eager::fail;
using eager::spread;

/// Where `count` windows of `kernel` of `size` elements begin, for each of the samples: [.., count].
Tensor starts(const Tensor& samples, int64_t size, int64_t count, int64_t kernel) {
  const Tensor window = arange(count, samples.dtype());
  // The numbers are PyTorch's where the quotient is rounded as these are.
  const double step = samples.dtype() == kFloat64
                          ? static_cast<double>(size - kernel) / static_cast<double>(std::max<int64_t>(count - 1, 1))
                          : static_cast<double>(static_cast<float>(size - kernel) /
                                                static_cast<float>(std::max<int64_t>(count - 1, 1)));
  const Tensor u = samples.unsqueeze(-1), begin = floor((window + u) * step) - floor(u * step);
  return where(window == count - 1, size - kernel, begin.to(kInt64));
}

std::tuple<Tensor, Tensor> pooled(const char* op, int64_t spatial, const TensorArg& input, const IntList& kernel_size,
                                  const IntList& output_size, const std::vector<double>& output_ratio,
                                  const TensorArg& random_samples) {
  const Location at = input.location;
  const FunctionScope scope(op, at);
  const Tensor& given = eager::present_floating(op, "input", input);
  if (given.dim() != spatial + 1 && given.dim() != spatial + 2)
    fail(op, "input", detail::shape_of(given),
         std::to_string(spatial + 1) + " or " + std::to_string(spatial + 2) + " dims", at);
  const bool batched = given.dim() == spatial + 2, sized = output_size.present() && !output_size.items().empty();
  const size_t dims = static_cast<size_t>(spatial);
  if (!sized && output_ratio.size() != 1 && output_ratio.size() != dims)
    fail(op, "output_ratio", std::to_string(output_ratio.size()) + " numbers and no output_size",
         "one number, or " + std::to_string(spatial), at);
  const Tensor x = batched ? given : given.unsqueeze(0);
  const Ints kernel = spread(detail::positive(op, "kernel_size", kernel_size, dims), dims);
  Ints counts = sized ? spread(detail::positive(op, "output_size", output_size, dims), dims) : Ints();
  const Ints plane(x.sizes().end() - spatial, x.sizes().end());
  for (size_t d = 0; d < dims; ++d) {
    if (!sized) {
      const double share = output_ratio[output_ratio.size() == 1 ? 0 : d];
      if (!(share > 0 && share < 1)) fail(op, "output_ratio", std::to_string(share), "a number between 0 and 1", at);
      counts.push_back(static_cast<int64_t>(static_cast<double>(plane[d]) * share));
    }
    if (counts[d] < 1 || kernel[d] + counts[d] - 1 > plane[d])
      fail(op, "output_size", std::to_string(counts[d]) + " windows of " + std::to_string(kernel[d]),
           "at least one, that fit beginning one behind the other into the size " + std::to_string(plane[d]), at);
  }
  const Ints of_samples{x.size(0).value(), x.size(1).value(), spatial};
  const DType working = x.dtype() == kFloat64 ? kFloat64 : kFloat32;
  Tensor samples;
  if (random_samples.tensor && random_samples.tensor->defined()) {
    samples = eager::present_floating(op, "random_samples", random_samples).to(working);
    if (samples.sizes() != IntArrayRef(of_samples))
      fail(op, "random_samples", detail::shape_of(samples), "shape " + eager::text(of_samples), at);
  } else {
    samples = rand(of_samples, x.dtype()).to(working);
  }
  // The position in the plane of each element of each window: [N, C, counts.., kernel..].
  Tensor positions;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t sample = spatial == 2 ? 1 - static_cast<int64_t>(d) : static_cast<int64_t>(d);
    Ints line(2 + 2 * dims, 1);
    line[0] = of_samples[0], line[1] = of_samples[1], line[2 + d] = counts[d], line[2 + dims + d] = kernel[d];
    const Tensor along =
        (starts(samples.select(-1, sample), plane[d], counts[d], kernel[d]).unsqueeze(-1) + arange(kernel[d]))
            .view(line);
    positions = d ? positions * plane[d] + along : along;
  }
  positions = positions.flatten(-spatial);
  Ints sizes(positions.sizes());
  const Tensor elements = x.flatten(-spatial).gather(-1, positions.flatten(2)).view(sizes);
  const auto [values, largest] = elements.max(-1);
  const Tensor indices = positions.gather(-1, largest.unsqueeze(-1)).squeeze(-1);
  return batched ? std::tuple(values, indices) : std::tuple(values.squeeze(0), indices.squeeze(0));
}

}  // namespace

#define INGOT_FRACTIONAL(spatial)                                                                                     \
  std::tuple<Tensor, Tensor> fractional_max_pool##spatial##d_with_indices(                                            \
      const TensorArg& input, const IntList& kernel_size, const IntList& output_size,                                 \
      const std::vector<double>& output_ratio, const TensorArg& random_samples) {                                     \
    return pooled("fractional_max_pool" #spatial "d", spatial, input, kernel_size, output_size, output_ratio,         \
                  random_samples);                                                                                    \
  }                                                                                                                   \
  Tensor fractional_max_pool##spatial##d(const TensorArg& input, const IntList& kernel_size,                          \
                                         const IntList& output_size, const std::vector<double>& output_ratio,         \
                                         const TensorArg& random_samples) {                                           \
    return std::get<0>(                                                                                               \
        fractional_max_pool##spatial##d_with_indices(input, kernel_size, output_size, output_ratio, random_samples)); \
  }
INGOT_FRACTIONAL(2)
INGOT_FRACTIONAL(3)
#undef INGOT_FRACTIONAL

}  // namespace ingot::nn::functional
