// Parts of the probabilities of counts that lose no digits: Loader, Fast and Accurate Computation of Binomial
// Probabilities, 2000. Not in the API.
#pragma once
#include <cmath>
#include <numbers>

namespace ingot::eager {

/// log(gamma(n + 1)) less Stirling's formula for it.
inline double stirling_error(double n) {
  if (n < 16) return std::lgamma(n + 1) - (n + 0.5) * std::log(n) + n - 0.5 * std::log(2 * std::numbers::pi);
  const double square = 1 / (n * n);
  return (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square * (1.0 / 1680 - square / 1188)))) / n;
}
/// n log(n / mean) + mean - n, of near numbers by a series: the terms cancel.
inline double deviance(double n, double mean) {
  const double apart = n - mean, share = apart / (n + mean);
  if (std::fabs(share) > 0.1) return n * std::log(n / mean) - apart;
  double sum = apart * share, term = 2 * n * share;
  for (int k = 3;; k += 2) {
    const double before = sum;
    sum += (term *= share * share) / k;
    if (sum == before) return sum;
  }
}
/// mean^n exp(-mean) / gamma(n + 1)
inline double poisson_density(double n, double mean) {
  if (n < 1) return std::exp(n * std::log(mean) - mean - std::lgamma(n + 1));
  return std::exp(-stirling_error(n) - deviance(n, mean)) / std::sqrt(2 * std::numbers::pi * n);
}

}  // namespace ingot::eager
