#include <fmt/format.h>

#include <cmath>

#include "cli/commands.h"
#include "cli/train_run.h"
#include "runtime/cpu.h"
#include "runtime/thread_pool.h"

namespace ingot::cli {
namespace {

constexpr double kSecondsPerRun = 1.0;
constexpr int64_t kGeneratedLength = 128;

struct ModelReport {
  std::string name, metric;
  double expected = 0, eager = 0, compiled = 0;
  bool bitwise_equal = true;
  Statistics statistics;  // of the whole data set, both batch sizes and decoding, through one compiled function
  std::vector<Run> runs;
  std::string generated;
};

ModelReport report_on(const std::string& name, const std::string& data, const Roof& roof) {
  DemoModel model = demo_model(name, data);
  ModelReport report;
  report.name = name;
  report.metric = model.metric;
  report.expected = model.expected;
  auto fast = compile(model.forward, {.name = name});
  progress(name + ": the whole data set, eager");
  report.eager = model.evaluate(model.forward);
  progress(name + ": the whole data set, compiled");
  report.compiled = model.evaluate([&](const Tensor& x) {
    Tensor got = fast(x);
    report.bitwise_equal = report.bitwise_equal && bitwise_equal(got, model.forward(x));
    return got;
  });
  if (name == "bytegpt") {
    progress(name + ": generating text");
    report.generated = generate_greedily([&](const Tensor& x) { return fast(x); }, model.prompt, kGeneratedLength);
    std::string eager = generate_greedily(model.forward, model.prompt, kGeneratedLength);
    report.bitwise_equal = report.bitwise_equal && report.generated == eager;
  }
  report.statistics = fast.stats();
  for (int batch : {model.small_batch, model.large_batch}) {
    progress(fmt::format("{}: measuring batch {}", name, batch));
    report.runs.push_back(
        measure_run(model.name, model.forward, model.input(batch), batch, CompileMode::checked, roof, kSecondsPerRun));
    report.bitwise_equal = report.bitwise_equal && report.runs.back().bitwise_equal;
  }
  return report;
}

nlohmann::json model_json(const ModelReport& r) {
  nlohmann::json runs = nlohmann::json::array();
  for (const Run& run : r.runs)
    runs.push_back({{"batch", run.batch},
                    {"eager_us", run.eager.median},
                    {"compiled_us", run.compiled.median},
                    {"speedup", run.speedup()},
                    {"roof_share", run.roof_share()},
                    {"roof_us", run.roof_us}});
  const Statistics& s = r.statistics;
  return {{"name", r.name},
          {"metric", r.metric},
          {"expected", r.expected},
          {"eager", r.eager},
          {"compiled", r.compiled},
          {"bitwise_equal", r.bitwise_equal},
          {"compile_ms", s.compile_ms},
          {"compilations", s.compilations},
          {"fallbacks", s.fallbacks},
          {"recompile_limit_hits", s.recompile_limit_hits},
          {"ops", s.ops_traced},
          {"kernels", s.kernels},
          {"graph_breaks", s.graph_breaks},
          {"cache_entries", s.cache_entries},
          {"runs", runs}};
}

std::string value_text(const ModelReport& r, double value) {
  return r.metric == "bits per byte" ? fmt::format("{:.6f}", value) : fmt::format("{:.0f}", value);
}

void print_model(const ModelReport& r) {
  const Statistics& s = r.statistics;
  fmt::print("\n{}  ({})\n", r.name, r.metric);
  fmt::print("  result     eager {}   compiled {}   expected {}   {}\n", value_text(r, r.eager),
             value_text(r, r.compiled), value_text(r, r.expected),
             r.bitwise_equal ? "same bits eager and compiled" : "BITS DIFFER");
  double widest = 0;
  for (const Run& run : r.runs) widest = std::max(widest, run.eager.median / run.compiled.median);
  for (const Run& run : r.runs) {
    fmt::print("  batch {:<4} eager {:>10}   compiled {:>10}   {:5.2f}x   {:3.0f}% of the modelled roof\n", run.batch,
               duration(run.eager.median), duration(run.compiled.median), run.speedup(), 100 * run.roof_share());
    int full = 40, part = std::max(1, static_cast<int>(std::lround(full / std::max(1.0, run.speedup()))));
    fmt::print("             eager    {}\n             compiled {}\n", std::string(full, '#'), std::string(part, '#'));
  }
  fmt::print(
      "  compiled   in {} ms: {} compilations, {} ops traced, {} kernels, {} cache entries; {} graph breaks, {} "
      "fallbacks\n",
      fmt::format("{:.1f}", s.compile_ms), s.compilations, s.ops_traced, s.kernels, s.cache_entries, s.graph_breaks,
      s.fallbacks);
}

// The GPT again, from random weights.
TrainReport short_training(const CommonOptions& common) {
  TrainOptions options;
  static_cast<CommonOptions&>(options) = common;
  options.name = "bytegpt", options.mode = "compare", options.sample_every = 0;
  options.numbers = {{"steps", 60}, {"batch", 4}, {"warmup", 10}};
  return train(options, [](const TrainStep& s, const TrainReport& r) {
    progress(fmt::format("training {} {}/{}  loss {:.4f}",
                         bar(static_cast<double>(s.step) / static_cast<double>(r.recipe.steps), 30), s.step,
                         r.recipe.steps, s.of[0].loss));
  });
}

bool good(const ModelReport& r) {
  const Statistics& s = r.statistics;
  double tolerance = r.metric == "bits per byte" ? 1e-5 * r.expected : 0;
  return r.bitwise_equal && s.fallbacks == 0 && s.recompile_limit_hits == 0 && s.graph_breaks == 0 &&
         std::abs(r.eager - r.expected) <= tolerance && std::abs(r.compiled - r.expected) <= tolerance;
}

}  // namespace

int run_demo(const CommonOptions& options) {
  if (options.threads) set_num_threads(options.threads);
  progress("measuring the machine");
  Roof roof = measure_roof(num_threads(), 0.5, false);
  std::vector<ModelReport> reports;
  for (const std::string& name : model_names()) reports.push_back(report_on(name, options.data, roof));
  const TrainReport training = short_training(options);
  progress("");
  const Statistics& step = training.statistics;
  bool all_good = training.bitwise_equal && step.graph_breaks == 0 && step.fallbacks == 0;
  std::string generated;
  for (const ModelReport& r : reports) {
    all_good = all_good && good(r);
    if (!r.generated.empty()) generated = r.generated;
  }
  if (options.json) {
    nlohmann::json models = nlohmann::json::array();
    for (const ModelReport& r : reports) models.push_back(model_json(r));
    fmt::print("{}\n", nlohmann::json{{"threads", num_threads()},
                                      {"isa", runtime::host_target().str()},
                                      {"models", models},
                                      {"training", to_json(training)},
                                      {"generated", generated}}
                           .dump());
    return all_good ? 0 : 1;
  }
  fmt::print(
      "Ingot: three models on real data, eager and compiled side by side ({} threads, {}; f32 peak {:.0f} GFLOP/s)\n",
      num_threads(), runtime::host_target().str(), roof.fma_gflops);
  for (const ModelReport& r : reports) {
    print_model(r);
    if (!r.generated.empty()) fmt::print("  generated  \"{}\"\n", r.generated);
  }
  fmt::print("\nbytegpt, trained from scratch: {} steps of {} windows, the whole step compiled\n",
             training.losses.size(), training.recipe.batch);
  print_training(training);
  fmt::print(
      "\n{}\n",
      all_good ? "All three give the expected results, and training the same ones, eager and compiled, to the same bit."
               : "NOT as expected: see above.");
  return all_good ? 0 : 1;
}

}  // namespace ingot::cli
