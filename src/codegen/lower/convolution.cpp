// Convolution, and the gradient of its weight, as steps of the runtime over generated kernels.
#include "codegen/lower/convolution.h"

#include <algorithm>
#include <utility>

#include "codegen/lower/contraction.h"
#include "codegen/lower/winograd.h"

namespace ingot::codegen::lowering {
namespace {

constexpr int64_t kMostTaps = 7;            // along a line: what a tile's code grows with
constexpr int64_t kFewestForWinograd = 16;  // channels: transforming fewer takes what is saved

/// An attribute that is one number for each of height and width, or one for both.
Conv2dStep::Pair pair(const ir::Attr& a) { return {a.list[0], a.list.back()}; }

/// Of a depthwise convolution: whether its tiles slide along the lines of images, with these kernels only.
void slide(const Conv2dStep& conv, ProductForm& form) {
  const Dim &height = conv.weight_shape[2], &width = conv.weight_shape[3];
  auto within = [](const Dim& d, int64_t least, int64_t most) {
    return d.is_constant() && d.code >= least && d.code <= most;
  };
  if (!within(width, 2, kMostTaps) || !within(height, 1, kShallow / width.code) || !within(conv.stride.w, 1, 2) ||
      !(conv.dilation.w == Dim(1)) || !within(conv.padding.w, 0, width.code - 1))
    return;
  form.a = RowsOfA::windows;
  form.taps = static_cast<int>(width.code), form.window_stride = static_cast<int>(conv.stride.w.code);
}

/// Pixels where that is how the results lie, or most of them, or how the images do.
ConvolutionForm convolution_form(StepWriter& w, const Group& g) {
  if (w.target.cuda_arch) return ConvolutionForm::patches;
  if (g.operands[0].dtype == DType::bf16) return ConvolutionForm::pixels;
  const Dims& weight = w.graph.type(g.operands[1].value).shape;
  const Dim groups = g.anchor->attrs[3].integer;
  if (!(groups == Dim(1)) && w.dims.is_one(weight[1]) && w.dims.equal(weight[0], groups))
    return ConvolutionForm::depthwise;
  const size_t rank = g.space.size();
  const auto inside = std::count_if(g.outputs.begin(), g.outputs.end(), [&](const Output& o) {
    return w.layouts.strided({o.value, o.strides, o.offset}, o.map, rank).strides[rank - 3] == Dim(1);
  });
  const Dims& image = g.operands[0].strides;
  const bool pixels = 2 * static_cast<size_t>(inside) > g.outputs.size() || image[image.size() - 3] == Dim(1);
  return pixels ? ConvolutionForm::pixels : ConvolutionForm::patches;
}

}  // namespace

void write_conv(StepWriter& w, uint32_t group) {
  const Group& g = w.plan.groups[group];
  const ir::Node& node = *g.anchor;
  ir::ValueId product = node.outputs[0];
  const DType dtype = g.operands[0].dtype, raw = dtype == DType::bf16 ? DType::f32 : dtype;
  size_t rank = g.space.size();  // [batch,] channels, height, width
  bool batched = rank == 4;
  const StoredOperand& bias = g.operands[2];
  const ConvolutionForm form = convolution_form(w, g);
  const bool pixels = form != ConvolutionForm::patches;
  // Height and width are one dim.
  auto joins = [&](const Dims& s) { return w.dims.same(s[rank - 2], w.dims.mul(s[rank - 1], g.space[rank - 1])); };
  bool plain =
      g.outputs.size() == 1 && g.outputs[0].value == product && bias.value == ir::kNoValue && g.outputs[0].dtype == raw;
  if (plain) {
    // Without an epilogue, channels or pixels are stored one after the other.
    const Dims& s = g.outputs[0].strides;
    plain = s[pixels ? rank - 3 : rank - 1] == Dim(1) && joins(s);
  }

  auto raw_strides = [&] {
    return pixels ? channels_last_strides(w.dims, g.space) : ir::contiguous_strides(w.dims, g.space);
  };
  KernelWriter writer(w.graph, w.layouts, w.plan, group);
  Argument result;  // of the raw convolution, where nothing follows or what follows is a loop of its own
  bool separate = false;
  if (!plain) {
    writer.use_product(product);
    writer.arguments[0].strides = raw_strides();
    if (bias.value != ir::kNoValue) {
      Dims along(rank, Dim(0));
      along[rank - 3] = bias.strides[0];
      Argument at = w.stored_argument(bias, {}, bias.offset, bias.dtype);
      writer.add_to_product({at.buffer, bias.dtype, false, along, bias.offset, 0});
    }
    writer.write();
    separate = !epilogue_fits(w, writer.arguments.size());
    // An epilogue runs over channels and pixels: height and width must be one dim for all of its arguments.
    for (const KernelArgument& a : writer.arguments) separate = separate || !joins(a.strides);
    // Few sums a result: to store them across the channels would take longer than all else.
    if (form == ConvolutionForm::depthwise)
      for (const KernelArgument& a : writer.arguments)
        separate = separate || !(a.strides[rank - 3] == Dim(1) || !a.written);
  }
  auto over_pixels = [&](const Dims& strides) {
    Dims of{batched ? strides[0] : Dim(0), strides[rank - 3], strides[rank - 1]};
    if (pixels) std::swap(of[1], of[2]);
    return of;
  };
  if (plain || separate) {
    const Dims strides = plain ? g.outputs[0].strides : raw_strides();
    if (plain) {
      result.buffer = g.outputs[0].buffer;
      result.offset = bytes(w.dims, g.outputs[0].offset, raw);
    } else {
      result.buffer = raw_buffer(w, product, raw);
    }
    result.strides = bytes(w.dims, over_pixels(strides), raw);
  }

  Step step = w.named_step();
  Conv2dStep conv;
  conv.dtype = dtype;
  auto view = [&](const StoredOperand& operand, Dims shape, Dims strides, Dims& shape_of, Argument& argument) {
    argument = w.stored_argument(operand, strides, operand.offset, operand.dtype);
    step.bytes = w.dims.add(step.bytes, bytes(w.dims, w.dims.product(shape), operand.dtype));
    shape_of = std::move(shape);
  };
  Dims shape = w.graph.type(g.operands[0].value).shape, strides = g.operands[0].strides;
  if (!batched) shape.insert(0, 1), strides.insert(0, 0);
  view(g.operands[0], shape, strides, conv.input_shape, conv.input);
  view(g.operands[1], w.graph.type(g.operands[1].value).shape, g.operands[1].strides, conv.weight_shape, conv.weight);
  conv.weight_is_constant = w.is_constant(g.operands[1]);
  conv.rounds_weight = g.operands[1].rounded;
  conv.turned_h = g.operands[1].turned_h, conv.turned_w = g.operands[1].turned_w;
  conv.stride = pair(node.attrs[0]), conv.padding = pair(node.attrs[1]), conv.dilation = pair(node.attrs[2]);
  conv.groups = node.attrs[3].integer;
  conv.form = form;
  // Of one tap that meets each pixel once, pixels are the rows of a matrix.
  const Dims& weight = w.graph.type(g.operands[1].value).shape;
  auto is = [](const Conv2dStep::Pair& both, int64_t what) { return both.h == Dim(what) && both.w == Dim(what); };
  const bool in_rows = form == ConvolutionForm::pixels && w.dims.is_one(weight[2]) && w.dims.is_one(weight[3]) &&
                       is(conv.stride, 1) && is(conv.padding, 0);
  ProductForm product_form{.dtype = dtype,
                           .a = form == ConvolutionForm::patches || in_rows ? RowsOfA::along
                                : form == ConvolutionForm::pixels           ? RowsOfA::listed
                                                                            : RowsOfA::channels};
  if (form == ConvolutionForm::depthwise) slide(conv, product_form);
  conv.kernels = product_kernels(w.target, product_form);
  auto wide = [](Dim channels) { return channels.is_constant() && channels.code >= kFewestForWinograd; };
  if (w.options.winograd && form == ConvolutionForm::pixels && dtype == DType::f32 && weight[2] == Dim(3) &&
      weight[3] == Dim(3) && is(conv.stride, 1) && is(conv.dilation, 1) && conv.groups == 1 && wide(weight[0]) &&
      wide(weight[1]))
    conv.winograd = winograd(w);
  // Channels are the columns, of all groups at once where they are depthwise; else pixels are, or those of a group.
  std::optional<Dim> columns;
  if (pixels && (form == ConvolutionForm::depthwise || conv.groups == Dim(1))) columns = weight[0];
  Dim points = w.dims.product(g.space);
  if (plain || separate) {
    conv.epilogue.arguments = {result};
  } else {
    Dims any{1, 0};
    std::vector<Dims> strides_of;
    for (const KernelArgument& a : writer.arguments) strides_of.push_back(over_pixels(a.strides));
    std::vector<Argument> arguments_of = w.arguments(writer, any, strides_of);
    conv.epilogue.arguments.assign(arguments_of.begin() + 1, arguments_of.end());
    conv.epilogue.scalars = writer.scalars;
    conv.epilogue.kernels = epilogues(w, writer, strides_of, conv.kernels->max_vectors, columns, step.name);
  }
  Dim depth = w.dims.mul(weight[1], w.dims.mul(weight[2], weight[3]));
  if (pixels && !conv.epilogue.kernels.empty())
    conv.epilogue.finishing = finishing_tiles(w, writer, product_form, depth, columns);
  step.operations = w.dims.mul(points, w.dims.add(w.dims.mul(depth, 2), writer.work));
  for (const Output& o : g.outputs) step.bytes = w.dims.add(step.bytes, bytes(w.dims, points, o.dtype));
  step.work = std::move(conv);
  w.append(std::move(step));
  if (separate) loop_after_product(w, group, writer, result.buffer);
}

void write_conv_weight(StepWriter& w, uint32_t group) {
  const Group& g = w.plan.groups[group];
  const ir::Node& node = *g.anchor;
  const Output& output = g.outputs[0];
  Step step = w.named_step();
  Conv2dWeightStep conv;
  conv.dtype = g.operands[0].dtype;
  auto operand = [&](size_t i) {
    const StoredOperand& from = g.operands[i];
    step.bytes = w.dims.add(step.bytes, bytes(w.dims, w.dims.product(w.graph.type(from.value).shape), conv.dtype));
    return w.stored_argument(from, from.strides, from.offset, conv.dtype);
  };
  conv.input = operand(0), conv.gradient = operand(1);
  conv.input_shape = w.graph.type(g.operands[0].value).shape, conv.weight_shape = w.graph.type(output.value).shape;
  conv.stride = pair(node.attrs[1]), conv.padding = pair(node.attrs[2]), conv.dilation = pair(node.attrs[3]);
  conv.groups = node.attrs[4].integer;
  conv.out.buffer = output.buffer;
  conv.out.strides = bytes(w.dims, output.strides, output.dtype);

  const Dims &x = conv.input_shape, &weight = conv.weight_shape, &slope = w.graph.type(g.operands[1].value).shape;
  const Dim pixels = w.dims.mul(slope[0], w.dims.mul(slope[2], slope[3]));
  auto inside = [&](size_t i, const Dims& shape, std::optional<Argument>& copy) {
    if (g.operands[i].strides[1] == Dim(1)) return;
    copy.emplace();
    copy->buffer = w.arena_buffer(bytes(w.dims, w.dims.product(shape), conv.dtype));
    copy->strides = bytes(w.dims, channels_last_strides(w.dims, shape), conv.dtype);
  };
  inside(0, x, conv.input_inside);
  inside(1, slope, conv.gradient_inside);
  conv.raw.buffer = raw_buffer(w, output.value, output.dtype);
  const bool depthwise = conv.groups > 1 && w.dims.is_one(weight[1]) && w.dims.equal(weight[0], conv.groups);
  conv.kernels = product_kernels(w.target, {.dtype = conv.dtype,
                                            .a = depthwise                   ? RowsOfA::channels_with_b
                                                 : conv.dtype == DType::bf16 ? RowsOfA::across
                                                                             : RowsOfA::with_b});
  const Dim elements = w.dims.product(weight);
  step.operations = w.dims.mul(w.dims.mul(elements, 2), pixels);
  step.bytes = w.dims.add(step.bytes, bytes(w.dims, elements, output.dtype));
  step.work = std::move(conv);
  w.append(std::move(step));
}

}  // namespace ingot::codegen::lowering
