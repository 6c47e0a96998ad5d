// Steps that the runtime implements over generated kernels: convolution and attention.
#include <limits>

#include "codegen/elementwise.h"
#include "codegen/generate.h"
#include "codegen/lower/steps.h"

namespace ingot::codegen::lowering {
namespace {

Expr elementwise(Builder& builder, OpId op, DType dtype, std::initializer_list<Expr> operands) {
  std::vector<Expr> list(operands);
  return define_elementwise(op, {builder, list, {}, dtype, dtype});
}

/// Probabilities of a row of raw scores; a row without any finite score gives zeros. The scale is a literal or scalar
/// 0.
Kernel softmax_kernel(DType dtype, const Buffer* mask, const ir::Operand& scale) {
  Kernel k;
  k.buffers = {{dtype, Access::dense, false}, {dtype, Access::dense, true}};
  if (mask) k.buffers.push_back(*mask);
  k.scalars = 1;
  Builder b(k);
  Type type = register_type(dtype);
  Expr lowest = b.constant(type, -std::numeric_limits<double>::infinity());
  double literal = scale.category == Category::floating ? scale.number : static_cast<double>(scale.integer);
  Expr factor = scale.kind == ir::Operand::Kind::constant ? b.constant(type, literal) : b.scalar(type, 0);
  Expr raw = b.load(0), score = raw * factor;
  if (mask) score = mask->dtype == DType::bool_ ? select(b.load(2), score, lowest) : score + b.load(2);
  k.reductions.push_back({Combiner::max, score.value});
  Expr top = b.reduced(0);
  Expr shift = select(eq(top, lowest), b.constant(type, 0), top);
  // A score is large where a difference is not: the product is not rounded before the shift is taken off.
  Expr shifted = score - shift;
  if (!mask || mask->dtype == DType::bool_) shifted = fma(raw, factor, -shift);
  if (mask && mask->dtype == DType::bool_) shifted = select(b.load(2), shifted, lowest);
  Expr e = elementwise(b, OpId::exp, dtype, {shifted});
  k.locals = {type};
  k.reductions.push_back({Combiner::sum, e.value});
  Expr sum = b.reduced(1);
  Expr inverse = select(eq(sum, 0), b.constant(type, 0), 1.0 / sum);
  k.phases.resize(3);
  k.phases[0].reductions = {0};
  k.phases[1].local_stores = {{0, e.value}};
  k.phases[1].reductions = {1};
  k.phases[2].stores = {{1, (b.local(0) * inverse).value}};
  return k;
}

}  // namespace

void StepWriter::write_attention(uint32_t group) {
  const Group& g = plan_.groups[group];
  const ir::Node& node = *g.anchor;
  const Output& output = g.outputs[0];
  DType dtype = output.dtype;
  Step step = named_step();
  AttentionStep attention;
  attention.dtype = dtype;
  // Every operand with four dims: leading ones merged (copies are dense) or added.
  auto view = [&](Argument a, Dims& shape, Dims strides, DType type, bool read_only) {
    while (shape.size() > 4) {
      INGOT_CHECK(dims_.same(strides[0], dims_.mul(strides[1], shape[1])), "leading dims of attention do not merge");
      shape[1] = dims_.mul(shape[0], shape[1]);
      shape.erase(0);
      strides.erase(0);
    }
    while (shape.size() < 4) shape.insert(0, 1), strides.insert(0, 0);
    a.strides = bytes(dims_, strides, type);
    a.read_only = read_only;
    step.bytes = dims_.add(step.bytes, bytes(dims_, dims_.product(shape), type));
    return a;
  };
  Dims out_shape = graph_.type(output.value).shape;
  attention.out.buffer = output.buffer;
  attention.out = view(attention.out, out_shape, output.strides, dtype, false);
  const Dims query = graph_.type(g.operands[0].value).shape;
  Dim keys = graph_.type(g.operands[1].value).shape[query.size() - 2];
  auto operand_view = [&](size_t i, Dims& shape, const Dims& strides) {
    const StoredOperand& operand = g.operands[i];
    return view(stored_argument(operand, {}, operand.offset, operand.dtype), shape, strides, operand.dtype, true);
  };
  Dims shapes[3];
  Argument* const arguments[] = {&attention.query, &attention.key, &attention.value};
  for (size_t i = 0; i < 3; ++i) {
    shapes[i] = graph_.type(g.operands[i].value).shape;
    *arguments[i] = operand_view(i, shapes[i], g.operands[i].strides);
  }
  attention.batch = shapes[0][0], attention.heads = shapes[0][1], attention.queries = shapes[0][2];
  attention.depth = shapes[0][3];
  attention.key_heads = shapes[1][1], attention.keys = shapes[1][2];
  attention.value_depth = out_shape[3];
  Buffer mask;
  const bool masked = g.operands[3].value != ir::kNoValue;
  if (masked) {
    // The mask broadcasts to [batch..., heads, queries, keys].
    const Dims& shape = graph_.type(g.operands[3].value).shape;
    Dims whole(query.begin(), query.end() - 1);
    whole.push_back(keys);
    size_t fresh = whole.size() - shape.size();
    Dims expanded(whole.size(), Dim(0));
    for (size_t d = 0; d < shape.size(); ++d)
      // As in broadcast_map: 1 by a guard is an expression whose hint is not the whole's.
      if (!(shape[d] == Dim(1)) && dims_.hint(shape[d]) == dims_.hint(whole[fresh + d]))
        expanded[fresh + d] = g.operands[3].strides[d];
    attention.mask = operand_view(3, whole, expanded);
    Dim along = attention.mask->strides.back();
    Dim element = ingot::size_of(g.operands[3].dtype);
    mask = {g.operands[3].dtype,
            along == element  ? Access::dense
            : along == Dim(0) ? Access::uniform
                              : Access::strided,
            false};
  }
  attention.causal = node.attrs[1].integer != 0;
  const ir::Operand& scale = node.operands[4];
  if (scale.kind == ir::Operand::Kind::scalar)
    attention.scale = ScalarSource{ScalarSource::Kind::call, scale.id, 0, dtype};
  if (scale.kind == ir::Operand::Kind::size)
    attention.scale = ScalarSource{ScalarSource::Kind::size, 0, scale.dim, dtype};
  attention.scores = product_kernels(target_, {dtype, ProductForm::Packing::columns});
  attention.values = product_kernels(target_, {dtype, ProductForm::Packing::rows});
  attention.local_bytes = ingot::size_of(dtype);
  Kernel softmax = softmax_kernel(dtype, masked ? &mask : nullptr, scale);
  if (!target_.cuda_arch) attention.softmax = codegen::generate(softmax, target_, "softmax");
  // Two products, and about twenty operations a score.
  Dim scores = dims_.mul(dims_.product(std::span<const Dim>(query.data(), query.size() - 1)), keys);
  step.operations = dims_.mul(scores, dims_.add(dims_.mul(query.back(), 4), 20));
  step.work = std::move(attention);
  append(std::move(step));
}

void StepWriter::write_conv(uint32_t group) {
  const Group& g = plan_.groups[group];
  const ir::Node& node = *g.anchor;
  ir::ValueId product = node.outputs[0];
  DType raw = g.operands[0].dtype;
  size_t rank = g.space.size();  // [batch,] channels, height, width
  bool batched = rank == 4;
  const StoredOperand& bias = g.operands[2];
  bool plain =
      g.outputs.size() == 1 && g.outputs[0].value == product && bias.value == ir::kNoValue && g.outputs[0].dtype == raw;
  if (plain) {
    // Without an epilogue, pixels are stored one after the other.
    const Dims& s = g.outputs[0].strides;
    plain = s[rank - 1] == Dim(1) && dims_.same(s[rank - 2], g.space[rank - 1]);
  }

  KernelWriter writer(graph_, layouts_, plan_, group);
  Argument result;  // of the raw convolution, where nothing follows or what follows is a loop of its own
  bool separate = false;
  if (!plain) {
    writer.use_product(product);
    Dims dense = ir::contiguous_strides(dims_, g.space);
    writer.arguments[0].strides = dense;
    if (bias.value != ir::kNoValue) {
      Dims along(rank, Dim(0));
      along[rank - 3] = bias.strides[0];
      Argument at = stored_argument(bias, {}, bias.offset, bias.dtype);
      writer.add_to_product({at.buffer, bias.dtype, false, along, bias.offset, 0});
    }
    writer.write();
    separate = !epilogue_fits(writer.arguments.size());
    // An epilogue runs over [channels, pixels]: height and width must be one dim for all of its arguments.
    for (const KernelArgument& a : writer.arguments)
      separate = separate || !dims_.same(a.strides[rank - 2], dims_.mul(a.strides[rank - 1], g.space[rank - 1]));
  }
  auto over_pixels = [&](const Dims& strides) {
    return Dims{batched ? strides[0] : Dim(0), strides[rank - 3], strides[rank - 1]};
  };
  if (plain || separate) {
    const Dims strides = plain ? g.outputs[0].strides : ir::contiguous_strides(dims_, g.space);
    if (plain) {
      result.buffer = g.outputs[0].buffer;
      result.offset = bytes(dims_, g.outputs[0].offset, raw);
    } else {
      result.buffer = raw_buffer(product, raw);
    }
    result.strides = bytes(dims_, over_pixels(strides), raw);
  }

  Step step = named_step();
  Conv2dStep conv;
  conv.dtype = raw;
  auto view = [&](const StoredOperand& operand, Dims shape, Dims strides, Dims& shape_of, Argument& argument) {
    argument = stored_argument(operand, strides, operand.offset, raw);
    step.bytes = dims_.add(step.bytes, bytes(dims_, dims_.product(shape), raw));
    shape_of = std::move(shape);
  };
  Dims shape = graph_.type(g.operands[0].value).shape, strides = g.operands[0].strides;
  if (!batched) shape.insert(0, 1), strides.insert(0, 0);
  view(g.operands[0], shape, strides, conv.input_shape, conv.input);
  view(g.operands[1], graph_.type(g.operands[1].value).shape, g.operands[1].strides, conv.weight_shape, conv.weight);
  for (const ir::InputInfo& input : graph_.inputs)
    conv.weight_is_constant = conv.weight_is_constant || (input.constant && g.operands[1].buffer == kNoBuffer &&
                                                          input.value == g.operands[1].root);
  auto pair = [&](size_t i) {
    const Dims& list = node.attrs[i].list;
    return Conv2dStep::Pair{list[0], list.back()};
  };
  conv.stride = pair(0), conv.padding = pair(1), conv.dilation = pair(2);
  conv.groups = node.attrs[3].integer;
  if (conv.groups > 1 && dims_.is_one(conv.weight_shape[1])) conv.form = ConvolutionForm::depthwise;
  conv.kernels = product_kernels(target_, {raw});
  Dim points = dims_.product(g.space);
  if (plain || separate) {
    conv.epilogue.arguments = {result};
  } else {
    Dims any{1, 0};
    std::vector<Dims> strides_of;
    for (const KernelArgument& a : writer.arguments) strides_of.push_back(over_pixels(a.strides));
    std::vector<Argument> arguments_of = arguments(writer, any, strides_of);
    conv.epilogue.arguments.assign(arguments_of.begin() + 1, arguments_of.end());
    conv.epilogue.scalars = writer.scalars;
    conv.epilogue.kernels = epilogues(writer, conv.kernels->max_vectors, step.name);
  }
  const Dims& weight = graph_.type(g.operands[1].value).shape;
  Dim depth = dims_.mul(weight[1], dims_.mul(weight[2], weight[3]));
  step.operations = dims_.mul(points, dims_.add(dims_.mul(depth, 2), writer.work));
  for (const Output& o : g.outputs) step.bytes = dims_.add(step.bytes, bytes(dims_, points, o.dtype));
  step.work = std::move(conv);
  append(std::move(step));
  if (separate) loop_after_product(group, writer, result.buffer);
}

}  // namespace ingot::codegen::lowering
