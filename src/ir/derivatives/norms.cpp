// Batch norm by the statistics of its batch.
#include "ir/decompose.h"
#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {

// With d = x - mean and r = 1 / deviation: sum(g) and sum(g d) r over a channel are the gradients of bias and weight,
// (g - sum(g) / n - d sum(g d) r^2 / n) (r weight) is that of x. It waits for two sums alone, and reads x and g.
Gradients batch_norm(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operand("input"), &weight = call.operand("weight");
  if (!call.flag("training") || b.rank(x) < 2) return {};
  Dims dims, dims_of_g;
  for (size_t i = 0; i < b.rank(x); ++i)
    if (i != 1) dims.push_back(static_cast<int64_t>(i));
  dims_of_g = dims;
  const Dims shape = b.shape(x), channels{shape[1]};
  const Operand flat = joined(b, x, dims), g = joined(b, call.cotangent(), dims_of_g);
  // As the forward pass has them, so that in a whole step they are computed once.
  auto mean = [&](const Operand& v) { return b.mean(v, Attr::of(dims), GraphBuilder::flag(true)); };
  const Operand centered = b.sub(flat, mean(flat));
  const Operand inverse = b.rsqrt(b.add(mean(b.mul(centered, centered)), call.operand("eps")));
  auto sum = [&](const Operand& v) { return b.reduce_dims(OpId::sum, v, dims, true); };
  const Operand of_bias = sum(g), of_weight = b.mul(sum(b.mul(g, centered)), inverse);
  auto of_input = [&] {
    const Operand n = GraphBuilder::divisor(element_count(b.dims(), b.shape(flat), dims));
    const Operand slope = b.div(b.mul(of_weight, inverse), n);
    const Operand apart = b.sub(b.sub(g, b.div(of_bias, n)), b.mul(centered, slope));
    const Operand factor = weight.present() ? b.mul(inverse, b.per_channel(weight, 1, b.rank(flat))) : inverse;
    return b.reshape(b.mul(apart, factor), shape);
  };
  auto none = [] { return Operand::none(); };
  return each(call, {of_input, none, none, [&] { return b.reshape(of_weight, channels); },
                     [&] { return b.reshape(of_bias, channels); }});
}

}  // namespace ingot::ir::derivatives
