// Reflections and rotations of the lines of a matrix, which stand one behind the other in memory.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/matrices/dense_matrix.h"

namespace ingot::runtime {

/// A reflection I - weight v v^T, by which x becomes (head, 0, ...); v, which begins with 1, takes x's place. Signs as
/// LAPACK has them: head has the other sign than x[0], unless all behind it is 0 already.
struct Reflection {
  double head, weight;
};
Reflection reflection_of(double* x, int64_t n);
/// `count` lines of n elements, `stride` apart, reflected each.
void reflect(const double* v, double weight, int64_t n, double* lines, int64_t count, int64_t stride);

/// Some reflections, of which each begins one element later: the first one's v has `length` elements, the next one
/// stands `stride` + 1 elements behind it.
struct Reflections {
  const BlockProducts& products;
  const double *v, *weights;
  int64_t count, length, stride;

  static constexpr int64_t kBlock = 32;  // so many are applied as products of matrices

  /// Lines of `length` elements reflected by all, from the first one on or from the last one.
  void apply(double* lines, int64_t line_count, int64_t line_stride) const;
  void apply_reversed(double* lines, int64_t line_count, int64_t line_stride) const;

 private:
  void apply_block(bool reversed, double* lines, int64_t line_count, int64_t line_stride) const;
};

/// The rotation that takes (x, y) to (length, 0).
struct Rotation {
  double cosine = 1, sine = 0, length = 0;
  Rotation(double x, double y);
};

/// Rotations of neighbours among n lines of n elements, which are done later: many of them for a few columns, which
/// stay in cache, then for the next ones.
class Rotations {
 public:
  /// Without lines nothing is rotated.
  Rotations(double* lines, int64_t n) : lines_(lines), n_(n) {}
  /// Of lines k and k + 1.
  void add(int64_t k, const Rotation& rotation);
  /// All that were added.
  void finish();

 private:
  struct Turn {
    int64_t line;
    double cosine, sine;
    void apply(double* __restrict x, double* __restrict y, int64_t n) const {
      for (int64_t i = 0; i < n; ++i) {
        const double before = x[i];
        x[i] = cosine * before + sine * y[i];
        y[i] = cosine * y[i] - sine * before;
      }
    }
  };
  double* lines_;
  int64_t n_;
  std::vector<Turn> turns_;
};

}  // namespace ingot::runtime
