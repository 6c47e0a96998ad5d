#include "compiler/compiled_graph.h"

#include <fmt/format.h>

#include <set>

namespace ingot::compiler {

std::string_view CompiledGraph::traced_text() const { return std::string_view(key).substr(key.find('\n') + 1); }

std::string CompiledGraph::times() const {
  std::string text = fmt::format("compiled in {:.3f} ms:", milliseconds);
  for (const ir::PassTime& stage : stages) text += fmt::format(" {} {:.3f},", stage.name, stage.milliseconds);
  text.pop_back();
  return text;
}

std::vector<KernelPtr> CompiledGraph::kernels() const {
  std::vector<KernelPtr> kernels;
  std::set<std::string_view> keys;
  for (const Step& step : program->steps)
    for_each_kernel(step, [&](const KernelPtr& kernel) {
      if (keys.insert(kernel->key).second) kernels.push_back(kernel);
    });
  return kernels;
}

// What nodes, values and steps hold beyond their own size is about as much again.
int64_t CompiledGraph::bytes() const {
  size_t bytes = key.size() + 2 * (graph.nodes.size() * sizeof(ir::Node) + graph.values.size() * sizeof(ir::ValueInfo) +
                                   program->steps.size() * sizeof(Step));
  for (const KernelPtr& kernel : kernels()) bytes += kernel->key.size() + kernel->text.size() + kernel->code.size();
  return static_cast<int64_t>(bytes);
}

}  // namespace ingot::compiler
