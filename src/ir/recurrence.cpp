// Recurrent layers: the gates of the input come as one product of all steps; what is left for each step is one product
// with the hidden state and one pass over the gates.
#include "ir/recurrence.h"

#include "ir/passes/passes.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

using Parts = std::span<const Operand>;

/// [N, gates * H], gate by gate.
std::vector<Operand> gates_of(GraphBuilder& b, const Operand& x, size_t count) {
  const Dim width = b.dims().floor_div(b.shape(x)[1], static_cast<int64_t>(count));
  std::vector<Operand> gates;
  for (size_t i = 0; i < count; ++i) {
    const auto gate = static_cast<int64_t>(i);
    gates.push_back(b.slice(x, GraphBuilder::attr(1), Attr::of(Dims{b.dims().mul(width, gate)}),
                            Attr::of(Dims{b.dims().mul(width, gate + 1)}), GraphBuilder::attr(1)));
  }
  return gates;
}

Operand sum(GraphBuilder& b, const Operand& x, const Operand& y) {
  return !x.present() ? y : !y.present() ? x : b.add(x, y);
}

/// Operands: input, the initial states, weight, bias. Results: the states.
std::vector<Operand> forward(GraphBuilder& b, const StepCall& call, const Cell& cell) {
  const std::vector<Operand> initial(call.operands.begin() + 1,
                                     call.operands.begin() + 1 + static_cast<std::ptrdiff_t>(cell.states));
  const std::vector<Operand>& states = call.before[0].present() ? call.before : initial;
  const Operand hidden = b.linear(states[0], call.operands[1 + cell.states], call.operands[2 + cell.states]);
  return cell.step(b, gates_of(b, call.operands[0], cell.gates), gates_of(b, hidden, cell.gates), states);
}

/// Operands: the gates of input and hidden state, the states before the step, weight, cotangents of the states.
/// Results: those of step_back.
std::vector<Operand> back(GraphBuilder& b, const StepCall& call, const Cell& cell) {
  const auto states = static_cast<std::ptrdiff_t>(cell.states);
  const auto first = call.operands.begin() + 2;
  std::vector<Operand> cotangents(first + states + 1, first + 2 * states + 1);
  for (size_t s = 0; s < cell.states; ++s) cotangents[s] = sum(b, cotangents[s], call.before[(cell.adds ? 1 : 2) + s]);
  return step_back(b, cell, call.operands[0], call.operands[1], {first, first + states}, first[states], cotangents);
}

bool is_relu(const StepCall& call) { return call.attrs[0].integer != 0; }

}  // namespace

Cell plain_cell(bool relu) {
  return {1, 1, true, [relu](GraphBuilder& b, Parts x, Parts h, Parts) {
            const Operand sum = b.add(x[0], h[0]);
            return std::vector<Operand>{relu ? b.relu(sum) : b.tanh(sum)};
          }};
}

Cell lstm_cell() {
  return {4, 2, true, [](GraphBuilder& b, Parts x, Parts h, Parts states) {
            const Operand in = b.sigmoid(b.add(x[0], h[0])), forget = b.sigmoid(b.add(x[1], h[1]));
            const Operand candidate = b.tanh(b.add(x[2], h[2])), out = b.sigmoid(b.add(x[3], h[3]));
            const Operand cell = b.add(b.mul(forget, states[1]), b.mul(in, candidate));
            return std::vector<Operand>{b.mul(out, b.tanh(cell)), cell};
          }};
}

Cell gru_cell() {
  return {3, 1, false, [](GraphBuilder& b, Parts x, Parts h, Parts states) {
            const Operand reset = b.sigmoid(b.add(x[0], h[0])), update = b.sigmoid(b.add(x[1], h[1]));
            const Operand candidate = b.tanh(b.add(x[2], b.mul(reset, h[2])));
            return std::vector<Operand>{b.add(candidate, b.mul(update, b.sub(states[0], candidate)))};
          }};
}

