#include "trace/compile_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/float_environment.h"
#include "base/log.h"
#include "eager/execute.h"
#include "trace/dump.h"
#include "trace/evaluate.h"

namespace ingot::trace {

std::string CompileSettings::key() const {
  std::string text = level.str();
  for (const std::string& pass : disabled_passes) text += " -" + pass;
  return text + "\n";
}

CompiledGraph::CompiledGraph(ir::Graph graph, const CompileSettings& settings, const std::string& name) {
  const FloatEnvironment environment;
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  Clock::time_point start = Clock::now();
  Dump dump;
  traced_ = ir::print(graph);
  dump.write("traced.ir", traced_);
  if (log_enabled(Topic::graph)) log(Topic::graph, name + ": traced:\n" + traced_);
  ir::PipelineOptions options;
  options.disabled = settings.disabled_passes;
  options.evaluate = evaluate;
  if (dump.on())
    options.after = [&, number = 0](std::string_view pass, const ir::Graph& now) mutable {
      dump.write("pass" + std::to_string(++number) + "-" + std::string(pass) + ".ir", ir::print(now));
    };
  stages_ = ir::run_pipeline(graph, options);
  if (log_enabled(Topic::graph)) log(Topic::graph, name + ": after the passes:\n" + ir::print(graph));

  Clock::time_point lowering = Clock::now();
  std::vector<std::string> disabled = ir::disabled_passes(settings.disabled_passes);
  codegen::LowerOptions lower_options = eager::lower_options();
  lower_options.fuse = std::find(disabled.begin(), disabled.end(), ir::kFusion) == disabled.end();
  lower_options.keep_wide = settings.level.numerics == Numerics::fast;
  codegen::LowerResult lowered = codegen::lower(graph, settings.level.target, lower_options);
  stages_.push_back({"fuse and emit", since(lowering), graph.nodes.size()});
  DimTable& dims = lowered.program.dims;
  for (ir::ValueId output : graph.outputs) {
    const ir::TensorType& type = graph.type(output);
    output_bytes_.push_back(dims.mul(dims.product(type.shape), size_of(type.dtype)));
  }
  explanation_ = std::move(lowered.explanation);
  graph_ = std::move(graph);
  Clock::time_point loading = Clock::now();
  loaded_ = std::make_unique<runtime::LoadedProgram>(std::make_shared<const Program>(std::move(lowered.program)));
  stages_.push_back({"load", since(loading), graph_.nodes.size()});
  milliseconds_ = since(start);
  if (log_enabled(Topic::fusion)) log(Topic::fusion, name + ":\n" + explanation_.str(graph_, program()));
  if (log_enabled(Topic::timings)) log(Topic::timings, name + ": " + times());
  dump.write(*this);
}

std::string CompiledGraph::times() const {
  std::string text = fmt::format("compiled in {:.3f} ms:", milliseconds_);
  for (const ir::PassTime& stage : stages_) text += fmt::format(" {} {:.3f},", stage.name, stage.milliseconds);
  text.pop_back();
  return text;
}

std::vector<KernelPtr> CompiledGraph::kernels() const {
  std::vector<KernelPtr> kernels;
  std::set<std::string_view> keys;
  for (const Step& step : program().steps)
    for_each_kernel(step, [&](const KernelPtr& kernel) {
      if (keys.insert(kernel->key).second) kernels.push_back(kernel);
    });
  return kernels;
}

}  // namespace ingot::trace
