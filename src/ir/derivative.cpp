#include "ir/derivative.h"

#include <unordered_map>

#include "ir/decompose.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

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
  /// `calls`: composites with rules of their own that were written as nodes of this range.
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
  void activate_through(std::span<const Operand> operands, std::span<const Operand> outputs) {
    if (std::none_of(operands.begin(), operands.end(), [&](const Operand& o) { return is_active(o); })) return;
    for (const Operand& o : outputs)
      if (is_floating(b_.dtype(o))) activate(o.id);
  }
  void add(ValueId v, Operand gradient) {
    gradient = b_.to(sum_to(b_, gradient, b_.graph().type(v).shape), b_.graph().type(v).dtype);
    auto [entry, fresh] = gradients_.try_emplace(v, gradient);
    if (!fresh) entry->second = b_.add(entry->second, gradient);
  }
  void step(const OpInfo& op, const std::vector<Operand>& operands, const std::vector<Attr>& attrs,
            const std::vector<Operand>& outputs);

  GraphBuilder& b_;
  size_t first_, end_;
  std::vector<bool> active_;
  std::unordered_map<ValueId, Operand> gradients_, given_;
};

void Walk::step(const OpInfo& op, const std::vector<Operand>& operands, const std::vector<Attr>& attrs,
                const std::vector<Operand>& outputs) {
  if (!op.derivative) return;  // constant, or not differentiable
  DerivedCall call{op, operands, attrs, {}, {}, outputs};
  bool reached = false, wanted = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    call.cotangents.push_back(gradient(outputs[i].id));
    reached |= call.cotangents.back().present();
    if (auto given = given_.find(outputs[i].id); given != given_.end()) call.results[i] = given->second;
  }
  for (const Operand& o : operands) {
    call.wanted.push_back(is_active(o));
    wanted |= call.wanted.back();
  }
  if (!reached || !wanted) return;
  const std::vector<Operand> gradients = op.derivative(b_, call);
  INGOT_CHECK(gradients.size() == operands.size(), std::string(op.name));
  for (size_t i = 0; i < operands.size(); ++i)
    if (call.wanted[i] && gradients[i].present()) add(operands[i].id, gradients[i]);
}

void Walk::run(std::vector<BuiltCall> calls) {
  // Of calls inside of calls the outermost are steps; one whose result is no node of its own is walked through.
  std::erase_if(calls, [&](const BuiltCall& c) {
    return c.first == c.end || c.first < first_ || c.end > end_ ||
           std::any_of(c.outputs.begin(), c.outputs.end(), [&](const Operand& o) {
             const NodeId producer = b_.graph().values[o.id].producer;
             return producer == kNoValue || producer < c.first;
           });
  });
  std::sort(calls.begin(), calls.end(), [](const BuiltCall& a, const BuiltCall& b) {
    return a.first != b.first ? a.first < b.first : a.end > b.end;
  });
  std::vector<const BuiltCall*> outermost;
  for (const BuiltCall& c : calls)
    if (outermost.empty() || c.first >= outermost.back()->end) outermost.push_back(&c);

  auto outputs_of = [](const Node& node) {
    std::vector<Operand> outputs;
    for (ValueId v : node.outputs) outputs.push_back(Operand::value(v));
    return outputs;
  };
  size_t next = 0;
  for (size_t n = first_; n < end_;) {
    if (next < outermost.size() && outermost[next]->first == n) {
      activate_through(outermost[next]->operands, outermost[next]->outputs);
      n = outermost[next++]->end;
      continue;
    }
    const Node& node = b_.graph().nodes[n++];
    if (info(node.op).derivative) activate_through(node.operands, outputs_of(node));
  }
  for (size_t n = end_; n > first_;) {
    if (next > 0 && outermost[next - 1]->end == n) {
      const BuiltCall& c = *outermost[--next];
      step(info(c.op), c.operands, c.attrs, c.outputs);
      n = c.first;
      continue;
    }
    const Node node = b_.graph().nodes[--n];  // a copy: the graph's own moves as it grows
    step(info(node.op), node.operands, node.attrs, outputs_of(node));
  }
}

/// Values that `roots` are made from, among them.
std::vector<bool> reached_from(const Graph& graph, std::span<const Operand> roots) {
  std::vector<bool> reached(graph.values.size());
  std::vector<ValueId> open;
  auto reach = [&](const Operand& o) {
    if (!o.is_value() || reached[o.id]) return;
    reached[o.id] = true;
    open.push_back(o.id);
  };
  for (const Operand& o : roots) reach(o);
  while (!open.empty()) {
    const NodeId producer = graph.values[open.back()].producer;
    open.pop_back();
    if (producer != kNoValue)
      for (const Operand& o : graph.nodes[producer].operands) reach(o);
  }
  return reached;
}

}  // namespace

const Operand& DerivedCall::operand(std::string_view name) const {
  const int position = operand_position(op, name);
  INGOT_CHECK(position >= 0, std::string(name));
  return operands[static_cast<size_t>(position)];
}

const Attr& DerivedCall::attribute(std::string_view name) const {
  const int position = attribute_position(op, name);
  INGOT_CHECK(position >= 0, std::string(name));
  return attrs[static_cast<size_t>(position)];
}

Operand DerivedCall::result(GraphBuilder& b, size_t i) const {
  results.resize(cotangents.size());
  if (!results[i].present()) {
    const std::vector<Operand> made = b.call(op.id, operands, attrs);
    for (size_t k = 0; k < made.size(); ++k)
      if (!results[k].present()) results[k] = made[k];
  }
  return results[i];
}

