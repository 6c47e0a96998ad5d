#include "ir/passes/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "ir/decompose.h"

namespace ingot::ir {
namespace {

using Options = PipelineOptions;
constexpr std::array kPasses = {
    Pass{"attention", [](Graph& g, const Options&) { recognize_attention(g); }},
    Pass{"decompose", [](Graph& g, const Options& options) { decompose(g, options.convolves_bf16, options.one_op); },
         true},
    Pass{"simplify", [](Graph& g, const Options&) { simplify(g); }},
    Pass{"fold", [](Graph& g, const Options& options) { fold(g, options.evaluate); }},
    Pass{"cse", [](Graph& g, const Options&) { eliminate_common_subexpressions(g); }},
    Pass{"dce", [](Graph& g, const Options&) { eliminate_dead_code(g); }},
    Pass{"recompute",
         [](Graph& g, const Options& options) {
           recompute(g, options.cost, options.recomputed_from);
           if (options.saved_outputs)
             *options.recipes = recompute_saved(g, *options.saved_outputs, options.cost, options.recomputed_from);
         }},
};

}  // namespace

std::span<const Pass> passes() { return kPasses; }

std::vector<PassTime> run_pipeline(Graph& graph, const PipelineOptions& options) {
  using Clock = std::chrono::steady_clock;
  std::vector<PassTime> times;
  for (const Pass& pass : kPasses) {
    if (!pass.required &&
        std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end())
      continue;
    Clock::time_point start = Clock::now();
    pass.function(graph, options);
    times.push_back(
        {pass.name, std::chrono::duration<double, std::milli>(Clock::now() - start).count(), graph.nodes.size()});
    if (options.verify) verify(graph);
    if (options.after) options.after(pass.name, graph);
  }
  return times;
}

}  // namespace ingot::ir
