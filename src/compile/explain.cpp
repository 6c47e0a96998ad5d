// The facts of a compiled function, gathered from where they are kept.
#include "compile/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/program.h"
#include "compile/compare.h"
#include "compile/core.h"
#include "runtime/code/disassemble.h"
#include "runtime/cpu.h"
#include "runtime/profiler.h"

namespace ingot {
namespace {

// "src/model.cpp:12" for "/home/me/project/src/model.cpp:12" would need the project's root; the file's name is enough.
std::string short_location(const Location& location) {
  std::string text = location.str();
  size_t slash = text.rfind('/');
  return slash == std::string::npos ? text : text.substr(slash + 1);
}

// Values as the IR's text numbers them: inputs, then outputs of nodes, in order.
std::vector<std::string> value_names(const ir::Graph& graph) {
  std::vector<std::string> names(graph.values.size());
  size_t next = 0;
  auto name = [&](ir::ValueId v) { names[v] = "%" + std::to_string(next++); };
  for (const ir::InputInfo& input : graph.inputs) name(input.value);
  for (const ir::Node& node : graph.nodes)
    for (ir::ValueId v : node.outputs) name(v);
  return names;
}

std::string type_text(const ir::TensorType& type, const DimTable& dims) {
  std::string text = std::string(name_of(type.dtype)) + "[";
  for (size_t i = 0; i < type.shape.size(); ++i) text += (i ? ", " : "") + dims.str(type.shape[i]);
  return text + "]";
}

int64_t bytes_of(const ir::TensorType& type, const DimTable& dims) {
  int64_t bytes = size_of(type.dtype);
  for (Dim d : type.shape) bytes *= dims.hint(d);
  return bytes;
}

std::vector<Explanation::Op> ops_of(const ir::Graph& graph, const std::vector<std::string>& names) {
  std::vector<Explanation::Op> ops;
  for (const ir::Node& node : graph.nodes) {
    Explanation::Op& op = ops.emplace_back();
    op.value = names[node.outputs[0]];
    op.op = ir::name_of_call(node.op, node.derivative);
    for (ir::ValueId v : node.outputs) op.type += (op.type.empty() ? "" : ", ") + type_text(graph.type(v), graph.dims);
    for (const ir::Operand& operand : node.operands)
      if (operand.is_value()) op.operands.push_back(names[operand.id]);
    op.module = node.module;
    op.location = short_location(node.location);
  }
  return ops;
}

void describe_inputs(const ir::Graph& graph, const std::vector<std::string>& names, Explanation::Program& program) {
  DimTable dims = graph.dims;
  std::unordered_map<std::string_view, const Explanation::Op*> first_use;
  for (const Explanation::Op& op : program.ops)
    for (const std::string& operand : op.operands) first_use.try_emplace(operand, &op);
  for (const ir::InputInfo& info : graph.inputs) {
    const ir::TensorType& type = graph.type(info.value);
    Explanation::Input& input = program.inputs.emplace_back();
    input.value = names[info.value];
    input.type = type_text(type, dims);
    input.constant = info.constant;
    if (!(info.strides == ir::contiguous_strides(dims, type.shape)))
      for (Dim stride : info.strides) input.strides += (input.strides.empty() ? "" : ", ") + dims.str(stride);
    if (const auto use = first_use.find(input.value); use != first_use.end()) {
      const Explanation::Op& op = *use->second;
      input.used_by = op.op + (op.module.empty() ? "" : " in " + op.module) + " (" + op.location + ")";
    }
  }
}

void describe_writes(const trace::CacheEntry& entry, const std::vector<std::string>& names,
                     Explanation::Program& program) {
  const ir::Graph& graph = entry.compiled->graph;
  for (const trace::Write& write : entry.writes()) {
    const ir::ValueId v = graph.outputs[write.output];
    Explanation::Write& out = program.writes.emplace_back();
    out.value = names[v];
    if (write.input >= 0) out.input = names[graph.inputs[static_cast<size_t>(write.input)].value];
    out.type = type_text(graph.type(v), graph.dims);
    if (const ir::NodeId producer = graph.values[v].producer; producer != ir::kNoValue)
      out.op = program.ops[producer].op, out.location = program.ops[producer].location;
    out.in_place = write.apart.empty();
    out.reason = write.apart;
  }
}

/// The op that makes a value; false: it is an input.
bool name_producer(const ir::Graph& graph, ir::ValueId v, const Explanation::Program& program,
                   Explanation::Decision& out) {
  const ir::NodeId producer = graph.values[v].producer;
  if (producer == ir::kNoValue) {
    out.op = "input";
    return false;
  }
  const Explanation::Op& op = program.ops[producer];
  out.op = op.op, out.module = op.module, out.location = op.location;
  return true;
}

void describe_fusion(const compiler::CompiledGraph& compiled, const std::vector<std::string>& names,
                     Explanation::Program& program) {
  const ir::Graph& graph = compiled.graph;
  const codegen::Explanation& explanation = compiled.explanation;
  std::vector<uint32_t> home(graph.nodes.size(), 0);  // the first group that computes it
  for (size_t g = explanation.groups.size(); g-- > 0;)
    for (ir::NodeId n : explanation.groups[g].members) home[n] = static_cast<uint32_t>(g);
  for (const codegen::FusionGroup& group : explanation.groups) {
    Explanation::Group& out = program.groups.emplace_back();
    out.name = group.name;
    for (ir::NodeId n : group.members) out.members.emplace_back(ir::info(graph.nodes[n].op).name);
    out.ops.assign(group.members.begin(), group.members.end());
    for (ir::ValueId v : group.stored) out.stored.push_back(names[v]);
    out.steps = group.steps;
  }
  for (const codegen::FusionDecision& decision : explanation.decisions) {
    Explanation::Decision& out = program.decisions.emplace_back();
    out.value = names[decision.value];
    out.fused = decision.fused;
    out.reason = decision.reason;
    out.bytes_saved = decision.bytes_saved;
    out.bytes = bytes_of(graph.type(decision.value), graph.dims);
    if (!name_producer(graph, decision.value, program, out)) continue;
    const ir::NodeId producer = graph.values[decision.value].producer;
    if (decision.fused && !program.groups.empty()) program.groups[home[producer]].bytes_saved += decision.bytes_saved;
  }
  program.notes = explanation.notes;
}

constexpr const char* kCheap = "cheap to compute from what is kept anyway";

void describe_backward(const compiler::CompiledGraph& compiled, const std::vector<std::string>& names,
                       Explanation::Program& program) {
  const ir::Graph& graph = compiled.graph;
  // Whether a node of each pass reads a value, or a view of it.
  std::vector<bool> read(graph.values.size()), read_before(graph.values.size());
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const ir::Node& node = graph.nodes[n];
    const bool view = ir::info(node.op).kind == ir::OpKind::view;
    for (const ir::Operand& o : node.operands) {
      if (!o.is_value()) continue;
      if (view ? read[node.outputs[0]] : node.backward) read[o.id] = true;
      if (view ? read_before[node.outputs[0]] : !node.backward) read_before[o.id] = true;
    }
  }
  std::set<std::string> stored;
  for (const Explanation::Group& group : program.groups) stored.insert(group.stored.begin(), group.stored.end());
  for (size_t i = 0; i < program.decisions.size(); ++i) {
    const ir::ValueId v = compiled.explanation.decisions[i].value;
    const ir::NodeId producer = graph.values[v].producer;
    if (producer == ir::kNoValue) continue;
    if (graph.nodes[producer].recomputed) {
      program.recomputed.push_back(program.decisions[i]);
      program.recomputed.back().reason = kCheap;
      continue;
    }
    if (graph.nodes[producer].backward || !read[v]) continue;
    read[v] = false;  // a value may be decided on twice: for a product, and for what follows it
    if (stored.contains(names[v]))
      program.saved.push_back(program.decisions[i]);
    else if (read_before[v])  // by a kernel of the forward pass, and by another one again
      program.recomputed.push_back(program.decisions[i]);
  }
}

/// What is saved for a backward pass that is another program.
void describe_saved(const compiler::CompiledGraph& compiled, const std::vector<std::string>& names,
                    Explanation::Program& program) {
  const ir::Graph& graph = compiled.graph;
  std::set<ir::ValueId> met;
  for (uint32_t output : compiled.saved_outputs) {
    const ir::ValueId v = graph.outputs[output];
    if (!met.insert(v).second) continue;
    Explanation::Decision& out = program.saved.emplace_back();
    out.value = names[v];
    out.reason = "the backward pass reads it";
    out.bytes = bytes_of(graph.type(v), graph.dims);
    name_producer(graph, v, program, out);
  }
  for (const ir::Recipe& recipe : compiled.recipes) {
    Explanation::Decision& out = program.recomputed.emplace_back();
    const ir::Node& node = recipe.nodes.back();
    out.reason = kCheap;
    out.op = ir::info(node.op).name;
    out.module = node.module;
    out.location = short_location(node.location);
    out.bytes = bytes_of(recipe.type, graph.dims);
  }
}

/// Whose ops a step does, and in which layers: of all groups that it belongs to.
void name_steps(Explanation::Program& program) {
  for (const Explanation::Group& group : program.groups)
    for (uint32_t number : group.steps) {
      Explanation::Step& step = program.steps[number];
      for (const std::string& op : group.members)
        if (step.ops.empty() || step.ops.back() != op) step.ops.push_back(op);
      if (step.ops.empty()) step.ops.push_back(group.name);
      for (uint32_t op : group.ops) {
        const std::string& module = program.ops[op].module;
        if (!module.empty() && std::find(step.modules.begin(), step.modules.end(), module) == step.modules.end())
          step.modules.push_back(module);
      }
    }
}

void describe_steps(const trace::CacheEntry& entry, const runtime::Profile* profile, Explanation::Program& program) {
  const compiler::CompiledGraph& compiled = *entry.compiled;
  const ingot::Program& lowered = *compiled.program;
  std::map<std::string_view, uint32_t> number_of;
  for (const KernelPtr& kernel : compiled.kernels()) {
    number_of[kernel->key] = static_cast<uint32_t>(program.kernels.size());
    program.kernels.push_back({kernel->name, kernel->text, kernel->code_bytes, kernel->code});
    program.code_bytes += kernel->code_bytes;
  }
  for (const ingot::Step& step : lowered.steps) {
    const auto slices =
        static_cast<double>(lowered.dims.hint(slices_of(lowered, static_cast<uint32_t>(program.steps.size()))));
    Explanation::Step& out = program.steps.emplace_back();
    out.name = step.name;
    out.operations = slices * static_cast<double>(lowered.dims.hint(step.operations));
    out.bytes = slices * static_cast<double>(lowered.dims.hint(step.bytes));
    out.form = step.kind_name();
    out.space = codegen::space_of(lowered.dims, step);
    out.algorithm = codegen::algorithm_of(step);
    out.weight = entry.loaded->weight(program.steps.size() - 1);
    for_each_kernel(step, [&](const KernelPtr& kernel) {
      uint32_t number = number_of.at(kernel->key);
      if (std::find(out.kernels.begin(), out.kernels.end(), number) == out.kernels.end()) out.kernels.push_back(number);
    });
  }
  name_steps(program);
  if (!profile) return;
  for (const runtime::StepTime& time : profile->steps())
    if (time.program.get() == &lowered && time.runs)
      program.steps[time.step].mean_us = time.total_ns / 1e3 / static_cast<double>(time.runs);
}

Explanation::Program describe(const trace::CacheEntry& entry, const runtime::Profile* profile) {
  const compiler::CompiledGraph& compiled = *entry.compiled;
  const ir::Graph& graph = compiled.graph;
  Explanation::Program program;
  program.key = entry.key;
  program.trace = compiled.traced_text();
  program.primitives = ir::print(graph);
  program.shapes = entry.shapes;
  program.guards = entry.guards;
  program.hits = entry.hits.load(std::memory_order_relaxed);
  program.compile_ms = compiled.milliseconds;
  program.report = compiled.explanation.str(graph, *compiled.program);
  for (const ir::PassTime& stage : compiled.stages)
    program.stages.push_back({std::string(stage.name), stage.milliseconds, static_cast<int64_t>(stage.nodes)});
  ir::Graph traced = ir::parse(program.trace);
  program.traced_ops = ops_of(traced, value_names(traced));
  std::vector<std::string> names = value_names(graph);
  program.ops = ops_of(graph, names);
  for (ir::ValueId output : graph.outputs) program.outputs.push_back(names[output]);
  describe_inputs(graph, names, program);
  describe_writes(entry, names, program);
  describe_fusion(compiled, names, program);
  describe_backward(compiled, names, program);
  describe_saved(compiled, names, program);
  describe_steps(entry, profile, program);
  return program;
}

std::vector<Explanation::Notice> describe(const std::vector<trace::Notice>& notices) {
  std::vector<Explanation::Notice> list;
  for (const trace::Notice& n : notices) list.push_back({n.reason, n.location.str(), n.count, n.op});
  return list;
}

template <class Get>
double sum_of(const std::vector<Explanation::Step>& steps, Get get) {
  double sum = 0;
  for (const Explanation::Step& step : steps) sum += get(step);
  return sum;
}

}  // namespace

