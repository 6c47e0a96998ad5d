#include "cli/train_bench.h"

#include <fmt/format.h>

#include "cli/train_run.h"
#include "runtime/cpu.h"

namespace ingot::cli {
namespace {

constexpr int kCheckedSteps = 4;

}  // namespace

int bench_train(const BenchOptions& options) {
  const Roof roof = measure_roof(num_threads(), 0.5, true);
  RecipeNumbers numbers;
  if (options.batch) numbers["batch"] = options.batch;
  numbers["autocast"] = options.autocast;
  auto make = [&] { return std::make_unique<Training>(options.name, options.data, "", numbers); };
  Contender eager(Compiled::nothing, make), compiled(Compiled::step, make), parts(Compiled::parts, make);
  bool equal_bits = true;
  for (int i = 0; i < kCheckedSteps; ++i) {
    const Batch batch = eager.training().next_batch();
    auto loss = [&](Contender& who) {
      manual_seed(static_cast<uint64_t>(i));  // the same masks of dropout
      return who.step(batch).loss;
    };
    const Tensor right = loss(eager);
    for (Contender* who : {&compiled, &parts}) equal_bits = ingot::bitwise_equal(right, loss(*who)) && equal_bits;
  }
  for (Contender* who : {&compiled, &parts}) equal_bits = same_state(eager.training(), who->training()) && equal_bits;
  const Batch batch = eager.training().next_batch();
  const auto times = interleave(
      {[&] { (void)eager.step(batch); }, [&] { (void)compiled.step(batch); }, [&] { (void)parts.step(batch); }},
      options.seconds);
  const Explanation explained = compiled.explain();
  const Statistics& s = explained.statistics;
  const double roof_us = modelled_us(explained, roof);
  const double speedup = times[0].median / times[1].median, share = roof_us / times[1].median;
  const Recipe& recipe = eager.training().recipe();
  std::vector<StepReport> steps;
  if (options.steps) steps = time_steps([&] { (void)compiled.step(batch); }, roof);
  if (options.json) {
    nlohmann::json result = {{"name", options.name},
                             {"mode", "train"},
                             {"threads", num_threads()},
                             {"isa", runtime::host_target().str()},
                             {"batch", recipe.batch},
                             {"autocast", recipe.autocast},
                             {"eager_us", times[0].median},
                             {"compiled_us", times[1].median},
                             {"parts_us", times[2].median},
                             {"speedup", speedup},
                             {"compile_ms", s.compile_ms},
                             {"first_eager_us", eager.first_ms() * 1e3},
                             {"first_compiled_us", compiled.first_ms() * 1e3},
                             {"compilations", s.compilations},
                             {"graph_breaks", s.graph_breaks},
                             {"fallbacks", s.fallbacks},
                             {"peak_bytes_eager", eager.peak_bytes()},
                             {"peak_bytes_compiled", compiled.peak_bytes()},
                             {"peak_bytes_parts", parts.peak_bytes()},
                             {"step_bytes_eager", eager.step_bytes()},
                             {"step_bytes_compiled", compiled.step_bytes()},
                             {"scratch_bytes", memory_stats().scratch_bytes},
                             {"bitwise_equal", equal_bits},
                             {"roof_share", share},
                             {"roof_us", roof_us}};
    if (options.steps) result["steps"] = to_json(steps);
    fmt::print("{}\n", result.dump());
  } else {
    fmt::print("{}, a training step of {}{}, {} threads, {}\n", options.name, recipe.batch,
               recipe.autocast ? ", autocast to bf16" : "", num_threads(), runtime::host_target().str());
    auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    auto show = [&](const char* who, const Timing& t, const Contender& c) {
      fmt::print("  {:<9}{:>10}   ({} to {})   {:.1f} MiB at most, {:.1f} MiB of them a step's own\n", who,
                 duration(t.median), duration(t.low), duration(t.high), mib(c.peak_bytes()), mib(c.step_bytes()));
    };
    show("eager", times[0], eager), show("compiled", times[1], compiled), show("in parts", times[2], parts);
    fmt::print("  {:.2f}x, {}; modelled roof {} ({:.0f}%)\n", speedup, equal_bits ? "same bits" : "BITS DIFFER",
               duration(roof_us), 100 * share);
    fmt::print(
        "  compiled in {:.1f} ms, {} compilations, {} graph breaks, {} fallbacks; first steps: eager {}, compiled {}\n",
        s.compile_ms, s.compilations, s.graph_breaks, s.fallbacks, duration(eager.first_ms() * 1e3),
        duration(compiled.first_ms() * 1e3));
    print_steps(steps);
  }
  const Explanation in_parts = parts.explain();
  const bool went_back = in_parts.backward.size() == 1 && !in_parts.backward[0].statistics.fallbacks;
  return equal_bits && s.fallbacks == 0 && s.graph_breaks == 0 && went_back ? 0 : 1;
}

}  // namespace ingot::cli
