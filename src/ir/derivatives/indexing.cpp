// Reading and writing at positions: each is the gradient of the other.
#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

// In the order of the table's words.
enum ScatterReduce : int64_t { kScatterSum, kScatterProd, kScatterMean, kScatterMax, kScatterMin };

Operand added_at(GraphBuilder& b, const Operand& to, const Attr& dim, const Operand& index, const Operand& source) {
  return b.scatter_add(to, index, source, dim);
}

/// What a source gets that may be larger than the index that says which part of it is written.
Operand as_source(GraphBuilder& b, Operand gradient, const Dims& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    const Dim size = b.shape(gradient)[d];
    if (!b.dims().equal(size, shape[d])) gradient = padded(b, gradient, d, 0, b.dims().sub(shape[d], size));
  }
  return gradient;
}

/// x with zero at the positions of an index.
Operand cleared(GraphBuilder& b, const Operand& x, const Attr& dim, const Operand& index) {
  return b.scatter(x, index, zeros(b, b.shape(index), b.dtype(x)), dim);
}

/// Of what is written to one place, the last one stays: whether it is that. Only elements of one line meet, and their
/// places along it tell them apart.
Operand stays(GraphBuilder& b, const Operand& self, const Attr& dim, const Operand& index) {
  const Dims shape = b.shape(index);
  const auto along = static_cast<size_t>(dim.integer);
  const Dim length = shape.empty() ? Dim(1) : shape[along];
  const DType type = b.dims().less(length, int64_t{1} << 31) ? DType::i32 : DType::i64;
  const Operand place =
      shape.empty() ? b.scalar(GraphBuilder::integer(0), type) : b.to(coordinate(b, length, along, shape.size()), type);
  const Operand number = b.expand(place, Attr::of(shape));
  const Operand last = b.scatter(zeros(b, b.shape(self), type), index, number, dim);
  return b.eq(b.gather(last, index, dim), number);
}

}  // namespace

Gradients index_select(GraphBuilder& b, const DerivedCall& call) {
  const Operand& g = call.cotangent();
  return of_self(call, b.index_add(zeros(b, b.shape(call.operands[0]), b.dtype(g)), call.operands[1], g,
                                   Operand::constant(1.0), call.attribute("dim")));
}

Gradients gather(GraphBuilder& b, const DerivedCall& call) {
  const Operand& g = call.cotangent();
  const Operand to = zeros(b, b.shape(call.operands[0]), b.dtype(g));
  return of_self(call, added_at(b, to, call.attribute("dim"), call.operands[1], g));
}

// Rows of the padding index get nothing.
Gradients embedding(GraphBuilder& b, const DerivedCall& call) {
  const Operand &weight = call.operands[0], &indices = call.operands[1];
  const Dim count = b.dims().product(b.shape(indices));
  const Operand flat = b.reshape(indices, {count});
  Operand rows = b.reshape(call.cotangent(), {count, b.shape(weight)[1]});
  if (const int64_t padding = call.integer("padding_idx"); padding >= 0)
    rows = kept_where_not(b, b.unsqueeze(b.eq(flat, GraphBuilder::integer(padding)), GraphBuilder::attr(1)), rows);
  if (call.flag("scale_grad_by_freq")) {
    const Operand once = b.full(Dims{count}, Operand::constant(1.0), b.dtype(rows));
    const Operand often = b.index_add(zeros(b, {b.shape(weight)[0]}, b.dtype(rows)), flat, once, Operand::constant(1.0),
                                      GraphBuilder::attr(0));
    rows = b.div(rows, b.unsqueeze(b.index_select(often, flat, GraphBuilder::attr(0)), GraphBuilder::attr(1)));
  }
  return of_self(call, b.index_add(zeros(b, b.shape(weight), b.dtype(rows)), flat, rows, Operand::constant(1.0),
                                   GraphBuilder::attr(0)));
}

Gradients scatter(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), &index = call.operands[1], &src = call.operands[2];
  const Attr& dim = call.attribute("dim");
  return each(call, {[&] { return cleared(b, g, dim, index); }, [] { return Operand::none(); },
                     [&] {
                       const Operand taken = kept_where(b, stays(b, g, dim, index), b.gather(g, index, dim));
                       return as_source(b, taken, b.shape(src));
                     }});
}

