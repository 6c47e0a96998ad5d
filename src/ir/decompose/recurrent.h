// Recurrent layers, step by step: what a call and its gradients share.
#pragma once
#include <functional>

#include "ir/decompose.h"

namespace ingot::ir {

/// What a kind of layer computes at one step, from gates [N, H] of the input, as many of the hidden state (with its
/// bias), and its states [N, H], the hidden one first: the new states.
struct Cell {
  size_t gates, states;
  std::function<std::vector<Operand>(GraphBuilder& b, std::span<const Operand> input, std::span<const Operand> hidden,
                                     std::span<const Operand> states)>
      step;
};
/// `relu` instead of tanh.
Cell plain_cell(bool relu);
/// Gates are i, f, g, o (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997, with Gers' forget gate, 1999).
Cell lstm_cell();
/// Gates are r, z, n (Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014), the reset gate
/// after the product, as PyTorch has it.
Cell gru_cell();

/// The operands of a call: input [T, N, gates * H], states [N, H] each, weight [gates * H, H], bias [gates * H] or
/// none.
struct Recurrence {
  const Cell& cell;
  Operand input, weight, bias;
  std::vector<Operand> initial;
  bool reverse;
  int64_t steps;  // T, which the program holds for
  Dim width;      // H

  Recurrence(GraphBuilder& b, const Cell& cell, const std::vector<Operand>& operands, bool reverse);
  /// Position in time of the i-th step.
  int64_t at(int64_t i) const { return reverse ? steps - 1 - i : i; }
  /// x [T, ...] at a position in time.
  static Operand select(GraphBuilder& b, const Operand& x, int64_t time);
  /// [N, gates * H], gate by gate.
  std::vector<Operand> gates_of(GraphBuilder& b, const Operand& x) const;
};

/// All states [T, N, H] of a call.
Outputs run_cell(GraphBuilder& b, const Recurrence& r);

}  // namespace ingot::ir
