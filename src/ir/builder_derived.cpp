// Derivatives of calls, written as nodes.
#include <algorithm>
#include <unordered_map>

#include "base/work_count.h"
#include "ir/builder.h"
#include "ir/derivative.h"

namespace ingot::ir {
namespace {

/// True if one of `roots` is made from one of `values`. Walks no further back than they are: what is older cannot be.
bool made_from(const Graph& graph, std::span<const Operand> roots, std::span<const Operand> values) {
  ValueId first = static_cast<ValueId>(graph.values.size());
  for (const Operand& o : values) first = std::min(first, o.id);
  std::vector<bool> reached(graph.values.size() - first);
  std::vector<ValueId> open;
  auto reach = [&](const Operand& o) {
    if (!o.is_value() || o.id < first || reached[o.id - first]) return;
    reached[o.id - first] = true;
    open.push_back(o.id);
  };
  for (const Operand& o : roots) reach(o);
  while (!open.empty()) {
    const NodeId producer = graph.values[open.back()].producer;
    open.pop_back();
    detail::count_work(1);
    if (producer == kNoValue) continue;
    for (const Operand& o : graph.nodes[producer].operands) reach(o);
  }
  return std::any_of(values.begin(), values.end(), [&](const Operand& o) { return reached[o.id - first]; });
}

/// The walk over the nodes of a call, from the last to the first.
class Walk {
 public:
  Walk(GraphBuilder& b, size_t first) : b_(b), first_(first), end_(b.graph().nodes.size()) {}

  /// A value whose gradient is asked for.
  void want(ValueId v) { activate(v); }
  /// A cotangent of an output. `given`: what stands for the output in rules, or absent.
  void seed(const Operand& output, const Operand& cotangent, const Operand& given) {
    if (given.present()) given_.emplace(output.id, given);
    if (cotangent.present()) add(output.id, cotangent);
  }
  /// `calls`: those with rules of their own that were written as nodes of this range.
  void run(std::vector<BuiltCall> calls);
  Operand gradient(ValueId v) const {
    auto found = gradients_.find(v);
    return found == gradients_.end() ? Operand::none() : found->second;
  }

 private:
  bool is_active(const Operand& o) const { return o.is_value() && o.id < active_.size() && active_[o.id]; }
  void activate(ValueId v) {
    if (v >= active_.size()) active_.resize(b_.graph().values.size());
    active_[v] = true;
  }
  void add(ValueId v, Operand gradient) {
    gradient = b_.to(sum_to(b_, gradient, b_.graph().type(v).shape), b_.graph().type(v).dtype);
    auto [entry, fresh] = gradients_.try_emplace(v, gradient);
    if (!fresh) entry->second = b_.add(entry->second, gradient);
  }
  bool is_one_step(const BuiltCall& call) const;
  bool step(const OpInfo& op, const std::vector<Operand>& operands, const std::vector<Attr>& attrs,
            const std::vector<Operand>& outputs);