bool Explanation::Kernel::product_form() const { return name.starts_with("tile ") || name.starts_with("pack "); }
std::string Explanation::Kernel::assembly() const {
  return code.empty() ? "  (interpreted: no code)\n" : runtime::disassemble(code, code_bytes);
}

double Explanation::Program::bytes_moved() const {
  return sum_of(steps, [](const Step& s) { return s.bytes; });
}
double Explanation::Program::bytes_saved() const {
  double sum = 0;
  for (const Decision& d : decisions)
    if (d.fused) sum += static_cast<double>(d.bytes_saved);
  return sum;
}
int64_t Explanation::Program::bytes_saved_for_backward() const {
  int64_t sum = 0;
  for (const Decision& d : saved) sum += d.bytes;
  return sum;
}
double Explanation::Program::mean_us() const {
  return sum_of(steps, [](const Step& s) { return s.mean_us; });
}

namespace {

const char* kind_of(const std::string& form) {
  if (form == "matmul") return "products";
  if (form.starts_with("conv2d")) return "convolutions";
  if (form.starts_with("attention")) return "attention";
  if (form == "column") return "sums over columns";
  return form == "host" ? "host ops" : "pointwise work and rows";
}

}  // namespace

std::vector<Explanation::Program::Kind> Explanation::Program::kinds() const {
  const bool timed = mean_us() > 0, counted = sum_of(steps, [](const Step&s) { return s.operations; }) > 0;
  auto weight = [&](const Step& s) { return timed ? s.mean_us : counted ? s.operations : s.bytes; };
  const double total = sum_of(steps, weight);
  std::vector<Kind> kinds;
  for (const Step& step : steps) {
    const char* name = kind_of(step.form);
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.name == name; });
    if (kind == kinds.end()) kind = kinds.insert(kind, {name});
    ++kind->steps;
    if (total > 0) kind->share += weight(step) / total;
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) { return a.share > b.share; });
  return kinds;
}

