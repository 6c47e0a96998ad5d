#include "cli/kernel_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/report.h"
#include "runtime/cpu.h"

namespace ingot::cli {
namespace {

struct KernelRun {
  Timing eager, compiled;
  double roof_us = 0, error = 0;  // error: relative to the largest result
  bool bitwise_equal = true;
  Statistics statistics;
  bool good(const KernelCase& c) const {
    return (bitwise_equal || numerics() == Numerics::fast) && error <= c.tolerance && statistics.fallbacks == 0;
  }
  double share() const { return roof_us / compiled.median; }
};

KernelRun run_case(const KernelBench& bench, const KernelCase& c, const BenchOptions& options) {
  manual_seed(1);
  Tensors operands, wide;
  const std::vector<Sizes> shapes = bench.operands(c.sizes);
  const size_t weights = bench.constants < 0 ? 1 : shapes.size() - static_cast<size_t>(bench.constants);
  for (size_t i = 0; i < shapes.size(); ++i) {
    Tensor x = randn(shapes[i]);
    const bool weight = i >= weights && shapes[i].size() >= 2;
    if (weight) x = x / std::sqrt(static_cast<double>(x.numel() / x.size(0)));
    if (weight && c.weights == kInt8) x = nn::quantize_int8(x).weight;
    operands.push_back(x.to(weight ? c.weights.value_or(c.dtype) : c.dtype));
    wide.push_back(operands.back().to(kFloat64));
  }
  const auto given = operands.begin() + static_cast<std::ptrdiff_t>(weights);
  const Tensors arguments(operands.begin(), given), constants(given, operands.end());
  auto fast = compile(
      [&](const Tensors& t) {
        Tensors all = t;
        all.insert(all.end(), constants.begin(), constants.end());
        return bench.compute(all, c.sizes);
      },
      {.mode = options.mode == "frozen" ? CompileMode::frozen : CompileMode::checked, .name = bench.name});

  KernelRun run;
  Tensor expected = bench.compute(operands, c.sizes), exact = bench.compute(wide, c.sizes);
  const double largest = exact.abs().amax().item<double>();
  run.error = max_abs_difference(expected, exact) / largest;
  for (int call = 0; call < 4; ++call) {
    const Tensor got = fast(arguments);
    run.bitwise_equal = run.bitwise_equal && ingot::bitwise_equal(got, expected);
    run.error = std::max(run.error, max_abs_difference(got, exact) / largest);
  }
  expected = exact = Tensor();
  wide.clear();

  // The roof is measured in turns with the kernel: clocks and neighbours change from one second to the next.
  const Work work = bench.work(c.sizes, static_cast<double>(size_of(c.weights.value_or(c.dtype))));
  const bool dot = c.dtype == kBFloat16 && runtime::host_target().bf16_dot;
  const Ceiling arithmetic = arithmetic_ceiling(num_threads(), dot ? CeilingLoop::dot_bf16 : CeilingLoop::fma_f32);
  const Ceiling memory = memory_ceiling(num_threads(), work.bytes, work.memory);
  std::vector<std::function<void()>> contenders{[&] { (void)bench.compute(operands, c.sizes); },
                                                [&] { (void)fast(arguments); }};
  const bool measures_roof = arithmetic.call && memory.call;
  // A math function takes, an element of f32 in L1 on one thread, the slope between two sizes: calls cost nothing.
  constexpr int64_t kFew = 1 << 10, kMany = 4 << 10;
  const Tensor few = randn({kFew}), many = randn({kMany});
  if (measures_roof) {
    contenders.push_back(arithmetic.call);
    contenders.push_back(memory.call);
    for (const MathCalls& math : work.math)
      for (const Tensor& x : {few, many}) contenders.push_back([&math, x] { (void)math.function(x); });
  }
  auto times = interleave(contenders, options.seconds / static_cast<double>(bench.cases.size()));
  run.eager = times[0], run.compiled = times[1];
  if (measures_roof) {
    double us = work.operations * times[2].median / arithmetic.amount;
    for (size_t i = 0; i < work.math.size(); ++i)
      us += work.math[i].calls * (times[2 * i + 5].median - times[2 * i + 4].median) / (kMany - kFew) / num_threads();
    run.roof_us = std::max(us, work.bytes * times[3].median / memory.amount);
  }
  run.statistics = fast.stats();
  return run;
}

}  // namespace

int bench_kernel(const KernelBench& bench, const BenchOptions& options) {
  std::vector<KernelRun> runs;
  for (const KernelCase& c : bench.cases) runs.push_back(run_case(bench, c, options));
  bool good = true;
  size_t worst = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    good = good && runs[i].good(bench.cases[i]);
    if (runs[i].share() < runs[worst].share()) worst = i;
  }
  if (options.json) {
    nlohmann::json cases = nlohmann::json::array();
    for (size_t i = 0; i < runs.size(); ++i) {
      const KernelRun& r = runs[i];
      cases.push_back({{"name", bench.name},
                       {"mode", options.mode},
                       {"threads", num_threads()},
                       {"sizes", bench.cases[i].sizes},
                       {"dtype", name_of(bench.cases[i].dtype)},
                       {"weights", name_of(bench.cases[i].weights.value_or(bench.cases[i].dtype))},
                       {"eager_us", r.eager.median},
                       {"compiled_us", r.compiled.median},
                       {"speedup", r.eager.median / r.compiled.median},
                       {"compile_ms", r.statistics.compile_ms},
                       {"compilations", r.statistics.compilations},
                       {"fallbacks", r.statistics.fallbacks},
                       {"max_abs_error", r.error},
                       {"bitwise_equal", r.bitwise_equal},
                       {"roof_us", r.roof_us},
                       {"roof_share", r.share()}});
    }
    nlohmann::json result = cases[worst];  // the case that is furthest from its roof, then all
    result["cases"] = cases;
    fmt::print("{}\n", result.dump());
    return good ? 0 : 1;
  }
  fmt::print("{} ({}), {} threads, {} mode, aim {:.0f}% of the roof\n", bench.name, bench.sizes, num_threads(),
             options.mode, 100 * bench.target);
  fmt::print("{:<24}{:>12}{:>12}{:>24}{:>12}{:>8}{:>10}\n", "", "eager", "compiled", "(10% to 90%)", "roof", "share",
             "error");
  for (size_t i = 0; i < runs.size(); ++i) {
    const KernelRun& r = runs[i];
    const KernelCase& c = bench.cases[i];
    const std::string label = fmt::format("{} {}{}", fmt::join(c.sizes, "x"), name_of(c.dtype),
                                          c.weights ? " x " + std::string(name_of(*c.weights)) : "");
    const std::string spread = fmt::format("({} to {})", duration(r.compiled.low), duration(r.compiled.high));
    fmt::print("{:<24}{:>12}{:>12}{:>24}{:>12}{:>7.0f}%{:>10.1e}{}{}\n", label, duration(r.eager.median),
               duration(r.compiled.median), spread, duration(r.roof_us), 100 * r.share(), r.error,
               r.bitwise_equal ? "" : "  BITS DIFFER", r.error <= bench.cases[i].tolerance ? "" : "  WRONG");
  }
  return good ? 0 : 1;
}

}  // namespace ingot::cli
