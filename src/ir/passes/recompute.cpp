#include <algorithm>

#include "ir/passes/passes.h"

namespace ingot::ir {
namespace {

/// The most work for one element of a value that is computed again, in units of a multiplication.
constexpr int kMostWork = 64;
/// Up to this much work every reader computes the value for itself; above it, the first one does for all.
constexpr int kShareFrom = 6;
/// What is so many times smaller than a value that is computed again is kept for it, where it takes memory of its own,
/// rather than computed with it (a mean).
constexpr int64_t kSmall = 64;
/// The most nodes between a value that is computed again and those that it is computed from.
constexpr size_t kFar = 12;

class Recomputation {
 public:
  Recomputation(Graph& graph, const OpCost& cost, int64_t from) : graph_(graph), cost_(cost), from_(from) {}

  /// True if it changed the graph.
  bool run() {
    find_needed();
    if (!any_backward_) return false;
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) decide(n);
    if (nodes_added_) rewrite();
    return nodes_added_;
  }
  std::vector<Recipe> run(std::vector<uint32_t>& saved) {
    apart_ = true;
    make_room();
    std::vector<bool> is_saved(graph_.outputs.size());
    for (uint32_t output : saved) is_saved[output] = needed_[graph_.outputs[output]] = true;
    for (uint32_t i = 0; i < graph_.outputs.size(); ++i)
      if (!is_saved[i]) stored_[graph_.outputs[i]] = true;
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) decide(n);
    return nodes_added_ ? recipes(is_saved, saved) : std::vector<Recipe>();
  }

 private:
  struct Chain {
    SmallVector<ValueId, 16> from;    // what has to be kept besides
    SmallVector<ValueId, 16> inside;  // computed on the way
    int work = 0;
    int64_t kept_bytes = 0;  // that are kept for this value alone, without small ones
  };

  bool is_forward(ValueId v) const {
    const NodeId producer = graph_.values[v].producer;
    return producer != kNoValue && (apart_ || !graph_.nodes[producer].backward);
  }
  const Node& producer(ValueId v) const { return graph_.nodes[graph_.values[v].producer]; }
  static bool is_view(const Node& node) { return info(node.op).kind == OpKind::view; }
  bool is_repeatable(const Node& node) const {
    const OpInfo& op = info(node.op);
    // Elsewhere memory may lie in another order.
    if (is_view(node)) return !apart_ || !op.has(kOfMemory);
    return op.kind == OpKind::elementwise && !op.has(kRandom);
  }
  int64_t bytes(ValueId v) const {
    int64_t bytes = size_of(graph_.type(v).dtype);
    for (Dim d : graph_.type(v).shape) bytes *= std::max<int64_t>(1, graph_.dims.hint(d));
    return bytes;
  }
  int work(const Node& node) const {
    if (is_view(node)) return 0;
    DType dtype = graph_.type(node.outputs[0]).dtype;
    for (const Operand& o : node.operands)
      if (o.is_value()) dtype = graph_.type(o.id).dtype;
    return cost_ ? cost_(node.op, dtype) : 1;
  }

  void make_room() {
    for (std::vector<bool>* facts : {&needed_, &again_, &stored_}) facts->resize(graph_.values.size());
    work_.resize(graph_.values.size());
  }
  void find_needed() {
    make_room();
    for (ValueId v : graph_.outputs) stored_[v] = true;
    for (const Node& node : graph_.nodes) {
      if (!node.backward) continue;
      any_backward_ = true;
      for (const Operand& o : node.operands)
        if (o.is_value() && is_forward(o.id)) need(o.id);
    }
  }
  /// Of a view, it is what it looks at that is kept; but an output is kept as it is.
  void need(ValueId v) {
    needed_[v] = true;
    while (!apart_ && is_forward(v) && is_view(producer(v))) needed_[v = producer(v).operands[0].id] = true;
  }

  /// Outputs that others see may be written to before the backward pass comes.
  bool is_kept(ValueId v) const {
    if (apart_) return needed_[v] && !again_[v];
    return stored_[v] || (needed_[v] && !again_[v] && !is_view(producer(v)));
  }

