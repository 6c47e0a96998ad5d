// Sizes of a convolution, and how its image is copied and its weights are packed, for all ways to compute it.
#pragma once
#include <optional>
#include <span>

#include "runtime/drivers/product_calls.h"

namespace ingot::runtime {

/// The sizes of a convolution.
struct Geometry {
  int64_t batch, channels, height, width;    // of the input
  int64_t out_channels, kernel_h, kernel_w;  // of the weight
  int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;
  int64_t out_height, out_width;
  int64_t group_channels, group_out;                       // channels of a group: of the input, of the output
  std::span<const int64_t> input_strides, weight_strides;  // bytes
  int64_t pixels() const { return out_height * out_width; }
  int64_t taps() const { return kernel_h * kernel_w; }
};

Geometry geometry_of(const Conv2dStep& step, const BindContext& context);
/// Where its first tap is, with the strides of the geometry.
BoundArgument weight_of(const Conv2dStep& step, const BindContext& context);
/// Of the convolution whose weight it is; without strides of the weight.
Geometry geometry_of(const Conv2dWeightStep& step, const BindContext& context);

/// Zeros to read in place of pixels beyond an image.
inline constexpr int64_t kZeroBytes = 1 << 16;
const char* zero_bytes();

/// Elements of 4 or 8 bytes, `stride` bytes apart, become dense.
void copy_elements(char* to, const char* from, int64_t count, int64_t stride, int64_t element);
/// Channels of an image, each with its border of zeros: [channels][height + 2 padding_h][width + 2 padding_w], dense.
void copy_padded(const Geometry& g, const char* image, int64_t channels, int64_t element, char* to);

/// A line of pixels, `step` bytes apart, whose channels are `channel_step` apart: they become innermost, pixels
/// `to_step` bytes apart.
void copy_channels_inside(const char* from, int64_t width, int64_t channels, int64_t step, int64_t channel_step,
                          int64_t element, char* to, int64_t to_step);
/// Line y of an image, or of its border, with the border at both ends: [width + 2 padding_w][groups][channels], dense;
/// zeros where a group has fewer channels.
void copy_line(const Geometry& g, const char* image, int64_t y, int64_t channels, int64_t element, char* to);

/// Columns of a packed panel: the first of them, how many there are, and how many its rows have room for.
struct PanelColumns {
  int64_t first, count, width;
};
/// Of weights [Cout, c, kh, kw] in any strides, of so many c: [(kh, kw, c)][width], zeros where no column is. Elements
/// of 2 bytes in pairs, as tiles read them: [(kh, kw, c / 2)][width][2].
/// `rounds`: from f32.
void pack_taps(const Geometry& g, int64_t channels, const char* weight, const PanelColumns& columns, int64_t element,
               bool rounds, char* to);

/// The kernels of a convolution, ready to be called.
struct ConvolutionCalls {
  ConvolutionCalls(const Conv2dStep& step, const BindContext& context);
  ProductCalls direct;
  struct Winograd {
    ProductCalls products;
    KernelCall pixels, taps, results;
  };
  std::optional<Winograd> winograd;
};

}  // namespace ingot::runtime
