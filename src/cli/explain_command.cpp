#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/disassemble.h"
#include "cli/report.h"
#include "runtime/thread_pool.h"

namespace ingot::cli {
namespace {

// A compiled model after calls at both demo batch sizes.
Explanation explanation_of(const std::string& name, const std::string& data) {
  DemoModel model = demo_model(name, data);
  auto fast = compile(model.forward, {.name = name});
  for (int batch : {model.small_batch, model.large_batch, model.large_batch}) (void)fast(model.input(batch));
  return fast.explain();
}

nlohmann::json to_json(const Explanation& e) {
  nlohmann::json programs = nlohmann::json::array();
  for (const auto& p : e.programs) {
    nlohmann::json groups = nlohmann::json::array(), decisions = nlohmann::json::array(),
                   kernels = nlohmann::json::array();
    for (const auto& g : p.groups) groups.push_back({{"name", g.name}, {"members", g.members}});
    for (const auto& d : p.decisions)
      decisions.push_back(
          {{"value", d.value}, {"fused", d.fused}, {"reason", d.reason}, {"bytes_saved", d.bytes_saved}});
    for (const auto& k : p.kernels)
      kernels.push_back({{"name", k.name},
                         {"ir", k.text},
                         {"code_bytes", k.code_bytes},
                         {"assembly", disassemble(k.code, k.code_bytes)}});
    programs.push_back({{"key", p.key},
                        {"trace", p.trace},
                        {"primitives", p.primitives},
                        {"groups", groups},
                        {"decisions", decisions},
                        {"report", p.report},
                        {"kernels", kernels},
                        {"shapes", p.shapes},
                        {"guards", p.guards},
                        {"hits", p.hits},
                        {"code_bytes", p.code_bytes},
                        {"compile_ms", p.compile_ms}});
  }
  auto notices = [](const std::vector<Explanation::Notice>& list) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& n : list) out.push_back({{"reason", n.reason}, {"location", n.location}, {"count", n.count}});
    return out;
  };
  nlohmann::json recompiles = nlohmann::json::array();
  for (const auto& r : e.recompiles)
    recompiles.push_back({{"guard", r.guard}, {"before", r.before}, {"after", r.after}});
  return {{"name", e.name},
          {"programs", programs},
          {"graph_breaks", notices(e.breaks)},
          {"fallbacks", notices(e.fallbacks)},
          {"recompiles", recompiles}};
}

}  // namespace

int run_explain(const CommonOptions& options, const std::string& name) {
  if (options.threads) set_num_threads(options.threads);
  Explanation e = explanation_of(name, options.data);
  if (options.json) {
    fmt::print("{}\n", to_json(e).dump());
    return 0;
  }
  fmt::print("{}\n", e.str(/*kernels=*/true));
  for (const auto& p : e.programs)
    for (const auto& k : p.kernels)
      fmt::print("\nassembly of {} ({} bytes)\n{}", k.name, k.code_bytes, disassemble(k.code, k.code_bytes));
  return 0;
}

int run_cache(const CommonOptions& options, const std::string& name) {
  if (options.threads) set_num_threads(options.threads);
  Explanation e = explanation_of(name, options.data);
  if (options.json) {
    nlohmann::json entries = nlohmann::json::array();
    for (const auto& p : e.programs) {
      nlohmann::json kernels = nlohmann::json::array();
      for (const auto& k : p.kernels) kernels.push_back({{"name", k.name}, {"code_bytes", k.code_bytes}});
      entries.push_back({{"key", p.key},
                         {"guards", p.guards},
                         {"shapes", p.shapes},
                         {"kernels", kernels},
                         {"code_bytes", p.code_bytes},
                         {"hits", p.hits},
                         {"compile_ms", p.compile_ms}});
    }
    fmt::print("{}\n", nlohmann::json{{"name", e.name}, {"entries", entries}}.dump());
    return 0;
  }
  fmt::print("{}: {} cache entries\n", e.name, e.programs.size());
  int number = 0;
  for (const auto& p : e.programs) {
    fmt::print("\nentry {}: {} hits, {} kernels, {} bytes of code, compiled in {:.2f} ms\n  shapes {}\n  guards {}\n",
               number++, p.hits, p.kernels.size(), p.code_bytes, p.compile_ms, p.shapes,
               p.guards.empty() ? "none on sizes" : p.guards);
    for (const auto& k : p.kernels) fmt::print("    {:<40} {:>7} bytes\n", k.name, k.code_bytes);
  }
  return 0;
}

}  // namespace ingot::cli
