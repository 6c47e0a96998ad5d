#include "eager/nn/grid.h"

#include <algorithm>
#include <iterator>

#include "base/function_scope.h"
#include "eager/autocast.h"
#include "eager/call/call.h"
#include "eager/nn/checks.h"
#include "eager/ops/lists.h"

namespace ingot::nn::functional {
namespace {

using detail::shape_of;
using eager::fail;
using eager::present;

enum class Outside : uint8_t { zeros, border, reflection };
enum class Between : uint8_t { bilinear, nearest, bicubic };

/// The number of a word among these.
template <class Choice, size_t N>
Choice choice(const char* op, const char* argument, const char* const (&words)[N], std::string_view word, Location at) {
  const auto found = std::find(std::begin(words), std::end(words), word);
  if (found != std::end(words)) return static_cast<Choice>(found - std::begin(words));
  std::string known;
  for (const char* w : words) known += (known.empty() ? "\"" : ", \"") + std::string(w) + "\"";
  fail(op, argument, "\"" + std::string(word) + "\"", "one of " + known, at);
}

/// Along one dim of an image: its size and what positions mean there.
struct Axis {
  int64_t size;
  Outside outside;
  bool align_corners;

  /// A position of the grid, in pixels.
  Tensor pixels(const Tensor& at) const {
    const auto n = static_cast<double>(size);
    return align_corners ? (at + 1) * ((n - 1) / 2) : ((at + 1) * n - 1) / 2;
  }
  /// Positions in pixels that lie inside, but for zeros.
  Tensor inside(const Tensor& at) const {
    if (outside == Outside::zeros) return at;
    Tensor place = at;
    if (outside == Outside::reflection) {
      const double low = align_corners ? 0 : -0.5, span = static_cast<double>(size) - (align_corners ? 1 : 0);
      if (span == 0) return at * 0;
      const Tensor distance = abs(at - low), rest = fmod(distance, span);
      const Tensor back = remainder(floor(distance.detach() / span), 2) != 0;
      place = where(back, span - rest, rest) + low;
    }
    return clamp_max(where(place > 0, place, 0), size - 1);  // NaN is at 0
  }
};

/// One of the pixels that a position is computed from, along one dim: where it is, and its share.
struct Tap {
  Tensor place, weight;  // no weight: 1
  Tensor exists = {};    // whether the place is inside

