// Shape rules of matrix products, normalisation, attention and losses.
#include <algorithm>

#include "ir/rules/rules.h"

namespace ingot::ir::shapes {
namespace {

/// Weight and bias of a norm: absent or of this shape.
void check_affine(RuleContext& context, std::span<const Dim> shape) {
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
    const OperandType& given = operand(context, name);
    if (!given.present()) continue;
    bool same = given.shape->size() == shape.size();
    for (size_t i = 0; same && i < shape.size(); ++i) same = context.dims.equal((*given.shape)[i], shape[i]);
    if (!same) context.fail(name, given_shape(context, *given.shape), given_shape(context, shape));
  }
}

/// [.., m, k] x [.., k, n] for operands a and b of the op, both with two dims or more.
Dims product(RuleContext& context, size_t a, size_t b) {
  const Dims &left = shape_of(context, a), &right = shape_of(context, b);
  check_size(context, operand_name(context, b), right, right.size() - 2, left.back(),
             "the last size of the other operand");
  Dims batch(left.begin(), left.end() - 2);
  broadcast_into(context, operand_name(context, b), batch, std::span<const Dim>(right.data(), right.size() - 2));
  batch.push_back(left[left.size() - 2]);
  batch.push_back(right.back());
  return batch;
}

/// `self` is added to a product of this shape.
void added(RuleContext& context, Dims shape) {
  Dims together = shape;
  broadcast_into(context, "self", together, shape_of(context, 0));
  bool same = together.size() == shape.size();
  for (size_t i = 0; same && i < shape.size(); ++i) same = context.dims.equal(together[i], shape[i]);
  if (!same)
    context.fail("self", given_shape(context, shape_of(context, 0)),
                 "a shape that broadcasts to " + shape_text(context.dims, shape));
  set_shape(context, std::move(shape));
}

/// Checks the operands of attention; the shape of its result.
Dims attended(RuleContext& context) {
  const Dims &query = shape_of(context, 0), &key = shape_of(context, 1), &value = shape_of(context, 2);
  DimTable& dims = context.dims;
  for (size_t i = 0; i < 3; ++i)
    if (shape_of(context, i).size() < 2)
      context.fail(operand_name(context, i), given_shape(context, shape_of(context, i)), "at least two dims");
  check_size(context, "key", key, key.size() - 1, query.back(), "the last size of query");
  check_size(context, "value", value, value.size() - 2, key[key.size() - 2], "the length of key");
  Dims batch(query.begin(), query.end() - 2);
  bool grouped = boolean_attribute(context, "enable_gqa");
  for (size_t i = 1; i < 3; ++i) {
    const Dims& given = shape_of(context, i);
    Dims others(given.begin(), given.end() - 2);
    if (grouped) {
      // Each head of key and value serves as many heads of the query.
      if (others.empty() || batch.empty())
        context.fail(operand_name(context, i), given_shape(context, given), "a dim of heads");
      Dim heads = others.back();
      if (dims.equal(heads, 0) || !dims.equal(dims.mul(dims.floor_div(batch.back(), heads), heads), batch.back()))
        context.fail(operand_name(context, i), dims.str(heads) + " heads",
                     "a divisor of the query's " + dims.str(batch.back()));
      others.back() = batch.back();
    }
    broadcast_into(context, operand_name(context, i), batch, others);
  }
  Dims scores = batch;
  scores.push_back(query[query.size() - 2]);
  scores.push_back(key[key.size() - 2]);
  const OperandType& mask = operand(context, "attn_mask");
  if (mask.present()) {
    if (boolean_attribute(context, "is_causal"))
      context.fail("attn_mask", describe(context, mask), "nothing with is_causal");
    Dims together = scores;
    broadcast_into(context, "attn_mask", together, *mask.shape);
    bool same = together.size() == scores.size();
    for (size_t i = 0; same && i < scores.size(); ++i) same = dims.equal(together[i], scores[i]);
    if (!same)
      context.fail("attn_mask", given_shape(context, *mask.shape),
                   "a shape that broadcasts to " + shape_text(dims, scores));
  }
  batch.push_back(query[query.size() - 2]);
  batch.push_back(value.back());
  return batch;
}

void check_ranks(RuleContext& context, size_t first, size_t rank_first, size_t rank_second) {
  check_rank(context, operand_name(context, first), rank_first);
  check_rank(context, operand_name(context, first + 1), rank_second);
}
/// All operands of a recurrent layer with so many gates; each output is a state after each step.
void recurrence(RuleContext& context, int64_t gates) {
  DimTable& dims = context.dims;
  for (const char* name : {"input", "hidden", "cell", "weight", "bias"})
    check_rank(context, name, name[0] == 'i' ? 3 : name[0] == 'b' ? 1 : 2);
  const Dims &input = shape_of(context, 0), &weight = *operand(context, "weight").shape;
  const Dim width = weight[1], rows = dims.mul(width, gates);
  if (dims.equal(input[0], 0)) context.fail("input", given_shape(context, input), "at least one step at dim 0");
  check_size(context, "weight", weight, 0, rows, "as many rows a gate as there are columns");
  check_size(context, "input", input, 2, rows, "the gates of the hidden state");
  for (const char* name : {"hidden", "cell"}) {
    const OperandType& state = operand(context, name);
    if (!state.present()) continue;
    check_size(context, name, *state.shape, 0, input[1], "the batch of the input");
    check_size(context, name, *state.shape, 1, width, "the columns of weight");
  }
  if (const OperandType& bias = operand(context, "bias"); bias.present())
    check_size(context, "bias", *bias.shape, 0, rows, "the rows of weight");
  for (auto& output : context.outputs) output.shape = Dims{input[0], input[1], width};
}

/// Operands: the gates twice, states, weight, gradients of the states. Results: gradients of gates, then of the states.
void back_through_sequence(RuleContext& context, int64_t gates) {
  DimTable& dims = context.dims;
  const auto weight_at = static_cast<size_t>(operand_position(info(context.op), "weight"));
  check_rank(context, "input", 3);
  check_rank(context, "weight", 2);
  const Dims &input = shape_of(context, 0), &weight = shape_of(context, weight_at);
  if (dims.equal(input[0], 0)) context.fail("input", given_shape(context, input), "at least one step at dim 0");
  check_size(context, "weight", weight, 0, dims.mul(weight[1], gates), "as many rows a gate as there are columns");
  check_size(context, "input", input, 2, weight[0], "the gates of the hidden state");
  const Dims state{input[0], input[1], weight[1]};
  for (size_t i = 1; i < context.operands.size(); ++i) {
    if (i == weight_at || !context.operands[i].present()) continue;
    const std::string name = operand_name(context, i);
    check_rank(context, name, 3);
    const Dims& expected = i == 1 ? input : state;
    for (size_t d = 0; d < 3; ++d)
      check_size(context, name, shape_of(context, i), d, expected[d], i == 1 ? "the input" : "input and weight");
  }
  const size_t of_gates = context.outputs.size() - (weight_at - 2);
  for (size_t i = 0; i < context.outputs.size(); ++i) context.outputs[i].shape = i < of_gates ? input : state;
}

}  // namespace

