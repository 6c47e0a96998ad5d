// What several functions share: the tails of e^r and 2^r.
#pragma once
#include "codegen/math/math.h"

namespace ingot::codegen::math {

/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2.
Expr exp_tail(Expr r);
/// (2^r - 1) / r for |r| <= 1/2.
Expr exp2_tail(Expr r);

}  // namespace ingot::codegen::math
