// Losses, from their inputs: dividing by what may be zero is left out, and classes are compared, not scattered.
#include "ir/decompose/losses.h"

#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

/// The slope of each loss times its share of the cotangent.
Operand shared(GraphBuilder& b, const DerivedCall& call, const Operand& slope) {
  Operand g = call.cotangent();
  if (call.integer("reduction") == kMean) g = b.div(g, GraphBuilder::divisor(b.dims().product(b.shape(slope))));
  return b.mul(slope, g);
}

/// Of losses of input - target: a difference that is NaN has no slope either.
Gradients of_difference(GraphBuilder& b, const DerivedCall& call, const Operand& slope) {
  const Operand g = shared(b, call, slope);
  return each(call, {[&] { return g; }, [&] { return b.neg(g); }});
}

/// The cotangent of each target's loss; zero where it is ignored.
struct OfTargets {
  Targets targets;
  Operand each, weighted;  // without and with the weight of the target's class; a dim for the classes
  Operand is_target;       // by class
  OfTargets(GraphBuilder& b, const DerivedCall& call) {
    const CompositeCall forward{call.op, call.operands, call.attrs, b.dtype(call.cotangent()), {}};
    targets = read_targets(b, forward);
    Operand g = call.cotangent();
    if (call.integer("reduction") == kMean) g = b.div(g, weight_total(b, targets, b.dtype(g)));
    each = kept_where(b, targets.valid, g);
    weighted = targets.weight.present() ? kept_where(b, targets.valid, b.mul(g, targets.weight)) : each;
    const Attr channel = GraphBuilder::attr(static_cast<int64_t>(targets.channel));
    each = b.unsqueeze(each, channel);
    weighted = b.unsqueeze(weighted, channel);
    const Dims shape = b.shape(call.operands[0]);
    const Operand classes = coordinate(b, shape[targets.channel], targets.channel, shape.size());
    is_target = b.eq(classes, b.unsqueeze(targets.index, channel));
  }
};

}  // namespace

Gradients smooth_l1_loss(GraphBuilder& b, const DerivedCall& call) {
  const Operand apart = b.sub(call.operands[0], call.operands[1]);
  const Operand beta = b.scalar(call.operand("beta"), b.dtype(apart)), divisor = b.where(b.eq(beta, 0.0), 1.0, beta);
  const Operand linear = b.logical_or(b.ge(b.abs(apart), beta), b.eq(beta, 0.0));
  return of_difference(b, call, b.where(linear, b.sign(apart), b.div(apart, divisor)));
}
Gradients huber_loss(GraphBuilder& b, const DerivedCall& call) {
  const Operand apart = b.sub(call.operands[0], call.operands[1]), &delta = call.operand("delta");
  return of_difference(b, call, b.where(b.gt(b.abs(apart), delta), b.mul(b.sign(apart), delta), apart));
}

// (input - target) / (input (1 - input)), of which the divisor does not vanish, and log(1 - input) - log(input).
Gradients binary_cross_entropy(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], &target = call.operands[1], &weight = call.operand("weight");
  if (weight.present() && call.wanted[2]) return {};
  auto weighted = [&](const Operand& slope) {
    return shared(b, call, weight.present() ? b.mul(slope, weight) : slope);
  };
  return each(call, {[&] {
                       const Operand spread = b.clamp_min(b.mul(b.rsub(x, 1.0), x), 1e-12);
                       return weighted(b.div(b.sub(x, target), spread));
                     },
                     [&] { return weighted(b.sub(b.log1p(b.neg(x)), b.log(x))); }});
}

Gradients nll_loss(GraphBuilder& b, const DerivedCall& call) {
  if (call.operand("weight").present() && call.wanted[2]) return {};
  const OfTargets of(b, call);
  return of_self(call, kept_where(b, of.is_target, b.neg(of.weighted)));
}

// (softmax - one at the target) of each, and for label smoothing the same for a share of all classes.
Gradients cross_entropy(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], &weight = call.operand("weight");
  if (is_floating(b.dtype(call.operands[1])) || (weight.present() && call.wanted[2])) return {};
  const OfTargets of(b, call);
  const Operand p = b.softmax(x, GraphBuilder::attr(static_cast<int64_t>(of.targets.channel)));
  const Operand hard = b.mul(b.sub(p, b.to(of.is_target, b.dtype(p))), of.weighted);
  const double smoothing = call.attribute("label_smoothing").as_number();
  if (smoothing == 0) return of_self(call, hard);
  const Dim classes = b.shape(x)[of.targets.channel];
  const Operand share = b.mul(b.div(of.each, GraphBuilder::divisor(classes)), smoothing);
  Operand soft;
  if (weight.present())
    soft = b.sub(b.mul(p, b.sum(weight)), b.per_channel(weight, of.targets.channel, b.rank(x)));
  else
    soft = b.sub(b.mul(p, b.scalar(GraphBuilder::divisor(classes), b.dtype(p))), 1.0);
  return of_self(call, b.add(b.mul(hard, 1 - smoothing), b.mul(soft, share)));
}

}  // namespace ingot::ir::derivatives