  GraphBuilder& b_;
  size_t first_, end_;
  std::vector<bool> active_;  // what wanted values flow into
  std::unordered_map<ValueId, Operand> gradients_, given_;
};

/// Whether it was taken: a rule may leave a call to its nodes.
bool Walk::step(const OpInfo& op, const std::vector<Operand>& operands, const std::vector<Attr>& attrs,
                const std::vector<Operand>& outputs) {
  if (!op.derivative) return false;  // constant, or not differentiable
  DerivedCall call{op, operands, attrs, outputs, {}, {}};
  bool reached = false, wanted = false;
  for (Operand& output : call.results) {
    call.cotangents.push_back(gradient(output.id));
    reached |= call.cotangents.back().present();
    if (auto given = given_.find(output.id); given != given_.end()) output = given->second;
  }
  for (const Operand& o : operands) {
    call.wanted.push_back(is_active(o));
    wanted |= call.wanted.back();
  }
  if (!reached || !wanted) return false;
  const Gradients gradients = op.derivative(b_, call);
  if (gradients.empty() && op.kind == OpKind::composite) return false;
  INGOT_CHECK(gradients.size() == operands.size(), std::string(op.name));
  for (size_t i = 0; i < operands.size(); ++i)
    if (call.wanted[i] && gradients[i].present()) add(operands[i].id, gradients[i]);
  return true;
}

/// Whether the results of a call are made by its nodes, and these are of this range.
bool Walk::is_one_step(const BuiltCall& c) const {
  return c.first >= first_ && std::all_of(c.outputs.begin(), c.outputs.end(), [&](const Operand& o) {
           const NodeId producer = b_.graph().values[o.id].producer;
           return producer != kNoValue && producer >= c.first;
         });
}

void Walk::run(std::vector<BuiltCall> calls) {
  for (size_t n = first_; n < end_; ++n) {
    const Node& node = b_.graph().nodes[n];
    const std::vector<Operand>& operands = b_.wide_operands(static_cast<NodeId>(n));
    if (!info(node.op).derivative ||
        std::none_of(operands.begin(), operands.end(), [&](auto& o) { return is_active(o); }))
      continue;
    for (ValueId v : node.outputs)
      if (is_floating(b_.graph().type(v).dtype)) activate(v);
  }

  // The outermost of the calls that end at the same node comes first. Its nodes are walked as well: where this is the
  // derivative of a derivative, other steps may have read what lies between them.
  std::sort(calls.begin(), calls.end(),
            [](const BuiltCall& a, const BuiltCall& b) { return a.end != b.end ? a.end > b.end : a.first < b.first; });
  auto next = calls.begin();
  for (size_t n = end_; n > first_; --n) {
    for (; next != calls.end() && next->end == n; ++next)
      if (is_one_step(*next) && step(info(next->op), next->operands, next->attrs, next->outputs))
        for (const Operand& output : next->outputs) gradients_.erase(output.id);
    // Copies: the graph's own move as it grows.
    const Node node = b_.graph().nodes[n - 1];
    const std::vector<Operand> operands = b_.wide_operands(static_cast<NodeId>(n - 1));
    std::vector<Operand> outputs;
    for (ValueId v : node.outputs) outputs.push_back(Operand::value(v));
    step(info(node.op), operands, node.attrs, outputs);
  }
}

}  // namespace

std::vector<Operand> GraphBuilder::gradients(const Write& write, std::vector<Operand> operands,
                                             const std::vector<bool>& wanted, std::span<const Operand> results,
                                             std::span<const Operand> cotangents) {
  // A tensor that is two operands has a gradient as each of them.
  for (size_t i = 0; i < operands.size(); ++i)
    if (wanted[i] && std::count(operands.begin(), operands.end(), operands[i]) > 1)
      operands[i] = primitive(OpId::detach, {operands[i]}, {})[0];
  const size_t first = graph_.nodes.size(), first_call = built_.size();
  ++deriving_;
  const std::vector<Operand> made = write(operands);
  --deriving_;
  Walk walk(*this, first);
  for (size_t i = 0; i < operands.size(); ++i)
    if (wanted[i]) walk.want(operands[i].id);
  for (size_t i = 0; i < made.size(); ++i) walk.seed(made[i], cotangents[i], results[i]);
  walk.run({built_.begin() + static_cast<std::ptrdiff_t>(first_call), built_.end()});
  if (!deriving_) built_.clear();
  std::vector<Operand> found;
  for (size_t i = 0; i < operands.size(); ++i)
    found.push_back(wanted[i] ? walk.gradient(operands[i].id) : Operand::none());
  return found;
}

std::vector<Operand> GraphBuilder::derived(OpId op, const Derivative& derivative, std::vector<Operand> operands,
                                           std::vector<Attr> attrs) {
  const size_t count = derivative.wanted.size(), outputs = (operands.size() - count) / 2;
  const std::vector<Attr> shapes(attrs.end() - static_cast<std::ptrdiff_t>(count), attrs.end());
  attrs.resize(attrs.size() - count);

  std::vector<TensorType> declared;  // of the results
  std::vector<Operand> stand_ins;    // for operands that the derivative does not read
  auto zeros = [&](const Dims& shape, DType dtype) {
    return primitive(OpId::full, {integer(0)}, {Attr::of(shape), Attr::of(dtype)})[0];
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    Operand& operand = operands[i];
    if (i < count && !operand.present() && shapes[i].present()) {
      operand = zeros(shapes[i].list, static_cast<DType>(shapes[i].integer));
      stand_ins.push_back(operand);
    }
    if (!operand.is_value()) continue;
    if (i < count && derivative.wanted[i]) declared.push_back(graph_.type(operand.id));
    const Operand given = operand;
    if (is_half(dtype(given))) operand = to(given, DType::f32);
    if (dtype(given) == DType::bf16) narrow_.emplace(operand.id, given.id);
  }

  auto write = [&](const std::vector<Operand>& inputs) {
    return derivative.of ? derived(op, *derivative.of, inputs, attrs) : call(op, inputs, attrs);
  };
  const std::span<const Operand> results(operands.data() + count, outputs),
      cotangents(operands.data() + count + outputs, outputs);
  const std::vector<Operand> found =
      gradients(write, {operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(count)}, derivative.wanted,
                results, cotangents);
  std::vector<Operand> wanted;
  for (size_t i = 0; i < count; ++i) {
    if (!derivative.wanted[i]) continue;
    const TensorType& type = declared[wanted.size()];
    wanted.push_back(found[i].present() ? to(found[i], type.dtype) : zeros(type.shape, type.dtype));
  }
  INGOT_CHECK(stand_ins.empty() || !made_from(graph_, wanted, stand_ins),
              "the derivative of " + std::string(info(op).name) + " reads an operand that was not kept");
  return wanted;
}

}  // namespace ingot::ir