  /// What v would be computed from; false where that is too much work, or would have to be kept for it. `bools`: a bool
  /// on the way is kept rather than computed again (the mask of a dropout, instead of its factor).
  bool find_chain(ValueId v, bool bools, Chain& chain) const {
    chain = {};
    SmallVector<ValueId, 16> open{v};
    auto met = [&](ValueId u) {
      return std::find(chain.inside.begin(), chain.inside.end(), u) != chain.inside.end() ||
             std::find(chain.from.begin(), chain.from.end(), u) != chain.from.end();
    };
    while (!open.empty()) {
      const Node& node = producer(open.back());
      open.pop_back();
      chain.work += work(node);
      if (chain.work > kMostWork || chain.inside.size() > kFar) return false;
      for (const Operand& o : node.operands) {
        if (!o.is_value() || (!apart_ && !is_forward(o.id)) || met(o.id)) continue;
        const bool kept = is_kept(o.id);
        const bool small = apart_ ? kSmall * bytes(o.id) <= bytes(v) : bytes(o.id) < from_;
        const bool stays = kept || (apart_ && small) || (bools && graph_.type(o.id).dtype == DType::bool_);
        if (!stays && is_forward(o.id) && is_repeatable(producer(o.id))) {
          chain.inside.push_back(o.id);
          open.push_back(o.id);
          continue;
        }
        chain.from.push_back(o.id);
        if (!kept && !small) chain.kept_bytes += bytes(o.id);
      }
    }
    return 4 * chain.kept_bytes <= bytes(v);
  }

  /// From the first node to the last: what a value would be computed from is decided on before it.
  void decide(NodeId n) {
    const Node& node = graph_.nodes[n];
    const ValueId v = node.outputs[0];
    if (!is_forward(v) || !needed_[v] || stored_[v] || !is_repeatable(node)) return;
    if (is_view(node) && !apart_) {
      again_[v] = again_[node.operands[0].id];
      return;
    }
    Chain chain;
    if (bytes(v) < from_ || nodes_added_ > graph_.nodes.size()) return;
    if (!find_chain(v, false, chain) && !find_chain(v, true, chain)) return;
    for (ValueId u : chain.from) need(u);
    again_[v] = true;
    work_[v] = chain.work;
    nodes_added_ += chain.inside.size() + 1;
  }

  struct Copy {
    ValueId of, copy;
  };
  static const ValueId* find(const std::vector<Copy>& copies, ValueId v) {
    for (const Copy& c : copies)
      if (c.of == v) return &c.copy;
    return nullptr;
  }

  /// The value as it is computed again, in front of the node that is rewritten. A chain has at most kFar nodes, so
  /// this is no deep recursion.
  ValueId copy_of(ValueId v) {
    if (shared_[v] != kNoValue) return shared_[v];
    if (const ValueId* own = find(own_, v)) return *own;
    Node node = producer(v);
    for (Operand& o : node.operands)
      if (o.is_value() && is_forward(o.id) && !stored_[o.id] &&
          (again_[o.id] || (!needed_[o.id] && is_repeatable(producer(o.id)))))
        o.id = copy_of(o.id);
    node.backward = node.recomputed = true;
    const ValueId copy = static_cast<ValueId>(graph_.values.size());
    graph_.values.push_back({graph_.values[v].type, kNoValue});
    node.outputs[0] = copy;
    nodes_.push_back(std::move(node));
    if (work_[v] >= kShareFrom)
      shared_[v] = copy;
    else
      own_.push_back({v, copy});
    return copy;
  }

  void rewrite() {
    shared_.assign(graph_.values.size(), kNoValue);
    for (const Node& node : graph_.nodes) {
      Node rewritten = node;
      own_.clear();
      if (node.backward)
        for (Operand& o : rewritten.operands)
          if (o.is_value() && is_forward(o.id) && again_[o.id]) {
            // Parts of one value are computed apart: a kernel that reads it at several places would have it stored.
            if (is_view(producer(o.id))) own_.clear();
            o.id = copy_of(o.id);
          }
      nodes_.push_back(std::move(rewritten));
    }
    graph_.nodes = std::move(nodes_);
    for (NodeId n = 0; n < graph_.nodes.size(); ++n)
      for (ValueId v : graph_.nodes[n].outputs) graph_.values[v].producer = n;
  }

