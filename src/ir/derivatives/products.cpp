// Matrix products, convolution, attention.
#include <limits>
#include <optional>

#include "ir/decompose/convolution.h"
#include "ir/decompose/windows.h"
#include "ir/derivatives/support.h"
#include "ir/rules/rules.h"

namespace ingot::ir::derivatives {
// Of rows times one matrix the rows are all in one product (normal::matmul), so that the sum over them is one, too. A
// batch that was broadcast is summed after the product.
Gradients matmul(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), &x = call.operands[0], &y = call.operands[1];
  // The gradient of a transposed matrix (a linear layer's weight) comes as the matrix lies; the sums are the same.
  const NodeId producer = b.graph().values[y.id].producer;
  const bool transposes = b.rank(x) == 2 && b.rank(y) == 2 && producer != kNoValue &&
                          info(b.graph().nodes[producer].op).layout == &layouts::permute;
  return each(call, {[&] { return b.matmul(g, transposed(b, y)); },
                     [&] {
                       return transposes ? transposed(b, b.matmul(transposed(b, g), x)) : b.matmul(transposed(b, x), g);
                     }});
}

namespace {

/// The gradient of a convolution's input, of these sizes: the transposed convolution.
Operand of_image(GraphBuilder& b, const DerivedCall& call, const Operand& g, const Operand& weight, const Dims& shape) {
  const CompositeCall back{info(OpId::conv_transpose2d),
                           {g, weight, Operand::none()},
                           {call.attribute("stride"), call.attribute("padding"), Attr::of(Dims{0}),
                            call.attribute("groups"), call.attribute("dilation")},
                           b.dtype(g),
                           shape};
  return b.reshape(convolution_transposed(b, back, {shape[2], shape[3]}), shape);
}

/// The gradient of the weight of a convolution of x with several results a channel, where products would have one row:
/// a convolution of images that are input channels, with the cotangents for a kernel. Batch and channels, stride and
/// dilation change places.
Operand of_spread_weight(GraphBuilder& b, const DerivedCall& call, const Operand& x, const Operand& g,
                         const Dims& kernel) {
  const Attr& groups = call.attribute("groups");
  // [n, g, ..] to [1, g * n, ..]; [n, o, ..] to [o, n, ..].
  const Dims shape = b.shape(x);
  const Operand images =
      b.reshape(b.permute(x, Dims{1, 0, 2, 3}), {Dim(1), b.dims().mul(groups.integer, shape[0]), shape[2], shape[3]});
  Operand result = b.conv2d(images, b.permute(g, Dims{1, 0, 2, 3}), Operand::none(), call.attribute("dilation"),
                            call.attribute("padding"), call.attribute("stride"), groups);
  // Of a stride that leaves a rest, the windows beyond the kernel.
  for (size_t d : {2, 3})
    if (!b.dims().equal(b.shape(result)[d], kernel[d]))
      result = b.slice(result, GraphBuilder::attr(static_cast<int64_t>(d)), Attr::of(Dims{0}),
                       Attr::of(Dims{kernel[d]}), GraphBuilder::attr(1));
  return b.permute(result, Dims{1, 0, 2, 3});
}

}  // namespace

Gradients conv2d(GraphBuilder& b, const DerivedCall& call) {
  const Dims given = b.shape(call.operands[0]);
  auto image = [&](const Operand& x) { return b.rank(x) == 4 ? x : b.unsqueeze(x, GraphBuilder::attr(0)); };
  const Operand x = image(call.operands[0]), g = image(call.cotangent()), &weight = call.operands[1];
  auto for_weight = [&] {
    // The sizes of a kernel are numbers (shapes::convolution).
    const Dims kernel = b.shape(weight);
    const int64_t groups = call.integer("groups");
    if (groups > 1 && b.dims().equal(kernel[1], 1) && !b.dims().equal(kernel[0], groups))
      return of_spread_weight(b, call, x, g, kernel);
    const Attr sizes = Attr::of(Dims{b.dims().hint(kernel[2]), b.dims().hint(kernel[3])});
    return b.call(OpId::conv2d_weight_backward, {x, g},
                  {sizes, call.attribute("stride"), call.attribute("padding"), call.attribute("dilation"),
                   call.attribute("groups"), Attr()})[0];
  };
  return each(call, {[&] { return b.reshape(of_image(b, call, g, weight, b.shape(x)), given); }, for_weight,
                     [&] {
                       return b.reduce_dims(OpId::sum, g, {0, 2, 3}, false);
                     }});
}

// It is linear in the images and in the gradient of the result.
Gradients conv2d_weight_backward(GraphBuilder& b, const DerivedCall& call) {
  const Operand &weight = call.cotangent(), &x = call.operands[0], &g = call.operands[1];
  return each(call, {[&] { return of_image(b, call, g, weight, b.shape(x)); },
                     [&] {
                       return b.conv2d(x, weight, Operand::none(), call.attribute("stride"), call.attribute("padding"),
                                       call.attribute("dilation"), call.attribute("groups"));
                     }});
}

