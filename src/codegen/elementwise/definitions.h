// One function an elementwise row of the op table and one a row of kind coordinate, in namespace define; a row without
// one does not link. An elementwise one returns the value in the register type of `result`, or of `compute`, before
// rounding and wrapping, one over coordinates the element itself.
#pragma once
#include "codegen/elementwise.h"
#include "codegen/math/math.h"

namespace ingot::codegen {

namespace define {
#define OP_elementwise(name, ...) Expr name(const ElementwiseContext& c);
#define OP_coordinate(name, ...) Expr name(const CoordinateContext& c);
#include "ir/ops.def"

using math::kInfinity;
using math::kNaN;

inline bool floating(const ElementwiseContext& c) { return is_floating(c.compute); }
inline bool boolean(const ElementwiseContext& c) { return c.compute == DType::bool_; }
}  // namespace define

}  // namespace ingot::codegen
