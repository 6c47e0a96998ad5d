#include "eager/nn/pooling.h"

#include <limits>

#include "eager/call/call.h"

namespace ingot::nn::functional {
namespace {

using eager::fail;
using eager::spread;

/// Smaller than, or equal to, everything that a dtype holds.
Scalar lowest(DType dtype) {
  if (is_floating(dtype)) return -std::numeric_limits<double>::infinity();
  if (dtype == DType::u8) return 0;
  return INT64_MIN >> (64 - 8 * size_of(dtype));
}

/// Windows over the last dims: [.., count of each, elements of each]. Along dim d, element e of window w lies at
/// start[d][w] + e * step[d] in the input.
struct Windows {
  Tensor elements;
  std::vector<Tensor> start;
  Ints kernel, step;
};

/// The position in the input's plane of the largest element of each window, the first among equals. Where padding is
/// as large as all the window, the first element that lies inside.
Tensor largest_positions(const Windows& w, const Ints& plane) {
  int64_t spatial = static_cast<int64_t>(plane.size()), row = 1;
  Tensor tap = w.elements.flatten(-spatial, -1).argmax(-1), position;
  for (int64_t d = spatial - 1; d >= 0; --d) {
    Ints line(spatial - d, 1);
    line[0] = w.start[d].numel();
    Tensor at = add(w.start[d].view(line), mul(remainder(tap, w.kernel[d]), w.step[d]));
    at = maximum(at, remainder(at, w.step[d]));
    position = position.defined() ? add(position, mul(at, row)) : at;
    tap = floor_divide(tap, w.kernel[d]);
    row *= plane[d];
  }
  return position;
}

Ints plane_of(const Tensor& x, size_t spatial) { return Ints(x.sizes().last(spatial)); }

using MaxPool = Tensor (*)(const TensorArg&, const IntList&, const IntList&, const IntList&, const IntList&, bool);

std::tuple<Tensor, Tensor> max_pool(MaxPool pool, size_t spatial, const TensorArg& input, const IntList& kernel_size,
                                    const IntList& stride, const IntList& padding, const IntList& dilation,
                                    bool ceil_mode) {
  const CallerLine line(input.location);
  Tensor values = pool(input, kernel_size, stride, padding, dilation, ceil_mode);
  Windows w;
  w.kernel = spread(kernel_size, spatial);
  w.step = spread(dilation, spatial);
  Ints stride_of = stride.present() && !stride.items().empty() ? spread(stride, spatial) : w.kernel;
  Ints before = spread(padding, spatial), counts = plane_of(values, spatial), plane = plane_of(*input.tensor, spatial);
  // Padded so that the last window fits whole, then every window as one more dim for each.
  Ints pairs;
  for (size_t d = spatial; d-- > 0;) {
    int64_t end = (counts[d] - 1) * stride_of[d] + (w.kernel[d] - 1) * w.step[d] + 1;
    pairs.push_back(before[d]);
    pairs.push_back(std::max<int64_t>(end - before[d] - plane[d], 0));
  }
  w.elements = constant_pad_nd(input, pairs, lowest(input.tensor->dtype()));
  int64_t first = input.tensor->dim() - static_cast<int64_t>(spatial);
  for (size_t d = 0; d < spatial; ++d) {
    int64_t dim = first + static_cast<int64_t>(d);
    w.elements = w.elements.unfold(dim, (w.kernel[d] - 1) * w.step[d] + 1, stride_of[d]).narrow(dim, 0, counts[d]);
    w.elements = w.elements.slice(w.elements.dim() - 1, 0, std::nullopt, w.step[d]);
    w.start.push_back(sub(mul(arange(counts[d]), stride_of[d]), before[d]));
  }
  return {values, largest_positions(w, plane)};
}

using AdaptivePool = Tensor (*)(const TensorArg&, const IntList&);

std::tuple<Tensor, Tensor> adaptive_max_pool(AdaptivePool pool, size_t spatial, const TensorArg& input,
                                             const IntList& output_size) {
  const CallerLine line(input.location);
  Tensor values = pool(input, output_size), x = *input.tensor;
  if (values.numel() == 0) return {values, zeros(values.sizes(), kInt64)};
  Ints plane = plane_of(x, spatial), counts = plane_of(values, spatial), order;
  Windows w;
  w.kernel = w.step = Ints(spatial, 1);
  w.start.resize(spatial);
  int64_t first = x.dim() - static_cast<int64_t>(spatial);
  // The last dim first: those before keep their places. Bin i reaches from floor(i * n / m) to ceil((i + 1) * n / m).
  for (size_t d = spatial; d-- > 0;) {
    int64_t n = plane[d], m = counts[d], widest = (n + m - 1) / std::max<int64_t>(m, 1) + 1;
    int64_t dim = first + static_cast<int64_t>(d);
    Tensor bin = arange(m), start = floor_divide(mul(bin, n), m);
    Tensor end = floor_divide(add(mul(add(bin, 1), n), m - 1), m);
    Tensor at = add(start.unsqueeze(1), arange(widest));
    Ints split(x.sizes()), mask{m, widest};
    split[dim] = m;
    split.insert(dim + 1, widest);
    for (int64_t i = dim + 1; i < x.dim(); ++i) mask.push_back(1);
    Tensor inside = lt(at, end.unsqueeze(1)).view(mask);
    Tensor elements = x.index_select(dim, clamp(at, 0, n - 1).view({m * widest})).view(split);
    x = ingot::where(inside, elements, lowest(x.dtype()));
    w.start[d] = start;
    w.kernel[d] = widest;
  }
  // [.., m, k, m, k] to [.., m, m, k, k].
  for (int64_t d = 0; d < first; ++d) order.push_back(d);
  for (int64_t part = 0; part < 2; ++part)
    for (size_t d = 0; d < spatial; ++d) order.push_back(first + 2 * static_cast<int64_t>(d) + part);
  w.elements = x.permute(order);
  return {values, largest_positions(w, plane)};
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const TensorArg& input, const IntList& kernel_size,
                                                   const IntList& stride, const IntList& padding,
                                                   const IntList& dilation, bool ceil_mode) {
  return max_pool(ingot::max_pool1d, 1, input, kernel_size, stride, padding, dilation, ceil_mode);
}
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const TensorArg& input, const IntList& kernel_size,
                                                   const IntList& stride, const IntList& padding,
                                                   const IntList& dilation, bool ceil_mode) {
  return max_pool(ingot::max_pool2d, 2, input, kernel_size, stride, padding, dilation, ceil_mode);
}
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const TensorArg& input, const IntList& kernel_size,
                                                   const IntList& stride, const IntList& padding,
                                                   const IntList& dilation, bool ceil_mode) {
  return max_pool(ingot::max_pool3d, 3, input, kernel_size, stride, padding, dilation, ceil_mode);
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d_with_indices(const TensorArg& input, const IntList& output_size) {
  return adaptive_max_pool(ingot::adaptive_max_pool1d, 1, input, output_size);
}
std::tuple<Tensor, Tensor> adaptive_max_pool2d_with_indices(const TensorArg& input, const IntList& output_size) {
  return adaptive_max_pool(ingot::adaptive_max_pool2d, 2, input, output_size);
}
std::tuple<Tensor, Tensor> adaptive_max_pool3d_with_indices(const TensorArg& input, const IntList& output_size) {
  return adaptive_max_pool(ingot::adaptive_max_pool3d, 3, input, output_size);
}

Ints adaptive_size(const TensorArg& input, const std::vector<std::optional<int64_t>>& output_size) {
  const Tensor& x = eager::present("adaptive_pool", "self", input);
  int64_t rank = static_cast<int64_t>(output_size.size());
  if (x.dim() < rank)
    fail("adaptive_pool", "output_size", std::to_string(rank) + " sizes", "at most " + std::to_string(x.dim()),
         input.location);
  Ints sizes;
  for (int64_t i = 0; i < rank; ++i) sizes.push_back(output_size[i] ? *output_size[i] : x.size(i - rank));
  return sizes;
}

}  // namespace ingot::nn::functional
