// Attention that is written out in ops, as one op whose step gives their bits: its products sum in the order of matmul,
// its rows in that of softmax. 16-bit floats are rounded after each op, which no step does: they stay as they are. So
// does what somebody else reads, as the gradients of a training step read the probabilities.
#include <limits>
#include <optional>

#include "ir/passes/passes.h"

namespace ingot::ir {
namespace {

/// What the op is to be given.
struct Found {
  NodeId node = kNoValue;  // the last product
  Operand query, transposed_key, value, mask, scale, fill;
  bool divided = false;
  bool hides = false;  // the mask is true where a key is hidden
};

class Search {
 public:
  explicit Search(Graph& graph) : graph_(graph), readers_(graph.values.size()) {
    for (const Node& node : graph.nodes)
      for (const Operand& o : node.operands)
        if (o.is_value()) ++readers_[o.id];
    for (ValueId output : graph.outputs) ++readers_[output];
  }

  std::optional<Found> find(NodeId n) {
    const Node& node = graph_.nodes[n];
    Found found;
    if (!is_product(node) || !find_weights(node.operands[0], found)) return {};
    // (Sizes that had to be equal are the same expression, or this is none of what is looked for.)
    const Dims &key = type(found.transposed_key).shape, &value = type(node.operands[1]).shape;
    if (!(key.back() == value[value.size() - 2])) return {};
    // Products of one query read keys and values once, as they lie; the step would pack them first.
    const Dims& query = type(found.query).shape;
    if (graph_.dims.hint(query[query.size() - 2]) == 1) return {};
    // Products of one column or of depth 1 have another order (normal::matmul).
    for (Dim d : {query.back(), key.back(), value.back()})
      if (graph_.dims.is_one(d)) return {};
    // The step knows batch and heads; further dims that a mask broadcasts over may not be one of them.
    if (found.mask.present() && query.size() > 4) return {};
    found.node = n, found.value = node.operands[1];
    return found;
  }

 private:
  const TensorType& type(const Operand& o) const { return graph_.type(o.id); }
  static bool is_one(const Operand& o) { return o == Operand::constant(int64_t{1}) || o == Operand::constant(1.0); }

  /// A product of stacks of matrices of f32 or f64, none of which is broadcast.
  bool is_product(const Node& node) const {
    if (node.derivative || (node.op != OpId::matmul && node.op != OpId::bmm && node.op != OpId::mm)) return false;
    if (node.op == OpId::matmul && node.attrs[0].present()) return false;
    const TensorType &a = type(node.operands[0]), &b = type(node.operands[1]);
    if (a.dtype != DType::f32 && a.dtype != DType::f64) return false;
    return a.shape.size() >= 2 && a.shape.size() == b.shape.size() &&
           std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin());
  }

  /// The op that computes `o` for one reader alone.
  const Node* inner(Operand o) const {
    for (;;) {
      if (!o.is_value() || readers_[o.id] != 1 || graph_.values[o.id].producer == kNoValue) return nullptr;
      const Node& node = graph_.nodes[graph_.values[o.id].producer];
      if (node.derivative) return nullptr;
      if (node.op != OpId::clone && node.op != OpId::detach) return &node;
      o = node.operands[0];
    }
  }

  bool find_weights(const Operand& weights, Found& found) const {
    const Node* node = inner(weights);
    if (!node || node->op != OpId::softmax) return false;
    const TensorType& scores = type(node->operands[0]);
    if (node->attrs[0].integer + 1 != static_cast<int64_t>(scores.shape.size())) return false;
    return scores.dtype == type(weights).dtype && find_masked(node->operands[0], scores, found);
  }

