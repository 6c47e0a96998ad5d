#include "compiler/compiler.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/float_environment.h"
#include "base/log.h"
#include "codegen/lower/cost.h"
#include "compiler/dump.h"
#include "compiler/evaluate.h"
#include "compiler/program_cache.h"
#include "ir/rules/rules.h"
#include "runtime/code/kernel_cache.h"
#include "runtime/cpu.h"

namespace ingot::compiler {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// The positive number that an environment variable holds; `otherwise` where there is none.
int64_t number_in(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  const long long number = std::strtoll(text, &end, 10);
  if (*end || number < 1) throw Error(std::string(variable) + ": got \"" + text + "\", expected a positive number");
  return number;
}

/// The passes that the graph goes through, with a file after each where dumps are on.
void run_passes(CompiledGraph& compiled, const Settings& settings, const Dump& dump) {
  ir::PipelineOptions options;
  options.disabled = disabled_stages(settings.disabled);
  options.evaluate = evaluate;
  options.cost = [](OpId op, DType dtype) { return codegen::lowering::op_cost(op, working_dtype(dtype)); };
  options.convolves_bf16 = settings.level.target.bf16_dot && !settings.level.target.cuda_arch;
  options.one_op = settings.one_op;
  options.recomputed_from = recomputed_from();
  options.saved_outputs = &compiled.saved_outputs;
  options.recipes = &compiled.recipes;
  if (dump.on())
    options.after = [&, number = 0](std::string_view pass, const ir::Graph& now) mutable {
      dump.write("pass" + std::to_string(++number) + "-" + std::string(pass) + ".ir", ir::print(now));
    };
  compiled.stages = ir::run_pipeline(compiled.graph, options);
}

/// What threads may take for themselves of the caches: L3 is shared by cores that other programs run on.
int64_t cache_of(int threads) {
  constexpr int64_t kShareOfL3 = 2 << 20;
  return threads * (runtime::cache_sizes().l2 + std::min(runtime::cache_sizes().l3 / 8, kShareOfL3));
}

void lower(CompiledGraph& compiled, const Settings& settings, const Dump& dump) {
  const std::vector<std::string> disabled = disabled_stages(settings.disabled);
  codegen::LowerOptions options;
  for (const codegen::Stage& stage : codegen::stages())
    if (stage.option) options.*stage.option = std::find(disabled.begin(), disabled.end(), stage.name) == disabled.end();
  options.keep_wide = settings.level.numerics == Numerics::fast;
  options.one_op = settings.one_op;
  options.winograd = options.winograd && options.keep_wide;
  options.output_strides = settings.output_strides;
  options.free_outputs = compiled.saved_outputs;
  if (settings.threads > 0) {
    options.cache_bytes = cache_of(settings.threads);
    options.least_slice = (settings.threads + 1) / 2;
    options.slice_size = forced_slice();
  }
  options.find = [](const std::string& key) { return runtime::KernelCache::instance().source(key); };
  if (dump.on())
    options.after = [&, number = 0](std::string_view stage, const std::string& text) mutable {
      dump.write("lower" + std::to_string(++number) + "-" + std::string(stage) + ".txt", text);
    };
  codegen::LowerResult lowered = codegen::lower(compiled.graph, settings.level.target, options);
  DimTable& dims = lowered.program.dims;
  for (ir::ValueId output : compiled.graph.outputs) {
    const ir::TensorType& type = compiled.graph.type(output);
    compiled.output_bytes.push_back(dims.mul(dims.product(type.shape), size_of(type.dtype)));
  }
  compiled.stages.insert(compiled.stages.end(), lowered.stages.begin(), lowered.stages.end());
  compiled.output_orders = std::move(lowered.output_orders);
  compiled.explanation = std::move(lowered.explanation);
  compiled.program = std::make_shared<const Program>(std::move(lowered.program));
}

}  // namespace

