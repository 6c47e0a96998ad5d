#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/train.h"
#include "cli/zoo.h"
#include "eager/execute/caches.h"
#include "runtime/thread_pool.h"

namespace ingot::cli {
namespace {

constexpr double kProfiledUs = 200e3;

template <class Fast, class Input>
Explanation profiled(Fast& fast, const Input& input) {
  for (int warm = 0; warm < 3; ++warm) (void)fast(input);
  return fast.profile([&] {
    double end = now_us() + kProfiledUs;
    do {
      (void)fast(input);
    } while (now_us() < end);
  });
}

}  // namespace

Explanation explanation_of(const std::string& name, const std::string& data, int batch, bool training,
                           bool with_autocast) {
  if (training) {
    RecipeNumbers numbers{{"autocast", with_autocast}};
    if (batch) numbers["batch"] = batch;
    Training learner(name, data, "", numbers);
    auto fast = compile([&](const Batch& given) { return learner.update(given); }, {.name = name + "_step"});
    return profiled(fast, learner.next_batch());
  }
  const AutocastGuard autocast(with_autocast);
  const auto demos = model_names();
  if (std::find(demos.begin(), demos.end(), name) == demos.end()) {
    const ZooRow* row = find_zoo_row(name);
    if (!row) throw Error("unknown model '" + name + "'; `ingot models` lists those there are");
    const NoGradGuard no_grad;
    const ZooModel model = row->make(nullptr);
    model.module->eval();
    auto fast = compile(model.forward, {.name = name});
    return profiled(fast, model.example(batch ? batch : 1, 0));
  }
  DemoModel model = demo_model(name, data);
  auto fast = compile(model.forward, {.name = name});
  if (!batch) {
    (void)fast(model.input(model.small_batch));
    batch = model.large_batch;
  }
  return profiled(fast, model.input(batch));
}

namespace {

using nlohmann::json;

json explained_json(const std::vector<Explanation::Op>& ops) {
  json list = json::array();
  for (const auto& op : ops)
    list.push_back({{"value", op.value},
                    {"op", op.op},
                    {"type", op.type},
                    {"operands", op.operands},
                    {"module", op.module},
                    {"location", op.location}});
  return list;
}

json explained_json(const Explanation::Kernel& k, bool full) {
  json kernel = {{"name", k.name}, {"code_bytes", k.code_bytes}};
  if (full) kernel["ir"] = k.text, kernel["assembly"] = k.assembly();
  return kernel;
}

json explained_json(const Explanation::Program& p) {
  json groups = json::array(), kernels = json::array(), steps = json::array(), inputs = json::array(),
       stages = json::array();
  for (const auto& i : p.inputs)
    inputs.push_back({{"value", i.value},
                      {"type", i.type},
                      {"strides", i.strides},
                      {"constant", i.constant},
                      {"used_by", i.used_by}});
  for (const auto& g : p.groups)
    groups.push_back({{"name", g.name},
                      {"members", g.members},
                      {"ops", g.ops},
                      {"stored", g.stored},
                      {"steps", g.steps},
                      {"bytes_saved", g.bytes_saved}});
  auto listed = [](const std::vector<Explanation::Decision>& list) {
    json result = json::array();
    for (const auto& d : list)
      result.push_back({{"value", d.value},
                        {"fused", d.fused},
                        {"reason", d.reason},
                        {"bytes_saved", d.bytes_saved},
                        {"bytes", d.bytes},
                        {"op", d.op},
                        {"module", d.module},
                        {"location", d.location}});
    return result;
  };
  for (const auto& s : p.steps)
    steps.push_back({{"name", s.name},
                     {"ops", s.ops},
                     {"modules", s.modules},
                     {"form", s.form},
                     {"space", s.space},
                     {"algorithm", s.algorithm},
                     {"operations", s.operations},
                     {"bytes", s.bytes},
                     {"mean_us", s.mean_us},
                     {"kernels", s.kernels}});
  for (const auto& k : p.kernels) kernels.push_back(explained_json(k, true));
  for (const auto& s : p.stages) stages.push_back({{"name", s.name}, {"ms", s.ms}, {"ops", s.ops}});
  json kinds = json::array();
  for (const auto& k : p.kinds()) kinds.push_back({{"name", k.name}, {"steps", k.steps}, {"share", k.share}});
  return {{"key", p.key},
          {"summary", p.summary()},
          {"kinds", kinds},
          {"longest", p.longest()},
          {"trace", p.trace},
          {"primitives", p.primitives},
          {"traced_ops", explained_json(p.traced_ops)},
          {"ops", explained_json(p.ops)},
          {"outputs", p.outputs},
          {"inputs", inputs},
          {"groups", groups},
          {"decisions", listed(p.decisions)},
          {"saved_for_backward", listed(p.saved)},
          {"bytes_saved_for_backward", p.bytes_saved_for_backward()},
          {"recomputed", listed(p.recomputed)},
          {"notes", p.notes},
          {"report", p.report},
          {"steps", steps},
          {"kernels", kernels},
          {"shapes", p.shapes},
          {"guards", p.guards},
          {"stages", stages},
          {"hits", p.hits},
          {"code_bytes", p.code_bytes},
          {"compile_ms", p.compile_ms},
          {"bytes_moved", p.bytes_moved()},
          {"bytes_saved", p.bytes_saved()}};
}

json explained_json(const Explanation& e) {
  json programs = json::array(), recompiles = json::array();
  for (const auto& p : e.programs) programs.push_back(explained_json(p));
  auto notices = [](const std::vector<Explanation::Notice>& list) {
    json out = json::array();
    for (const auto& n : list)
      out.push_back({{"reason", n.reason}, {"op", n.op}, {"location", n.location}, {"count", n.count}});
    return out;
  };
  for (const auto& r : e.recompiles)
    recompiles.push_back(
        {{"guard", r.guard}, {"before", r.before}, {"after", r.after}, {"op", r.op}, {"location", r.location}});
  const Statistics& s = e.statistics;
  return {{"name", e.name},
          {"target", e.target},
          {"statistics",
           {{"calls", s.calls},
            {"hits", s.hits},
            {"compilations", s.compilations},
            {"compile_ms", s.compile_ms},
            {"ops_traced", s.ops_traced},
            {"kernels", s.kernels},
            {"host_steps", s.host_steps},
            {"eager_calls", s.eager_calls},
            {"graph_breaks", s.graph_breaks},
            {"fallbacks", s.fallbacks},
            {"recompile_limit_hits", s.recompile_limit_hits}}},
          {"programs", programs},
          {"graph_breaks", notices(e.breaks)},
          {"fallbacks", notices(e.fallbacks)},
          {"recompiles", recompiles}};
}

}  // namespace

int run_explain(ExplainOptions options) {
  if (options.threads) set_num_threads(options.threads);
  Explanation e = explanation_of(options.name, options.data, options.batch, options.mode == "train", options.autocast);
  if (options.json) {
    fmt::print("{}\n", explained_json(e).dump());
    return 0;
  }
  if (!options.html.empty()) {
    std::ofstream file(options.html, std::ios::binary);
    file << e.html();
    if (!file.flush()) throw Error("explain: --html: got " + options.html + ", expected a file that can be written");
    fmt::print("wrote {}\n", options.html);
    return 0;
  }
  if (options.all) {
    options.report.ir = options.report.fusion = options.report.steps = true;
    options.report.kernel_ir = options.report.assembly = "";
  }
  options.report.color = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  fmt::print("{}", e.str(options.report, Location::none()));
  return 0;
}

int run_cache(const CommonOptions& options, const std::string& name) {
  if (options.threads) set_num_threads(options.threads);
  Explanation e = explanation_of(name, options.data, 0);
  if (options.json) {
    json entries = json::array();
    for (const auto& p : e.programs) {
      json kernels = json::array();
      for (const auto& k : p.kernels) kernels.push_back(explained_json(k, false));
      entries.push_back({{"key", p.key},
                         {"guards", p.guards},
                         {"shapes", p.shapes},
                         {"kernels", kernels},
                         {"code_bytes", p.code_bytes},
                         {"hits", p.hits},
                         {"compile_ms", p.compile_ms}});
    }
    json process = json::array();
    for (const CacheFigures& c : cache_figures())
      process.push_back({{"name", c.name},
                         {"entries", c.entries},
                         {"most_entries", c.most_entries},
                         {"bytes", c.bytes},
                         {"most_bytes", c.most_bytes},
                         {"evictions", c.evictions}});
    const MemoryStats m = memory_stats();
    const json memory = {{"allocated_bytes", m.allocated_bytes},   {"packed_bytes", m.packed_bytes},
                         {"given_back_bytes", m.given_back_bytes}, {"cached_bytes", m.cached_bytes},
                         {"cached_limit", m.cached_limit},         {"code_bytes", m.code_bytes},
                         {"resident_bytes", m.resident_bytes}};
    fmt::print("{}\n", json{{"name", e.name}, {"entries", entries}, {"process", process}, {"memory", memory}}.dump());
    return 0;
  }
  int64_t code = 0;
  for (const auto& p : e.programs) code += p.code_bytes;
  fmt::print("{}: {} programs, {:.1f} KB of code, {:.2f} ms of compiling\n", e.name, e.programs.size(),
             static_cast<double>(code) / 1024, e.statistics.compile_ms);
  int number = 0;
  for (const auto& p : e.programs) {
    std::string arguments;
    size_t held = 0;
    for (const auto& input : p.inputs) {
      held += input.constant;
      if (!input.constant) arguments += (arguments.empty() ? "" : ", ") + input.type;
    }
    fmt::print("\nentry {}: {}\n", number++, arguments);
    fmt::print("  guards   {}; {} tensors that the function holds\n", p.guards.empty() ? "none on sizes" : p.guards,
               held);
    fmt::print("  hits     {}\n  compiled in {:.2f} ms; key {} bytes\n", p.hits, p.compile_ms, p.key.size());
    fmt::print("  kernels  {}, {:.1f} KB of code\n", p.kernels.size(), static_cast<double>(p.code_bytes) / 1024);
    size_t forms = 0;
    int64_t form_bytes = 0;
    for (const auto& k : p.kernels) {
      if (k.product_form()) {
        ++forms, form_bytes += k.code_bytes;
        continue;
      }
      fmt::print("    {:<58} {:>7} bytes\n", k.name, k.code_bytes);
    }
    if (forms) fmt::print("    {:<58} {:>7} bytes\n", fmt::format("{} tiles and packs of products", forms), form_bytes);
  }
  auto of = [](int64_t figure, int64_t most, double unit, const char* name) {
    if (figure < 0) return std::string();
    std::string text = fmt::format("{:.{}f}", static_cast<double>(figure) / unit, unit == 1 ? 0 : 1);
    if (most >= 0) text += fmt::format(" of at most {:.0f}", static_cast<double>(most) / unit);
    return text + " " + name;
  };
  fmt::print("\nof the process\n");
  for (const CacheFigures& c : cache_figures()) {
    const std::string entries = of(c.entries, c.most_entries, 1, "entries");
    const std::string bytes = of(c.bytes, c.most_bytes, 1024, "KB");
    fmt::print("  {:<16} {}{}{}{}\n", c.name, entries, entries.empty() || bytes.empty() ? "" : ", ", bytes,
               c.evictions > 0 ? fmt::format(", {} evicted", c.evictions) : "");
  }
  const MemoryStats m = memory_stats();
  auto mebibytes = [](int64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); };
  fmt::print("  {:<16} {} in use, of which packed weights {}; {} free, of at most {} now; {} resident\n", "memory",
             mebibytes(m.allocated_bytes), mebibytes(m.packed_bytes), mebibytes(m.cached_bytes),
             mebibytes(m.cached_limit), mebibytes(m.resident_bytes));
  return 0;
}

}  // namespace ingot::cli
