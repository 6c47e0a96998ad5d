// Algebraic rules. Each row names an op and a function that looks at one of its nodes and either gives a value that has
// the same bits, edits the node into a cheaper one with the same result, or leaves it. All hold for NaN, infinities,
// the sign of zero and integer overflow (all NaNs are equal).
#include <array>
#include <bit>
#include <cmath>

#include "ir/passes/passes.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

/// What a rule sees: one node, its operands already simplified.
struct Match {
  Graph& graph;
  Node& node;

  const Operand& operand(size_t i) const { return node.operands[i]; }
  const TensorType& type(size_t i) const { return graph.type(operand(i).id); }
  const TensorType& result() const { return graph.type(node.outputs[0]); }
  const Attr& attr(size_t i) const { return node.attrs[i]; }
  /// The node that computes an operand; null for an input or a scalar.
  const Node* producer_of(const Operand& o) const {
    if (!o.is_value()) return nullptr;
    NodeId id = graph.values[o.id].producer;
    return id == kNoValue ? nullptr : &graph.nodes[id];
  }
  const Node* producer(size_t i) const { return producer_of(operand(i)); }
  const Node* producer(size_t i, OpId op) const {
    const Node* node = producer(i);
    return node && node->op == op ? node : nullptr;
  }
  /// True if operand i is this constant, with this sign of zero.
  bool is_constant(size_t i, double value) const {
    const Operand& o = operand(i);
    if (o.kind != Operand::Kind::constant) return false;
    double given = o.category == Category::floating ? o.number : static_cast<double>(o.integer);
    return std::bit_cast<int64_t>(given) == std::bit_cast<int64_t>(value);
  }
  bool same(size_t i, size_t j) const { return operand(i).is_value() && operand(i) == operand(j); }
  bool floating() const { return is_floating(result().dtype); }
  /// Turns the node into another op of operand `base`.
  void become(OpId op, Operand base, std::vector<Attr> attrs) {
    node.op = op;
    node.operands = {std::move(base)};
    node.attrs = std::move(attrs);
  }
};

/// The value to use instead; none: there is none, but the node may have been edited.
using Rewrite = Operand (*)(Match&);

Operand keep() { return Operand::none(); }
Operand first_if(const Match& m, bool condition) { return condition ? m.operand(0) : keep(); }

