// The reference interpreter: a graph's meaning, op by op, in double and in exact 64-bit integers. It judges eager and
// compiled code and shares nothing with the generators.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/small_vector.h"
#include "ir/graph.h"

namespace ingot::ir {

/// A dense row-major tensor. Floats stand in `real` (each exactly a value of `dtype`, unless rounding was off),
/// integers and bools in `integer`.
struct ReferenceTensor {
  DType dtype = DType::f32;
  Ints shape;
  std::vector<double> real;
  std::vector<int64_t> integer;

  ReferenceTensor() = default;
  /// Zeros.
  ReferenceTensor(DType dtype, Ints shape);
  static ReferenceTensor from_values(DType dtype, Ints shape, std::vector<double> values);
  /// Reads elements as they lie in memory.
  static ReferenceTensor from_bytes(DType dtype, Ints shape, const void* bytes);
  /// Writes them back; `bytes` has room for size() * size_of(dtype).
  void to_bytes(void* bytes) const;

  bool floating() const { return is_floating(dtype); }
  int64_t size() const;
  /// An element as a double, whatever the dtype.
  double at(int64_t i) const { return floating() ? real[i] : static_cast<double>(integer[i]); }
};

/// A run-time scalar: `number` where its category is floating, else `integer`.
struct ReferenceScalar {
  Category category = Category::floating;
  double number = 0;
  int64_t integer = 0;
  ReferenceScalar() = default;
  ReferenceScalar(double x) : number(x) {}
  ReferenceScalar(int64_t x) : category(Category::integer), integer(x) {}
  ReferenceScalar(bool x) : category(Category::boolean), integer(x) {}
};

struct ReferenceOptions {
  bool round = true;  // off: floats keep double precision between ops, a measure of what rounding costs
  std::span<const int64_t> symbols = {};  // values of the graph's free symbols; where there are none, their hints
};

/// Outputs of the graph for these inputs. Composites are computed directly, not by their decomposition. Throws Error
/// for what an op refuses because of its data (an index out of range, an integer division by zero).
std::vector<ReferenceTensor> interpret(const Graph& graph, std::span<const ReferenceTensor> inputs,
                                       std::span<const ReferenceScalar> scalars = {},
                                       const ReferenceOptions& options = {});

/// The value of a floating dtype nearest to x, ties to even, in one rounding.
double round_to(DType dtype, double x);
/// The low bits of x as the integer dtype reads them; bool: x != 0.
int64_t wrap_to(DType dtype, int64_t x);
/// Float to integer: truncates, saturates; NaN is 0.
int64_t saturate_to(DType dtype, double x);

}  // namespace ingot::ir
