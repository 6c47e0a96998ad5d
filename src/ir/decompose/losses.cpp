// Losses: of each element, then reduced as the call asks.
#include "ir/decompose/losses.h"

namespace ingot::ir {
Targets read_targets(GraphBuilder& b, const CompositeCall& call) {
  const Operand& weight = call.operand("weight");
  Targets targets;
  targets.channel = b.rank(call.operands[0]) == 1 ? 0 : 1;
  Operand target = b.to(call.operands[1], DType::i64);
  targets.valid = b.ne(target, GraphBuilder::integer(call.integer("ignore_index")));
  targets.index = b.where(targets.valid, target, GraphBuilder::integer(0));
  if (weight.present()) {
    Operand flat = b.reshape(targets.index, {b.dims().product(b.shape(targets.index))});
    Operand picked = b.reshape(b.index_select(weight, flat, GraphBuilder::attr(0)), b.shape(targets.index));
    targets.weight = b.where(targets.valid, picked, 0.0);
  }
  return targets;
}

Operand weight_total(GraphBuilder& b, const Targets& targets, DType dtype) {
  return b.sum(targets.weight.present() ? targets.weight : b.cast(targets.valid, dtype));
}

namespace {

Operand total(GraphBuilder& b, const Operand& x) { return b.sum(x); }

Operand reduced_losses(GraphBuilder& b, const Operand& losses, int64_t reduction, const Operand& weights) {
  if (reduction == kNone) return losses;
  return reduction == kSum ? total(b, losses) : b.div(total(b, losses), weights);
}

/// -weight * log probability of the target, 0 where it is ignored.
Operand target_losses(GraphBuilder& b, const Operand& log_probabilities, const Targets& targets) {
  Attr channel = GraphBuilder::attr(static_cast<int64_t>(targets.channel));
  Operand picked = b.gather(log_probabilities, b.unsqueeze(targets.index, channel), channel);
  Operand losses = b.neg(b.reshape(picked, b.shape(targets.index)));
  if (targets.weight.present()) losses = b.mul(losses, targets.weight);
  return b.where(targets.valid, losses, 0.0);
}

/// Sum over the classes of -weight * x, for log probabilities x.
Operand class_sum(GraphBuilder& b, Operand x, const Operand& weight, size_t channel) {
  if (weight.present()) x = b.mul(x, b.per_channel(weight, channel, b.rank(x)));
  return b.neg(b.reduce_dims(OpId::sum, x, {static_cast<int64_t>(channel)}, false));
}

Operand probability_loss(GraphBuilder& b, const CompositeCall& call, const Operand& log_probabilities, size_t channel) {
  double smoothing = call.attribute("label_smoothing").as_number();
  Operand target = b.to(call.operands[1], b.dtype(log_probabilities));
  Dim classes = b.shape(log_probabilities)[channel];
  if (smoothing > 0) {
    Operand uniform = b.div(b.scalar(Operand::constant(smoothing), b.dtype(target)), GraphBuilder::divisor(classes));
    target = b.add(b.mul(target, 1 - smoothing), uniform);
  }
  Operand losses = class_sum(b, b.mul(log_probabilities, target), call.operand("weight"), channel);
  return reduced_losses(b, losses, call.integer("reduction"), GraphBuilder::divisor(b.dims().product(b.shape(losses))));
}

/// Losses one by one, reduced as the call asks.
Outputs reduced_losses(GraphBuilder& b, const CompositeCall& call, const Operand& losses) {
  return {
      reduced_losses(b, losses, call.integer("reduction"), GraphBuilder::divisor(b.dims().product(b.shape(losses))))};
}

Operand distance(GraphBuilder& b, const CompositeCall& call) {
  return b.abs(b.sub(call.operands[0], call.operands[1]));
}

Operand weighted(GraphBuilder& b, const CompositeCall& call, const Operand& losses) {
  return call.operand("weight").present() ? b.mul(losses, call.operand("weight")) : losses;
}

}  // namespace

namespace decompositions {

Outputs mse_loss(GraphBuilder& b, const CompositeCall& call) {
  Operand difference = b.sub(call.operands[0], call.operands[1]);
  return reduced_losses(b, call, b.mul(difference, difference));
}

Outputs l1_loss(GraphBuilder& b, const CompositeCall& call) { return reduced_losses(b, call, distance(b, call)); }

Outputs smooth_l1_loss(GraphBuilder& b, const CompositeCall& call) {
  Operand apart = distance(b, call);
  const Operand& beta = call.operand("beta");
  Operand near = b.div(b.mul(b.mul(apart, 0.5), apart), beta), far = b.sub(apart, beta, 0.5);
  return reduced_losses(b, call, b.where(b.lt(apart, beta), near, far));
}

Outputs huber_loss(GraphBuilder& b, const CompositeCall& call) {
  Operand apart = distance(b, call);
  const Operand& delta = call.operand("delta");
  Operand near = b.mul(b.mul(apart, 0.5), apart), far = b.mul(b.sub(apart, delta, 0.5), delta);
  return reduced_losses(b, call, b.where(b.le(apart, delta), near, far));
}

// log(1 + e^(-input * target)), which does not overflow.
Outputs soft_margin_loss(GraphBuilder& b, const CompositeCall& call) {
  return reduced_losses(b, call, b.neg(b.logsigmoid(b.mul(call.operands[0], call.operands[1]))));
}

Outputs kl_div(GraphBuilder& b, const CompositeCall& call) {
  const Operand &input = call.operands[0], &target = call.operands[1];
  Operand losses = call.flag("log_target") ? b.mul(b.exp(target), b.sub(target, input))
                                           : b.sub(b.xlogy(target, target), b.mul(target, input));
  constexpr int64_t kBatchMean = 3;  // in the order of the table's words
  if (call.integer("reduction") != kBatchMean) return reduced_losses(b, call, losses);
  Operand sum = total(b, losses);
  return {b.rank(input) ? b.div(sum, GraphBuilder::divisor(b.shape(input)[0])) : sum};
}

// Logarithms are cut off at -100, so that a sure but wrong prediction has a finite loss.
Outputs binary_cross_entropy(GraphBuilder& b, const CompositeCall& call) {
  const Operand &input = call.operands[0], &target = call.operands[1];
  Operand yes = b.clamp_min(b.log(input), -100.0), no = b.clamp_min(b.log1p(b.neg(input)), -100.0);
  Operand losses = b.sub(b.mul(b.sub(target, 1.0), no), b.mul(target, yes));
  return reduced_losses(b, call, weighted(b, call, losses));
}

Outputs binary_cross_entropy_with_logits(GraphBuilder& b, const CompositeCall& call) {
  const Operand &input = call.operands[0], &target = call.operands[1], &positive = call.operand("pos_weight");
  Operand surprise = b.neg(b.logsigmoid(input));
  if (positive.present()) surprise = b.mul(surprise, b.add(b.mul(b.sub(positive, 1.0), target), 1.0));
  Operand losses = b.add(b.mul(b.rsub(target, 1.0), input), surprise);
  return reduced_losses(b, call, weighted(b, call, losses));
}

Outputs nll_loss(GraphBuilder& b, const CompositeCall& call) {
  const Operand& input = call.operands[0];
  Targets targets = read_targets(b, call);
  int64_t reduction = call.integer("reduction");
  Operand losses = target_losses(b, input, targets);
  return {reduced_losses(b, losses, reduction,
                         reduction == kMean ? weight_total(b, targets, b.dtype(input)) : Operand::none())};
}

Outputs cross_entropy(GraphBuilder& b, const CompositeCall& call) {
  const Operand& input = call.operands[0];
  size_t channel = b.rank(input) == 1 ? 0 : 1;
  Operand log_probabilities = b.log_softmax(input, GraphBuilder::attr(static_cast<int64_t>(channel)));
  if (is_floating(b.dtype(call.operands[1]))) return {probability_loss(b, call, log_probabilities, channel)};

  Targets targets = read_targets(b, call);
  int64_t reduction = call.integer("reduction");
  Operand weights = reduction == kMean ? weight_total(b, targets, b.dtype(input)) : Operand::none();
  Operand hard = reduced_losses(b, target_losses(b, log_probabilities, targets), reduction, weights);
  double smoothing = call.attribute("label_smoothing").as_number();
  if (smoothing == 0) return {hard};
  // A share of the loss is spread evenly over the classes.
  Operand spread = b.where(targets.valid, class_sum(b, log_probabilities, call.operand("weight"), channel), 0.0);
  Operand soft = b.mul(reduced_losses(b, spread, reduction, weights), smoothing);
  return {b.add(b.mul(hard, 1 - smoothing), b.div(soft, GraphBuilder::divisor(b.shape(input)[channel])))};
}

}  // namespace decompositions
}  // namespace ingot::ir