// Arithmetic with a neutral element.
Operand add_zero(Match& m) {
  // x + 0.0 is not x where x is -0.0; x + -0.0 always is.
  return first_if(m, m.is_constant(2, 1) && m.is_constant(1, m.floating() ? -0.0 : 0.0));
}
/// Tensors side by side, where one has -0.0 the other has all: the gradients of parts of a tensor, summed. Pieces of
/// both must end at the same places, but for those of -0.0.
Operand add_beside(Match& m) {
  const Node *a = m.producer(0, OpId::cat), *b = m.producer(1, OpId::cat);
  if (!a || !b || a->attrs != b->attrs || !m.is_constant(2, 1) || !m.floating()) return keep();
  for (size_t i : {0, 1})
    if (m.type(i).dtype != m.result().dtype || !(m.type(i).shape == m.result().shape)) return keep();
  // Other pieces may have made one wider, and an empty one of one dim is passed over.
  for (const Node* side : {a, b})
    for (const Operand& piece : side->operands) {
      const TensorType& type = m.graph.type(piece.id);
      if (type.dtype != m.result().dtype || type.shape.size() != m.result().shape.size()) return keep();
    }
  const int64_t dim = a->attrs[0].integer;
  DimTable& dims = m.graph.dims;
  auto is_zero = [&](const Operand& piece) {
    const Node* filled = m.producer_of(piece);
    return filled && filled->op == OpId::full && filled->operands[0].kind == Operand::Kind::constant &&
           filled->operands[0].category == Category::floating && filled->operands[0].number == 0 &&
           std::signbit(filled->operands[0].number);
  };
  struct Side {
    const std::vector<Operand>& pieces;
    size_t at = 0;
    Dim left = 0;  // of the piece
  } sides[] = {{a->operands}, {b->operands}};
  auto next = [&](Side& s) {
    if (s.at < s.pieces.size()) s.left = m.graph.type(s.pieces[s.at].id).shape[dim];
  };
  for (Side& s : sides) next(s);
  std::vector<Operand> joined;
  while (sides[0].at < sides[0].pieces.size() && sides[1].at < sides[1].pieces.size()) {
    // The piece that ends first stands there whole; the other goes on, unless it ends there, too.
    const bool same = sides[0].left == sides[1].left;
    if (!same && !(sides[0].left.is_constant() && sides[1].left.is_constant())) return keep();
    const size_t shorter = !same && sides[1].left.code < sides[0].left.code;
    Side &s = sides[shorter], &other = sides[1 - shorter];
    const Operand &piece = s.pieces[s.at], &beside = other.pieces[other.at];
    auto whole = [&](const Side& side) { return side.left == m.graph.type(side.pieces[side.at].id).shape[dim]; };
    if (is_zero(beside) && whole(s))
      joined.push_back(piece);
    else if (same && is_zero(piece) && whole(other))
      joined.push_back(beside);
    else
      return keep();
    other.left = dims.sub(other.left, s.left);
    ++s.at;
    next(s);
    if (same) ++other.at, next(other);
  }
  if (sides[0].at < sides[0].pieces.size() || sides[1].at < sides[1].pieces.size()) return keep();
  std::vector<Attr> attrs = a->attrs;
  m.become(OpId::cat, joined[0], std::move(attrs));
  m.node.operands = std::move(joined);
  return keep();
}
Operand simpler_sum(Match& m) {
  const Operand zero = add_zero(m);
  return zero.is_value() ? zero : add_beside(m);
}
Operand sub_zero(Match& m) { return first_if(m, m.is_constant(2, 1) && m.is_constant(1, 0.0)); }
Operand by_one(Match& m) { return first_if(m, m.is_constant(1, 1.0)); }
Operand div_constant(Match& m) {
  if (m.attr(0).integer != 0 || !m.floating() || m.operand(1).kind != Operand::Kind::constant) return keep();
  if (m.is_constant(1, 1.0)) return m.operand(0);
  // Division by a power of two whose inverse is a normal number rounds as the product with that inverse does.
  double divisor =
      m.operand(1).category == Category::floating ? m.operand(1).number : static_cast<double>(m.operand(1).integer);
  int exponent = 0;
  if (std::abs(std::frexp(divisor, &exponent)) != 0.5 || std::abs(exponent) > 120) return keep();
  Operand base = m.operand(0);
  m.become(OpId::mul, base, {});
  m.node.operands.push_back(Operand::constant(1 / divisor));
  return keep();
}

// Twice is once, twice is nothing, once is nothing.
Operand idempotent(Match& m) {
  const Node* inner = m.producer(0, m.node.op);
  return first_if(m, inner && inner->attrs == m.node.attrs &&
                         std::equal(inner->operands.begin() + 1, inner->operands.end(), m.node.operands.begin() + 1,
                                    m.node.operands.end()));
}
Operand involution(Match& m) {
  const Node* inner = m.producer(0, m.node.op);
  return inner ? inner->operands[0] : keep();
}
Operand identity(Match& m) { return m.operand(0); }
Operand with_itself(Match& m) { return first_if(m, m.same(0, 1)); }

Operand where_constant(Match& m) {
  if (m.operand(1).is_value() && m.same(1, 2)) return m.operand(1);
  const Node* condition = m.producer(0, OpId::full);
  if (!condition || condition->operands[0].kind != Operand::Kind::constant) return keep();
  const Operand& fill = condition->operands[0];
  bool chosen = fill.category == Category::floating ? fill.number != 0 : fill.integer != 0;
  return m.operand(chosen ? 1 : 2);
}

/// Of a tensor that is written over as a whole only the type counts.
Operand written_over(Match& m) {
  const TensorType& result = m.result();
  if (!m.operand(1).is_value()) {
    m.become(OpId::full, m.operand(1), {Attr::of(result.shape), Attr::of(result.dtype)});
  } else if (m.type(1).dtype != result.dtype) {
    if (m.type(1).shape == result.shape) m.become(OpId::cast, m.operand(1), {Attr::of(result.dtype)});
  } else if (m.type(1).shape == result.shape) {
    return m.operand(1);
  } else {
    m.become(OpId::expand, m.operand(1), {Attr::of(result.shape)});
  }
  return keep();
}

