// Matrices in the last two dims, as functions of linalg.h take them. Not in the API.
#pragma once
#include <algorithm>
#include <initializer_list>

#include "base/float_environment.h"
#include "eager/ops/checks.h"
#include "eager/ops/dense_matrix.h"
#include "eager/ops/functions.h"
#include "runtime/thread_pool.h"

namespace ingot::eager {

/// `count` matrices of rows by columns of f64, one behind the other in memory.
struct Matrices {
  Tensor dense;
  int64_t rows, columns, count;
  explicit Matrices(const Tensor& t)
      : dense(t.contiguous()),
        rows(t.size(-2)),
        columns(t.size(-1)),
        count(rows * columns > 0 ? t.numel() / (rows * columns) : 0),
        data_(count > 0 ? dense.data_ptr<double>() : nullptr) {}
  const double* at(int64_t i) const { return data_ + i * rows * columns; }

 private:
  const double* data_;
};
/// Calls f(i) for each matrix of a batch: small ones are spread over the threads of the pool, which the products of
/// larger ones are spread over themselves.
template <class F>
void spread(const Matrices& m, F f) {
  constexpr int64_t kGrain = 16384;    // operations for one thread
  const FloatEnvironment environment;  // that of the pool's threads
  const bool small = std::max(m.rows, m.columns) <= kPlainSize;
  const int64_t pieces = small ? m.count * (m.rows * m.columns * std::min(m.rows, m.columns) + 64) / kGrain : 1;
  runtime::parallel(static_cast<int>(std::min<int64_t>(pieces, num_threads())), [&](int thread, int threads) {
    const auto [first, last] = runtime::share(m.count, thread, threads);
    for (int64_t i = first; i < last; ++i) f(i);
  });
}
inline Ints batch_of(const Tensor& t) { return Ints(t.sizes().begin(), t.sizes().end() - 2); }
inline Ints shape_of(Ints batch, std::initializer_list<int64_t> sizes) {
  for (int64_t s : sizes) batch.push_back(s);
  return batch;
}
/// Square matrices, or any, of f64; Functions are given these, and what they give is rounded to the caller's dtype.
/// `halves`: of 16-bit floats, too.
inline Tensor wide(const char* op, const char* argument, const TensorArg& a, bool square, bool finite = false,
                   bool halves = false) {
  const Tensor& t = present(op, argument, a);
  if (t.dtype() != kFloat32 && t.dtype() != kFloat64 && !(halves && is_half(t.dtype())))
    fail(op, argument, dtype_text(t), halves ? "a floating dtype" : "f32 or f64", a.location);
  if (t.dim() < 2) fail(op, argument, shape_text(t), "matrices: at least two dims", a.location);
  if (square && t.size(-1) != t.size(-2)) fail(op, argument, shape_text(t), "square matrices", a.location);
  const Tensor result = t.to(kFloat64);
  if (finite && !isfinite(result.detach()).all().item<bool>())
    fail(op, argument, "elements that are not finite", "finite ones", a.location);
  return result;
}

}  // namespace ingot::eager
