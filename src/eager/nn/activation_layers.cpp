#include "eager/nn/activation_layers.h"

#include "eager/nn/checks.h"
#include "eager/nn/initial.h"

namespace ingot::nn {

PReLUImpl::PReLUImpl(int64_t num_parameters, double initial)
    : weight(detail::filled(detail::not_negative("PReLU", "num_parameters", num_parameters), initial)) {}

}  // namespace ingot::nn