std::vector<std::string> disabled_stages(std::span<const std::string> also) {
  std::vector<std::string> names(also.begin(), also.end());
  const char* variable = std::getenv("INGOT_DISABLE");
  std::string_view rest = variable ? variable : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    if (end != 0) names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (names.empty()) return names;
  std::vector<std::string_view> known;
  for (const ir::Pass& pass : ir::passes())
    if (!pass.required) known.push_back(pass.name);
  for (const codegen::Stage& stage : codegen::stages())
    if (stage.option) known.push_back(stage.name);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string list;
      for (std::string_view k : known) list.append(list.empty() ? "" : ", ").append(k);
      throw Error("passes: got \"" + name + "\" to disable, expected one of: " + list);
    }
  return names;
}

int64_t forced_slice() { return number_in("INGOT_SLICE", 0); }
int64_t recomputed_from() { return number_in("INGOT_RECOMPUTE_FROM", ir::kRecomputedFrom); }

std::string key_of(const ir::Graph& graph, const Settings& settings) {
  std::string key = settings.level.str();
  for (const std::string& name : disabled_stages(settings.disabled)) key += " -" + name;
  if (!settings.passes) key += " primitives";
  if (settings.one_op) key += " one op";
  if (settings.threads > 0) key += " for " + std::to_string(settings.threads) + " threads";
  if (const int64_t slice = forced_slice(); slice && settings.threads > 0) key += " in " + std::to_string(slice);
  if (const int64_t from = recomputed_from(); from != ir::kRecomputedFrom)
    key += " again from " + std::to_string(from) + " B";
  for (const Dims& strides : settings.output_strides) key += " to " + ir::shape_text(graph.dims, strides);
  for (uint32_t output : settings.saved_outputs) key += " saved " + std::to_string(output);
  for (const DimGuard& guard : graph.dims.guards()) key += " " + graph.dims.str(guard);
  return key + "\n" + ir::print(graph);
}

ReadyProgram compile(const std::string& key, ir::Graph graph, const Settings& settings, const std::string& name) {
  const FloatEnvironment environment;
  const Clock::time_point start = Clock::now();
  ReadyProgram ready;
  if ((ready.compiled = ProgramCache::instance().find(key))) {
    ready.loaded = std::make_unique<runtime::LoadedProgram>(ready.compiled->program, settings.pack_weights_only);
    ready.milliseconds = since(start);
    return ready;
  }
  const bool told = !name.empty();
  const Dump dump(told);
  auto compiled = std::make_shared<CompiledGraph>();
  compiled->key = key;
  compiled->graph = std::move(graph);
  compiled->saved_outputs = settings.saved_outputs;
  dump.write("traced.ir", compiled->traced_text());
  if (told && log_enabled(Topic::graph)) log(Topic::graph, name + ": traced:\n" + std::string(compiled->traced_text()));

  if (settings.passes) run_passes(*compiled, settings, dump);
  if (told && log_enabled(Topic::graph)) log(Topic::graph, name + ": after the passes:\n" + ir::print(compiled->graph));

  lower(*compiled, settings, dump);

  const Clock::time_point loading = Clock::now();
  ready.loaded = std::make_unique<runtime::LoadedProgram>(compiled->program, settings.pack_weights_only);
  compiled->stages.push_back({"load", since(loading), compiled->graph.nodes.size()});

  ready.milliseconds = compiled->milliseconds = since(start);
  if (told && log_enabled(Topic::fusion))
    log(Topic::fusion, name + ":\n" + compiled->explanation.str(compiled->graph, *compiled->program));
  if (told && log_enabled(Topic::timings)) log(Topic::timings, name + ": " + compiled->times());
  dump.write(*compiled);
  ready.compiled = ProgramCache::instance().keep(std::move(compiled));
  return ready;
}

ReadyProgram compile_or_interpret(ir::Graph graph, Settings settings, std::string* reason) {
  if (settings.level.target.isa != Isa::none) {
    try {
      return compile(key_of(graph, settings), graph, settings, {});
    } catch (const std::exception& e) {
      *reason = e.what();
    }
    settings.level.target = {};
  }
  const std::string key = key_of(graph, settings);
  return compile(key, std::move(graph), settings, {});
}

}  // namespace ingot::compiler
