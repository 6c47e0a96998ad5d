#include "eager/ops/dense_matrix.h"

#include "eager/ops/factories.h"

namespace ingot::eager {

double dot(const double* x, const double* y, int64_t n) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t j = 0; j < kSums; ++j) sums[j] += x[i + j] * y[i + j];
  for (int64_t j = 0; i + j < n; ++j) sums[j] += x[i + j] * y[i + j];
  for (int64_t step = kSums / 2; step > 0; step /= 2)
    for (int64_t j = 0; j < step; ++j) sums[j] += sums[j + step];
  return sums[0];
}

Tensor block_of(const double* data, int64_t rows, int64_t columns, int64_t stride) {
  return from_blob(const_cast<double*>(data), {rows, columns}, {stride, 1}, kFloat64);
}

}  // namespace ingot::eager
