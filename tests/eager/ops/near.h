// Results of functions beside those that PyTorch gives.
#pragma once
#include <gtest/gtest.h>

#include "eager/ops/functions.h"

namespace ingot::test {

/// The same dtype and sizes, and elements within the tolerance; NaN is equal to NaN.
inline ::testing::AssertionResult near(const Tensor& got, const Tensor& expected, double tolerance = 1e-6) {
  if (got.dtype() != expected.dtype() || !(got.sizes() == expected.sizes()) ||
      !allclose(got.to(kFloat64), expected.to(kFloat64), tolerance, tolerance, true))
    return ::testing::AssertionFailure() << "\n" << got << "\nis not\n" << expected;
  return ::testing::AssertionSuccess();
}

}  // namespace ingot::test
