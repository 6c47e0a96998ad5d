// Combining partial accumulators of reductions along rows, elementwise, in C++.
#pragma once
#include <cstdint>

#include "base/program.h"

namespace ingot::runtime {

/// How partial accumulators of one reduction lie in memory and combine. One of `count` elements is [count] values, and
/// for argmax and argmin then [count] indices (i64).
struct AccumulatorOps {
  int64_t value_bytes = 4;
  bool indexed = false;
  int64_t element_bytes() const { return value_bytes + (indexed ? 8 : 0); }
  /// What a column becomes: the index where there is one, else the value.
  int64_t result_bytes() const { return indexed ? 8 : value_bytes; }

  /// a[i] = a[i] combined with b[i], a being the earlier one.
  void (*combine)(char* a_values, const char* b_values, char* a_indices, const char* b_indices,
                  int64_t count) = nullptr;
  /// The result of a reduction over nothing.
  void (*empty)(char* value, char* index) = nullptr;
};

/// Throws InternalError for a combiner that has no meaning on the type.
AccumulatorOps accumulator_ops(Combiner combiner, DType type);

}  // namespace ingot::runtime
