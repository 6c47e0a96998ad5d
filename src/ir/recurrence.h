// Recurrent layers, step by step: what they and their gradients compute at one step of a sequence.
#pragma once
#include <functional>

#include "ir/builder.h"

namespace ingot::ir {

/// What a kind of layer computes at one step, from gates [N, H] of the input, as many of the hidden state (with its
/// bias), and its states [N, H], the hidden one first: the new states.
struct Cell {
  size_t gates, states;
  bool adds;  // it adds gates of input and hidden state, and reads them no other way: their gradients are the same
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

/// A step back through a cell: the gradients of its gates [N, gates * H], of those of input and hidden state apart
/// where they differ, and of the states before it. `input` and `hidden`: the gates; `states`: before the step; absent
/// cotangents are zero.
std::vector<Operand> step_back(GraphBuilder& b, const Cell& cell, const Operand& input, const Operand& hidden,
                               const std::vector<Operand>& states, const Operand& weight,
                               const std::vector<Operand>& cotangents);

/// A call of an op of Form::recurrence at one step.
struct StepCall {
  std::span<const Attr> attrs;
  std::vector<Operand> operands;  // of the call: those with three dims [T, N, ...] at this step
  std::vector<Operand> before;    // results of the step before, absent at the first
};
/// What a row names: the results of a step [N, ...], of which the op's are made, [T, N, ...]. Attribute `reverse` says
/// whether the steps go from the last to the first.
namespace steps {
using StepRule = std::vector<Operand>(GraphBuilder& b, const StepCall& call);
StepRule rnn, lstm, gru, rnn_back, lstm_back, gru_back;
}  // namespace steps

bool goes_backwards(const Node& node);
/// An operand or result with a part for each step.
inline bool over_time(const TensorType& type) { return type.shape.size() == 3; }

/// One step of a node of Form::recurrence as a graph of its own, whose outputs are the node's.
struct StepGraph {
  Graph graph;
  /// What each input of the graph is: an operand of the node (at the step, where it has three dims), or a result of the
  /// step before.
  struct Input {
    bool before;
    size_t number;
  };
  std::vector<Input> inputs;
  /// How an operand is given: in a dtype that its values were cast from, and rounded to another one in between.
  struct Given {
    std::optional<DType> dtype, rounded;
  };
};
/// Over sizes of `dims`, which has those of `graph`. `given`: by operand.
StepGraph step_graph(const Graph& graph, const DimTable& dims, const Node& node, bool first,
                     const std::vector<StepGraph::Given>& given);

}  // namespace ingot::ir