void rnn_sequence(RuleContext& context) { recurrence(context, 1); }
void lstm_sequence(RuleContext& context) { recurrence(context, 4); }
void gru_sequence(RuleContext& context) { recurrence(context, 3); }
void rnn_sequence_backward(RuleContext& context) { back_through_sequence(context, 1); }
void lstm_sequence_backward(RuleContext& context) { back_through_sequence(context, 4); }
void gru_sequence_backward(RuleContext& context) { back_through_sequence(context, 3); }

void matmul(RuleContext& context) {
  const Dims &left = shape_of(context, 0), &right = shape_of(context, 1);
  for (size_t i = 0; i < 2; ++i)
    if (shape_of(context, i).empty()) context.fail(operand_name(context, i), "a zero-dim tensor", "at least one dim");
  // A vector is a row on the left and a column on the right; its dim is taken out of the result again.
  Dims batch;
  if (left.size() > 2) batch.assign(left.begin(), left.end() - 2);
  if (right.size() > 2) broadcast_into(context, "other", batch, std::span<const Dim>(right.data(), right.size() - 2));
  check_size(context, "other", right, right.size() == 1 ? 0 : right.size() - 2, left.back(), "the last size of self");
  if (left.size() > 1) batch.push_back(left[left.size() - 2]);
  if (right.size() > 1) batch.push_back(right.back());
  set_shape(context, std::move(batch));
}

void mm(RuleContext& context) {
  check_ranks(context, 0, 2, 2);
  set_shape(context, product(context, 0, 1));
}

