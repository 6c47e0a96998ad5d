#include <cmath>
#include <numbers>

#include "eager/ops/checks.h"
#include "eager/ops/densities.h"
#include "eager/ops/lists.h"
#include "eager/ops/random.h"

namespace ingot {
namespace {

using eager::deviance;
using eager::fail;
using eager::stirling_error;

constexpr double kMost = 1e12;  // a number takes about as many steps as the root of its variance

/// Visits numbers from the most likely one outwards, and takes the probability of each off a uniform one until nothing
/// is left. `up`, `down`: what the next number's probability is of that of n.
template <class Up, class Down>
double visited(double u, double mode, double probability, Up up, Down down) {
  constexpr double kNothing = 1e-20;  // far below what a uniform number resolves
  double above = mode, below = mode, p_above = probability, p_below = probability;
  u -= probability;
  while (u >= 0 && p_above + p_below > kNothing) {
    p_above *= up(above++);
    u -= p_above;
    if (u < 0) return above;
    p_below *= down(below--);
    u -= p_below;
    if (u < 0) return below;
  }
  return mode;
}

double poisson_number(double rate, double u) {
  const double mode = std::floor(rate);
  return visited(
      u, mode, eager::poisson_density(mode, rate), [=](double n) { return rate / (n + 1); },
      [=](double n) { return n / rate; });
}
double binomial_number(double count, double prob, double u) {
  // Of the rarer outcome.
  if (prob > 0.5) return count - binomial_number(count, 1 - prob, u);
  const double other = 1 - prob, mode = std::floor(count * prob), rest = count - mode;
  const double p = mode == 0 ? std::exp(count * std::log1p(-prob))
                             : std::exp(stirling_error(count) - stirling_error(mode) - stirling_error(rest) -
                                        deviance(mode, count * prob) - deviance(rest, count * other)) *
                                   std::sqrt(count / (2 * std::numbers::pi * mode * rest));
  return visited(
      u, mode, p, [=](double n) { return (count - n) / (n + 1) * (prob / other); },
      [=](double n) { return n / (count - n + 1) * (other / prob); });
}

/// Elements of f64 that the host reads.
Tensor readable(const Tensor& t) { return t.detach().to(kFloat64).contiguous(); }

}  // namespace

Tensor poisson(const TensorArg& self, const std::optional<Generator>& generator) {
  const CallerLine line(self.location);
  const Tensor& x = eager::present_floating("poisson", "self", self);
  const Tensor rates = readable(x);
  const double* rate = rates.data_ptr<double>();
  const int64_t n = rates.numel();
  for (int64_t i = 0; i < n; ++i)
    if (!(rate[i] >= 0 && rate[i] <= kMost))
      fail("poisson", "self", "a rate of " + std::to_string(rate[i]), "rates from 0 to 1e12", self.location);
  const Tensor result = rand_like(rates, {}, generator);
  double* number = result.mutable_data_ptr<double>();
  for (int64_t i = 0; i < n; ++i) number[i] = rate[i] == 0 ? 0 : poisson_number(rate[i], number[i]);
  return result.to(x.dtype());
}

Tensor binomial(const TensorArg& count, const TensorArg& prob, const std::optional<Generator>& generator) {
  const CallerLine line(count.location);
  const Tensor &c = eager::present_floating("binomial", "count", count),
               &p = eager::present_floating("binomial", "prob", prob);
  if (p.dtype() != c.dtype())
    fail("binomial", "prob", eager::dtype_text(p), std::string(name_of(c.dtype())) + ", the dtype of count",
         count.location);
  const std::vector<Tensor> both = broadcast_tensors({c, p});
  const Tensor counts = readable(both[0]), probabilities = readable(both[1]);
  const double *trials = counts.data_ptr<double>(), *chance = probabilities.data_ptr<double>();
  const int64_t n = counts.numel();
  for (int64_t i = 0; i < n; ++i) {
    if (!(trials[i] >= 0 && trials[i] <= kMost && trials[i] == std::floor(trials[i])))
      fail("binomial", "count", std::to_string(trials[i]), "whole numbers from 0 to 1e12", count.location);
    if (!(chance[i] >= 0 && chance[i] <= 1))
      fail("binomial", "prob", std::to_string(chance[i]), "numbers from 0 to 1", count.location);
  }
  const Tensor result = rand_like(counts, {}, generator);
  double* number = result.mutable_data_ptr<double>();
  for (int64_t i = 0; i < n; ++i)
    number[i] = chance[i] == 0 ? 0 : chance[i] == 1 ? trials[i] : binomial_number(trials[i], chance[i], number[i]);
  return result.to(c.dtype());
}

}  // namespace ingot
