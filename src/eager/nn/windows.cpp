#include "eager/nn/windows.h"

#include <algorithm>

#include "base/function_scope.h"
#include "eager/autograd/autograd.h"
#include "eager/call/call.h"
#include "eager/call/check_values.h"
#include "eager/ops/checks.h"

namespace ingot::nn {

Ints detail::Around::pairs() const {
  Ints pairs;
  for (size_t d = before.size(); d-- > 0;) pairs.push_back(before[d]), pairs.push_back(after[d]);
  return pairs;
}

detail::Around detail::same_padding(const Tensor& weight, const Ints& dilation) {
  Around around;
  for (size_t d = 0; d < dilation.size(); ++d) {
    const int64_t total = dilation[d] * (weight.size(static_cast<int64_t>(d) + 2) - 1);
    around.before.push_back(total / 2), around.after.push_back(total - total / 2);
  }
  return around;
}

namespace functional {
namespace {

using eager::fail;
using eager::spread;

using Sizes = SmallVector<Size, 6>;

/// The numbers of a list as sizes: a function that is frozen follows those that come from sizes.
Sizes pads_of(const IntList& list) {
  Sizes sizes;
  for (size_t i = 0; i < list.numbers().size(); ++i)
    sizes.push_back(Size::of(list.numbers()[i], list.origins().empty() ? 0 : list.origins()[i]));
  return sizes;
}

Size or_none(const Size& n) { return n > 0 ? n : Size(); }

/// Positions along a dim of size n that a padded dim reads, by ops: they stay right when n varies.
Tensor positions(int64_t n, int64_t before, int64_t after, std::string_view mode) {
  Tensor at = arange(-before, n + after);
  if (mode == "replicate") return clamp(at, 0, n - 1);
  if (mode == "circular") return remainder(at, n);
  Tensor distance = abs(sub(n - 1, abs(at)));
  return sub(n - 1, distance);
}

/// x without what negative numbers cut, which are 0 then.
Tensor cropped(const TensorArg& input, Sizes& pad) {
  Tensor x = *input.tensor;
  for (size_t pair = 0; 2 * pair < pad.size(); ++pair) {
    const int64_t dim = x.dim() - 1 - static_cast<int64_t>(pair);
    Size &before = pad[2 * pair], &after = pad[2 * pair + 1];
    const Size cut_before = or_none(-before), cut_after = or_none(-after), size = x.size(dim);
    if (cut_before + cut_after > size)
      fail("pad", "pad", "a cut of " + std::to_string((cut_before + cut_after).value()),
           "at most the size, " + std::to_string(size.value()), input.location);
    if (cut_before > 0 || cut_after > 0) x = x.narrow(dim, cut_before, size - cut_before - cut_after, input.location);
    before = or_none(before);
    after = or_none(after);
  }
  return x;
}

/// x between what a mode puts before and after a dim of it: copies of parts of it.
Tensor surrounded(const Tensor& x, int64_t dim, const Size& before, const Size& after, std::string_view mode,
                  Location at) {
  const Size n = x.size(dim);
  if (before < 0 || after < 0) return x.index_select(dim, positions(n, before, after, mode), at);  // what is cut, too
  auto beside = [&](const Size& length, bool in_front) {
    if (mode == "reflect") return x.narrow(dim, in_front ? Size::of(1) : n - 1 - length, length, at).flip(dim, at);
    if (mode == "circular") return x.narrow(dim, in_front ? n - length : Size::of(0), length, at);
    IntList sizes{};
    for (int64_t d = 0; d < x.dim(); ++d) sizes.add(d == dim ? length : x.size(d));
    return x.narrow(dim, in_front ? Size::of(0) : n - 1, 1, at).expand(sizes, at);
  };
  std::vector<Tensor> parts;
  if (before > 0) parts.push_back(beside(before, true));
  parts.push_back(x);
  if (after > 0) parts.push_back(beside(after, false));
  return cat({parts, at}, dim);
}

Tensor constant_pad(const TensorArg& input, Sizes pad, Scalar value) {
  const Tensor x = cropped(input, pad);
  IntList pairs{};
  for (const Size& n : pad) pairs.add(n);
  return ingot::constant_pad_nd(TensorArg(x, input.location), pairs, value);
}

template <class Convolution>
Tensor convolve(const char* name, Convolution convolution, size_t rank, const TensorArg& input, const TensorArg& weight,
                const TensorArg& bias, const IntList& stride, std::string_view padding, const IntList& dilation,
                int64_t groups) {
  const FunctionScope scope(name, input.location);
  if (padding == "valid") return convolution(input, weight, bias, stride, 0, dilation, groups);
  if (padding != "same")
    fail(name, "padding", "\"" + std::string(padding) + "\"", "\"same\", \"valid\" or numbers", input.location);
  for (int64_t s : stride.items())
    if (s != 1) fail(name, "stride", std::to_string(s), "1 for padding \"same\"", input.location);
  const detail::Around around = detail::same_padding(*weight.tensor, spread(dilation, rank));
  if (around.even()) return convolution(input, weight, bias, 1, around.before, dilation, groups);
  Tensor padded = constant_pad(input, pads_of(around.pairs()), 0);
  return convolution(TensorArg(padded, input.location), weight, bias, 1, 0, dilation, groups);
}

}  // namespace

Tensor pad(const TensorArg& input, const IntList& pad, Word word, Scalar value) {
  const std::string_view mode = word;
  const FunctionScope scope("pad", input.location);
  Sizes pairs = pads_of(pad);
  if (pairs.size() % 2 || static_cast<int64_t>(pairs.size()) > 2 * input.tensor->dim())
    fail("pad", "pad", std::to_string(pairs.size()) + " numbers", "pairs, at most one a dim", input.location);
  if (mode == "constant") return constant_pad(input, pairs, value);
  if (mode != "reflect" && mode != "replicate" && mode != "circular")
    fail("pad", "mode", "\"" + std::string(mode) + "\"",
         "one of \"constant\", \"reflect\", \"replicate\", \"circular\"", input.location);
  // What is cut is not wrapped around; the other modes reach as far as the whole tensor.
  Tensor x = mode == "circular" ? cropped(input, pairs) : *input.tensor;
  for (size_t pair = 0; 2 * pair < pairs.size(); ++pair) {
    const int64_t dim = x.dim() - 1 - static_cast<int64_t>(pair);
    const Size size = x.size(dim);
    const Size before = pairs[2 * pair], after = pairs[2 * pair + 1], most = before < after ? after : before;
    const Size limit = mode == "reflect" ? size - 1 : mode == "circular" ? size : Size::of(INT64_MAX);
    if (most > limit || (size == 0 && most > 0) || size + before + after < 0)
      fail("pad", "pad", std::to_string(most.value()) + " beside a size of " + std::to_string(size.value()),
           "what the mode can take from the tensor", input.location);
    if (before != 0 || after != 0) x = surrounded(x, dim, before, after, mode, input.location);
  }
  return x;
}

Tensor conv1d(const TensorArg& input, const TensorArg& weight, const TensorArg& bias, const IntList& stride,
              Word padding, const IntList& dilation, int64_t groups) {
  return convolve("conv1d", ingot::conv1d, 1, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d(const TensorArg& input, const TensorArg& weight, const TensorArg& bias, const IntList& stride,
              Word padding, const IntList& dilation, int64_t groups) {
  const auto convolution = [](const auto&... arguments) { return ingot::conv2d(arguments...); };
  return convolve("conv2d", convolution, 2, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(const TensorArg& input, const TensorArg& weight, const TensorArg& bias, const IntList& stride,
              Word padding, const IntList& dilation, int64_t groups) {
  return convolve("conv3d", ingot::conv3d, 3, input, weight, bias, stride, padding, dilation, groups);
}

const Tensor& embedding_renorm_(const Tensor& weight, const TensorArg& indices, double max_norm, double norm_type) {
  constexpr const char* kOp = "embedding_renorm_";
  const FunctionScope scope(kOp, indices.location);
  const NoGradGuard no_grad;
  eager::present_with_dims(kOp, "weight", {weight, indices.location}, 2);
  const Tensor& named_rows = eager::present(kOp, "indices", indices);
  if (named_rows.dtype() != kInt64 && named_rows.dtype() != kInt32)
    fail(kOp, "indices", eager::dtype_text(named_rows), "i64 or i32", indices.location);
  eager::require_numbers({kOp, "indices", "a row that is not there", "rows of weight"}, named_rows, 0, weight.size(0),
                         indices.location);
  Tensor rows = arange(weight.size(0)).unsqueeze(1);
  Tensor named = any(eq(rows, named_rows.reshape({1, -1})), 1, true);
  Tensor norms = norm(weight, norm_type, 1, true);
  Tensor scale = where(logical_and(named, gt(norms, max_norm)), div(max_norm, add(norms, 1e-7)), 1.0);
  return weight.mul_(scale);
}

}  // namespace functional
}  // namespace ingot::nn
