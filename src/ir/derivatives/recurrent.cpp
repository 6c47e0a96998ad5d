// Recurrent layers: backpropagation through time. All states are results of the call, so the gates are one product of
// all steps; only what goes from a step to the one before it is computed step by step, and the gradients of weight and
// bias are one product and one sum over all steps.
#include "ir/decompose/recurrent.h"

#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

Operand transposed(GraphBuilder& b, const Operand& x) { return b.permute(x, Dims{1, 0}); }

Operand cat(GraphBuilder& b, std::vector<Operand> parts, int64_t dim) {
  return b.call(OpId::cat, std::move(parts), {GraphBuilder::attr(dim)})[0];
}

/// What each step of a call begins with, of a state: [T, N, H].
Operand before(GraphBuilder& b, const Recurrence& r, const Operand& initial, const Operand& states) {
  const Operand first = b.unsqueeze(initial, GraphBuilder::attr(0));
  if (r.steps == 1) return first;
  const Operand others = b.slice(states, GraphBuilder::attr(0), Attr::of(Dims{r.reverse ? 1 : 0}),
                                 Attr::of(Dims{r.reverse ? r.steps : r.steps - 1}), GraphBuilder::attr(1));
  return r.reverse ? cat(b, {others, first}, 0) : cat(b, {first, others}, 0);
}

Operand sum(GraphBuilder& b, const Operand& x, const Operand& y) {
  return !x.present() ? y : !y.present() ? x : b.add(x, y);
}

Gradients through_time(GraphBuilder& b, const DerivedCall& call, const Cell& cell) {
  const Recurrence r(b, cell, call.operands, call.flag("reverse"));
  const size_t gates = cell.gates, states = cell.states;
  const DType dtype = b.dtype(r.input);
  const Dims shape = b.shape(r.initial[0]);
  std::vector<Operand> begin;
  for (size_t s = 0; s < states; ++s) begin.push_back(before(b, r, r.initial[s], call.results[s]));
  const Operand hidden = b.linear(begin[0], r.weight, r.bias);  // the gates of all steps

  std::vector<Operand> of_input(static_cast<size_t>(r.steps)), of_hidden = of_input;
  std::vector<Operand> carried(states);
  for (int64_t i = r.steps; i-- > 0;) {
    const int64_t time = r.at(i);
    // Operands of the step: gates of the input, gates of the hidden state, states.
    std::vector<Operand> operands = r.gates_of(b, Recurrence::select(b, r.input, time));
    for (const Operand& gate : r.gates_of(b, Recurrence::select(b, hidden, time))) operands.push_back(gate);
    for (const Operand& state : begin) operands.push_back(Recurrence::select(b, state, time));
    std::vector<Operand> cotangents;
    for (size_t s = 0; s < states; ++s) {
      const Operand& g = call.cotangents[s];
      cotangents.push_back(sum(b, g.present() ? Recurrence::select(b, g, time) : Operand::none(), carried[s]));
    }
    const std::vector<Operand> none(states, Operand::none());
    std::vector<Operand> found = b.gradients(
        [&](const std::vector<Operand>& o) {
          const std::span<const Operand> all(o);
          return cell.step(b, all.subspan(0, gates), all.subspan(gates, gates), all.subspan(2 * gates));
        },
        operands, std::vector<bool>(operands.size(), true), none, cotangents);
    auto joined = [&](size_t first) {
      std::vector<Operand> parts;
      for (size_t k = first; k < first + gates; ++k)
        parts.push_back(found[k].present() ? found[k] : zeros(b, shape, dtype));
      return gates == 1 ? parts[0] : cat(b, std::move(parts), 1);
    };
    of_input[static_cast<size_t>(time)] = joined(0);
    of_hidden[static_cast<size_t>(time)] = joined(gates);
    for (size_t s = 0; s < states; ++s) carried[s] = found[2 * gates + s];
    carried[0] = sum(b, b.matmul(of_hidden[static_cast<size_t>(time)], r.weight), carried[0]);
  }

  auto stacked = [&](const std::vector<Operand>& steps) {
    std::vector<Operand> parts;
    for (const Operand& x : steps) parts.push_back(b.unsqueeze(x, GraphBuilder::attr(0)));
    return cat(b, std::move(parts), 0);
  };
  const Operand all = stacked(of_hidden);
  auto rows = [&](const Operand& x) {
    const Dims sizes = b.shape(x);
    return b.reshape(x, {b.dims().mul(sizes[0], sizes[1]), sizes[2]});
  };
  Gradients gradients(call.operands.size());
  auto give = [&](size_t i, const std::function<Operand()>& make) {
    if (call.wanted[i]) gradients[i] = make();
  };
  give(0, [&] { return stacked(of_input); });
  for (size_t s = 0; s < states; ++s) give(1 + s, [&] { return carried[s]; });
  give(1 + states, [&] { return b.matmul(transposed(b, rows(all)), rows(begin[0])); });
  give(2 + states, [&] { return b.reduce_dims(OpId::sum, all, {0, 1}, false); });
  return gradients;
}

}  // namespace

Gradients rnn_sequence(GraphBuilder& b, const DerivedCall& call) {
  return through_time(b, call, plain_cell(call.integer("nonlinearity") != 0));
}
Gradients lstm_sequence(GraphBuilder& b, const DerivedCall& call) { return through_time(b, call, lstm_cell()); }
Gradients gru_sequence(GraphBuilder& b, const DerivedCall& call) { return through_time(b, call, gru_cell()); }

}  // namespace ingot::ir::derivatives
