// Forward and backward of a case, in each way in which a user may run them.
#pragma once
#include <optional>

#include "conformance/modes.h"

namespace ingot::conformance {

/// Where a compiled function ends: behind the backward pass (whole), or before it (alone).
enum class GradientWay { eager, interpreted, whole, alone };

/// Throws Error where a gradient is not that of the case. Compiled code must give eager's bits, of dense inputs and of
/// strided ones, and the results are those of the forward pass.
/// `rounded`: of inputs and cotangents rounded to this 16-bit float, against what the interpreter gives for the rounded
/// ones in double (docs/numerics.md has the bound); the results are judged already.
Outcome run_gradients(const Case& c, const BoundCase& bound, GradientWay way, std::optional<DType> rounded);
/// Whether the case is one of them; in 16 bits, of an op that has cases of that dtype (linalg's have not).
bool has_gradients(const Case& c, std::optional<DType> rounded);

}  // namespace ingot::conformance
