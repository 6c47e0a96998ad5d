#include "eager/nn/initial.h"

#include <cmath>
#include <limits>

#include "base/float_environment.h"
#include "eager/data.h"
#include "eager/nn/module.h"
#include "eager/ops/factories.h"

namespace ingot::nn::detail {

Tensor filled(const IntList& sizes, double value, DType dtype) {
  Tensor t = empty(sizes, dtype);
  char* at = eager::data_of(*t.impl());
  for (int64_t i = 0; i < t.numel(); ++i, at += size_of(dtype)) eager::write_element(dtype, at, value);
  return t;
}

Tensor blank(const IntList& sizes) { return filled(1, std::numeric_limits<double>::quiet_NaN()).expand(sizes); }

// What PyTorch starts linear and convolution layers with.
Tensor uniform(const IntList& sizes, int64_t fan_in) {
  const FloatEnvironment environment;
  double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  if (SkipInit::active()) return blank(sizes);
  Tensor t = empty(sizes);
  t.uniform_(-bound, bound);
  return t;
}

}  // namespace ingot::nn::detail
