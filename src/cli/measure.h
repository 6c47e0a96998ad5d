// Interleaved timing: contenders take turns, medians and spreads are kept.
#pragma once
#include <functional>
#include <vector>

namespace ingot::cli {

/// Times of one contender, in microseconds a call.
struct Timing {
  double median = 0, low = 0, high = 0;  // low and high: 10th and 90th percentile of the samples
};

/// Runs the contenders in turns for about `seconds` in all, after a warm-up. A sample is one call, or a batch of calls
/// where a call is too short for the clock (then their mean).
std::vector<Timing> interleave(const std::vector<std::function<void()>>& contenders, double seconds);

double now_us();

}  // namespace ingot::cli
