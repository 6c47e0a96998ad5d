// Images at another size, cut into patches and put together again, under PyTorch's names.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "eager/ops/functions.h"

namespace ingot::nn::functional {

/// An image [batch, channels, ...] at the given size, or scaled by the given factors (one stands for all dims). Modes:
/// nearest, nearest-exact, linear (one spatial dim), bilinear and bicubic (two), trilinear (three), area. With
/// align_corners the corners of both images lie on each other. The distance of neighbours follows from the factors, or,
/// with recompute_scale_factor or a size, from the sizes. With antialias (bilinear and bicubic) a pixel of a smaller
/// image is a mean of all that it covers.
INGOT_API Tensor interpolate(const TensorArg& input, const IntList& size, const std::vector<double>& scale_factor = {},
                             Word mode = "nearest", std::optional<bool> align_corners = {},
                             bool recompute_scale_factor = false, bool antialias = false);

/// Planes of r * r channels become blocks of r x r pixels: [.., c * r * r, h, w] to [.., c, h * r, w * r]; and back.
INGOT_API Tensor pixel_shuffle(const TensorArg& input, int64_t upscale_factor);
INGOT_API Tensor pixel_unshuffle(const TensorArg& input, int64_t downscale_factor);

/// Channels (dim 1 of [N, C, ...]) of `groups` groups, taken one of each group at a time.
INGOT_API Tensor channel_shuffle(const TensorArg& input, int64_t groups);

/// The patches under a kernel as columns: [.., c, h, w] to [.., c * kernel, positions]; and columns summed into an
/// image.
INGOT_API Tensor unfold(const TensorArg& input, const IntList& kernel_size, const IntList& dilation = 1,
                        const IntList& padding = 0, const IntList& stride = 1);
INGOT_API Tensor fold(const TensorArg& input, const IntList& output_size, const IntList& kernel_size,
                      const IntList& dilation = 1, const IntList& padding = 0, const IntList& stride = 1);

}  // namespace ingot::nn::functional

namespace ingot {

// Also where LibTorch has them beside the ops.
using nn::functional::channel_shuffle;
using nn::functional::pixel_shuffle;
using nn::functional::pixel_unshuffle;

}  // namespace ingot