Operand sum_to(GraphBuilder& b, const Operand& gradient, const Dims& shape) {
  const Dims from = b.shape(gradient);
  if (from == shape) return gradient;
  const size_t lead = from.size() - shape.size();
  Dims summed;
  for (size_t d = 0; d < from.size(); ++d)
    if (d < lead || !b.dims().equal(from[d], shape[d - lead])) summed.push_back(static_cast<int64_t>(d));
  return b.reshape(summed.empty() ? gradient : b.reduce_dims(OpId::sum, gradient, summed, false), shape);
}

std::vector<Operand> GraphBuilder::derived(OpId op, const Derivative& derivative, std::vector<Operand> operands,
                                           std::vector<Attr> attrs) {
  const size_t count = derivative.wanted.size(), outputs = (operands.size() - count) / 2;
  const std::vector<Attr> shapes(attrs.end() - static_cast<std::ptrdiff_t>(count), attrs.end());
  attrs.resize(attrs.size() - count);
  const OpInfo& row = info(op);

  std::vector<TensorType> declared;  // of the results
  std::vector<Operand> stand_ins;    // for operands that the derivative does not read
  std::vector<ValueId> seen;
  for (size_t i = 0; i < operands.size(); ++i) {
    Operand& operand = operands[i];
    const bool wanted = i < count && derivative.wanted[i];
    if (i < count && !operand.present() && shapes[i].present()) {
      operand = primitive(OpId::full, {integer(0)}, {Attr::of(shapes[i].list), shapes[i].kind == Attr::Kind::list
                                                                                   ? Attr::of(static_cast<DType>(shapes[i].integer))
                                                                                   : Attr()})[0];
      stand_ins.push_back(operand);
    }
    if (wanted) declared.push_back(graph_.type(operand.id));
    if (!operand.is_value()) continue;
    const Operand given = operand;
    if (is_half(dtype(given))) operand = to(given, DType::f32);
    if (dtype(given) == DType::bf16) narrow_.emplace(operand.id, given.id);
    // A tensor that is two operands has a gradient as each of them.
    if (wanted && std::find(seen.begin(), seen.end(), operand.id) != seen.end())
      operand = primitive(OpId::detach, {operand}, {})[0];  // (no pass has a use for it but to remove it)
    seen.push_back(operand.id);
  }
  const std::vector<Operand> inputs(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(count));
  const std::span<const Operand> results(&operands[count], outputs), cotangents(&operands[count + outputs], outputs);

  std::vector<Operand> gradients;
  if (!derivative.of && row.kind == OpKind::composite && row.derivative) {
    std::vector<Operand> completed = inputs;
    complete(row, &completed, &attrs);
    DerivedCall call{row, std::move(completed), std::move(attrs), {cotangents.begin(), cotangents.end()},
                     derivative.wanted, {results.begin(), results.end()}};
    gradients = row.derivative(*this, call);
    for (size_t i = 0; i < count; ++i)
      if (derivative.wanted[i] && gradients[i].present()) gradients[i] = sum_to(*this, gradients[i], shape(inputs[i]));
  } else {
    const size_t first = graph_.nodes.size(), first_call = built_.size();
    ++deriving_;
    const std::vector<Operand> made =
        derivative.of ? derived(op, *derivative.of, inputs, std::move(attrs)) : call(op, inputs, std::move(attrs));
    --deriving_;
    Walk walk(*this, first);
    for (size_t i = 0; i < count; ++i)
      if (derivative.wanted[i]) walk.want(inputs[i].id);
    for (size_t i = 0; i < outputs; ++i) walk.seed(made[i], cotangents[i], results[i]);
    walk.run({built_.begin() + static_cast<std::ptrdiff_t>(first_call), built_.end()});
    for (const Operand& input : inputs) gradients.push_back(input.is_value() ? walk.gradient(input.id) : Operand::none());
    if (!deriving_) built_.clear();
  }

  std::vector<Operand> wanted;
  for (size_t i = 0; i < count; ++i) {
    if (!derivative.wanted[i]) continue;
    const TensorType& type = declared[wanted.size()];
    wanted.push_back(gradients[i].present() ? to(gradients[i], type.dtype)
                                            : primitive(OpId::full, {integer(0)}, {Attr::of(type.shape), Attr::of(type.dtype)})[0]);
  }
  if (!stand_ins.empty()) {
    const std::vector<bool> read = reached_from(graph_, wanted);
    for (const Operand& o : stand_ins)
      INGOT_CHECK(!read[o.id], "the derivative of " + std::string(row.name) + " reads an operand that was not kept");
  }
  return wanted;
}

DerivativeReads derivative_reads(OpId op, const Derivative& derivative, std::span<const OperandType> operands,
                                 std::span<const Attr> attrs) {
  Graph graph;
  std::vector<Operand> given;
  std::vector<ValueId> inputs;
  for (const OperandType& type : operands) {
    inputs.push_back(kNoValue);
    if (type.is_tensor()) {
      inputs.back() = graph.add_input(type.dtype, *type.shape);
      given.push_back(Operand::value(inputs.back()));
    } else {
      given.push_back(type.is_scalar() ? Operand::scalar(graph.add_scalar(type.category), type.category)
                                       : Operand::none());
    }
  }
  std::vector<Attr> all(attrs.begin(), attrs.end());
  all.resize(all.size() + derivative.wanted.size());
  const std::vector<Operand> results = GraphBuilder(graph).derived(op, derivative, std::move(given), std::move(all));
  const std::vector<bool> read = reached_from(graph, results);
  DerivativeReads reads;
  for (ValueId input : inputs) reads.operands.push_back(input != kNoValue && read[input]);
  for (const Operand& result : results) {
    auto found = std::find(inputs.begin(), inputs.end(), result.id);
    reads.copies.push_back(found == inputs.end() ? -1 : static_cast<int>(found - inputs.begin()));
  }
  return reads;
}

}  // namespace ingot::ir
