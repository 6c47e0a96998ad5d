#include "eager/ops/arguments.h"

#include <fmt/format.h>

#include <cmath>
#include <ostream>

#include "base/first_use.h"
#include "eager/call/call.h"
#include "eager/tensor.h"

namespace ingot {

const Tensor& TensorArg::get() const {
  static constinit FirstUse<const Tensor> undefined;
  return tensor ? *tensor : *undefined;
}

std::ostream& operator<<(std::ostream& out, IntArrayRef sizes) {
  out << '[';
  for (size_t i = 0; i < sizes.size(); ++i) out << (i ? ", " : "") << sizes[i];
  return out << ']';
}

bool detail::holds(const Scalar& value, double lowest, double end) {
  if (value.category() == Category::floating) {
    const double number = std::trunc(value.to_double());
    return number >= lowest && number < end;
  }
  constexpr double kPastIntegers = 0x1p63;
  const int64_t integer = value.to_int64_saturated();
  return (lowest <= -kPastIntegers || integer >= static_cast<int64_t>(lowest)) &&
         (end >= kPastIntegers || integer < static_cast<int64_t>(end));
}

void detail::fail_item(const Scalar& value, double lowest, double highest, Location location) {
  const bool whole = value.category() != Category::floating;
  eager::fail("item", "self",
              whole ? std::to_string(value.to_int64_saturated()) : fmt::format("{:g}", value.to_double()),
              fmt::format("a number that the type holds, from {:g} to {:g}", lowest, highest), location);
}

}  // namespace ingot
