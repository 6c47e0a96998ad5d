#include "eager/nn/activation_layers.h"

#include "eager/call/call.h"
#include "eager/nn/checks.h"
#include "eager/nn/initial.h"

namespace ingot::nn {

HardtanhImpl::HardtanhImpl(double first, double second) : min_val(first), max_val(second) {
  if (!(max_val > min_val))
    detail::refuse("Hardtanh", "max_val", std::to_string(max_val), "more than min_val, " + std::to_string(min_val));
}

PReLUImpl::PReLUImpl(int64_t num_parameters, double initial)
    : weight(detail::filled(detail::not_negative("PReLU", "num_parameters", num_parameters), initial)) {}

Tensor Softmax2dImpl::forward(const TensorArg& x) const {
  const int64_t dims = eager::present("Softmax2d", "x", x).dim();
  if (dims != 3 && dims != 4) eager::fail("Softmax2d", "x", std::to_string(dims) + " dims", "3 or 4", x.location);
  return softmax(x, -3);
}

}  // namespace ingot::nn
