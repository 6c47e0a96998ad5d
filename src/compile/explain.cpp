#include "compile/explain.h"

#include "compile/core.h"

namespace ingot {
namespace {

Explanation::Program describe(const trace::CacheEntry& entry) {
  const trace::CompiledGraph& compiled = *entry.compiled;
  const ir::Graph& graph = compiled.graph();
  Explanation::Program program;
  program.key = entry.key;
  program.trace = compiled.traced_text();
  program.primitives = ir::print(graph);
  program.shapes = entry.shapes;
  program.guards = entry.guards;
  program.hits = entry.hits.load(std::memory_order_relaxed);
  program.compile_ms = compiled.milliseconds();
  program.report = compiled.explanation().str(graph, compiled.program());
  for (const codegen::FusionGroup& group : compiled.explanation().groups) {
    Explanation::Group& g = program.groups.emplace_back();
    g.name = group.name;
    for (ir::NodeId member : group.members) g.members.emplace_back(ir::info(graph.nodes[member].op).name);
  }
  for (const codegen::FusionDecision& decision : compiled.explanation().decisions)
    program.decisions.push_back(
        {"%" + std::to_string(decision.value), decision.fused, decision.reason, decision.bytes_saved});
  const ingot::Program& lowered = compiled.program();
  for (const ingot::Step& step : lowered.steps)
    program.steps.push_back({step.name, static_cast<double>(lowered.dims.hint(step.operations)),
                             static_cast<double>(lowered.dims.hint(step.bytes))});
  for (const KernelPtr& kernel : compiled.kernels()) {
    program.kernels.push_back({kernel->name, kernel->text, kernel->code_bytes, kernel->code});
    program.code_bytes += kernel->code_bytes;
  }
  return program;
}

std::vector<Explanation::Notice> describe(const std::vector<trace::Notice>& notices) {
  std::vector<Explanation::Notice> list;
  for (const trace::Notice& n : notices) list.push_back({n.reason, n.location.str(), n.count});
  return list;
}

}  // namespace

Explanation detail::CompiledCore::explain() const {
  Explanation e;
  e.name = function_->name();
  e.statistics = function_->statistics();
  for (const auto& entry : function_->entries()) e.programs.push_back(describe(*entry));
  e.breaks = describe(function_->breaks());
  e.fallbacks = describe(function_->fallbacks());
  for (const trace::Recompile& r : function_->recompiles()) e.recompiles.push_back({r.guard, r.before, r.after});
  if (mode_ == CompileMode::frozen) e.frozen = freezer_.state();
  return e;
}

std::string Explanation::str(bool kernels) const {
  std::string text = "compiled function " + name + "\n";
  auto figure = [&](const char* what, int64_t value) {
    text += "  " + std::string(what) + ": " + std::to_string(value) + "\n";
  };
  figure("calls", statistics.calls);
  figure("hits", statistics.hits);
  figure("compilations", statistics.compilations);
  figure("graph breaks", statistics.graph_breaks);
  figure("fallbacks", statistics.fallbacks);
  figure("recompile limit hits", statistics.recompile_limit_hits);
  if (!frozen.empty()) text += "  frozen: " + frozen + "\n";
  auto notices = [&](const char* title, const std::vector<Notice>& list) {
    if (list.empty()) return;
    text += std::string(title) + "\n";
    for (const Notice& n : list)
      text += "  " + std::to_string(n.count) + " x " + n.reason + (n.location.empty() ? "" : " (" + n.location + ")") +
              "\n";
  };
  notices("graph breaks", breaks);
  notices("fallbacks", fallbacks);
  if (!recompiles.empty()) text += "recompiles\n";
  for (const Recompile& r : recompiles) text += "  " + r.guard + ": was " + r.before + ", is " + r.after + "\n";
  for (size_t i = 0; i < programs.size(); ++i) {
    const Program& p = programs[i];
    text += "program " + std::to_string(i) + ": " + p.shapes + "\n";
    if (!p.guards.empty()) text += "  where " + p.guards + "\n";
    text += "  hits " + std::to_string(p.hits) + ", compiled in " + std::to_string(p.compile_ms) + " ms, " +
            std::to_string(p.kernels.size()) + " kernels, " + std::to_string(p.code_bytes) + " bytes of code\n";
    text += "trace\n" + p.trace + "primitives\n" + p.primitives + p.report;
    if (!kernels) continue;
    for (const Kernel& k : p.kernels)
      text += "kernel " + k.name + ", " + std::to_string(k.code_bytes) + " bytes\n" + k.text +
              (k.text.ends_with('\n') ? "" : "\n");
  }
  return text;
}

}  // namespace ingot
