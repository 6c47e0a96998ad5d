// Whether a result is the expected one, by the rule of its case.
#pragma once
#include <cmath>
#include <span>
#include <string>

#include "conformance/case.h"

namespace ingot::conformance {

/// Equal, or both NaN.
inline bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
/// Empty if the results are right, else what is wrong with the first that is not.
std::string judge(const Case& c, std::span<const CaseTensor> results);

}  // namespace ingot::conformance
