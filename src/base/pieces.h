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

/// Goes through pieces [first, last) without a division for each: in their order, or those that are larger first, so
/// that as many as can be are alike in turn. Either way they are the same pieces of the same part.
class PieceWalk {
 public:
  PieceWalk() = default;
  PieceWalk(const Pieces& pieces, int64_t first, int64_t last, bool larger_first)
      : each_(pieces.each), begin_(pieces.begin(first)), left_(last - first) {
    const int64_t larger = pieces.begin(last) - begin_ - left_ * each_;
    if (larger_first || larger == 0 || larger == left_) {
      larger_ = larger;
    } else {
      extra_ = pieces.extra, count_ = pieces.count;
      part_ = first * extra_ % count_;
    }
  }
  int64_t begin() const { return begin_; }
  int64_t size() const { return each_ + (extra_ ? part_ + extra_ >= count_ : larger_ > 0); }
  /// How many from here on, this one included, are known to be of its size.
  int64_t alike() const { return extra_ ? 1 : larger_ > 0 ? larger_ : left_; }
  /// `pieces`: at most alike().
  void next(int64_t pieces = 1) {
    begin_ += pieces * size();
    left_ -= pieces;
    if (!extra_) {
      if (larger_ > 0) larger_ -= pieces;
    } else if ((part_ += extra_) >= count_) {
      part_ -= count_;
    }
  }

 private:
  int64_t each_ = 0, begin_ = 0, left_ = 0;
  int64_t larger_ = 0;                        // of the pieces left, which come first
  int64_t extra_ = 0, count_ = 0, part_ = 0;  // in their order: what has come of the extra ones, in parts of `count`
};

/// The panels that the columns of a product's right operand are cut into, in units of 16 columns. Two or four threads
/// shall have the same: weights are packed by these panels, whoever shares them out.
inline Pieces product_panels(int64_t columns, int64_t most_vectors) {
  constexpr int64_t kFewVectors = 12;
  const int64_t vectors = ceil_div(columns, 16);
  return Pieces(vectors, most_vectors, vectors < kFewVectors ? 1 : 4);
}

}  // namespace ingot
