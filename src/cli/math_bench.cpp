#include "cli/math_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/accuracy.h"
#include "compile/compare.h"
#include "runtime/cpu.h"

namespace ingot::cli {
namespace {

constexpr int64_t kCount = 2048;  // source and destination stay in L1
constexpr int kSampledMantissas = 512;

/// Clock rate in GHz, from a chain of multiplications: 3 cycles each on every processor with AVX2.
double clock_ghz() {
  constexpr int kSteps = 1'000'000;
  double best = 0;
  volatile uint64_t sink = 0x9e3779b97f4a7c15;
  for (int round = 0; round < 5; ++round) {
    const uint64_t factor = sink;
    uint64_t x = factor;
    const double start = now_us();
    for (int i = 0; i < kSteps; ++i) x *= factor;
    best = std::max(best, 3.0 * kSteps / (now_us() - start) / 1e3);
    sink = x;
  }
  return best;
}

/// Random numbers for which the function is defined.
std::vector<float> inputs_of(const UnaryFunction& function) {
  constexpr double kRanges[][2] = {{-4, 4}, {0.001, 4}, {-0.999, 0.999}, {0.001, 0.999}, {1, 4}};
  std::mt19937 random(7);
  std::vector<float> x(kCount);
  std::vector<double> y;
  for (auto [low, high] : kRanges) {
    std::uniform_real_distribution<float> uniform(static_cast<float>(low), static_cast<float>(high));
    for (float& v : x) v = uniform(random);
    function.exact(x, y);
    if (std::none_of(y.begin(), y.end(), [](double v) { return std::isnan(v); })) break;
  }
  return x;
}

/// Numbers at which functions like sigmoid have long reached their ends, if this one is defined there.
std::vector<float> far_inputs_of(const UnaryFunction& function) {
  std::vector<double> y;
  for (float other : {-100.0f, 100.0f}) {
    std::vector<float> x(kCount, 100.0f);
    for (size_t i = 0; i < x.size(); i += 2) x[i] = other;
    function.exact(x, y);
    if (std::none_of(y.begin(), y.end(), [](double v) { return std::isnan(v); })) return x;
  }
  return {};
}

double cycles_of_16(const UnaryKernel& kernel, const std::vector<float>& inputs, double seconds) {
  // Where they lie modulo a page, and in a line, moves the shortest functions by a fifth: always at the same places.
  struct alignas(4096) Buffers {
    float x[kCount];
    char apart[512];
    float y[kCount];
  };
  const auto buffers = std::make_unique<Buffers>();
  std::ranges::copy(inputs, buffers->x);
  const double microseconds = interleave({[&] { kernel.run(buffers->x, buffers->y, kCount); }}, seconds)[0].median;
  return microseconds * 1e3 * clock_ghz() / (kCount / 16.0);
}

}  // namespace

int bench_math(const BenchOptions& options) {
  const std::vector<UnaryFunction> functions = unary_functions();
  const std::vector<float> sample = sample_inputs(kSampledMantissas, 1);
  nlohmann::json list = nlohmann::json::array();
  bool kept = true;
  if (!options.json)
    fmt::print(
        "{}, f32 in L1: cycles for 16 numbers, for those of +-100, and the largest error of {} sampled inputs\n"
        "{:<16}{:>8}{:>8}{:>8}{:>8}\n",
        runtime::host_target().str(), sample.size(), "function", "cycles", "far", "ulp", "bound");
  for (const UnaryFunction& function : functions) {
    const UnaryKernel kernel(function, runtime::host_target());
    const Accuracy accuracy = measure(function, kernel, sample);
    const double seconds = options.seconds / static_cast<double>(2 * functions.size());
    const double cycles = cycles_of_16(kernel, inputs_of(function), seconds);
    const std::vector<float> far_inputs = far_inputs_of(function);
    const double far = far_inputs.empty() ? 0 : cycles_of_16(kernel, far_inputs, seconds);
    kept = kept && accuracy.over == 0;
    list.push_back(
        {{"function", function.name}, {"cycles_16", cycles}, {"max_ulp", accuracy.worst}, {"bound", function.bound}});
    if (!far_inputs.empty()) list.back()["cycles_16_far"] = far;
    if (!options.json)
      fmt::print("{:<16}{:>8.1f}{:>8}{:>8.2f}{:>8.1f}\n", function.name, cycles,
                 far_inputs.empty() ? "-" : fmt::format("{:.1f}", far), accuracy.worst, function.bound);
  }
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"name", "math"},
                                      {"isa", runtime::host_target().str()},
                                      {"sampled_inputs", sample.size()},
                                      {"functions", list}}
                           .dump());
  return kept ? 0 : 1;
}

}  // namespace ingot::cli
