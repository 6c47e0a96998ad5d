// Images read at positions of a grid (spatial transformers), under PyTorch's names.
#pragma once
#include "eager/ops/functions.h"

namespace ingot::nn::functional {

/// The positions at which an image of `size` [N, C, H, W] is read after an affine map: [N, H, W, 2] of theta [N, 2, 3]
/// (for [N, C, D, H, W]: [N, D, H, W, 3] of [N, 3, 4]). A position is (x, y) or (x, y, z); -1 and 1 are the edges of
/// the image, with `align_corners` the centres of the pixels there.
INGOT_API Tensor affine_grid(const TensorArg& theta, const IntList& size, bool align_corners = false);

/// An image [N, C, H, W] (or [N, C, D, H, W]) at positions [N, ..., 2] (or 3), as affine_grid has them: [N, C, ...].
/// Modes: bilinear (of volumes, trilinear), nearest (halves to even; the grid's gradient is 0), bicubic (of volumes,
/// tricubic; a = -0.75). Outside lie "zeros" (at a NaN, too), "border" (the nearest pixel) or "reflection" (at the
/// edges).
INGOT_API Tensor grid_sample(const TensorArg& input, const TensorArg& grid, Word mode = "bilinear",
                             Word padding_mode = "zeros", bool align_corners = false);

}  // namespace ingot::nn::functional
