// Reductions in the canonical order: 16 lanes, blocks of 256, neighbouring blocks paired, then the lanes halved.
#pragma once
#include <cstdint>
#include <vector>

#include "codegen/scalar/lanes.h"

namespace ingot::codegen::scalar {

/// The lanes of a partial accumulator; `index` is used by argmax and argmin only.
struct Accumulator {
  Lanes value, index;
};

/// What combines with any value to that value.
Accumulator identity(Combiner combiner, Type type);
/// b into a; lane by lane.
void combine(Combiner combiner, Type type, Accumulator& a, const Accumulator& b);
inline bool is_index(Combiner c) { return c == Combiner::argmax || c == Combiner::argmin; }

/// One reduction along a row, fed 16 columns at a time in order.
class RowReduction {
 public:
  RowReduction(Combiner combiner, Type type) : combiner_(combiner), type_(type) {}
  void begin();
  /// `count` lanes of `value`, which stand at columns first_index and up.
  void add(const Lanes& value, int64_t first_index, int count);
  /// The 16 lanes of all that was added.
  Accumulator lanes();
  /// Instead of adding.
  void take(const Accumulator& lanes) { parts_ = {lanes}, steps_ = 0; }
  /// The result in every lane; `type` of the result is i64 for argmax and argmin.
  Lanes finish();

 private:
  void close_block();
  Combiner combiner_;
  Type type_;
  Accumulator block_;
  int steps_ = 0;                   // of 16 columns, in the open block
  uint64_t blocks_ = 0;             // closed
  std::vector<Accumulator> parts_;  // one a set bit of blocks_, largest first
};

}  // namespace ingot::codegen::scalar