// Casts.
/// True if every value of `from` is one of `to`.
bool holds(DType to, DType from) {
  if (to == from || from == DType::bool_) return true;
  if (is_floating(from)) return is_floating(to) && (to == DType::f64 || (to == DType::f32 && is_half(from)));
  if (is_floating(to)) {
    int bits = static_cast<int>(8 * size_of(from));
    int digits = to == DType::f64 ? 53 : to == DType::f32 ? 24 : to == DType::f16 ? 11 : 8;
    return bits <= digits;
  }
  if (to == DType::bool_) return false;
  if (from == DType::u8) return size_of(to) > 1;
  return to != DType::u8 && size_of(to) >= size_of(from);
}
Operand cast_of_cast(Match& m) {
  if (m.type(0).dtype == m.result().dtype) return m.operand(0);
  const Node* inner = m.producer(0, OpId::cast);
  if (!inner) return keep();
  const Operand& base = inner->operands[0];
  const DType from = m.graph.type(base.id).dtype, middle = m.type(0).dtype, to = m.result().dtype;
  if (!holds(middle, from)) return keep();
  if (from == to) return base;
  // A float becomes an integer by saturation, a wider integer by dropping bits.
  if (is_floating(middle) && !is_floating(from) && !is_floating(to) && to != DType::bool_ && !holds(to, from))
    return keep();
  m.node.operands[0] = base;
  return keep();
}

/// A view of a constant is a constant of another shape.
Operand view_of_full(Match& m) {
  const Node* filled = m.producer(0, OpId::full);
  if (!filled) return keep();
  Attr dtype = Attr::of(m.result().dtype);
  m.become(OpId::full, filled->operands[0], {Attr::of(m.result().shape), dtype});
  return keep();
}

// Views. A value of the graph is its elements in row-major order: view, squeeze and unsqueeze only rename positions.
bool renames(const Node* node) {
  return node && (node->op == OpId::view || node->op == OpId::squeeze || node->op == OpId::unsqueeze);
}
Operand view_of_view(Match& m) {
  if (m.type(0).shape == m.result().shape) return m.operand(0);
  const Node* inner = m.producer(0);
  if (!renames(inner)) return keep();
  const Operand& base = inner->operands[0];
  if (m.graph.type(base.id).shape == m.result().shape) return base;
  m.become(OpId::view, base, {Attr::of(m.result().shape)});
  return keep();
}
Operand permute_of_permute(Match& m) {
  Dims order = m.attr(0).list;
  Operand base = m.operand(0);
  if (const Node* inner = m.producer(0, OpId::permute)) {
    for (Dim& d : order) d = inner->attrs[0].list[d.code];
    base = inner->operands[0];
  }
  bool still = true;
  for (size_t i = 0; i < order.size(); ++i) still = still && order[i] == Dim(static_cast<int64_t>(i));
  if (still) return base;
  m.become(OpId::permute, base, {Attr::of(order)});
  return keep();
}
Operand expand_of_expand(Match& m) {
  if (m.type(0).shape == m.result().shape) return m.operand(0);
  const Node* inner = m.producer(0, OpId::expand);
  // A dim of size one that the outer one stretches may be one that the inner one left alone: still a valid expansion.
  if (inner) m.node.operands[0] = inner->operands[0];
  return keep();
}
Operand whole_slice(Match& m) {
  bool whole = m.attr(1).list[0] == Dim(0) && m.attr(3).integer == 1 && m.type(0).shape == m.result().shape;
  return first_if(m, whole);
}

// Writes through views, from functionalization.
/// True if the attributes' places are all elements of operand 0, in their order.
bool covers(const Match& m) {
  DimTable& dims = m.graph.dims;
  const Dims& sizes = m.attr(0).list;
  return m.attr(2).list[0] == Dim(0) && m.attr(1).list == contiguous_strides(dims, sizes) &&
         dims.same(dims.product(sizes), dims.product(m.type(0).shape));
}
Operand strided_view(Match& m) {
  if (covers(m)) {
    m.become(OpId::view, m.operand(0), {Attr::of(m.result().shape)});
    return keep();
  }
  const Node* write = m.producer(0);
  if (write && write->op == OpId::view) write = m.producer_of(write->operands[0]);
  bool same = write && write->op == OpId::as_strided_scatter && write->attrs == m.node.attrs;
  return same ? write->operands[1] : keep();
}
Operand strided_write(Match& m) {
  if (covers(m) && m.type(1).dtype == m.result().dtype) {
    m.become(OpId::view, m.operand(1), {Attr::of(m.result().shape)});
    return keep();
  }
  // A second write to the same places hides the first.
  const Node* earlier = m.producer(0, OpId::as_strided_scatter);
  if (earlier && earlier->attrs == m.node.attrs) m.node.operands[0] = earlier->operands[0];
  return keep();
}