void bmm(RuleContext& context) {
  check_ranks(context, 0, 3, 3);
  check_size(context, "mat2", shape_of(context, 1), 0, shape_of(context, 0)[0], "the batch of self");
  set_shape(context, product(context, 0, 1));
}

void mv(RuleContext& context) {
  check_ranks(context, 0, 2, 1);
  check_size(context, "vec", shape_of(context, 1), 0, shape_of(context, 0)[1], "the columns of self");
  set_shape(context, {shape_of(context, 0)[0]});
}

void dot(RuleContext& context) {
  check_ranks(context, 0, 1, 1);
  check_size(context, "tensor", shape_of(context, 1), 0, shape_of(context, 0)[0], "the size of self");
  set_shape(context, {});
}

void outer(RuleContext& context) {
  check_ranks(context, 0, 1, 1);
  set_shape(context, {shape_of(context, 0)[0], shape_of(context, 1)[0]});
}

void addmm(RuleContext& context) {
  check_ranks(context, 1, 2, 2);
  added(context, product(context, 1, 2));
}

void addmv(RuleContext& context) {
  check_ranks(context, 1, 2, 1);
  check_size(context, "vec", shape_of(context, 2), 0, shape_of(context, 1)[1], "the columns of mat");
  added(context, {shape_of(context, 1)[0]});
}

void baddbmm(RuleContext& context) {
  check_ranks(context, 1, 3, 3);
  check_size(context, "batch2", shape_of(context, 2), 0, shape_of(context, 1)[0], "the batch of batch1");
  added(context, product(context, 1, 2));
}

void addbmm(RuleContext& context) {
  check_ranks(context, 1, 3, 3);
  check_size(context, "batch2", shape_of(context, 2), 0, shape_of(context, 1)[0], "the batch of batch1");
  Dims shape = product(context, 1, 2);
  shape.erase(0);
  added(context, std::move(shape));
}

void addr(RuleContext& context) {
  check_ranks(context, 1, 1, 1);
  added(context, {shape_of(context, 1)[0], shape_of(context, 2)[0]});
}

// Every row of one with every row of the other.
void cdist(RuleContext& context) {
  const Dims &left = shape_of(context, 0), &right = shape_of(context, 1);
  for (size_t i = 0; i < 2; ++i)
    if (shape_of(context, i).size() < 2)
      context.fail(operand_name(context, i), given_shape(context, shape_of(context, i)), "at least two dims");
  double p = attribute(context, "p").as_number();
  if (!(p >= 0)) context.fail("p", std::to_string(p), "no negative number");
  check_size(context, "x2", right, right.size() - 1, left.back(), "the last size of x1");
  Dims shape(left.begin(), left.end() - 2);
  broadcast_into(context, "x2", shape, std::span<const Dim>(right.data(), right.size() - 2));
  shape.push_back(left[left.size() - 2]);
  shape.push_back(right[right.size() - 2]);
  set_shape(context, std::move(shape));
}

void linear(RuleContext& context) {
  const Dims &input = shape_of(context, 0), &weight = shape_of(context, 1);
  if (input.empty()) context.fail("input", "a zero-dim tensor", "at least one dim");
  if (weight.empty() || weight.size() > 2) context.fail("weight", given_shape(context, weight), "one or two dims");
  if (!context.dims.equal(input.back(), weight.back())) {
    const Dim flat = context.dims.product(std::span<const Dim>(input).subspan(1));
    const bool unflattened = input.size() > 2 && context.dims.hint(flat) == context.dims.hint(weight.back());
    context.fail("input", given_shape(context, input),
                 "size " + context.dims.str(weight.back()) + " at dim " + std::to_string(input.size() - 1) +
                     ", the last size of weight" + (unflattened ? "; flatten(1) of it has that" : ""));
  }
  Dims shape(input.begin(), input.end() - 1);
  if (weight.size() == 2) shape.push_back(weight[0]);
  if (operand(context, "bias").present()) require_broadcast(context, "bias", operand(context, "bias"), shape);
  set_shape(context, std::move(shape));
}

void linear_int8(RuleContext& context) {
  const Dims &weight = shape_of(context, 1), &scale = shape_of(context, 2);
  if (weight.size() != 2) context.fail("weight", given_shape(context, weight), "two dims");
  if (scale.size() != 1 || !context.dims.equal(scale[0], weight[0]))
    context.fail("weight_scale", given_shape(context, scale),
                 given_shape(context, Dims{weight[0]}) + ", one for each row of weight");
  linear(context);
}

