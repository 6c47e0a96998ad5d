#include "eager/nn/pooling.h"

#include <cmath>
#include <limits>

#include "base/function_scope.h"
#include "eager/autograd/function.h"
#include "eager/call/call.h"
#include "eager/call/check_values.h"
#include "eager/nn/checks.h"

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
  int64_t spatial = static_cast<int64_t>(plane.size()), row = 1, first = w.elements.dim() - 2 * spatial;
  // An element of all windows after the other: whole rows are copied and compared.
  Ints order;
  for (int64_t d = 0; d < first; ++d) order.push_back(d);
  for (int64_t part : {1, 0})
    for (int64_t d = 0; d < spatial; ++d) order.push_back(first + part * spatial + d);
  Tensor tap = w.elements.permute(order).flatten(first, first + spatial - 1).argmax(first), position;
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

/// Where several elements go to one position, as those do that a pooled element was the largest of, it has the gradient
/// of each, as PyTorch has it.
struct Unpool : autograd::Function<Unpool> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x, const Tensor& places, const Ints& sizes) {
    context->save_for_backward({places});
    return zeros(sizes, x.dtype()).scatter(-1, places, x);
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* context, const std::vector<Tensor>& gradients) {
    return {gradients[0].gather(-1, context->get_saved_variables()[0]), Tensor(), Tensor()};
  }
};

Tensor max_unpool(const char* op, size_t spatial, const TensorArg& input, const TensorArg& indices,
                  const IntList& kernel_size, const IntList& given_stride, const IntList& padding,
                  const IntList& output_size) {
  const Location at = input.location;
  const FunctionScope scope(op, at);
  const Tensor &x = eager::present(op, "input", input), &places = eager::present(op, "indices", indices);
  const int64_t last = static_cast<int64_t>(spatial);
  if (x.dim() != last + 1 && x.dim() != last + 2)
    fail(op, "input", detail::shape_of(x), std::to_string(last + 1) + " or " + std::to_string(last + 2) + " dims", at);
  if (places.dtype() != kInt64) fail(op, "indices", "a tensor of " + std::string(name_of(places.dtype())), "i64", at);
  if (places.sizes() != x.sizes())
    fail(op, "indices", detail::shape_of(places), "the input's, " + detail::shape_of(x), at);
  const bool strided = given_stride.present() && !given_stride.items().empty();
  const Ints kernel = spread(detail::positive(op, "kernel_size", kernel_size, spatial), spatial);
  const Ints stride = strided ? spread(detail::positive(op, "stride", given_stride, spatial), spatial) : kernel;
  const Ints before = spread(detail::not_negative(op, "padding", padding, spatial), spatial);
  Ints wanted = output_size.items();
  if (wanted.size() == spatial + 2) wanted = Ints(wanted.begin() + 2, wanted.end());
  if (!wanted.empty() && wanted.size() != spatial)
    fail(op, "output_size", std::to_string(wanted.size()) + " sizes",
         std::to_string(spatial) + " or " + std::to_string(spatial + 2), at);
  Ints plane, sizes(x.sizes().begin(), x.sizes().end() - last);
  int64_t elements = 1;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t least = (x.size(static_cast<int64_t>(d) - last) - 1) * stride[d] - 2 * before[d] + kernel[d];
    if (!wanted.empty() && (wanted[d] <= least - stride[d] || wanted[d] >= least + stride[d]))
      fail(op, "output_size", std::to_string(wanted[d]),
           "a size from " + std::to_string(least - stride[d] + 1) + " to " + std::to_string(least + stride[d] - 1), at);
    plane.push_back(wanted.empty() ? least : wanted[d]);
    sizes.push_back(plane[d]);
    elements *= plane[d];
  }
  eager::check_numbers(op, "indices", places, 0, elements, at);
  Ints flat(sizes.begin(), sizes.end() - last);
  flat.push_back(elements);
  return Unpool::apply(x.flatten(-last), places.flatten(-last), flat).view(sizes);
}

using AvgPool = Tensor (*)(const TensorArg&, const IntList&, const IntList&, const IntList&, bool, bool,
                           std::optional<int64_t>);

Tensor lp_pool(const char* op, AvgPool avg_pool, MaxPool max_pool, size_t spatial, const TensorArg& input, double p,
               const IntList& kernel_size, const IntList& stride, bool ceil_mode) {
  const FunctionScope scope(op, input.location);
  const Tensor& x = eager::present(op, "input", input);
  if (p == 0) fail(op, "norm_type", "0", "another number", input.location);
  const Ints kernel = spread(detail::positive(op, "kernel_size", kernel_size, spatial), spatial);
  if (std::isinf(p)) {
    const Tensor sizes = p > 0 ? abs(x) : -abs(x);
    const Tensor largest = max_pool(TensorArg(sizes, input.location), kernel, stride, 0, 1, ceil_mode);
    return p > 0 ? largest : -largest;
  }
  int64_t elements = 1;
  for (int64_t k : kernel) elements *= k;
  const Tensor mean = avg_pool(TensorArg(pow(x, p), input.location), kernel, stride, 0, ceil_mode, true, {});
  // The sign stands beside the size, so that a window of zeros has no gradient, as PyTorch's.
  return pow(sign(mean) * relu(abs(mean)) * elements, 1 / p);
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

#define INGOT_MAX_UNPOOL(spatial)                                                                                     \
  Tensor max_unpool##spatial##d(const TensorArg& input, const TensorArg& indices, const IntList& kernel_size,         \
                                const IntList& stride, const IntList& padding, const IntList& output_size) {          \
    return max_unpool("max_unpool" #spatial "d", spatial, input, indices, kernel_size, stride, padding, output_size); \
  }
INGOT_MAX_UNPOOL(1)
INGOT_MAX_UNPOOL(2)
INGOT_MAX_UNPOOL(3)
#undef INGOT_MAX_UNPOOL
#define INGOT_LP_POOL(spatial)                                                                                       \
  Tensor lp_pool##spatial##d(const TensorArg& input, double norm_type, const IntList& kernel_size,                   \
                             const IntList& stride, bool ceil_mode) {                                                \
    return lp_pool("lp_pool" #spatial "d", ingot::avg_pool##spatial##d, ingot::max_pool##spatial##d, spatial, input, \
                   norm_type, kernel_size, stride, ceil_mode);                                                       \
  }
INGOT_LP_POOL(1)
INGOT_LP_POOL(2)
INGOT_LP_POOL(3)
#undef INGOT_LP_POOL

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
