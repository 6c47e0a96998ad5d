#include "cli/compile_bench.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "eager/execute/caches.h"
#include "ingot.h"

namespace ingot::cli {
namespace {

using Callable = CompileForm::Callable;

Callable chain(int n) {
  return [n](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < n; ++i) y = i % 8 == 7 ? y.softmax(-1) : i % 2 ? y + x : y * 1.01;
    return std::vector<Tensor>{y};
  };
}

Callable layers(int n) {
  return [n, w = linspace(-1, 1, 256).reshape({16, 16}), b = linspace(0, 1, 16)](const Tensor& x) {
    Tensor h = x;
    for (int i = 0; i < n; i += 6) {
      Tensor y = nn::functional::gelu(nn::functional::linear(nn::functional::layer_norm(h, {16}), w, b));
      h = h + nn::functional::linear(y, w) * 0.5;
    }
    return std::vector<Tensor>{h};
  };
}

Callable wide(int n) {
  return [n](const Tensor& x) {
    std::vector<Tensor> parts;
    for (int i = 0; i < n / 3; ++i) parts.push_back((x * (1 + i * 1e-3)).exp());
    Tensor sum = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i];
    return std::vector<Tensor>{sum};
  };
}

Callable readers(int n) {
  return [n, w = linspace(-1, 1, 16)](const Tensor& x) {
    Tensor h = x.softmax(-1);
    std::vector<Tensor> sums;
    for (int i = 0; i < n / 3; ++i) sums.push_back((h * w + i).sum());
    return std::vector<Tensor>{stack(sums, 0)};
  };
}

Callable updates(int n) {
  std::vector<Tensor> parameters;
  for (int i = 0; i < n / 2; ++i) parameters.push_back(zeros({16}));
  return [parameters](const Tensor& x) mutable {
    const Tensor gradient = x.select(0, 0);
    for (Tensor& p : parameters) p.mul_(0.9).add_(gradient);
    return std::vector<Tensor>{parameters.back() * 1};
  };
}

Callable residuals(int n) {
  return [n, w = linspace(-1, 1, 256).reshape({16, 16})](const Tensor& x) {
    Tensor h = x;
    for (int i = 0; i < n; i += 3) h = nn::functional::linear(nn::functional::layer_norm(h + x, {16}), w);
    return std::vector<Tensor>{h};
  };
}

Callable gradients(int n) {
  return [n, w = (linspace(-0.1, 0.1, 256).reshape({16, 16})).requires_grad_()](const Tensor& x) {
    const EnableGradGuard grad;
    Tensor h = x;
    for (int i = 0; i < n; i += 9) h = nn::functional::linear(h, w).tanh();
    return autograd::grad({h.sum()}, {w});
  };
}

constexpr CompileForm kForms[] = {{"chain", "elementwise ops, every eighth a softmax", chain},
                                  {"layers", "equal layers of two products, a norm and a residual", layers},
                                  {"wide", "values of their own, added up", wide},
                                  {"readers", "one value reduced in many ways", readers},
                                  {"updates", "tensors from outside, written in place", updates},
                                  {"residuals", "one value read by each of a chain of norms and products", residuals},
                                  {"gradients", "a recurrent layer, unrolled, and its gradient", gradients}};

double resident_bytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::span<const CompileForm> compile_forms() { return kForms; }

int bench_compile(const BenchOptions& options) {
  using Clock = std::chrono::steady_clock;
  auto milliseconds = [](auto&& body) {
    const Clock::time_point start = Clock::now();
    body();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  nlohmann::json rows = nlohmann::json::array();
  bool equal_bits = true;
  if (!options.json)
    fmt::print("{:<10}{:>8}{:>14}{:>12}{:>14}{:>14}{:>14}\n", "form", "ops", "first ms", "us an op", "other size ms",
               "replay us/op", "KB kept an op");
  for (const CompileForm& form : kForms)
    for (int n : {250, 1000, 4000, 16000}) {
      if (options.length && n > options.length) break;
      clear_caches();
      const Tensor x = randn({8, 16}), y = randn({9, 16});
      const double before = resident_bytes();
      auto fast = compile(form.make(n));
      std::vector<Tensor> got;
      const double first = milliseconds([&] { got = fast(x); });
      equal_bits = equal_bits && bitwise_equal(got, form.make(n)(x));
      const double other = milliseconds([&] { (void)fast(y); });
      std::vector<double> replays;
      for (int call = 0; call < 9; ++call) replays.push_back(milliseconds([&] { (void)fast(x); }));
      const double replay = median(std::move(replays));
      const double kept = (resident_bytes() - before) / n / 1024;
      rows.push_back({{"form", form.name},
                      {"what", form.what},
                      {"ops", n},
                      {"first_ms", first},
                      {"first_us_an_op", first * 1e3 / n},
                      {"other_size_ms", other},
                      {"replay_us_an_op", replay * 1e3 / n},
                      {"kept_kb_an_op", kept},
                      {"compilations", fast.stats().compilations}});
      if (!options.json)
        fmt::print("{:<10}{:>8}{:>14.2f}{:>12.1f}{:>14.2f}{:>14.2f}{:>14.2f}\n", form.name, n, first, first * 1e3 / n,
                   other, replay * 1e3 / n, kept);
    }
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"name", "compile"}, {"bitwise_equal", equal_bits}, {"rows", rows}}.dump());
  else
    fmt::print("{}\n", equal_bits ? "same bits as eager" : "BITS DIFFER");
  return equal_bits ? 0 : 1;
}

}  // namespace ingot::cli