std::string Explanation::Program::summary() const {
  const double us = mean_us();
  std::string text = fmt::format("{} step{}", steps.size(), steps.size() == 1 ? "" : "s");
  if (us > 0) text += " in " + duration(us);
  const char* between = ": ";
  for (const Kind& kind : kinds()) {
    text += fmt::format("{}{:.0f}% {}", between, 100 * kind.share, kind.name);
    between = ", ";
  }
  const double operations = sum_of(steps, [](const Step& s) { return s.operations; });
  if (us <= 0) return steps.empty() ? text : text + fmt::format("; {:.4g} MFLOP", operations / 1e6);
  return text + fmt::format("; {:.1f} GFLOP/s, {:.1f} GB/s", operations / us / 1e3, bytes_moved() / us / 1e3);
}

std::vector<uint32_t> Explanation::Program::longest() const {
  std::vector<uint32_t> order(steps.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return steps[a].mean_us > steps[b].mean_us; });
  return order;
}

namespace {

Explanation explain_function(const trace::Function& function, const Statistics& statistics,
                             const runtime::Profile* profile) {
  Explanation e;
  e.name = function.name();
  e.statistics = statistics;
  e.target = runtime::host_target().str();
  for (const auto& entry : function.entries()) e.programs.push_back(describe(*entry, profile));
  e.breaks = describe(function.breaks());
  e.fallbacks = describe(function.fallbacks());
  for (const trace::Recompile& r : function.recompiles())
    e.recompiles.push_back({r.guard, r.before, r.after, r.op, r.location.str()});
  return e;
}

}  // namespace

Explanation detail::explain(const CompiledCore& core, const runtime::Profile* profile) {
  Explanation e = explain_function(core.function(), core.statistics(), profile);
  if (core.mode() == CompileMode::frozen) e.frozen = core.freezer().state();
  const trace::Function& backward = core.backward();
  if (const Statistics statistics = backward.statistics(); statistics.calls)
    e.backward.push_back(explain_function(backward, statistics, profile));
  return e;
}

}  // namespace ingot