namespace {

/// Attention as products and a softmax. A row without a key to look at is zero.
std::vector<Operand> attention(GraphBuilder& b, const DerivedCall& call, const std::vector<Operand>& operands) {
  Operand query = operands[0], key = operands[1], value = operands[2];
  const Operand& mask = operands[3];
  const DType dtype = b.dtype(query);
  const Dims whole = b.shape(query);
  const size_t rank = whole.size();
  const Dim rows = whole[rank - 2], keys = b.shape(key)[rank - 2];
  Dims batch(whole.begin(), whole.end() - 2), scores_shape = batch;
  scores_shape.push_back(rows);
  scores_shape.push_back(keys);

  // Heads that share keys and values are one more dim, over which these are broadcast.
  const bool shared = rank > 2 && !b.dims().equal(batch.back(), b.shape(key)[rank - 3]);
  if (shared) {
    const Dim heads = b.shape(key)[rank - 3];
    Dims split = whole;
    split[rank - 3] = heads;
    split.insert(rank - 2, b.dims().floor_div(batch.back(), heads));
    query = b.reshape(query, split);
    key = b.unsqueeze(key, GraphBuilder::attr(static_cast<int64_t>(rank) - 2));
    value = b.unsqueeze(value, GraphBuilder::attr(static_cast<int64_t>(rank) - 2));
  }
  Operand scale = operands[4];
  if (!scale.present() && whole.back() == Dim(0)) scale = Operand::constant(1.0);  // every score is an empty sum
  if (!scale.present()) scale = b.rsqrt(b.scalar(GraphBuilder::divisor(whole.back()), dtype));
  Operand scores = b.mul(b.reshape(b.matmul(query, transposed(b, key)), scores_shape), scale);

  std::optional<Operand> seen;
  if (call.flag("is_causal")) seen = b.ge(b.unsqueeze(count_up(b, rows), GraphBuilder::attr(1)), count_up(b, keys));
  if (mask.present() && b.dtype(mask) == DType::bool_) seen = seen ? b.logical_and(*seen, mask) : mask;
  if (mask.present() && b.dtype(mask) != DType::bool_) scores = b.add(scores, mask);
  if (seen) scores = b.where(*seen, scores, -std::numeric_limits<double>::infinity());
  const int64_t last = static_cast<int64_t>(rank) - 1;
  std::optional<Operand> blind;
  if ((mask.present() || seen) && keys != Dim(0)) {
    const Operand top = b.reduce_dims(OpId::amax, scores, {last}, true);
    blind = b.eq(top, -std::numeric_limits<double>::infinity());
    scores = kept_where_not(b, *blind, scores);
  }
  Operand weights = b.softmax(scores, GraphBuilder::attr(last));
  if (blind) weights = kept_where_not(b, *blind, weights);
  if (shared) {
    Dims split = b.shape(query);
    split.back() = keys;
    weights = b.reshape(weights, split);
  }
  Dims result = batch;
  result.push_back(rows);
  result.push_back(b.shape(value).back());
  return {b.reshape(b.matmul(weights, value), result)};
}

}  // namespace

// A step of its own, which computes the weights again. Whoever asks for the gradient of a mask gets all of them from
// products and a softmax: that gradient is as large as the weights.
Gradients scaled_dot_product_attention(GraphBuilder& b, const DerivedCall& call) {
  if (call.wanted[3])
    return b.gradients([&](const std::vector<Operand>& operands) { return attention(b, call, operands); },
                       call.operands, call.wanted, call.results, call.cotangents);
  std::vector<Operand> operands = call.operands;
  operands.push_back(call.cotangent());
  Gradients found = b.primitive(OpId::scaled_dot_product_attention_backward, std::move(operands), call.attrs);
  for (size_t i = 0; i < found.size(); ++i)
    if (!call.wanted[i]) found[i] = Operand::none();
  found.resize(call.operands.size());
  return found;
}

// As gradients of products and a softmax.
Gradients scaled_dot_product_attention_backward(GraphBuilder& b, const DerivedCall& call) {
  return b.gradients(
      [&](const std::vector<Operand>& operands) {
        const std::vector<Operand> of(operands.begin(), operands.end() - 1);
        Gradients found = b.gradients([&](const std::vector<Operand>& o) { return attention(b, call, o); }, of,
                                      {true, true, true, false, false}, {{Operand::none()}}, {{operands.back()}});
        found.resize(3);
        return found;
      },
      call.operands, call.wanted, call.results, call.cotangents);
}

}  // namespace ingot::ir::derivatives
