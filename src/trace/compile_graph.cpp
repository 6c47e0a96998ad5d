#include "trace/compile_graph.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "ir/passes/pipeline.h"
#include "trace/dump.h"
#include "trace/evaluate.h"

namespace ingot::trace {

std::string CompileSettings::key() const {
  std::string text = level.str();
  for (const std::string& pass : disabled_passes) text += " -" + pass;
  return text + "\n";
}

CompiledGraph::CompiledGraph(ir::Graph graph, const CompileSettings& settings) {
  auto start = std::chrono::steady_clock::now();
  traced_ = ir::print(graph);
  if (log_enabled(Topic::graph)) log(Topic::graph, "traced:\n" + traced_);
  ir::PipelineOptions options;
  options.disabled = settings.disabled_passes;
  options.evaluate = evaluate;
  ir::run_pipeline(graph, options);
  if (log_enabled(Topic::graph)) log(Topic::graph, "after the passes:\n" + ir::print(graph));
  codegen::LowerOptions lower_options;
  lower_options.keep_wide = settings.level.numerics == Numerics::fast;
  codegen::LowerResult lowered = codegen::lower(graph, settings.level.target, lower_options);
  DimTable& dims = lowered.program.dims;
  for (ir::ValueId output : graph.outputs) {
    const ir::TensorType& type = graph.type(output);
    output_bytes_.push_back(dims.mul(dims.product(type.shape), size_of(type.dtype)));
  }
  explanation_ = std::move(lowered.explanation);
  graph_ = std::move(graph);
  loaded_ = std::make_unique<runtime::LoadedProgram>(std::make_shared<const Program>(std::move(lowered.program)));
  if (log_enabled(Topic::fusion)) log(Topic::fusion, explanation_.str(graph_, program()));
  milliseconds_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (log_enabled(Topic::timings)) log(Topic::timings, "compiled in " + std::to_string(milliseconds_) + " ms");
  dump(*this);
}

std::vector<KernelPtr> CompiledGraph::kernels() const {
  std::vector<KernelPtr> kernels;
  for (const Step& step : program().steps)
    for_each_kernel(step, [&](const KernelPtr& kernel) {
      if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
    });
  return kernels;
}

}  // namespace ingot::trace
