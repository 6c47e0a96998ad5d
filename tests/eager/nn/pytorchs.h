// Results and gradients beside PyTorch's, in double: inputs are cosines of their positions, and each tensor is compared
// by a weighted sum.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "eager/autograd/autograd.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot::test {

/// cos(0.61 i + phase).
inline Tensor input(const IntList& sizes, double phase = 0) {
  int64_t count = 1;
  for (int64_t size : sizes.items()) count *= size;
  return (arange(count).to(kFloat64) * 0.61 + phase).cos().reshape(sizes).detach().requires_grad_();
}
/// With the weights sin(0.3 i + 1).
inline Tensor weighed(const Tensor& y) {
  return (y * (arange(y.numel()).to(kFloat64) * 0.3 + 1).sin().reshape(y.sizes().vec())).sum();
}
/// `expected`: of y, then of the gradients of its weighted sum with respect to `inputs`.
inline void expect_pytorchs(const Tensor& y, const std::vector<Tensor>& inputs, const std::vector<double>& expected,
                            const char* what, int line) {
  SCOPED_TRACE(std::string(what) + ", line " + std::to_string(line));
  ASSERT_EQ(expected.size(), inputs.size() + 1);
  const Tensor sum = weighed(y);
  const auto near = [&](const Tensor& t, size_t i) {
    const double value = t.item<double>(), scale = std::max(1.0, std::abs(expected[i]));
    EXPECT_NEAR(value, expected[i], 1e-11 * scale) << (i == 0 ? "the result" : "gradient " + std::to_string(i - 1));
  };
  near(sum, 0);
  if (inputs.empty()) return;
  const std::vector<Tensor> gradients = autograd::grad({sum}, inputs, {}, true);
  for (size_t i = 0; i < gradients.size(); ++i) near(weighed(gradients[i]), i + 1);
}
#define EXPECT_PYTORCHS(y, inputs, ...) \
  ::ingot::test::expect_pytorchs(y, std::vector<Tensor> inputs, {__VA_ARGS__}, #y, __LINE__)

}  // namespace ingot::test
