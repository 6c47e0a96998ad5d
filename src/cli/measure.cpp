#include "cli/measure.h"

#include <algorithm>
#include <chrono>

namespace ingot::cli {
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

}  // namespace ingot::cli
