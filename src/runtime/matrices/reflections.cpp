#include "runtime/matrices/reflections.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/matrices/dense_matrix.h"
#include "runtime/thread_pool.h"

namespace ingot::runtime {
namespace {

bool has_a_root(double square) { return square > 1e-280 && square < 1e280; }

/// Of numbers whose squares may be too large or too small for one, too.
double length_of(double x, double y) {
  const double square = x * x + y * y;
  return has_a_root(square) ? std::sqrt(square) : std::hypot(x, y);
}
double length_of(const double* x, int64_t n) {
  const double square = dot(x, x, n);
  if (std::isnan(square) || has_a_root(square)) return std::sqrt(square);
  double length = 0;
  for (int64_t i = 0; i < n; ++i) length = std::hypot(length, x[i]);
  return length;
}

}  // namespace

Reflection reflection_of(double* x, int64_t n) {
  const double first = std::exchange(x[0], 1), behind = length_of(x + 1, n - 1);
  if (behind == 0) return {first, 0};
  const double head = -std::copysign(length_of(first, behind), first);
  for (int64_t i = 1; i < n; ++i) x[i] /= first - head;
  return {head, (head - first) / head};
}

void reflect(const double* v, double weight, int64_t n, double* lines, int64_t count, int64_t stride) {
  if (weight == 0) return;
  for (int64_t i = 0; i < count; ++i) add_to(lines + i * stride, -weight * dot(v, lines + i * stride, n), v, n);
}

void Reflections::apply(double* lines, int64_t line_count, int64_t line_stride) const {
  for (int64_t i = 0; i < count; i += kBlock)
    Reflections{products, v + i * (stride + 1), weights + i, std::min(kBlock, count - i), length - i, stride}
        .apply_block(false, lines + i, line_count, line_stride);
}
void Reflections::apply_reversed(double* lines, int64_t line_count, int64_t line_stride) const {
  for (int64_t i = (count - 1) / kBlock * kBlock; i >= 0; i -= kBlock)
    Reflections{products, v + i * (stride + 1), weights + i, std::min(kBlock, count - i), length - i, stride}
        .apply_block(true, lines + i, line_count, line_stride);
}

// The product of reflections is I - V^T T V, where V's rows are theirs: Schreiber and Van Loan, A Storage-Efficient WY
// Representation for Products of Householder Transformations, 1989.
void Reflections::apply_block(bool reversed, double* lines, int64_t line_count, int64_t line_stride) const {
  if (line_count == 0 || count == 0) return;
  if (line_count <= kPlainSize && count <= kPlainSize) {
    for (int64_t j = 0; j < count; ++j) {
      const int64_t i = reversed ? count - 1 - j : j;
      runtime::reflect(v + i * (stride + 1), weights[i], length - i, lines + i, line_count, line_stride);
    }
    return;
  }
  // Three products: V V^T, lines V^T, and that times T.
  std::vector<double> rows(static_cast<size_t>(count * length)), square(static_cast<size_t>(count * count)), t(square);
  for (int64_t i = 0; i < count; ++i) std::copy_n(v + i * (stride + 1), length - i, &rows[i * length + i]);
  const Block all{rows.data(), length};
  products.add(1, all, all.turned(), square.data(), count, count, length, count);
  const double* product = square.data();
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t r = 0; r < i; ++r)
      for (int64_t c = r; c < i; ++c) t[r * count + i] -= weights[i] * t[r * count + c] * product[c * count + i];
    t[i * count + i] = weights[i];
  }
  std::vector<double> parts(static_cast<size_t>(line_count * count)), turned(parts);
  const Block triangle{t.data(), count};
  products.add(1, {lines, line_stride}, all.turned(), parts.data(), count, line_count, length, count);
  products.add(1, {parts.data(), count}, reversed ? triangle.turned() : triangle, turned.data(), count, line_count,
               count, count);
  products.add(-1, {turned.data(), count}, all, lines, line_stride, line_count, count, length);
}

Rotation::Rotation(double x, double y) : length(length_of(x, y)) {
  if (length > 0) cosine = x / length, sine = y / length;
}

void Rotations::add(int64_t k, const Rotation& rotation) {
  constexpr int64_t kSweeps = 16;  // that are done at once
  if (!lines_) return;
  const Turn turn{k, rotation.cosine, rotation.sine};
  if (n_ <= kPlainSize) return turn.apply(lines_ + k * n_, lines_ + (k + 1) * n_, n_);
  turns_.push_back(turn);
  if (static_cast<int64_t>(turns_.size()) >= kSweeps * n_) finish();
}

void Rotations::finish() {
  constexpr int64_t kWidth = 16;
  if (turns_.empty()) return;
  const int64_t pieces = (n_ + kWidth - 1) / kWidth;
  parallel(static_cast<int>(std::min<int64_t>(num_threads(), pieces)), [&](int thread, int threads) {
    std::vector<std::array<double, kWidth>> piece(static_cast<size_t>(n_));
    const auto [begin, end] = share(n_, thread, threads, kWidth);
    for (int64_t first = begin; first < end; first += kWidth) {
      const int64_t width = std::min(kWidth, end - first);
      for (int64_t i = 0; i < n_; ++i) std::copy_n(lines_ + i * n_ + first, width, piece[i].data());
      for (const Turn& turn : turns_) turn.apply(piece[turn.line].data(), piece[turn.line + 1].data(), kWidth);
      for (int64_t i = 0; i < n_; ++i) std::copy_n(piece[i].data(), width, lines_ + i * n_ + first);
    }
  });
  turns_.clear();
}

}  // namespace ingot::runtime
