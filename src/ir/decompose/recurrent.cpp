// Recurrent layers: the gates of the input come as one product of all steps; what is left for each step is one product
// with the hidden state and one pass over the gates.
#include "ir/decompose/recurrent.h"

namespace ingot::ir {
namespace {

using Parts = std::span<const Operand>;

Operand stacked(GraphBuilder& b, const std::vector<Operand>& steps) {
  std::vector<Operand> parts;
  for (const Operand& x : steps) parts.push_back(b.unsqueeze(x, GraphBuilder::attr(0)));
  return b.call(OpId::cat, std::move(parts), {GraphBuilder::attr(0)})[0];
}

}  // namespace

Cell plain_cell(bool relu) {
  return {1, 1, [relu](GraphBuilder& b, Parts x, Parts h, Parts) {
            const Operand sum = b.add(x[0], h[0]);
            return std::vector<Operand>{relu ? b.relu(sum) : b.tanh(sum)};
          }};
}

Cell lstm_cell() {
  return {4, 2, [](GraphBuilder& b, Parts x, Parts h, Parts states) {
            const Operand in = b.sigmoid(b.add(x[0], h[0])), forget = b.sigmoid(b.add(x[1], h[1]));
            const Operand candidate = b.tanh(b.add(x[2], h[2])), out = b.sigmoid(b.add(x[3], h[3]));
            const Operand cell = b.add(b.mul(forget, states[1]), b.mul(in, candidate));
            return std::vector<Operand>{b.mul(out, b.tanh(cell)), cell};
          }};
}

Cell gru_cell() {
  return {3, 1, [](GraphBuilder& b, Parts x, Parts h, Parts states) {
            const Operand reset = b.sigmoid(b.add(x[0], h[0])), update = b.sigmoid(b.add(x[1], h[1]));
            const Operand candidate = b.tanh(b.add(x[2], b.mul(reset, h[2])));
            return std::vector<Operand>{b.add(candidate, b.mul(update, b.sub(states[0], candidate)))};
          }};
}

Recurrence::Recurrence(GraphBuilder& b, const Cell& c, const std::vector<Operand>& operands, bool backwards)
    : cell(c),
      input(operands[0]),
      weight(operands[1 + c.states]),
      bias(operands[2 + c.states]),
      initial(operands.begin() + 1, operands.begin() + 1 + static_cast<std::ptrdiff_t>(c.states)),
      reverse(backwards),
      steps(b.dims().hint(b.shape(input)[0])),
      width(b.shape(weight)[1]) {
  (void)b.dims().equal(b.shape(input)[0], steps);
}

Operand Recurrence::select(GraphBuilder& b, const Operand& x, int64_t time) {
  return b.select(x, GraphBuilder::attr(0), Attr::of(Dims{time}));
}

std::vector<Operand> Recurrence::gates_of(GraphBuilder& b, const Operand& x) const {
  std::vector<Operand> gates;
  for (size_t i = 0; i < cell.gates; ++i) {
    const auto gate = static_cast<int64_t>(i);
    gates.push_back(b.slice(x, GraphBuilder::attr(1), Attr::of(Dims{b.dims().mul(width, gate)}),
                            Attr::of(Dims{b.dims().mul(width, gate + 1)}), GraphBuilder::attr(1)));
  }
  return gates;
}

Outputs run_cell(GraphBuilder& b, const Recurrence& r) {
  std::vector<Operand> states = r.initial;
  std::vector<std::vector<Operand>> all(states.size(), std::vector<Operand>(static_cast<size_t>(r.steps)));
  for (int64_t i = 0; i < r.steps; ++i) {
    const std::vector<Operand> x = r.gates_of(b, Recurrence::select(b, r.input, r.at(i)));
    const std::vector<Operand> h = r.gates_of(b, b.linear(states[0], r.weight, r.bias));
    states = r.cell.step(b, x, h, states);
    for (size_t s = 0; s < states.size(); ++s) all[s][static_cast<size_t>(r.at(i))] = states[s];
  }
  Outputs outputs;
  for (const std::vector<Operand>& steps : all) outputs.push_back(stacked(b, steps));
  return outputs;
}

namespace decompositions {

Outputs rnn_sequence(GraphBuilder& b, const CompositeCall& call) {
  const Cell cell = plain_cell(call.integer("nonlinearity") != 0);
  return run_cell(b, Recurrence(b, cell, call.operands, call.flag("reverse")));
}
Outputs lstm_sequence(GraphBuilder& b, const CompositeCall& call) {
  const Cell cell = lstm_cell();
  return run_cell(b, Recurrence(b, cell, call.operands, call.flag("reverse")));
}
Outputs gru_sequence(GraphBuilder& b, const CompositeCall& call) {
  const Cell cell = gru_cell();
  return run_cell(b, Recurrence(b, cell, call.operands, call.flag("reverse")));
}

}  // namespace decompositions
}  // namespace ingot::ir