  /// Appends what makes v; returns it as an operand in the recipe. How many values come before those that nodes make is
  /// known later: until then both are counted from 0, and kIsFrom tells them apart.
  Operand put(ValueId v, Recipe& recipe, std::vector<Copy>& made) const {
    if (const ValueId* number = find(made, v)) return Operand::value(*number);
    if (is_kept(v)) {
      recipe.from.push_back(v);
      made.push_back({v, static_cast<uint32_t>(recipe.from.size() - 1) | kIsFrom});
      return Operand::value(made.back().copy);
    }
    Node node = producer(v);
    for (Operand& o : node.operands)
      if (o.is_value()) o = put(o.id, recipe, made);
    node.outputs.clear();
    recipe.nodes.push_back(std::move(node));
    made.push_back({v, static_cast<uint32_t>(recipe.nodes.size() - 1)});
    return Operand::value(made.back().copy);
  }

  std::vector<Recipe> recipes(const std::vector<bool>& is_saved, std::vector<uint32_t>& saved) {
    std::vector<Recipe> recipes;
    std::vector<ValueId> outputs;
    std::vector<uint32_t> output_of(graph_.values.size(), kNoValue);
    saved.clear();
    auto save = [&](ValueId v) { saved.push_back(output_of[v] = static_cast<uint32_t>(outputs.size())); };
    for (uint32_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId v = graph_.outputs[i];
      if (is_saved[i] && again_[v]) {
        std::vector<Copy> made;
        put(v, recipes.emplace_back(Recipe{i, {}, {}, graph_.type(v)}), made);
        continue;
      }
      if (is_saved[i]) save(v);
      outputs.push_back(v);
    }
    for (Recipe& recipe : recipes) {
      const auto count = static_cast<uint32_t>(recipe.from.size());
      for (uint32_t& from : recipe.from) {
        if (output_of[from] == kNoValue) {
          save(from);
          outputs.push_back(from);
        }
        from = output_of[from];
      }
      for (Node& node : recipe.nodes)
        for (Operand& o : node.operands)
          if (o.is_value()) o.id = o.id & kIsFrom ? o.id & ~kIsFrom : o.id + count;
    }
    graph_.outputs = std::move(outputs);
    return recipes;
  }
  static constexpr uint32_t kIsFrom = 1u << 31;

  Graph& graph_;
  const OpCost& cost_;
  const int64_t from_;
  bool apart_ = false;  // the backward pass is no part of the graph
  bool any_backward_ = false;
  size_t nodes_added_ = 0;
  std::vector<bool> needed_;  // by value: the backward pass reads it, or what it reads is computed from it
  std::vector<bool> again_;   // it is computed again instead of being kept
  std::vector<bool> stored_;  // outputs: kept in any case
  std::vector<int> work_;     // of those that are computed again

  std::vector<Node> nodes_;  // as rewritten
  std::vector<ValueId> shared_;
  std::vector<Copy> own_;  // of the node that is rewritten now
};

}  // namespace

// The forward part of the graph is not looked at as a whole (a minimum cut, as Jain et al., "Checkmate", 2020, and
// PyTorch's partitioner have it), but value by value: what is cheap to compute from what is kept anyway.
void recompute(Graph& graph, const OpCost& cost, int64_t from) {
  if (Recomputation(graph, cost, from).run()) eliminate_dead_code(graph);
}

std::vector<Recipe> recompute_saved(Graph& graph, std::vector<uint32_t>& saved, const OpCost& cost, int64_t from) {
  std::vector<Recipe> recipes = Recomputation(graph, cost, from).run(saved);
  if (!recipes.empty()) eliminate_dead_code(graph);
  return recipes;
}

}  // namespace ingot::ir
