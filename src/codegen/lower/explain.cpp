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

const char* form_of(const Step& step) {
  constexpr const char* kinds[] = {"loop", "column", "matmul", "library"};
  return kinds[static_cast<int>(step.kind)];
}

std::string space_of(const DimTable& dims, const Step& step) {
  switch (step.kind) {
    case Step::Kind::loop:
      return sizes_text(dims, step.loop.space) + (step.loop.rows_whole ? " by rows" : "");
    case Step::Kind::column:
      return sizes_text(dims, step.column.space) + " by columns";
    case Step::Kind::matmul: {
      const MatmulStep& m = step.matmul;
      return fmt::format("{}[{}, {}] x [{}, {}]", m.batch.empty() ? "" : sizes_text(dims, m.batch) + " of ",
                         dims.str(m.m), dims.str(m.k), dims.str(m.k), dims.str(m.n));
    }
    case Step::Kind::library:
      return step.library.name + (step.library.shapes.empty() ? "" : " " + sizes_text(dims, step.library.shapes[0]));
  }
  return {};
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
      fmt::format_to(out, "  step {} {} {}{}{}: {} operations, {} bytes\n", s, form_of(step),
                     space_of(program.dims, step), step.matmul.epilogues.empty() ? "" : ", epilogue",
                     step.matmul.b_is_weight ? ", B packed once" : "", program.dims.str(step.operations),
                     program.dims.str(step.bytes));
    }
  }
  for (const FusionDecision& d : decisions)
    fmt::format_to(out, "%{} {}: {}{}\n", d.value, d.fused ? "fused" : "not fused", d.reason,
                   d.bytes_saved ? fmt::format(" (saves {} bytes)", d.bytes_saved) : "");
  for (const std::string& note : notes) fmt::format_to(out, "{}\n", note);
  return text;
}

}  // namespace ingot::codegen
