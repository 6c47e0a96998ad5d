#include "eager/ops/arguments.h"

#include <ostream>

#include "base/first_use.h"
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

}  // namespace ingot
