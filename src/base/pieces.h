// Sizes cut into pieces that tiles can hold.
#pragma once
#include <algorithm>
#include <cstdint>

namespace ingot {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/// n cut into pieces of at most `most` whose sizes differ by one at most, larger and smaller ones mixed evenly. Their
/// number is a multiple of `multiple` where n allows.
struct Pieces {
  int64_t n = 0, count = 0, each = 0, extra = 0;
  Pieces() = default;
  Pieces(int64_t total, int64_t most, int64_t multiple = 1) : n(total) {
    count = (total + most - 1) / most;
    count = std::min((count + multiple - 1) / multiple * multiple, total);
    if (count) each = n / count, extra = n % count;
  }
  int64_t begin(int64_t i) const { return i * each + (extra ? i * extra / count : 0); }
  int64_t size(int64_t i) const { return begin(i + 1) - begin(i); }
};

/// Goes from piece to piece without a division for each.
class PieceWalk {
 public:
  PieceWalk(const Pieces& pieces, int64_t first)
      : pieces_(pieces), begin_(pieces.begin(first)), left_(pieces.extra ? first * pieces.extra % pieces.count : 0) {}
  int64_t begin() const { return begin_; }
  int64_t size() const { return pieces_.each + (left_ + pieces_.extra >= pieces_.count); }
  void next() {
    begin_ += size();
    left_ += pieces_.extra;
    if (left_ >= pieces_.count) left_ -= pieces_.count;
  }

 private:
  const Pieces& pieces_;
  int64_t begin_, left_;  // left: of the extra ones, in parts of `count`
};

/// The panels that the columns of a product's right operand are cut into, in units of 16 columns. Two or four threads
/// shall have the same: weights are packed by these panels, whoever shares them out.
inline Pieces product_panels(int64_t columns, int64_t most_vectors) {
  constexpr int64_t kFewVectors = 12;
  const int64_t vectors = ceil_div(columns, 16);
  return Pieces(vectors, most_vectors, vectors < kFewVectors ? 1 : 4);
}

}  // namespace ingot
