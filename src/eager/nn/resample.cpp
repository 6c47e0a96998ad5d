#include "eager/nn/resample.h"

#include <cmath>

#include "base/float_environment.h"
#include "eager/call/call.h"
#include "eager/nn/pooling.h"

namespace ingot::nn::functional {
namespace {

using eager::fail;

/// A mode as a user names it: the op's word for it, and the spatial dims that the name goes with (0: any).
struct ModeName {
  std::string_view name, word;
  int64_t spatial;
  bool aligns;  // align_corners has a meaning
};
constexpr ModeName kModes[] = {{"nearest", "nearest", 0, false}, {"nearest-exact", "nearest-exact", 0, false},
                               {"linear", "linear", 1, true},    {"bilinear", "linear", 2, true},
                               {"trilinear", "linear", 3, true}, {"bicubic", "cubic", 2, true},
                               {"area", "area", 0, false}};

const ModeName& find_mode(std::string_view name, Location location) {
  std::string known;
  for (const ModeName& mode : kModes) {
    if (mode.name == name) return mode;
    known += (known.empty() ? "\"" : ", \"") + std::string(mode.name) + "\"";
  }
  fail("interpolate", "mode", "\"" + std::string(name) + "\"", "one of " + known, location);
}

/// Sizes before the last three dims, then these.
Ints image_sizes(const Tensor& x, std::initializer_list<int64_t> last) {
  Ints sizes(x.sizes().begin(), x.sizes().end() - 3);
  for (int64_t size : last) sizes.push_back(size);
  return sizes;
}
/// The dims before the last `count` in order, then those at these places after them.
Tensor reordered(const Tensor& x, std::initializer_list<int64_t> last, Location location) {
  Ints order;
  int64_t first = x.dim() - static_cast<int64_t>(last.size());
  for (int64_t d = 0; d < first; ++d) order.push_back(d);
  for (int64_t d : last) order.push_back(first + d);
  return x.permute(order, location);
}
const Tensor& image(const char* op, const char* factor_name, const TensorArg& input, int64_t factor) {
  const Tensor& x = eager::present(op, "input", input);
  if (x.dim() < 3)
    fail(op, "input", "a tensor with " + std::to_string(x.dim()) + " dims", "at least three", input.location);
  if (factor < 1) fail(op, factor_name, std::to_string(factor), "a positive number", input.location);
  return x;
}

}  // namespace

Tensor interpolate(const TensorArg& input, const IntList& size, const std::vector<double>& scale_factor, Word mode_name,
                   std::optional<bool> align_corners, bool recompute_scale_factor, bool antialias) {
  const Tensor& x = eager::present("interpolate", "input", input);
  const FloatEnvironment environment;
  Location location = input.location;
  const ModeName& mode = find_mode(mode_name, location);
  int64_t spatial = x.dim() - 2;
  if (spatial < 1 || spatial > 3 || (mode.spatial && mode.spatial != spatial))
    fail("interpolate", "input", "a tensor with " + std::to_string(x.dim()) + " dims",
         mode.spatial ? std::to_string(mode.spatial + 2) + " dims for mode \"" + std::string(mode.name) + "\""
                      : "[batch, channels, ...] with one to three spatial dims",
         location);
  if (align_corners && !mode.aligns)
    fail("interpolate", "align_corners", *align_corners ? "true" : "false",
         "nothing for mode \"" + std::string(mode.name) + "\"", location);
  if (antialias && (spatial != 2 || !mode.aligns))
    fail("interpolate", "antialias", "true for mode \"" + std::string(mode.name) + "\"",
         "false, or mode \"bilinear\" or \"bicubic\"", location);
  if (size.present() == !scale_factor.empty())
    fail("interpolate", "size", size.present() ? "size and scale_factor" : "neither size nor scale_factor",
         "one of the two", location);
  size_t given = size.present() ? size.items().size() : scale_factor.size();
  if (given != 1 && given != static_cast<size_t>(spatial))
    fail("interpolate", size.present() ? "size" : "scale_factor", std::to_string(given) + " numbers",
         "one, or " + std::to_string(spatial), location);
  Ints sizes;
  ScalarArg scales[3];  // of the last dims
  for (int64_t i = 0; i < spatial; ++i) {
    if (size.present()) {
      sizes.push_back(size.items()[given == 1 ? 0 : i]);
      continue;
    }
    double scale = scale_factor[given == 1 ? 0 : i];
    if (!(scale > 0) || std::isinf(scale))
      fail("interpolate", "scale_factor", std::to_string(scale), "a positive number", location);
    sizes.push_back(static_cast<int64_t>(std::floor(static_cast<double>(x.size(2 + i)) * scale)));
    if (!recompute_scale_factor) scales[3 - spatial + i] = scale;
  }
  if (mode.word == "area") {
    if (spatial == 1) return adaptive_avg_pool1d(input, sizes);
    return spatial == 2 ? ingot::adaptive_avg_pool2d(input, sizes) : ingot::adaptive_avg_pool3d(input, sizes);
  }
  return upsample(input, sizes, mode.word, align_corners.value_or(false), antialias, scales[0], scales[1], scales[2]);
}

Tensor pixel_shuffle(const TensorArg& input, int64_t upscale_factor) {
  const int64_t r = upscale_factor;
  const Tensor& x = image("pixel_shuffle", "upscale_factor", input, r);
  int64_t channels = x.size(-3), height = x.size(-2), width = x.size(-1);
  if (channels % (r * r) != 0)
    fail("pixel_shuffle", "input", std::to_string(channels) + " channels", "a multiple of " + std::to_string(r * r),
         input.location);
  int64_t c = channels / (r * r);
  Tensor blocks = x.reshape(image_sizes(x, {c, r, r, height, width}), input.location);
  return reordered(blocks, {0, 3, 1, 4, 2}, input.location)
      .reshape(image_sizes(x, {c, height * r, width * r}), input.location);
}

Tensor pixel_unshuffle(const TensorArg& input, int64_t downscale_factor) {
  const int64_t r = downscale_factor;
  const Tensor& x = image("pixel_unshuffle", "downscale_factor", input, r);
  int64_t channels = x.size(-3), height = x.size(-2), width = x.size(-1);
  if (height % r != 0 || width % r != 0)
    fail("pixel_unshuffle", "input", "an image of " + std::to_string(height) + " x " + std::to_string(width),
         "multiples of " + std::to_string(r), input.location);
  Tensor blocks = x.reshape(image_sizes(x, {channels, height / r, r, width / r, r}), input.location);
  return reordered(blocks, {0, 2, 4, 1, 3}, input.location)
      .reshape(image_sizes(x, {channels * r * r, height / r, width / r}), input.location);
}

Tensor channel_shuffle(const TensorArg& input, int64_t groups) {
  const Tensor& x = image("channel_shuffle", "groups", input, groups);
  const Size channels = x.size(1);
  if (channels % groups != 0)
    fail("channel_shuffle", "input", std::to_string(channels.value()) + " channels",
         "a multiple of " + std::to_string(groups), input.location);
  return x.unflatten(1, {groups, channels / groups}, input.location)
      .transpose(1, 2, input.location)
      .flatten(1, 2, input.location);
}

Tensor unfold(const TensorArg& input, const IntList& kernel_size, const IntList& dilation, const IntList& padding,
              const IntList& stride) {
  return im2col(input, kernel_size, dilation, padding, stride);
}
Tensor fold(const TensorArg& input, const IntList& output_size, const IntList& kernel_size, const IntList& dilation,
            const IntList& padding, const IntList& stride) {
  Ints image = output_size.items();
  if (image.size() == 1) image.push_back(image[0]);
  return col2im(input, image, kernel_size, dilation, padding, stride);
}

}  // namespace ingot::nn::functional