/// A reduction of one element is that element: -0.0 + x and 1 * x are x.
Operand reduce_one(Match& m) {
  const Attr& dim = m.attr(0);
  int64_t at = dim.kind == Attr::Kind::list ? (dim.list.size() == 1 ? dim.list[0].code : -1) : dim.integer;
  bool plain = dim.present() && at >= 0 && !m.type(0).shape.empty() && m.type(0).shape[at] == Dim(1);
  if (!plain || m.type(0).dtype != m.result().dtype) return keep();
  if (m.type(0).shape == m.result().shape) return m.operand(0);
  m.become(OpId::view, m.operand(0), {Attr::of(m.result().shape)});
  return keep();
}

/// The truth of an element is that element only among bools: any of the u8 255 is 1.
Operand truth_of_one(Match& m) { return m.result().dtype == DType::bool_ ? reduce_one(m) : keep(); }

struct Row {
  OpId op;
  Rewrite rule;
};
constexpr Row kRows[] = {
    {OpId::add, simpler_sum},
    {OpId::sub, sub_zero},
    {OpId::mul, by_one},
    {OpId::div, div_constant},
    {OpId::pow, by_one},
    {OpId::neg, involution},
    {OpId::logical_not, involution},
    {OpId::bitwise_not, involution},
    {OpId::abs, idempotent},
    {OpId::relu, idempotent},
    {OpId::relu6, idempotent},
    {OpId::floor, idempotent},
    {OpId::ceil, idempotent},
    {OpId::trunc, idempotent},
    {OpId::sign, idempotent},
    {OpId::tril, idempotent},
    {OpId::triu, idempotent},
    {OpId::positive, identity},
    {OpId::clone, identity},
    {OpId::detach, identity},
    {OpId::copy, written_over},
    {OpId::fill, written_over},
    {OpId::maximum, with_itself},
    {OpId::minimum, with_itself},
    {OpId::fmax, with_itself},
    {OpId::fmin, with_itself},
    {OpId::logical_and, with_itself},
    {OpId::logical_or, with_itself},
    {OpId::bitwise_and, with_itself},
    {OpId::bitwise_or, with_itself},
    {OpId::where, where_constant},
    {OpId::cast, cast_of_cast},
    {OpId::view, view_of_view},
    {OpId::squeeze, view_of_view},
    {OpId::unsqueeze, view_of_view},
    {OpId::permute, permute_of_permute},
    {OpId::expand, expand_of_expand},
    {OpId::slice, whole_slice},
    {OpId::as_strided, strided_view},
    {OpId::as_strided_scatter, strided_write},
    {OpId::sum, reduce_one},
    {OpId::prod, reduce_one},
    {OpId::amax, reduce_one},
    {OpId::amin, reduce_one},
    {OpId::any, truth_of_one},
    {OpId::all, truth_of_one},
};

Rewrite rewrite_of(OpId op) {
  static const std::array<Rewrite, kOpCount> table = [] {
    std::array<Rewrite, kOpCount> rules{};
    for (const Row& row : kRows) rules[static_cast<size_t>(row.op)] = row.rule;
    return rules;
  }();
  return table[static_cast<size_t>(op)];
}

}  // namespace

std::vector<OpId> simplified_ops() {
  std::vector<OpId> ops;
  for (const Row& row : kRows) ops.push_back(row.op);
  return ops;
}

void simplify(Graph& graph) {
  std::vector<ValueId> renamed(graph.values.size());
  for (size_t i = 0; i < renamed.size(); ++i) renamed[i] = static_cast<ValueId>(i);
  for (Node& node : graph.nodes) {
    for (Operand& operand : node.operands)
      if (operand.is_value()) operand.id = renamed[operand.id];
    // An edited node may be simpler still; every edit leads to an op nearer the inputs, so this ends.
    Match match{graph, node};
    if (info(node.op).kind == OpKind::view) view_of_full(match);
    for (Rewrite rule = rewrite_of(node.op); rule;) {
      Node before = node;
      Operand value = rule(match);
      const TensorType& result = graph.type(node.outputs[0]);
      if (value.is_value() && graph.type(value.id).dtype == result.dtype &&
          graph.type(value.id).shape == result.shape) {
        renamed[node.outputs[0]] = value.id;
        break;
      }
      bool edited = !(before.op == node.op && before.operands == node.operands && before.attrs == node.attrs);
      rule = edited ? rewrite_of(node.op) : nullptr;
    }
  }
  for (ValueId& output : graph.outputs) output = renamed[output];
}

}  // namespace ingot::ir
