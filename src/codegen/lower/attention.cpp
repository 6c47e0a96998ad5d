// Attention and its gradients as steps of the runtime over generated kernels.
#include "codegen/lower/attention.h"

#include <algorithm>
#include <limits>

#include "codegen/elementwise.h"
#include "codegen/generate.h"
#include "codegen/lower/contraction.h"
#include "codegen/lower/primitives.h"

namespace ingot::codegen::lowering {
namespace {

Expr elementwise(Builder& builder, OpId op, DType dtype, std::initializer_list<Expr> operands) {
  std::vector<Expr> list(operands);
  return define_elementwise(op, {builder, list, {}, dtype, dtype});
}

/// A number of the call: a literal, or a scalar of the kernel.
Expr number_of(Builder& b, Type type, const ir::Operand& number, uint32_t scalar) {
  if (number.kind != ir::Operand::Kind::constant) return b.scalar(type, scalar);
  return b.constant(type, number.category == Category::floating ? number.number : static_cast<double>(number.integer));
}
std::optional<ScalarSource> source_of(const ir::Operand& number, DType dtype) {
  if (number.kind == ir::Operand::Kind::scalar) return ScalarSource{ScalarSource::Kind::call, number.id, 0, dtype};
  if (number.kind == ir::Operand::Kind::size) return ScalarSource{ScalarSource::Kind::size, 0, number.dim, dtype};
  return {};
}

const ir::Operand& scale_of(const ir::Node& node) { return node.operands[4]; }

/// Rows of raw scores in buffer 0, of probabilities in buffer 1, and the mask.
Kernel kernel_of_scores(DType dtype, const Buffer* mask) {
  Kernel k;
  k.buffers = {{dtype, Access::dense, false}, {dtype, Access::dense, true}};
  if (mask) k.buffers.push_back(*mask);
  k.phases.resize(3);
  k.phases[0].reductions = {0};
  k.phases[1].reductions = {1};
  return k;
}

/// Probabilities of a row of raw scores; a row without any finite score gives zeros.
Kernel softmax_kernel(DType dtype, const Buffer* mask, const ir::Node& node) {
  Kernel k = kernel_of_scores(dtype, mask);
  k.scalars = 1;
  Builder b(k);
  Type type = register_type(dtype);
  Expr lowest = b.constant(type, -std::numeric_limits<double>::infinity());
  Expr factor = number_of(b, type, scale_of(node), 0);
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
  k.phases[1].local_stores = {{0, e.value}};
  k.phases[2].stores = {{1, (b.local(0) * inverse).value}};
  return k;
}

/// The same with the bits of scale, mask and softmax as ops of their own.
Kernel composed_kernel(DType dtype, const Buffer* mask, const ir::Node& node) {
  Kernel k = kernel_of_scores(dtype, mask);
  const bool given = scale_of(node).kind != ir::Operand::Kind::constant, divided = node.attrs[3].integer != 0;
  k.scalars = 2;
  Builder b(k);
  Type type = register_type(dtype);
  Expr factor = number_of(b, type, scale_of(node), 0), score = divided ? b.load(0) / factor : b.load(0) * factor;
  if (mask)
    score = mask->dtype == DType::bool_ ? select(b.load(2), score, number_of(b, type, *fill_of(node), given))
                                        : score + b.load(2);
  k.reductions.push_back({Combiner::max, score.value});
  k.locals = {type};
  if (divided) {  // a quotient is kept, a product is cheap to compute again
    k.locals.push_back(type);
    k.phases[0].local_stores = {{1, score.value}};
    score = b.local(1);
  }
  Expr e = elementwise(b, OpId::exp, dtype, {score - b.reduced(0)});
  k.reductions.push_back({Combiner::sum, e.value});
  k.phases[1].local_stores = {{0, e.value}};
  Expr inverse = elementwise(b, OpId::reciprocal, dtype, {b.reduced(1)});
  k.phases[2].stores = {{1, (b.local(0) * inverse).value}};
  return k;
}

/// Gradients of a row of raw scores, from its probabilities and their gradients. What the mask hides has none, and adds
/// nothing to the row's sum, not even NaN.
Kernel slope_kernel(DType dtype, const Buffer* mask, const ir::Node& node) {
  Kernel k;
  k.buffers = {{dtype, Access::dense, false}, {dtype, Access::dense, false}, {dtype, Access::dense, true}};
  if (mask) k.buffers.push_back(*mask);
  k.scalars = 1;
  Builder b(k);
  Type type = register_type(dtype);
  Expr lowest = b.constant(type, -std::numeric_limits<double>::infinity()), zero = b.constant(type, 0);
  auto seen = [&](Expr x) {
    if (!mask) return x;
    return mask->dtype == DType::bool_ ? select(b.load(3), x, zero) : select(eq(b.load(3), lowest), zero, x);
  };
  Expr probability = b.load(0), given = seen(b.load(1));
  k.reductions.push_back({Combiner::sum, (probability * given).value});
  Expr slope = seen(probability * (given - b.reduced(0))) * number_of(b, type, scale_of(node), 0);
  k.phases.resize(2);
  k.phases[0].reductions = {0};
  k.phases[1].stores = {{2, slope.value}};
  return k;
}

/// An argument over four dims of `shape`: leading ones merged (copies are dense, of size 1 any stride will do) or
/// added.
Argument with_four_dims(StepWriter& w, Step& step, Argument a, Dims& shape, Dims strides, DType type) {
  while (shape.size() > 4) {
    if (w.dims.is_one(shape[1])) {
      // 1 by a guard is an expression, with which no product is compared.
      shape[1] = shape[0], strides[1] = strides[0];
    } else if (!w.dims.is_one(shape[0])) {
      INGOT_CHECK(w.dims.same(strides[0], w.dims.mul(strides[1], shape[1])), "leading dims of attention do not merge");
      shape[1] = w.dims.mul(shape[0], shape[1]);
    }
    shape.erase(0);
    strides.erase(0);
  }
  while (shape.size() < 4) shape.insert(0, 1), strides.insert(0, 0);
  a.strides = bytes(w.dims, strides, type);
  step.bytes = w.dims.add(step.bytes, bytes(w.dims, w.dims.product(shape), type));
  return a;
}

Argument attention_operand(StepWriter& w, Step& step, const StoredOperand& operand, Dims& shape, const Dims& strides) {
  return with_four_dims(w, step, w.stored_argument(operand, {}, operand.offset, operand.dtype), shape, strides,
                        operand.dtype);
}

Argument attention_result(StepWriter& w, Step& step, const Output& output) {
  Argument a;
  a.buffer = output.buffer;
  Dims shape = w.graph.type(output.value).shape;
  return with_four_dims(w, step, a, shape, output.strides, output.dtype);
}

bool may_be_one(const Dim& queries) { return !queries.is_constant() || queries == Dim(1); }

AttentionProbabilities attention_probabilities(StepWriter& w, const Group& g, Step& step, std::optional<Buffer>& mask) {
  const ir::Node& node = *g.anchor;
  AttentionProbabilities p;
  p.dtype = g.operands[0].dtype;
  const Dims query = w.graph.type(g.operands[0].value).shape;
  const Dim keys = w.graph.type(g.operands[1].value).shape[query.size() - 2];
  Dims shapes[2];
  Argument* const arguments[] = {&p.query, &p.key};
  for (size_t i = 0; i < 2; ++i) {
    shapes[i] = w.graph.type(g.operands[i].value).shape;
    *arguments[i] = attention_operand(w, step, g.operands[i], shapes[i], g.operands[i].strides);
  }
  p.batch = shapes[0][0], p.heads = shapes[0][1], p.queries = shapes[0][2], p.depth = shapes[0][3];
  p.key_heads = shapes[1][1], p.keys = shapes[1][2];
  if (g.operands[3].value != ir::kNoValue) {
    // The mask broadcasts to [batch..., heads, queries, keys].
    const Dims& shape = w.graph.type(g.operands[3].value).shape;
    Dims whole(query.begin(), query.end() - 1);
    whole.push_back(keys);
    size_t fresh = whole.size() - shape.size();
    Dims expanded(whole.size(), Dim(0));
    for (size_t d = 0; d < shape.size(); ++d)
      // As in broadcast_map: 1 by a guard is an expression whose hint is not the whole's.
      if (!(shape[d] == Dim(1)) && w.dims.hint(shape[d]) == w.dims.hint(whole[fresh + d]))
        expanded[fresh + d] = g.operands[3].strides[d];
    p.mask = attention_operand(w, step, g.operands[3], whole, expanded);
    Dim along = p.mask->strides.back();
    Dim element = ingot::size_of(g.operands[3].dtype);
    mask = Buffer{g.operands[3].dtype,
                  along == element  ? Access::dense
                  : along == Dim(0) ? Access::uniform
                                    : Access::strided,
                  false};
  }
  p.causal = node.attrs[1].integer != 0;
  p.scale = source_of(scale_of(node), p.dtype);
  if (const ir::Operand* fill = fill_of(node)) p.fill = source_of(*fill, p.dtype);
  p.products = product_kernels(w.target, {.dtype = p.dtype,
                                          .packing = ProductForm::Packing::columns,
                                          .one_row = may_be_one(p.queries) ? OneRow::columns_of_b : OneRow::tiles});
  const Kernel softmax = (fill_of(node) ? composed_kernel : softmax_kernel)(p.dtype, mask ? &*mask : nullptr, node);
  p.local_bytes = static_cast<int64_t>(softmax.locals.size()) * ingot::size_of(p.dtype);
  if (!w.target.cuda_arch) p.softmax = w.made_once(softmax, "softmax");
  return p;
}

/// `products` of them, and about twenty operations a score.
Dim attention_operations(StepWriter& w, const Group& g, int64_t products) {
  const Dims query = w.graph.type(g.operands[0].value).shape;
  const Dim keys = w.graph.type(g.operands[1].value).shape[query.size() - 2];
  const Dim scores = w.dims.mul(w.dims.product(std::span<const Dim>(query.data(), query.size() - 1)), keys);
  return w.dims.mul(scores, w.dims.add(w.dims.mul(query.back(), 2 * products), 20));
}

}  // namespace

void write_attention(StepWriter& w, uint32_t group) {
  const Group& g = w.plan.groups[group];
  Step step = w.named_step();
  std::optional<Buffer> mask;
  AttentionStep attention;
  attention.probabilities = attention_probabilities(w, g, step, mask);
  attention.out = attention_result(w, step, g.outputs[0]);
  Dims value = w.graph.type(g.operands[2].value).shape;
  attention.value = attention_operand(w, step, g.operands[2], value, g.operands[2].strides);
  attention.value_depth = value[3];
  attention.products = product_kernels(
      w.target, {.dtype = attention.probabilities.dtype,
                 .packing = ProductForm::Packing::rows,
                 .one_row = may_be_one(attention.probabilities.queries) ? OneRow::rows_of_b : OneRow::tiles});
  step.operations = attention_operations(w, g, 2);
  step.work = std::move(attention);
  w.append(std::move(step));
}

void write_attention_backward(StepWriter& w, uint32_t group) {
  const Group& g = w.plan.groups[group];
  Step step = w.named_step();
  std::optional<Buffer> mask;
  AttentionBackwardStep backward;
  backward.probabilities = attention_probabilities(w, g, step, mask);
  const DType dtype = backward.probabilities.dtype;
  Dims value = w.graph.type(g.operands[2].value).shape, gradient = w.graph.type(g.operands[5].value).shape;
  backward.value = attention_operand(w, step, g.operands[2], value, g.operands[2].strides);
  backward.gradient = attention_operand(w, step, g.operands[5], gradient, g.operands[5].strides);
  backward.value_depth = value[3];
  std::optional<Argument>* const results[] = {&backward.for_query, &backward.for_key, &backward.for_value};
  for (const Output& output : g.outputs) {
    const auto& outputs = g.anchor->outputs;
    const auto i = std::find(outputs.begin(), outputs.end(), output.value) - outputs.begin();
    *results[i] = attention_result(w, step, output);
  }
  backward.across = product_kernels(w.target, {dtype, ProductForm::Packing::rows, RowsOfA::across});
  Kernel slope = slope_kernel(dtype, mask ? &*mask : nullptr, *g.anchor);
  if (!w.target.cuda_arch) backward.slope = w.made_once(slope, "attention_slope");
  // The scores and a product for each result; beside that of the values, G v^T.
  const bool slopes = backward.for_query || backward.for_key;
  step.operations = attention_operations(w, g, 1 + static_cast<int64_t>(g.outputs.size()) + slopes);
  step.work = std::move(backward);
  w.append(std::move(step));
}

}  // namespace ingot::codegen::lowering