void channels(RuleContext& context) {
  const Dims &self = shape_of(context, 0), &weight = shape_of(context, 1);
  if (weight.size() > 1) context.fail("weight", given_shape(context, weight), "at most one dim");
  Dim count = self.size() < 2 ? Dim(1) : self[1];
  if (!weight.empty() && !context.dims.is_one(weight[0]))
    check_size(context, "weight", weight, 0, count, "the channels of self");
  set_shape(context, self);
}

void layer_norm(RuleContext& context) {
  const Dims &input = shape_of(context, 0), &normalized = attribute(context, "normalized_shape").list;
  if (normalized.empty() || normalized.size() > input.size())
    context.fail("normalized_shape", shape_text(context.dims, normalized),
                 "the last sizes of shape " + shape_text(context.dims, input));
  for (size_t i = 0; i < normalized.size(); ++i)
    if (!context.dims.equal(normalized[i], input[input.size() - normalized.size() + i]))
      context.fail("normalized_shape", shape_text(context.dims, normalized),
                   "the last sizes of shape " + shape_text(context.dims, input));
  check_affine(context, normalized);
  set_shape(context, input);
}

void batch_norm(RuleContext& context) {
  const Dims& input = shape_of(context, 0);
  // Nothing to normalise: PyTorch lets an empty tensor of one dim pass.
  if (input.size() == 1 && input[0] == Dim(0)) return set_shape(context, input);
  if (input.size() < 2) context.fail("input", given_shape(context, input), "at least two dims");
  // A layer's parameters are what they are: its input is wrong.
  for (const char* name : {"running_mean", "weight"}) {
    const OperandType& given = operand(context, name);
    if (!given.present() || given.shape->size() != 1) continue;
    const Dim channels = given.shape->front();
    if (!context.dims.equal(input[1], channels))
      context.fail(
          "input", given_shape(context, input),
          "size " + context.dims.str(channels) + " at dim 1, the channels of " + name +
              (context.dims.hint(input[0]) == context.dims.hint(channels) ? "; is the batch dim missing?" : ""));
    break;
  }
  check_affine(context, std::span<const Dim>(&input[1], 1));
  if (!boolean_attribute(context, "training"))
    for (const char* name : {"running_mean", "running_var"})
      if (!operand(context, name).present()) context.fail(name, "nothing", "a tensor, outside training");
  set_shape(context, input);
}

void instance_norm(RuleContext& context) {
  const Dims& input = shape_of(context, 0);
  if (input.size() < 3) context.fail("input", given_shape(context, input), "[batch, channels, ...] with a spatial dim");
  check_affine(context, std::span<const Dim>(&input[1], 1));
  bool own = boolean_attribute(context, "use_input_stats");
  for (const char* name : {"running_mean", "running_var"})
    if (!own && !operand(context, name).present()) context.fail(name, "nothing", "a tensor without use_input_stats");
  set_shape(context, input);
}

void local_response_norm(RuleContext& context) {
  const Dims& input = shape_of(context, 0);
  if (input.size() < 3) context.fail("input", given_shape(context, input), "[batch, channels, ...] with a spatial dim");
  int64_t size = integer_attribute(context, "size");
  if (size < 1) context.fail("size", std::to_string(size), "a positive number");
  set_shape(context, input);
}

void group_norm(RuleContext& context) {
  const Dims& input = shape_of(context, 0);
  if (input.size() < 2) context.fail("input", given_shape(context, input), "at least two dims");
  int64_t groups = integer_attribute(context, "num_groups");
  DimTable& dims = context.dims;
  if (groups < 1 || !dims.equal(dims.mul(dims.floor_div(input[1], groups), groups), input[1]))
    context.fail("num_groups", std::to_string(groups), "a divisor of the " + dims.str(input[1]) + " channels");
  check_affine(context, std::span<const Dim>(&input[1], 1));
  set_shape(context, input);
}

void attention(RuleContext& context) { set_shape(context, attended(context)); }