std::vector<Operand> step_back(GraphBuilder& b, const Cell& cell, const Operand& input, const Operand& hidden,
                               const std::vector<Operand>& states, const Operand& weight,
                               const std::vector<Operand>& cotangents) {
  const size_t gates = cell.gates;
  std::vector<Operand> operands = gates_of(b, input, gates);
  for (const Operand& gate : gates_of(b, hidden, gates)) operands.push_back(gate);
  operands.insert(operands.end(), states.begin(), states.end());
  const std::vector<Operand> none(cell.states, Operand::none());
  std::vector<Operand> found = b.gradients(
      [&](const std::vector<Operand>& o) {
        const Parts all(o);
        return cell.step(b, all.subspan(0, gates), all.subspan(gates, gates), all.subspan(2 * gates));
      },
      operands, std::vector<bool>(operands.size(), true), none, cotangents);
  auto given = [&](const Operand& x) {
    return x.present() ? x : b.full(Attr::of(b.shape(states[0])), Operand::constant(0.0), Attr::of(b.dtype(input)));
  };
  auto joined = [&](size_t first) {
    std::vector<Operand> parts;
    for (size_t k = first; k < first + gates; ++k) parts.push_back(given(found[k]));
    return gates == 1 ? parts[0] : b.call(OpId::cat, std::move(parts), {GraphBuilder::attr(1)})[0];
  };
  std::vector<Operand> results = {joined(0)};
  if (!cell.adds) results.push_back(joined(gates));
  const Operand through_product = b.matmul(results.back(), weight);
  for (size_t s = 0; s < cell.states; ++s) {
    const Operand& direct = found[2 * gates + s];
    results.push_back(s == 0 ? sum(b, through_product, direct) : given(direct));
  }
  return results;
}

namespace steps {
std::vector<Operand> rnn(GraphBuilder& b, const StepCall& call) { return forward(b, call, plain_cell(is_relu(call))); }
std::vector<Operand> lstm(GraphBuilder& b, const StepCall& call) { return forward(b, call, lstm_cell()); }
std::vector<Operand> gru(GraphBuilder& b, const StepCall& call) { return forward(b, call, gru_cell()); }
std::vector<Operand> rnn_back(GraphBuilder& b, const StepCall& call) {
  return back(b, call, plain_cell(is_relu(call)));
}
std::vector<Operand> lstm_back(GraphBuilder& b, const StepCall& call) { return back(b, call, lstm_cell()); }
std::vector<Operand> gru_back(GraphBuilder& b, const StepCall& call) { return back(b, call, gru_cell()); }
}  // namespace steps

bool goes_backwards(const Node& node) {
  return node.attrs[static_cast<size_t>(attribute_position(info(node.op), "reverse"))].integer != 0;
}

StepGraph step_graph(const Graph& graph, const DimTable& dims, const Node& node, bool first,
                     const std::vector<StepGraph::Given>& given) {
  StepGraph step;
  step.graph.dims = dims;
  auto input = [&](const TensorType& type, DType dtype, bool before, size_t number) {
    Dims shape = type.shape;
    if (over_time(type)) shape.erase(0);
    step.inputs.push_back({before, number});
    return Operand::value(step.graph.add_input(dtype, std::move(shape)));
  };
  StepCall call{node.attrs, {}, {}};
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Operand& o = node.operands[i];
    if (!o.is_value()) {
      call.operands.push_back(o);
      continue;
    }
    const TensorType& type = graph.type(o.id);
    call.operands.push_back(input(type, given[i].dtype.value_or(type.dtype), false, i));
  }
  for (size_t r = 0; r < node.outputs.size(); ++r) {
    const TensorType& type = graph.type(node.outputs[r]);
    call.before.push_back(first ? Operand::none() : input(type, type.dtype, true, r));
  }
  GraphBuilder b(step.graph);
  b.at(node.location, node.module);
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (!node.operands[i].is_value()) continue;
    if (given[i].rounded) call.operands[i] = b.to(call.operands[i], *given[i].rounded);
    call.operands[i] = b.to(call.operands[i], graph.type(node.operands[i].id).dtype);
  }
  for (const Operand& result : info(node.op).step(b, call)) step.graph.outputs.push_back(result.id);
  simplify(step.graph);
  eliminate_common_subexpressions(step.graph);
  eliminate_dead_code(step.graph);
  return step;
}

}  // namespace ingot::ir