namespace {

/// What a scatter_reduce of one tensor shares between its modes.
struct Scattered {
  GraphBuilder& b;
  const DerivedCall& call;
  const Operand &self, &index, &g = call.cotangent();
  const Attr& dim = call.attribute("dim");
  const bool with_self = call.flag("include_self");
  const Operand src;  // the part that is written

  Scattered(GraphBuilder& builder, const DerivedCall& c)
      : b(builder), call(c), self(c.operands[0]), index(c.operands[1]), src(part()) {}

  Operand part() const {
    Operand x = call.operands[2];
    const Dims shape = b.shape(index);
    for (size_t d = 0; d < shape.size(); ++d)
      if (!b.dims().equal(b.shape(x)[d], shape[d]))
        x = b.slice(x, GraphBuilder::attr(static_cast<int64_t>(d)), Attr::of(Dims{0}), Attr::of(Dims{shape[d]}),
                    GraphBuilder::attr(1));
    return x;
  }
  Operand gathered(const Operand& x) const { return b.gather(x, index, dim); }
  Operand counted(const Operand& start, const Operand& mask) const {
    return added_at(b, start, dim, index, b.to(mask, b.dtype(g)));
  }
  Operand constant(double x, const Operand& like) const {
    return b.full(Attr::of(b.shape(like)), Operand::constant(x), Attr::of(b.dtype(g)));
  }
  /// Self has no part where something is written without it.
  Operand of_self_part(const Operand& gradient) const {
    return with_self ? gradient : cleared(b, gradient, dim, index);
  }
  Gradients pair(const Make& of_self, const Make& of_src) const {
    return each(call, {[&] { return of_self_part(of_self()); }, [] { return Operand::none(); },
                       [&] { return as_source(b, of_src(), b.shape(call.operands[2])); }});
  }

  Gradients sum() const {
    return pair([&] { return g; }, [&] { return gathered(g); });
  }

  Gradients mean() const {
    const Operand count = counted(constant(with_self ? 1 : 0, self), constant(1, src));
    const Operand share = b.div(g, b.clamp_min(count, 1.0));
    return pair([&] { return share; }, [&] { return gathered(share); });
  }

  // Quotients by an element, but for the only zero among what meets: that gets the product of the others.
  Gradients prod() const {
    auto product = [&](const Operand& start, const Operand& source) {
      return b.scatter_reduce(start, index, source, dim, Attr::mode(kScatterProd), GraphBuilder::flag(with_self));
    };
    auto without_zero = [&](const Operand& x, const Operand& zero) { return b.where(zero, 1.0, x); };
    const Operand self_zero = b.eq(self, 0.0), src_zero = b.eq(src, 0.0);
    return pair(
        [&] {
          const Operand factor = without_zero(self, self_zero);
          const Operand others = b.where(self_zero, product(factor, src), call.result());
          return b.mul(g, b.div(others, factor));
        },
        [&] {
          const Operand start = with_self ? b.to(self_zero, b.dtype(g)) : constant(0, self);
          const Operand only = b.logical_and(src_zero, b.eq(gathered(counted(start, src_zero)), 1.0));
          const Operand others = product(self, without_zero(src, only));
          const Operand ratio = b.div(gathered(b.mul(g, call.result())), without_zero(src, src_zero));
          return b.where(only, gathered(b.mul(g, others)), ratio);
        });
  }

  // Ties share.
  Gradients extreme() const {
    const Operand& best = call.result();
    const Operand self_best = b.eq(self, best), src_best = b.eq(src, gathered(best));
    const Operand start = with_self ? b.to(self_best, b.dtype(g)) : constant(0, self);
    const Operand share = b.div(g, b.clamp_min(counted(start, src_best), 1.0));
    return pair([&] { return with_self ? kept_where(b, self_best, share) : g; },
                [&] { return kept_where(b, src_best, gathered(share)); });
  }
};

}  // namespace

Gradients scatter_reduce(GraphBuilder& b, const DerivedCall& call) {
  const Scattered scattered(b, call);
  switch (call.integer("reduce")) {
    case kScatterSum:
      return scattered.sum();
    case kScatterProd:
      return scattered.prod();
    case kScatterMean:
      return scattered.mean();
    default:
      return scattered.extreme();
  }
}

}  // namespace ingot::ir::derivatives
