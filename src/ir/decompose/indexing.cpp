// Flips, rolls and diagonals; writing to positions, order and search by the host ops.
#include <cstdlib>

#include "ir/decompose.h"

namespace ingot::ir {
namespace {

Attr attr(int64_t i) { return GraphBuilder::attr(i); }
Attr no() { return GraphBuilder::flag(false); }

Operand range(GraphBuilder& b, Dim size) {
  return b.arange(GraphBuilder::integer(0), GraphBuilder::integer(1), Dims{size}, DType::i64);
}

Operand flipped(GraphBuilder& b, const Operand& x, int64_t dim) {
  if (b.rank(x) == 0 || b.shape(x)[dim] == Dim(0)) return x;
  Dim size = b.shape(x)[dim], last = b.dims().sub(b.dims().max(size, 1), 1);
  Operand backwards = b.arange(GraphBuilder::size_operand(last), GraphBuilder::integer(-1), Dims{size}, DType::i64);
  return b.index_select(x, backwards, attr(dim));
}

/// x with its dims in the order that puts dim `from` at place `to`.
Operand moved(GraphBuilder& b, const Operand& x, int64_t from, int64_t to) {
  Dims order;
  for (int64_t d = 0; d < static_cast<int64_t>(b.rank(x)); ++d)
    if (d != from) order.push_back(d);
  order.insert(static_cast<size_t>(to), from);
  return b.permute(x, order);
}

Operand exchanged(GraphBuilder& b, const Operand& x, int64_t dim0, int64_t dim1) {
  Dims order;
  for (int64_t d = 0; d < static_cast<int64_t>(b.rank(x)); ++d)
    order.push_back(d == dim0 ? dim1 : d == dim1 ? dim0 : d);
  return b.permute(x, order);
}

Operand zero(GraphBuilder& b, DType dtype) { return b.scalar(GraphBuilder::integer(0), dtype); }

/// A matrix for each line of x, with the line on a diagonal and zeros elsewhere; the matrices are the last two dims.
Operand matrices(GraphBuilder& b, const Operand& x, int64_t offset) {
  int64_t rank = static_cast<int64_t>(b.rank(x)), skip = std::abs(offset);
  Dims before = offset > 0 ? Dims{skip, 0} : Dims{0, skip};
  Operand columns = b.constant_pad_nd(x, GraphBuilder::integer(0), before);
  Operand position = range(b, b.shape(columns)[rank - 1]);
  Operand row = b.add(b.unsqueeze(position, attr(1)), GraphBuilder::integer(offset));
  return b.where(b.eq(row, position), b.unsqueeze(columns, attr(rank - 1)), zero(b, b.dtype(x)));
}

Outputs triangle(GraphBuilder& b, const CompositeCall& call, OpId compare) {
  Operand row = b.add(b.unsqueeze(range(b, call.attribute("row").list[0]), attr(1)),
                      GraphBuilder::integer(call.integer("offset")));
  Operand inside = b.call(compare, {range(b, call.attribute("col").list[0]), row}, {})[0];
  const Dim count = call.shape[1];
  return {b.permute(b.nonzero_static(inside, Dims{count}), Dims{1, 0})};
}

/// Positions, some of them from the end of this many, as positions from the start.
Operand from_start(GraphBuilder& b, const Operand& positions, Dim size) {
  const Operand turned = b.add(positions, GraphBuilder::size_operand(size));
  return b.where(b.lt(positions, GraphBuilder::integer(0)), turned, positions);
}

/// Operands of index_add and its kin as those of a scatter: a zero-dim tensor gets a dim, the index one of each dim.
struct Along {
  Operand self, index;
  Along(GraphBuilder& b, const CompositeCall& call, bool around = false) {
    self = call.operand("self"), index = b.to(call.operand("index"), DType::i64);
    int64_t dim = call.integer("dim");
    if (b.rank(self) == 0) self = b.reshape(self, {1});
    if (around) index = from_start(b, index, b.shape(self)[dim]);
    Dims shape(b.rank(self), 1);
    shape[dim] = b.rank(index) ? b.shape(index)[0] : Dim(1);
    index = b.reshape(index, shape);
    Dims whole = b.shape(self);
    whole[dim] = shape[dim];
    index = b.expand(index, whole);
  }
};

}  // namespace

namespace decompositions {

Outputs flip(GraphBuilder& b, const CompositeCall& call) {
  Operand x = call.operands[0];
  for (Dim d : call.attribute("dims").list) x = flipped(b, x, d.code);
  return {x};
}
Outputs fliplr(GraphBuilder& b, const CompositeCall& call) { return {b.flip(call.operands[0], Dims{1})}; }
Outputs flipud(GraphBuilder& b, const CompositeCall& call) { return {b.flip(call.operands[0], Dims{0})}; }

// Eager's shifts lie in [0, size); a graph's own text may hold any: what the shift moves past the end comes first. (An
// empty tensor is not decomposed.)
Outputs roll(GraphBuilder& b, const CompositeCall& call) {
  Operand x = call.operands[0];
  const Dims shape = b.shape(x);
  Dims dims = call.attribute("dims").list;
  if (dims.empty()) {
    x = b.reshape(x, {b.dims().product(shape)});
    dims = {0};
  }
  for (size_t i = 0; i < dims.size() && b.rank(x) > 0; ++i) {
    Dim shift = call.attribute("shifts").list[i], size = b.shape(x)[dims[i].code];
    if (shift.is_constant() && size.is_constant()) shift = Dim((shift.code % size.code + size.code) % size.code);
    if (shift == Dim(0)) continue;
    if (b.dims().less(size, shift))
      throw Error("roll: shifts: got " + b.dims().str(shift) + ", expected none above the size " + b.dims().str(size));
    Dim kept = b.dims().sub(size, shift);
    Operand head = b.slice(x, attr(dims[i].code), Dims{kept}, Dims{size}, attr(1));
    Operand tail = b.slice(x, attr(dims[i].code), Dims{0}, Dims{kept}, attr(1));
    x = b.call(OpId::cat, {head, tail}, {attr(dims[i].code)})[0];
  }
  return {b.reshape(x, shape)};
}

Outputs rot90(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  const Dims& given = call.attribute("dims").list;
  int64_t dim0 = given.empty() ? 0 : given[0].code, dim1 = given.empty() ? 1 : given[1].code;
  switch ((call.integer("k") % 4 + 4) % 4) {
    case 1:
      return {exchanged(b, b.flip(x, Dims{dim1}), dim0, dim1)};
    case 2:
      return {b.flip(x, Dims{dim0, dim1})};
    case 3:
      return {exchanged(b, b.flip(x, Dims{dim0}), dim0, dim1)};
    default:
      return {x};
  }
}

Outputs diag(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  int64_t offset = call.integer("diagonal");
  if (b.rank(x) == 1) return {matrices(b, x, offset)};
  return {b.diagonal(x, attr(offset), attr(0), attr(1))};
}

Outputs diag_embed(GraphBuilder& b, const CompositeCall& call) {
  Operand x = matrices(b, call.operands[0], call.integer("offset"));
  int64_t rank = static_cast<int64_t>(b.rank(x)), dim1 = call.integer("dim1"), dim2 = call.integer("dim2");
  // The lower of the two places first: then the other one is counted with it.
  if (dim1 < dim2) return {moved(b, moved(b, x, rank - 2, dim1), rank - 1, dim2)};
  return {moved(b, moved(b, x, rank - 1, dim2), rank - 1, dim1)};
}

Outputs trace(GraphBuilder& b, const CompositeCall& call) {
  return {b.sum(b.diagonal(call.operands[0], attr(0), attr(0), attr(1)))};
}

Outputs tril_indices(GraphBuilder& b, const CompositeCall& call) { return triangle(b, call, OpId::le); }
Outputs triu_indices(GraphBuilder& b, const CompositeCall& call) { return triangle(b, call, OpId::ge); }

Outputs scatter_add(GraphBuilder& b, const CompositeCall& call) {
  return {b.scatter_reduce(call.operand("self"), call.attribute("dim"), call.operand("index"), call.operand("src"),
                           Attr::mode(0), GraphBuilder::flag(true))};
}

Outputs index_add(GraphBuilder& b, const CompositeCall& call) {
  Along along(b, call);
  Operand source = b.scaled(b.reshape(call.operand("source"), b.shape(along.index)), call.operand("alpha"));
  return {b.reshape(b.scatter_reduce(along.self, call.attribute("dim"), along.index, b.to(source, b.dtype(along.self)),
                                     Attr::mode(0), GraphBuilder::flag(true)),
                    b.shape(call.operand("self")))};
}

Outputs index_copy(GraphBuilder& b, const CompositeCall& call) {
  Along along(b, call);
  Operand source = b.reshape(call.operand("source"), b.shape(along.index));
  return {b.reshape(b.scatter(along.self, call.attribute("dim"), along.index, source), b.shape(call.operand("self")))};
}

Outputs index_fill(GraphBuilder& b, const CompositeCall& call) {
  Along along(b, call, true);
  Operand value = call.operand("value");
  if (value.is_value()) {
    value = b.to(value, b.dtype(along.self));
    value = b.expand(value, Dims(b.shape(along.index)));
  }
  return {b.reshape(b.scatter(along.self, call.attribute("dim"), along.index, value), b.shape(call.operand("self")))};
}

Outputs argsort(GraphBuilder& b, const CompositeCall& call) {
  return {b.call(OpId::sort, {call.operands[0]}, call.attrs)[1]};
}

Outputs msort(GraphBuilder& b, const CompositeCall& call) {
  return {b.call(OpId::sort, {call.operands[0]}, {attr(0), no(), no()})[0]};
}

Outputs bucketize(GraphBuilder& b, const CompositeCall& call) {
  return {b.call(OpId::searchsorted, {call.operand("boundaries"), call.operand("self")},
                 {call.attribute("out_int32"), call.attribute("right")})[0]};
}

Outputs take_along_dim(GraphBuilder& b, const CompositeCall& call) {
  Operand x = call.operands[0], indices = call.operands[1];
  const Attr& along = call.attribute("dim");
  Dim size = along.present() ? b.shape(x)[along.integer] : b.dims().product(b.shape(x));
  indices = from_start(b, indices, size);
  if (!call.attribute("dim").present()) {
    Operand flat = b.reshape(x, {b.dims().product(b.shape(x))});
    return {b.index_select(flat, b.reshape(indices, {b.dims().product(b.shape(indices))}), attr(0))};
  }
  int64_t dim = call.integer("dim");
  Dims wide = call.shape, index = call.shape;
  wide[dim] = b.shape(x)[dim];
  if (!(wide == b.shape(x))) x = b.expand(x, wide);
  if (!(index == b.shape(indices))) indices = b.expand(indices, index);
  return {b.gather(x, indices, attr(dim))};
}

}  // namespace decompositions
}  // namespace ingot::ir
