// Recurrent layers: backpropagation through time. All states are results of the call, so the gates are one product of
// all steps; only what goes from a step to the one before it is computed step by step, by an op that runs through the
// sequence the other way, and the gradients of weight and bias are one product and one sum over all steps.
#include "ir/recurrence.h"

#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

Operand at_time(GraphBuilder& b, const Operand& x, Dim time) {
  return b.select(x, GraphBuilder::attr(0), Attr::of(Dims{time}));
}

/// What each step of a call begins with, of a state: [T, N, H].
Operand before(GraphBuilder& b, const Operand& initial, const Operand& states, bool reverse) {
  const Operand first = b.unsqueeze(initial, GraphBuilder::attr(0));
  const Dim steps = b.shape(states)[0];
  if (b.dims().is_one(steps)) return first;
  const Operand others = b.slice(states, GraphBuilder::attr(0), Attr::of(Dims{reverse ? 1 : 0}),
                                 Attr::of(Dims{reverse ? steps : b.dims().sub(steps, 1)}), GraphBuilder::attr(1));
  std::vector<Operand> parts = {first, others};
  if (reverse) std::swap(parts[0], parts[1]);
  return b.call(OpId::cat, std::move(parts), {GraphBuilder::attr(0)})[0];
}

/// [T, N, ...] as rows.
Operand rows(GraphBuilder& b, const Operand& x) {
  const Dims sizes = b.shape(x);
  return b.reshape(x, {b.dims().mul(sizes[0], sizes[1]), sizes[2]});
}

/// `back`: the op that goes back through the sequence; `attrs` of it, but for the last, `reverse`.
Gradients through_time(GraphBuilder& b, const DerivedCall& call, const Cell& cell, OpId back, std::vector<Attr> attrs) {
  const size_t states = cell.states;
  const bool reverse = call.flag("reverse");
  const Operand &input = call.operands[0], &weight = call.operands[1 + states];
  std::vector<Operand> begin;
  for (size_t s = 0; s < states; ++s) begin.push_back(before(b, call.operands[1 + s], call.results[s], reverse));
  std::vector<Operand> operands = {input, b.linear(begin[0], weight, call.operands[2 + states])};
  operands.insert(operands.end(), begin.begin(), begin.end());
  operands.push_back(weight);
  operands.insert(operands.end(), call.cotangents.begin(), call.cotangents.end());
  attrs.push_back(GraphBuilder::flag(!reverse));
  const std::vector<Operand> found = b.call(back, std::move(operands), std::move(attrs));

  const Operand& slopes = found[cell.adds ? 0 : 1];  // of the gates of the hidden state
  const Dim steps = b.shape(input)[0], first = reverse ? b.dims().sub(steps, 1) : Dim(0);
  Gradients gradients(call.operands.size());
  auto give = [&](size_t i, const std::function<Operand()>& make) {
    if (call.wanted[i]) gradients[i] = make();
  };
  give(0, [&] { return found[0]; });
  for (size_t s = 0; s < states; ++s) give(1 + s, [&] { return at_time(b, found[found.size() - states + s], first); });
  give(1 + states, [&] { return b.matmul(transposed(b, rows(b, slopes)), rows(b, begin[0])); });
  give(2 + states, [&] { return b.reduce_dims(OpId::sum, slopes, {0, 1}, false); });
  return gradients;
}

/// Of an op that goes back: those of its steps, one by one, so the program holds for their number.
Gradients of_steps(GraphBuilder& b, const DerivedCall& call, const Cell& cell) {
  auto write = [&](const std::vector<Operand>& operands) {
    const Dim length = b.shape(operands[0])[0];
    const int64_t steps = b.dims().hint(length), states = static_cast<int64_t>(cell.states);
    (void)b.dims().equal(length, steps);
    const size_t count = call.results.size();
    std::vector<std::vector<Operand>> all(count, std::vector<Operand>(static_cast<size_t>(steps)));
    StepCall step{call.attrs, {}, std::vector<Operand>(count)};
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t time = call.flag("reverse") ? steps - 1 - i : i;
      step.operands = operands;
      for (int64_t k = 0; k < static_cast<int64_t>(operands.size()); ++k)
        if (operands[k].present() && k != 2 + states) step.operands[k] = at_time(b, operands[k], time);
      step.before = call.op.step(b, step);
      for (size_t r = 0; r < count; ++r)
        all[r][static_cast<size_t>(time)] = b.unsqueeze(step.before[r], GraphBuilder::attr(0));
    }
    std::vector<Operand> results;
    for (std::vector<Operand>& parts : all)
      results.push_back(steps == 1 ? parts[0] : b.call(OpId::cat, std::move(parts), {GraphBuilder::attr(0)})[0]);
    return results;
  };
  return b.gradients(write, call.operands, call.wanted, call.results, call.cotangents);
}

}  // namespace

Gradients rnn_sequence(GraphBuilder& b, const DerivedCall& call) {
  const Attr& nonlinearity = call.attribute("nonlinearity");
  return through_time(b, call, plain_cell(nonlinearity.integer != 0), OpId::rnn_sequence_backward, {nonlinearity});
}
Gradients lstm_sequence(GraphBuilder& b, const DerivedCall& call) {
  return through_time(b, call, lstm_cell(), OpId::lstm_sequence_backward, {});
}
Gradients gru_sequence(GraphBuilder& b, const DerivedCall& call) {
  return through_time(b, call, gru_cell(), OpId::gru_sequence_backward, {});
}
Gradients rnn_sequence_backward(GraphBuilder& b, const DerivedCall& call) {
  return of_steps(b, call, plain_cell(call.integer("nonlinearity") != 0));
}
Gradients lstm_sequence_backward(GraphBuilder& b, const DerivedCall& call) { return of_steps(b, call, lstm_cell()); }
Gradients gru_sequence_backward(GraphBuilder& b, const DerivedCall& call) { return of_steps(b, call, gru_cell()); }

}  // namespace ingot::ir::derivatives