  /// The place, if it exists, in pixels that stand `stride` apart.
  void find(int64_t size, int64_t stride) {
    exists = logical_and(place >= 0, place <= size - 1);
    place = where(exists, place, 0).to(kInt64) * stride;
  }
};

std::vector<Tap> taps(const Axis& axis, const Tensor& grid, Between between) {
  const Tensor at = between == Between::bicubic ? axis.pixels(grid) : axis.inside(axis.pixels(grid));
  // The result does not move with the grid: a share of 1 whose gradient is 0.
  if (between == Between::nearest) return {{round(at.detach()), at.requires_grad() ? at.clone().fill_(1) : Tensor()}};
  const Tensor first = floor(at.detach()), share = at - first;
  if (between == Between::bilinear) return {{first, 1 - share}, {first + 1, share}};
  // Keys, "Cubic convolution interpolation for digital image processing", 1981.
  constexpr double a = -0.75;
  const auto near = [&](const Tensor& x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [&](const Tensor& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const Tensor rest = 1 - share;
  return {{axis.inside(first - 1), far(share + 1)},
          {axis.inside(first), near(share)},
          {axis.inside(first + 1), near(rest)},
          {axis.inside(first + 2), far(rest + 1)}};
}

/// -1 to 1 in `steps` steps, at edges or at the centres of pixels.
Tensor ruler(int64_t steps, bool align_corners, DType dtype) {
  if (steps <= 1) return zeros({steps}, dtype);
  const Tensor even = linspace(-1, 1, steps, dtype);
  return align_corners ? even : even * (static_cast<double>(steps - 1) / static_cast<double>(steps));
}

}  // namespace

Tensor affine_grid(const TensorArg& given_theta, const IntList& size, bool align_corners) {
  constexpr const char* kOp = "affine_grid";
  const Location at = given_theta.location;
  const FunctionScope scope(kOp, at);
  const Tensor& theta = present(kOp, "theta", given_theta);
  const Ints& sizes = size.items();
  if (sizes.size() != 4 && sizes.size() != 5)
    fail(kOp, "size", std::to_string(sizes.size()) + " sizes", "4 or 5: [N, C, ...]", at);
  for (int64_t s : sizes)
    if (s < 1) fail(kOp, "size", std::to_string(s), "positive numbers", at);
  if (!is_floating(theta.dtype()))
    fail(kOp, "theta", "a tensor of " + std::string(name_of(theta.dtype())), "floating point numbers", at);
  const auto spatial = static_cast<int64_t>(sizes.size()) - 2;
  if (theta.dim() != 3 || theta.size(0) != sizes[0] || theta.size(1) != spatial || theta.size(2) != spatial + 1)
    fail(kOp, "theta", shape_of(theta),
         "[" + std::to_string(sizes[0]) + ", " + std::to_string(spatial) + ", " + std::to_string(spatial + 1) + "]",
         at);
  const Ints plane(sizes.begin() + 2, sizes.end());
  std::vector<Tensor> parts;  // x first, of the last dim; then what the last column of theta is added by
  for (int64_t d = spatial - 1; d >= 0; --d) {
    Ints along(spatial, 1);
    along[d] = plane[d];
    parts.push_back(ruler(plane[d], align_corners, theta.dtype()).view(along).expand(plane));
  }
  parts.push_back(ones(plane, theta.dtype()));
  Ints result{sizes[0]};
  for (int64_t s : plane) result.push_back(s);
  result.push_back(spatial);
  const AutocastGuard no_autocast(false);  // positions of an image are more than 16 bits hold
  return matmul(stack(parts, -1).reshape({1, -1, spatial + 1}), theta.transpose(1, 2)).view(result);
}

Tensor grid_sample(const TensorArg& input, const TensorArg& given_grid, Word mode, Word padding_mode,
                   bool align_corners) {
  constexpr const char* kOp = "grid_sample";
  const Location at = input.location;
  const FunctionScope scope(kOp, at);
  const Tensor &image = present(kOp, "input", input), &positions = present(kOp, "grid", given_grid);
  const auto between = choice<Between>(kOp, "mode", {"bilinear", "nearest", "bicubic"}, mode, at);
  const auto outside = choice<Outside>(kOp, "padding_mode", {"zeros", "border", "reflection"}, padding_mode, at);
  const int64_t spatial = image.dim() - 2;
  if (spatial != 2 && spatial != 3) fail(kOp, "input", shape_of(image), "[N, C, H, W] or [N, C, D, H, W]", at);
  if (!is_floating(image.dtype()))
    fail(kOp, "input", "a tensor of " + std::string(name_of(image.dtype())), "floating point numbers", at);
  if (positions.dtype() != image.dtype())
    fail(kOp, "grid", "a tensor of " + std::string(name_of(positions.dtype())),
         std::string(name_of(image.dtype())) + ", the input's dtype", at);
  if (positions.dim() != image.dim() || positions.size(0) != image.size(0) || positions.size(-1) != spatial)
    fail(kOp, "grid", shape_of(positions),
         std::to_string(image.dim()) + " dims, " + std::to_string(image.size(0).value()) + " first and " +
             std::to_string(spatial) + " last",
         at);
  for (int64_t d = 0; d < spatial; ++d)
    if (image.size(2 + d) == 0) fail(kOp, "input", shape_of(image), "a pixel at least", at);

  const DType working = working_dtype(image.dtype());
  // A row for each pixel, and one of zeros for what lies outside, image by image: the channels of a pixel stand
  // together.
  const Size channels = image.size(1);
  const Tensor x = image.to(working).flatten(2).transpose(1, 2);
  const Size pixels = x.size(1);
  const Tensor rows = cat({x, zeros({image.size(0), 1, channels}, working)}, 1).flatten(0, 1);
  const Tensor begins = arange(image.size(0), kInt64).unsqueeze(1) * (pixels + 1);
  const Tensor grid = positions.to(working).flatten(1, -2);           // [N, positions, dims]
  std::vector<std::vector<Tap>> along(static_cast<size_t>(spatial));  // of each dim
  int64_t stride = 1;
  size_t count = 1;
  for (int64_t d = spatial; d-- > 0; stride *= image.size(2 + d)) {
    const Axis axis{image.size(2 + d), outside, align_corners};
    std::vector<Tap>& own = along[static_cast<size_t>(d)] = taps(axis, grid.select(2, spatial - 1 - d), between);
    for (Tap& tap : own) tap.find(axis.size, stride);
    count *= own.size();
  }
  Tensor result;
  for (size_t number = 0; number < count; ++number) {
    // One tap of each dim.
    Tensor pixel, weight, counts;
    size_t rest = number;
    for (size_t d = 0; d < along.size(); ++d) {
      const Tap& tap = along[d][rest % along[d].size()];
      rest /= along[d].size();
      pixel = pixel.defined() ? pixel + tap.place : tap.place;
      counts = counts.defined() ? logical_and(counts, tap.exists) : tap.exists;
      if (tap.weight.defined()) weight = weight.defined() ? weight * tap.weight : tap.weight;
    }
    Tensor part = rows.index_select(0, (where(counts, pixel, pixels) + begins).flatten());
    if (weight.defined()) part = part * where(counts, weight, 0).reshape({-1, 1});
    result = result.defined() ? result + part : part;
  }
  IntList sizes{image.size(0), channels};
  for (int64_t d = 1; d + 1 < positions.dim(); ++d) sizes.add(positions.size(d));
  return result.view({image.size(0), grid.size(1), channels})
      .transpose(1, 2)
      .contiguous()
      .view(sizes)
      .to(image.dtype());
}

}  // namespace ingot::nn::functional
