// The explanation as text.
#include <fmt/format.h>

#include <iterator>

#include "codegen/lower.h"

namespace ingot::codegen {
namespace {

std::string sizes_text(const DimTable& dims, std::span<const Dim> sizes) {
  std::string text;
  for (Dim d : sizes) text += (text.empty() ? "" : ", ") + dims.str(d);
  return "[" + text + "]";
}

}  // namespace

std::string space_of(const DimTable& dims, const Step& step) {
  struct Space {
    const DimTable& dims;
    std::string operator()(const LoopStep& s) const {
      return sizes_text(dims, s.space) + (s.rows_whole ? " by rows" : "");
    }
    std::string operator()(const ColumnStep& s) const { return sizes_text(dims, s.space) + " by columns"; }
    std::string operator()(const MatmulStep& s) const {
      return fmt::format("{}[{}, {}] x [{}, {}]", s.batch.empty() ? "" : sizes_text(dims, s.batch) + " of ",
                         dims.str(s.m), dims.str(s.k), dims.str(s.k), dims.str(s.n));
    }
    std::string operator()(const Conv2dStep& s) const { return "conv2d " + sizes_text(dims, s.input_shape); }
    std::string operator()(const Conv2dWeightStep& s) const {
      return "weight " + sizes_text(dims, s.weight_shape) + " of conv2d " + sizes_text(dims, s.input_shape);
    }
    std::string operator()(const AttentionStep& s) const { return attention(s.probabilities, s.value_depth); }
    std::string operator()(const AttentionBackwardStep& s) const {
      return "gradients of " + attention(s.probabilities, s.value_depth);
    }
    std::string attention(const AttentionProbabilities& p, Dim value_depth) const {
      return "attention " + sizes_text(dims, Dims{p.batch, p.heads, p.queries, value_depth});
    }
    std::string operator()(const HostStep& s) const { return s.op + " " + sizes_text(dims, s.results[0].shape); }
  };
  return std::visit(Space{dims}, step.work);
}

std::string algorithm_of(const Step& step) {
  struct Algorithm {
    std::string text;
    void add(bool holds, const std::string& what) {
      if (holds) text += (text.empty() ? "" : ", ") + what;
    }
    void operator()(const LoopStep& s) {
      add(!s.transposing.kernels.empty(), "transposed tile by tile");
      add(s.transposing.streaming != nullptr, "large results past the caches");
    }
    void operator()(const ColumnStep&) {}
    void operator()(const MatmulStep& s) {
      add(s.prologue.has_value(), "prologue");
      add(!s.epilogue.kernels.empty(), "epilogue");
      add(s.b_is_weight, s.rounds_b ? "B rounded and packed once" : "B packed once");
      add(s.b_stays, "B packed once a call");
      add(s.one_row != OneRow::tiles, std::string("one row reads ") + name_of(s.one_row));
      add(s.kernels->widen != nullptr, "many rows widen B");
    }
    void operator()(const Conv2dStep& s) {
      add(true, name_of(s.form));
      add(s.winograd.has_value(), "tiles of large images transformed (Winograd)");
      add(s.prologue.has_value(), "prologue");
      add(!s.epilogue.kernels.empty(), "epilogue");
      add(s.weight_is_constant, s.rounds_weight ? "weight rounded and packed once" : "weight packed once");
    }
    void operator()(const Conv2dWeightStep&) {}
    void operator()(const AttentionStep& s) { add(s.probabilities.causal, "causal"); }
    void operator()(const AttentionBackwardStep& s) {
      add(s.probabilities.causal, "causal");
      add(s.for_query.has_value(), "for query");
      add(s.for_key.has_value(), "for key");
      add(s.for_value.has_value(), "for value");
    }
    void operator()(const HostStep&) {}
  } algorithm;
  std::visit([&](const auto& work) { algorithm(work); }, step.work);
  return std::move(algorithm.text);
}

std::string Explanation::str(const ir::Graph& graph, const Program& program) const {
  std::string text;
  auto out = std::back_inserter(text);
  for (size_t g = 0; g < groups.size(); ++g) {
    const FusionGroup& group = groups[g];
    fmt::format_to(out, "group {} {}\n  ops:", g, group.name);
    for (ir::NodeId n : group.members)
      fmt::format_to(out, " %{} {}", graph.nodes[n].outputs[0], ir::info(graph.nodes[n].op).name);
    fmt::format_to(out, "\n  stores:");
    for (ir::ValueId v : group.stored) fmt::format_to(out, " %{}", v);
    fmt::format_to(out, "\n");
    for (uint32_t s : group.steps) {
      const Step& step = program.steps[s];
      const std::string algorithm = algorithm_of(step);
      fmt::format_to(out, "  step {} {} {}{}{}: {} operations, {} bytes\n", s, step.kind_name(),
                     space_of(program.dims, step), algorithm.empty() ? "" : ", ", algorithm,
                     program.dims.str(step.operations), program.dims.str(step.bytes));
    }
  }
  for (const FusionDecision& d : decisions)
    fmt::format_to(out, "%{} {}: {}{}\n", d.value, d.fused ? "fused" : "not fused", d.reason,
                   d.bytes_saved ? fmt::format(" (saves {} bytes)", d.bytes_saved) : "");
  for (const std::string& note : notes) fmt::format_to(out, "{}\n", note);
  return text;
}

}  // namespace ingot::codegen