void attention_backward(RuleContext& context) {
  const Dims result = attended(context);
  auto require = [&](std::string_view name, const Dims& given, const Dims& expected, const char* what) {
    bool same = given.size() == expected.size();
    for (size_t d = 0; same && d < given.size(); ++d) same = context.dims.equal(given[d], expected[d]);
    if (!same) context.fail(name, given_shape(context, given), what + shape_text(context.dims, expected));
  };
  // As the normal form of attention leaves its operands: nothing is broadcast, key and value have as many heads.
  const Dims& key = shape_of(context, 1);
  const size_t own = boolean_attribute(context, "enable_gqa") ? 3 : 2;
  for (size_t i = 1; i < 3; ++i) {
    Dims expected(result.begin(), result.end() - static_cast<std::ptrdiff_t>(own));
    const Dims& given = shape_of(context, i);
    if (own == 3) expected.push_back(key.size() > 2 ? key[key.size() - 3] : Dim(0));
    expected.push_back(key[key.size() - 2]);
    expected.push_back(given.back());
    require(operand_name(context, i), given, expected, "the dims of query and key, shape ");
  }
  Dims query(result.begin(), result.end() - 1);
  query.push_back(key.back());
  require("query", shape_of(context, 0), query, "the dims of the result, shape ");
  require("grad_output", *operand(context, "grad_output").shape, result, "the shape of the result, ");
  for (size_t i = 0; i < 3; ++i) context.outputs[i].shape = shape_of(context, i);
}

void loss(RuleContext& context) {
  Dims shape = shape_of(context, 0);
  broadcast_into(context, "target", shape, shape_of(context, 1));
  if (integer_attribute(context, "reduction") != 0) shape.clear();
  set_shape(context, std::move(shape));
}

void binary_loss(RuleContext& context) {
  Dims shape = shape_of(context, 0);
  const Dims& target = shape_of(context, 1);
  bool same = target.size() == shape.size();
  for (size_t i = 0; same && i < shape.size(); ++i) same = context.dims.equal(target[i], shape[i]);
  if (!same) context.fail("target", given_shape(context, target), given_shape(context, shape));
  for (const char* name : {"weight", "pos_weight"}) {
    const OperandType& weight = operand(context, name);
    if (!weight.present()) continue;
    Dims together = shape;
    broadcast_into(context, name, together, *weight.shape);
    same = together.size() == shape.size();
    for (size_t i = 0; same && i < shape.size(); ++i) same = context.dims.equal(together[i], shape[i]);
    if (!same)
      context.fail(name, given_shape(context, *weight.shape),
                   "a shape that broadcasts to " + shape_text(context.dims, shape));
  }
  if (integer_attribute(context, "reduction") != 0) shape.clear();
  set_shape(context, std::move(shape));
}

namespace {
// Input [C], [N, C] or [N, C, d1, ...]; target the same without C, or, where they may be, probabilities of input's
// shape.
void loss_of_classes(RuleContext& context, bool probabilities) {
  const Dims& input = shape_of(context, 0);
  const OperandType& target = context.operands[1];
  if (input.empty()) context.fail("input", "a zero-dim tensor", "at least one dim");
  size_t channel = input.size() == 1 ? 0 : 1;
  Dims shape = input;
  shape.erase(channel);
  probabilities = probabilities && is_floating(target.dtype);
  const Dims& expected = probabilities ? input : shape;
  if (!probabilities && !is_integral(target.dtype))
    context.fail("target", describe(context, target), "an integer tensor");
  bool same = target.shape->size() == expected.size();
  for (size_t i = 0; same && i < expected.size(); ++i) same = context.dims.equal((*target.shape)[i], expected[i]);
  if (!same) context.fail("target", given_shape(context, *target.shape), given_shape(context, expected));
  bool none = std::count(shape.begin(), shape.end(), Dim(0)) > 0;
  if (!probabilities && !none && context.dims.equal(input[channel], 0))
    context.fail("input", given_shape(context, input), "at least one class");
  check_affine(context, std::span<const Dim>(&input[channel], 1));
  if (integer_attribute(context, "reduction") != 0) shape.clear();
  set_shape(context, std::move(shape));
}
}  // namespace

void class_loss(RuleContext& context) { loss_of_classes(context, false); }
void class_or_probability_loss(RuleContext& context) {
  const double smoothing = attribute(context, "label_smoothing").as_number();
  if (!(smoothing >= 0 && smoothing <= 1))
    context.fail("label_smoothing", std::to_string(smoothing), "a part from 0 to 1");
  loss_of_classes(context, true);
}

}  // namespace ingot::ir::shapes
