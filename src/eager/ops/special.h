// Special functions beyond the op table (torch.special); those of the table have their names there by
// eager/ops/aliases.h. Integers and bools give f32.
#pragma once
#include "eager/ops/functions.h"

namespace ingot {

/// The logarithm of the multivariate gamma function of dimension p, element by element.
INGOT_API Tensor mvlgamma(const TensorArg& self, int64_t p);

namespace special {

/// -x log(x); 0 at 0, -inf below.
INGOT_API Tensor entr(const TensorArg& self);
/// self * log1p(other); 0 where self is 0 and other is no NaN.
INGOT_API Tensor xlog1py(const OperandArg& self, const OperandArg& other);
/// The area below the standard normal density left of x, and its logarithm.
INGOT_API Tensor ndtr(const TensorArg& self);
INGOT_API Tensor log_ndtr(const TensorArg& self);
/// As mvlgamma.
INGOT_API Tensor multigammaln(const TensorArg& self, int64_t p);

}  // namespace special
}  // namespace ingot
