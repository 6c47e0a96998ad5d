#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ingot::cli {

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) return false;
  Tensor x = a.contiguous(), y = b.contiguous();
  auto bytes = static_cast<size_t>(x.numel() * size_of(x.dtype()));
  if (std::memcmp(x.data_ptr(), y.data_ptr(), bytes) == 0) return true;
  if (!is_floating(x.dtype())) return false;
  // Only NaNs may differ: elements are equal as numbers with the same sign, or both NaN.
  Tensor equal_bits = x.eq(y).logical_and(x.signbit().eq(y.signbit()));
  return equal_bits.logical_or(x.isnan().logical_and(y.isnan())).all().item<bool>();
}

double max_abs_difference(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes()) return INFINITY;
  if (a.numel() == 0) return 0;
  return (a.to(kFloat64) - b.to(kFloat64)).abs().amax().item<double>();
}

double modelled_us(const Explanation& explanation, const Roof& roof) {
  double us = 0;
  if (explanation.programs.empty()) return us;
  for (const auto& step : explanation.programs.back().steps) us += roof.floor_us(step.operations, step.bytes);
  return us;
}

Run measure_run(const DemoModel& model, int batch, CompileMode mode, const Roof& roof, double seconds) {
  auto fast = compile(model.forward, {.mode = mode, .name = model.name});
  Tensor x = model.input(batch);
  Run run;
  run.batch = batch;
  Tensor expected = model.forward(x);
  run.bitwise_equal = true;
  for (int call = 0; call < 4; ++call) {
    Tensor got = fast(x);
    run.bitwise_equal = run.bitwise_equal && same_bits(got, expected);
    run.max_abs_error = std::max(run.max_abs_error, max_abs_difference(got, expected));
  }
  auto times = interleave({[&] { (void)model.forward(x); }, [&] { (void)fast(x); }}, seconds);
  run.eager = times[0];
  run.compiled = times[1];
  run.roof_us = modelled_us(fast.explain(), roof);
  run.statistics = fast.stats();
  return run;
}

std::string duration(double us) {
  if (us < 1000) return fmt::format("{:.1f} us", us);
  return us < 1e6 ? fmt::format("{:.2f} ms", us / 1e3) : fmt::format("{:.2f} s", us / 1e6);
}

}  // namespace ingot::cli
