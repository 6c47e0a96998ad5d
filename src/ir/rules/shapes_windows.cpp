// Shape rules of convolution, pooling, patches and resampling.
#include <algorithm>

#include "ir/rules/rules.h"

namespace ingot::ir::shapes {
namespace {

/// Fails unless a shape is [batch, channels, ...] or [channels, ...] with this many spatial dims.
void check_image(RuleContext& context, std::string_view argument, const Dims& shape, size_t spatial) {
  if (shape.size() != spatial + 2 && shape.size() != spatial + 1)
    context.fail(argument, given_shape(context, shape),
                 "[batch, channels, ...] or [channels, ...] with " + std::to_string(spatial) + " spatial dims");
}

/// Fails unless groups divide `channels`; gives their number.
int64_t checked_groups(RuleContext& context, Dim channels, const char* what) {
  int64_t groups = integer_attribute(context, "groups");
  DimTable& dims = context.dims;
  if (groups < 1) context.fail("groups", std::to_string(groups), "a positive number");
  if (!dims.equal(dims.mul(dims.floor_div(channels, groups), groups), channels))
    context.fail("groups", std::to_string(groups), "a divisor of the " + dims.str(channels) + " " + what + " channels");
  return groups;
}

void check_bias(RuleContext& context, Dim channels) {
  const OperandType& bias = operand(context, "bias");
  if (!bias.present()) return;
  check_rank(context, "bias", 1);
  check_size(context, "bias", *bias.shape, 0, channels, "the output channels");
}

/// Kernels of another size are another program: a symbol is pinned to its value by a guard.
int64_t kernel_size(RuleContext& context, const Dims& weight, size_t i) {
  const int64_t size = context.dims.hint(weight[2 + i]);
  INGOT_CHECK(context.dims.equal(weight[2 + i], Dim(size)));
  return size;
}

/// Number of positions of a kernel over an image of these sizes, by the attributes of im2col and col2im.
Dim patch_count(RuleContext& context, std::span<const Dim> image) {
  Ints kernel = spread(context, "kernel_size", 2), dilation = spread(context, "dilation", 2),
       padding = spread(context, "padding", 2), stride = spread(context, "stride", 2);
  Dim count = 1;
  for (size_t i = 0; i < 2; ++i)
    count =
        context.dims.mul(count, window_count(context, image[i], kernel[i], stride[i], padding[i], dilation[i], false));
  return count;
}
}  // namespace

void convolution(RuleContext& context) {
  const Dims &input = shape_of(context, 0), &weight = shape_of(context, 1);
  size_t spatial = spatial_dims(info(context.op));
  check_rank(context, "weight", spatial + 2);
  check_image(context, "input", input, spatial);
  size_t channel = input.size() - spatial - 1;
  int64_t groups = checked_groups(context, weight[0], "output");
  check_size(context, "input", input, channel, context.dims.mul(weight[1], groups),
             "the channels that weight and groups name");
  check_bias(context, weight[0]);
  Ints stride = spread(context, "stride", spatial), padding = spread(context, "padding", spatial),
       dilation = spread(context, "dilation", spatial);
  Dims shape(input.begin(), input.begin() + channel);
  shape.push_back(weight[0]);
  for (size_t i = 0; i < spatial; ++i)
    shape.push_back(window_count(context, input[channel + 1 + i], kernel_size(context, weight, i), stride[i],
                                 padding[i], dilation[i], false));
  set_shape(context, std::move(shape));
}

void convolution_weight(RuleContext& context) {
  check_rank(context, "input", 4);
  check_rank(context, "grad_output", 4);
  const Dims &input = shape_of(context, 0), &gradient = *operand(context, "grad_output").shape;
  const int64_t groups = checked_groups(context, input[1], "input");
  (void)checked_groups(context, gradient[1], "output");
  check_size(context, "grad_output", gradient, 0, input[0], "the batch of input");
  Ints kernel = spread(context, "kernel_size", 2), stride = spread(context, "stride", 2),
       padding = spread(context, "padding", 2), dilation = spread(context, "dilation", 2);
  Dims shape{gradient[1], context.dims.floor_div(input[1], groups)};
  for (size_t i = 0; i < 2; ++i) {
    check_size(context, "grad_output", gradient, 2 + i,
               window_count(context, input[2 + i], kernel[i], stride[i], padding[i], dilation[i], false),
               "the windows of input");
    shape.push_back(kernel[i]);
  }
  set_shape(context, std::move(shape));
}

void convolution_transposed(RuleContext& context) {
  const Dims &input = shape_of(context, 0), &weight = shape_of(context, 1);
  size_t spatial = spatial_dims(info(context.op));
  check_rank(context, "weight", spatial + 2);
  check_image(context, "input", input, spatial);
  size_t channel = input.size() - spatial - 1;
  DimTable& dims = context.dims;
  int64_t groups = checked_groups(context, weight[0], "input");
  check_size(context, "input", input, channel, weight[0], "the channels of weight");
  Dim channels = dims.mul(weight[1], groups);
  check_bias(context, channels);
  Ints stride = spread(context, "stride", spatial), padding = spread(context, "padding", spatial),
       dilation = spread(context, "dilation", spatial), more = spread(context, "output_padding", spatial);
  Dims shape(input.begin(), input.begin() + channel);
  shape.push_back(channels);
  for (size_t i = 0; i < spatial; ++i) {
    int64_t kernel = kernel_size(context, weight, i);
    check_window(context, kernel, stride[i], padding[i], dilation[i]);
    if (more[i] >= std::max(stride[i], dilation[i]))
      context.fail("output_padding", std::to_string(more[i]),
                   "less than the stride (" + std::to_string(stride[i]) + ") or the dilation (" +
                       std::to_string(dilation[i]) + ")");
    // (size - 1) * stride - 2 * padding + extent of the kernel + output_padding, which must be positive.
    Dim reach = dims.add(dims.mul(dilation[i], kernel - 1), dims.add(more[i], 1));
    Dim whole = dims.add(dims.mul(input[channel + 1 + i], stride[i]), reach);
    Dim cut = dims.add(stride[i], dims.mul(2, padding[i]));
    if (!dims.less(cut, whole))
      context.fail("padding", std::to_string(padding[i]), "what leaves a positive size of the output");
    shape.push_back(dims.sub(whole, cut));
  }
  set_shape(context, std::move(shape));
}

void pool(RuleContext& context) {
  Dims shape = shape_of(context, 0);
  size_t spatial = spatial_dims(info(context.op));
  check_image(context, "self", shape, spatial);
  Ints kernel = spread(context, "kernel_size", spatial), padding = spread(context, "padding", spatial);
  const Attr& given = attribute(context, "stride");
  Ints stride = given.present() && !given.list.empty() ? spread(context, "stride", spatial) : kernel;
  Ints dilation = attribute(context, "dilation").present() ? spread(context, "dilation", spatial) : Ints(spatial, 1);
  bool ceil_mode = boolean_attribute(context, "ceil_mode");
  if (attribute(context, "divisor_override").present() && integer_attribute(context, "divisor_override") == 0)
    context.fail("divisor_override", "0", "another number");
  for (size_t i = 0; i < spatial; ++i) {
    if (padding[i] > kernel[i] / 2)
      context.fail("padding", std::to_string(padding[i]), "at most half the kernel's " + std::to_string(kernel[i]));
    Dim& size = shape[shape.size() - spatial + i];
    size = window_count(context, size, kernel[i], stride[i], padding[i], dilation[i], ceil_mode);
  }
  // How many elements a window has is what an average divides by.
  Dim taps = 1;
  for (int64_t k : kernel) taps = context.dims.mul(taps, k);
  set_shape(context, std::move(shape));
}

void adaptive_pool(RuleContext& context) {
  Dims shape = shape_of(context, 0);
  size_t spatial = spatial_dims(info(context.op));
  check_image(context, "self", shape, spatial);
  const Dims sizes = spread_sizes(context, "output_size", spatial);
  for (size_t i = 0; i < spatial; ++i) {
    Dim& size = shape[shape.size() - spatial + i];
    if (context.dims.less(0, sizes[i]) && context.dims.equal(size, 0))
      context.fail("self", given_shape(context, shape), "no empty spatial dim");
    size = sizes[i];
  }
  set_shape(context, std::move(shape));
}

void im2col(RuleContext& context) {
  const Dims& input = shape_of(context, 0);
  check_image(context, "input", input, 2);
  size_t channel = input.size() - 3;
  Ints kernel = spread(context, "kernel_size", 2);
  Dims shape(input.begin(), input.begin() + channel);
  Dim count = patch_count(context, std::span<const Dim>(&input[channel + 1], 2));
  shape.push_back(context.dims.product(Dims{input[channel], kernel[0], kernel[1]}));
  shape.push_back(count);
  set_shape(context, std::move(shape));
}

void col2im(RuleContext& context) {
  const Dims &input = shape_of(context, 0), &image = attribute(context, "output_size").list;
  if (input.size() != 2 && input.size() != 3)
    context.fail("input", given_shape(context, input), "[batch, channels * kernel, positions] or without the batch");
  if (image.size() != 2) context.fail("output_size", shape_text(context.dims, image), "two sizes");
  DimTable& dims = context.dims;
  Dim count = patch_count(context, image);
  check_size(context, "input", input, input.size() - 1, count, "the positions of the kernel in output_size");
  Ints kernel = spread(context, "kernel_size", 2);
  Dim taps = dims.mul(kernel[0], kernel[1]), channels = dims.floor_div(input[input.size() - 2], taps);
  if (!dims.equal(dims.mul(channels, taps), input[input.size() - 2]))
    context.fail("input", given_shape(context, input),
                 "a multiple of " + dims.str(taps) + " at dim " + std::to_string(input.size() - 2));
  Dims shape(input.begin(), input.end() - 2);
  shape.push_back(channels);
  shape.push_back(image[0]);
  shape.push_back(image[1]);
  set_shape(context, std::move(shape));
}

void upsample(RuleContext& context) {
  Dims shape = shape_of(context, 0);
  const Dims& sizes = attribute(context, "output_size").list;
  if (shape.size() < 3 || shape.size() > 5)
    context.fail("input", given_shape(context, shape), "[batch, channels, ...] with one to three spatial dims");
  size_t spatial = shape.size() - 2;
  constexpr int64_t kLinear = 2, kCubic = 3;  // in the order of the table's words
  if (integer_attribute(context, "mode") == kCubic && spatial != 2)
    context.fail("mode", "cubic for " + std::to_string(spatial) + " spatial dims", "two spatial dims");
  if (integer_attribute(context, "antialias") && integer_attribute(context, "mode") < kLinear)
    context.fail("antialias", "true", "false, or mode linear or cubic");
  if (sizes.size() != spatial)
    context.fail("output_size", shape_text(context.dims, sizes), std::to_string(spatial) + " sizes");
  for (size_t i = 0; i < spatial; ++i) {
    if (!context.dims.less(0, shape[2 + i])) context.fail("input", given_shape(context, shape), "no empty spatial dim");
    if (!context.dims.less(0, sizes[i])) context.fail("output_size", shape_text(context.dims, sizes), "positive sizes");
    shape[2 + i] = sizes[i];
  }
  set_shape(context, std::move(shape));
}

}  // namespace ingot::ir::shapes
