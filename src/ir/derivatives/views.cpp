// Views, joining and triangles. What a view does not show has the gradient -0, which changes no sum: so the sum of what
// several slices give is these, joined, bit for bit.
#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

/// Elements of a strided view of operand 0, as it lies in row-major order, at their places.
Operand at_their_places(GraphBuilder& b, const DerivedCall& call) {
  const Dims shape = b.shape(call.operands[0]);
  const OperandType self{OperandType::Kind::tensor, b.dtype(call.operands[0]), Category::floating, &shape};
  std::vector<TensorType> none;
  RuleContext context{call.op.id, {&self, 1}, call.attrs, b.dims(), Location::none(), none};
  const Layout view = infer_layout(context, {shape, contiguous_strides(b.dims(), shape), 0});
  const Operand& g = call.cotangent();
  return b.as_strided_scatter(minus_zeros(b, shape, b.dtype(g)), g, Attr::of(view.sizes), Attr::of(view.strides),
                              Attr::of(Dims{view.offset}));
}

/// Where elements of a strided view lie.
Operand places(GraphBuilder& b, const Dims& sizes, const Dims& strides, Dim offset) {
  Operand at = b.scalar(GraphBuilder::size_operand(offset), DType::i64);
  for (size_t d = 0; d < sizes.size(); ++d)
    at = b.add(at, b.mul(coordinate(b, sizes[d], d, sizes.size()), GraphBuilder::size_operand(strides[d])));
  return b.shape(at) == sizes ? at : b.expand(at, Attr::of(sizes));
}

}  // namespace

// view, squeeze, unsqueeze.
Gradients reshaped(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, b.reshape(call.cotangent(), b.shape(call.operands[0])));
}

Gradients permute(GraphBuilder& b, const DerivedCall& call) {
  const Dims& order = call.attribute("dims").list;
  Dims back = order;
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i].code)] = static_cast<int64_t>(i);
  return of_self(call, b.permute(call.cotangent(), back));
}

Gradients expand(GraphBuilder&, const DerivedCall& call) { return of_self(call, call.cotangent()); }

Gradients select(GraphBuilder& b, const DerivedCall& call) {
  const Dim size = b.shape(call.operands[0])[static_cast<size_t>(call.integer("dim"))],
            index = call.attribute("index").list[0];
  const Operand row = b.unsqueeze(call.cotangent(), call.attribute("dim"));
  return of_self(call, padded(b, row, static_cast<size_t>(call.integer("dim")), index,
                              b.dims().sub(size, b.dims().add(index, 1))));
}

Gradients slice(GraphBuilder& b, const DerivedCall& call) {
  if (call.integer("step") != 1) return of_self(call, at_their_places(b, call));
  const size_t dim = static_cast<size_t>(call.integer("dim"));
  const Operand& g = call.cotangent();
  const Dim start = call.attribute("start").list[0], end = b.dims().add(start, b.shape(g)[dim]);
  return of_self(call, padded(b, g, dim, start, b.dims().sub(b.shape(call.operands[0])[dim], end)));
}

Gradients diagonal(GraphBuilder& b, const DerivedCall& call) { return of_self(call, at_their_places(b, call)); }

// Windows may overlap, and so may what any strides show: what meets is added in order.
Gradients unfold(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], &g = call.cotangent();
  if (b.rank(x) == 0) return of_self(call, g);
  const int64_t dim = call.integer("dimension"), rank = static_cast<int64_t>(b.rank(x));
  const Dims shape = b.shape(x), windows = b.shape(g);
  const Dim count = windows[static_cast<size_t>(dim)], size = windows.back();
  Dims order, merged = shape;
  for (int64_t d = 0; d < rank; ++d) {
    order.push_back(d);
    if (d == dim) order.push_back(rank);
  }
  merged[static_cast<size_t>(dim)] = b.dims().mul(count, size);
  const Operand at = places(b, {count, size}, {call.integer("step"), 1}, 0);
  return of_self(call,
                 b.index_add(zeros(b, shape, b.dtype(g)), b.reshape(at, {merged[static_cast<size_t>(dim)]}),
                             b.reshape(b.permute(g, order), merged), Operand::constant(1.0), GraphBuilder::attr(dim)));
}

Gradients as_strided(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], &g = call.cotangent();
  const Dim count = b.dims().product(b.shape(g));
  const Operand at =
      places(b, call.attribute("size").list, call.attribute("stride").list, call.attribute("storage_offset").list[0]);
  const Operand flat = b.index_add(zeros(b, {b.dims().product(b.shape(x))}, b.dtype(g)), b.reshape(at, {count}),
                                   b.reshape(g, {count}), Operand::constant(1.0), GraphBuilder::attr(0));
  return of_self(call, b.reshape(flat, b.shape(x)));
}

Gradients as_strided_scatter(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), &src = call.operands[1];
  const Attr &size = call.attribute("size"), &stride = call.attribute("stride"),
             &offset = call.attribute("storage_offset");
  return each(call, {[&] { return b.as_strided_scatter(g, zeros(b, b.shape(src), b.dtype(g)), size, stride, offset); },
                     [&] { return b.as_strided(g, size, stride, offset); }});
}

Gradients cat(GraphBuilder& b, const DerivedCall& call) {
  const size_t dim = static_cast<size_t>(call.integer("dim"));
  Gradients gradients(call.operands.size());
  Dim start = 0;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Dim end = b.dims().add(start, b.shape(call.operands[i])[dim]);
    if (call.wanted[i])
      gradients[i] = b.slice(call.cotangent(), call.attribute("dim"), Attr::of(Dims{start}), Attr::of(Dims{end}),
                             GraphBuilder::attr(1));
    start = end;
  }
  return gradients;
}

Gradients tril(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, b.tril(call.cotangent(), call.operand("diagonal")));
}
Gradients triu(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, b.triu(call.cotangent(), call.operand("diagonal")));
}
Gradients flip(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, b.flip(call.cotangent(), call.attribute("dims")));
}

}  // namespace ingot::ir::derivatives