  /// Scores of this type, whose last op may be a mask.
  bool find_masked(const Operand& scores, const TensorType& as, Found& found) const {
    const Node* node = inner(scores);
    if (!node) return false;
    const std::vector<Operand>& o = node->operands;
    found.fill = Operand::constant(-std::numeric_limits<double>::infinity());
    auto hidden = [&](const Operand& mask, const Operand& fill, bool hides) {
      if (!mask.is_value() || !fill.is_scalar() || type(mask).dtype != DType::bool_) return false;
      found.mask = mask, found.fill = fill, found.hides = hides;
      return true;
    };
    switch (node->op) {
      case OpId::masked_fill:
        return hidden(o[1], o[2], true) && find_scaled(o[0], as, found);
      case OpId::where:
        if (o[1].is_value()) return hidden(o[0], o[2], false) && find_scaled(o[1], as, found);
        return hidden(o[0], o[1], true) && find_scaled(o[2], as, found);
      case OpId::add:
        if (!o[0].is_value() || !o[1].is_value() || !is_one(o[2])) return false;
        for (size_t i : {0, 1}) {
          found.mask = o[1 - i];
          if (type(found.mask).dtype == as.dtype && find_scaled(o[i], as, found)) return true;
        }
        return false;
      default:
        return find_scaled(scores, as, found);
    }
  }

  bool find_scaled(const Operand& scores, const TensorType& as, Found& found) const {
    const Node* node = inner(scores);
    if (!node || type(scores).dtype != as.dtype || type(scores).shape != as.shape) return false;
    if (is_product(*node)) {
      found.query = node->operands[0], found.transposed_key = node->operands[1];
      if (!found.scale.present()) found.scale = Operand::constant(1.0), found.divided = false;
      return true;
    }
    if (found.scale.present()) return false;
    found.divided = node->op == OpId::div;
    if (node->op != OpId::mul && (!found.divided || node->attrs[0].integer != 0)) return false;
    const bool first = node->op == OpId::mul && node->operands[0].is_scalar();
    found.scale = node->operands[first ? 0 : 1];
    if (found.scale.is_scalar() && find_scaled(node->operands[first ? 1 : 0], as, found)) return true;
    found.scale = {};
    return false;
  }

  Graph& graph_;  // whose guards say what was asked of sizes
  std::vector<int> readers_;
};

/// Appends the op that gives what `found.node` gives, and what it needs.
void append(Graph& graph, const Found& found) {
  const Location location = graph.nodes[found.node].location;
  const size_t first = graph.nodes.size();
  Dims order;
  const auto rank = static_cast<int64_t>(graph.type(found.transposed_key.id).shape.size());
  for (int64_t d = 0; d < rank - 2; ++d) order.push_back(d);
  order.push_back(rank - 1), order.push_back(rank - 2);
  const ValueId key = graph.add(OpId::permute, {found.transposed_key}, {Attr::of(order)}, location);
  Operand mask = found.mask;
  if (found.hides) mask = Operand::value(graph.add(OpId::logical_not, {mask}, {}, location));
  graph.add(OpId::composed_attention, {found.query, Operand::value(key), found.value, mask, found.scale, found.fill},
            {Attr::number(0), Attr::of(false), Attr::of(false), Attr::of(found.divided)}, location);
  for (size_t n = first; n < graph.nodes.size(); ++n) {
    graph.nodes[n].module = graph.nodes[found.node].module;
    graph.nodes[n].backward = graph.nodes[found.node].backward;
  }
}

}  // namespace

void recognize_attention(Graph& graph) {
  const size_t count = graph.nodes.size();
  std::vector<Found> all;
  Search search(graph);
  for (NodeId n = 0; n < count; ++n)
    if (std::optional<Found> found = search.find(n)) all.push_back(std::move(*found));
  if (all.empty()) return;

  std::vector<size_t> ends;  // of the nodes that each one appends
  for (const Found& found : all) {
    append(graph, found);
    ends.push_back(graph.nodes.size());
  }
  // Each in the place of its last product.
  std::vector<Node> nodes;
  size_t next = count;
  for (size_t n = 0, f = 0; n < count; ++n) {
    Node& node = graph.nodes[n];
    if (f < all.size() && all[f].node == n) {
      while (next < ends[f]) nodes.push_back(std::move(graph.nodes[next++]));
      nodes.back().outputs = node.outputs;
      ++f;
    } else {
      nodes.push_back(std::move(node));
    }
  }
  graph.nodes = std::move(nodes);
  for (NodeId n = 0; n < graph.nodes.size(); ++n)
    for (ValueId v : graph.nodes[n].outputs) graph.values[v].producer = n;
  eliminate_dead_code(graph);  // the scores, and values that the new nodes gave
}

}  // namespace ingot::ir
