#include "ir/passes/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

#include "ir/decompose.h"

namespace ingot::ir {
namespace {

using Options = PipelineOptions;
constexpr std::array kPasses = {
    Pass{"decompose", [](Graph& g, const Options&) { decompose(g); }, true},
    Pass{"simplify", [](Graph& g, const Options&) { simplify(g); }},
    Pass{"fold", [](Graph& g, const Options& options) { fold(g, options.evaluate); }},
    Pass{"cse", [](Graph& g, const Options&) { eliminate_common_subexpressions(g); }},
    Pass{"dce", [](Graph& g, const Options&) { eliminate_dead_code(g); }},
};

}  // namespace

std::vector<std::string> disabled_passes(std::span<const std::string> also) {
  std::vector<std::string> names(also.begin(), also.end());
  const char* variable = std::getenv("INGOT_DISABLE");
  std::string_view rest = variable ? variable : "";
  while (!rest.empty()) {
    size_t end = rest.find(',');
    if (end != 0) names.emplace_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  std::vector<std::string_view> known;
  for (const Pass& pass : kPasses)
    if (!pass.required) known.push_back(pass.name);
  known.push_back(kFusion);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string list;
      for (std::string_view k : known) list.append(list.empty() ? "" : ", ").append(k);
      throw Error("passes: got \"" + name + "\" to disable, expected one of: " + list);
    }
  return names;
}

std::span<const Pass> passes() { return kPasses; }

std::vector<PassTime> run_pipeline(Graph& graph, const PipelineOptions& options) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::string> disabled = disabled_passes(options.disabled);
  std::vector<PassTime> times;
  for (const Pass& pass : kPasses) {
    if (std::find(disabled.begin(), disabled.end(), pass.name) != disabled.end()) continue;
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
