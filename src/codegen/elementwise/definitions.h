// One function an elementwise row of the op table, in namespace define; a row without one does not link. Each returns
// the value in the register type of `result`, or of `compute`, before rounding and wrapping.
#pragma once
#include "codegen/elementwise.h"
#include "codegen/math/math.h"

namespace ingot::codegen {

namespace define {
#define INGOT_DECLARE_elementwise(name) Expr name(const ElementwiseContext& c);
#define INGOT_DECLARE_reduction(name)
#define INGOT_DECLARE_view(name)
#define INGOT_DECLARE_structured(name)
#define INGOT_DECLARE_composite(name)
#define INGOT_DECLARE_host(name)
#define OP(kind, name, ...) INGOT_DECLARE_##kind(name)
#include "ir/ops.def"
#undef OP
#undef ALIAS
#undef INGOT_DECLARE_elementwise
#undef INGOT_DECLARE_reduction
#undef INGOT_DECLARE_view
#undef INGOT_DECLARE_structured
#undef INGOT_DECLARE_composite
#undef INGOT_DECLARE_host

using math::kInfinity;
using math::kNaN;

inline bool floating(const ElementwiseContext& c) { return is_floating(c.compute); }
inline bool boolean(const ElementwiseContext& c) { return c.compute == DType::bool_; }
}  // namespace define

}  // namespace ingot::codegen
