#include "compile/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "eager/ops/functions.h"
#include "eager/ops/operators.h"

namespace ingot {
namespace {

constexpr double kShortestSample = 20;  // microseconds: hundreds of clock ticks
constexpr int kTurn = 8;                // samples a contender takes before the next one's turn

Timing summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto at = [&](double share) { return samples[static_cast<size_t>(share * static_cast<double>(samples.size() - 1))]; };
  return {at(0.5), at(0.1), at(0.9)};
}

}  // namespace

double now_us() {
  auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(time).count();
}

std::vector<Timing> interleave(const std::vector<std::function<void()>>& contenders, double seconds) {
  std::vector<int> calls(contenders.size());
  for (size_t i = 0; i < contenders.size(); ++i) {
    for (int warm = 0; warm < 3; ++warm) contenders[i]();
    double start = now_us();
    contenders[i]();
    calls[i] = std::max(1, static_cast<int>(kShortestSample / std::max(0.01, now_us() - start)));
  }
  std::vector<std::vector<double>> samples(contenders.size());
  double end = now_us() + seconds * 1e6;
  do {
    for (size_t i = 0; i < contenders.size(); ++i)
      for (int turn = 0; turn < kTurn; ++turn) {
        double start = now_us();
        for (int call = 0; call < calls[i]; ++call) contenders[i]();
        samples[i].push_back((now_us() - start) / calls[i]);
      }
  } while (now_us() < end);
  std::vector<Timing> timings;
  for (auto& s : samples) timings.push_back(summarize(std::move(s)));
  return timings;
}

bool bitwise_equal(const Tensor& a, const Tensor& b) {
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

std::string duration(double us) {
  if (us < 1000) return fmt::format("{:.1f} us", us);
  return us < 1e6 ? fmt::format("{:.2f} ms", us / 1e3) : fmt::format("{:.2f} s", us / 1e6);
}

std::string Comparison::str() const {
  auto times = [](const Timing& t) {
    return fmt::format("{} ({} to {})", duration(t.median), duration(t.low), duration(t.high));
  };
  return fmt::format("eager {}, compiled {}: {:.2f} times as fast, {}", times(eager), times(compiled), speedup(),
                     bitwise_equal ? "the same bits" : fmt::format("results differ by up to {:.1e}", max_abs_error));
}

void detail::compare_results(const LeafList& expected, const LeafList& got, Comparison& comparison) {
  const std::span<const Leaf> a = expected.items(), b = got.items();
  auto differ = [&](double error) {
    comparison.bitwise_equal = false;
    comparison.max_abs_error = std::max(comparison.max_abs_error, error);
  };
  if (a.size() != b.size()) return differ(INFINITY);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].kind != b[i].kind || a[i].bits != b[i].bits || a[i].text() != b[i].text()) {
      differ(INFINITY);
    } else if (a[i].kind == Leaf::Kind::tensor) {
      const Tensor &x = *a[i].tensor(), &y = *b[i].tensor();
      if (x.defined() != y.defined())
        differ(INFINITY);
      else if (x.defined() && !ingot::bitwise_equal(x, y))
        differ(max_abs_difference(x, y));
    }
  }
}

void detail::compare_times(const std::function<void()>& eager, const std::function<void()>& compiled,
                           const CompareOptions& options, Comparison& comparison) {
  std::vector<Timing> times = interleave({eager, compiled}, options.seconds);
  comparison.eager = times[0];
  comparison.compiled = times[1];
}

}  // namespace ingot
