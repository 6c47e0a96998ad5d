// Clean-up passes. Each keeps every bit of every output, NaN and the sign of zero included, and needs no stack on deep
// graphs.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace ingot::ir {

/// softmax(q k' * scale + mask) v, written out in ops whose results nobody else reads, becomes composed_attention:
/// before decompose, of f32 and f64.
void recognize_attention(Graph& graph);
/// Algebraic rules, views of views, casts of casts (the table stands in simplify.cpp).
void simplify(Graph& graph);
/// The ops that it has a rule for.
std::vector<OpId> simplified_ops();
/// The value of a graph without inputs and scalars whose one output is zero-dim, computed by our kernels; none where
/// that is not possible.
using Evaluate = std::function<std::optional<Operand>(const Graph&)>;
/// Elementwise nodes all of whose operands are constants (or fulls of one) become fulls.
void fold(Graph& graph, const Evaluate& evaluate);
/// Nodes that compute the same become one.
void eliminate_common_subexpressions(Graph& graph);
/// Work of an elementwise op for one element, in units of a multiplication.
using OpCost = std::function<int(OpId, DType)>;
/// What the backward pass reads of the forward pass, and is cheap to compute from what is kept anyway, it computes
/// again: a program needs memory from the first reader of a value to the last. Such nodes stand in front of their
/// readers and are as the first ones are, so no bit changes. Nodes that nobody needs count as readers: they are to be
/// gone. `cost`: none counts every op as 1. Values of less than `from` bytes are kept: it is not memory that they cost.
inline constexpr int64_t kRecomputedFrom = 64 << 10;
void recompute(Graph& graph, const OpCost& cost, int64_t from = kRecomputedFrom);
/// How what a graph gave out is computed from what it still gives out.
struct Recipe {
  uint32_t output = 0;         // it was this one
  std::vector<uint32_t> from;  // outputs of the graph as it is now: values 0, 1, ... of the nodes
  std::vector<Node> nodes;     // each makes the next value, the last one makes it; scalars and dims are the graph's
  TensorType type;             // that it had
};
/// The same for a graph whose backward pass is not part of it. `saved`: the outputs that are for that pass alone. Those
/// that are cheap to compute from others of them go, one recipe each, in their order; what that takes besides (a mean,
/// an input of few bytes) becomes an output behind all, and `saved` has their numbers as they are now.
std::vector<Recipe> recompute_saved(Graph& graph, std::vector<uint32_t>& saved, const OpCost& cost,
                                    int64_t from = kRecomputedFrom);
/// Nodes that no output needs go; values are numbered anew.
void eliminate_dead_code(Graph& graph);

}  // namespace ingot::ir
