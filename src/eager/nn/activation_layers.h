// Activations as layers, with PyTorch's names and defaults.
#pragma once
#include "eager/nn/functional.h"
#include "eager/nn/module.h"

namespace ingot::nn {

#define INGOT_ACTIVATION(NAME, expression)                          \
  struct INGOT_API NAME##Impl : Layer {                             \
    Tensor forward(const TensorArg& x) const { return expression; } \
  };                                                                \
  INGOT_MODULE(NAME)
INGOT_ACTIVATION(ReLU, relu(x));
INGOT_ACTIVATION(ReLU6, relu6(x));
INGOT_ACTIVATION(SiLU, silu(x));
INGOT_ACTIVATION(Mish, mish(x));
INGOT_ACTIVATION(SELU, selu(x));
INGOT_ACTIVATION(Tanh, tanh(x));
INGOT_ACTIVATION(Tanhshrink, tanhshrink(x));
INGOT_ACTIVATION(Sigmoid, sigmoid(x));
INGOT_ACTIVATION(LogSigmoid, logsigmoid(x));
INGOT_ACTIVATION(Softsign, softsign(x));
INGOT_ACTIVATION(Hardswish, hardswish(x));
INGOT_ACTIVATION(Hardsigmoid, hardsigmoid(x));
INGOT_ACTIVATION(Identity, *x.tensor);
#undef INGOT_ACTIVATION

/// One number, with PyTorch's name and default.
#define INGOT_ACTIVATION_OF(NAME, function, type, parameter, initial)           \
  struct INGOT_API NAME##Impl : Layer {                                         \
    type parameter;                                                             \
    explicit NAME##Impl(type value initial) : parameter(value) {}               \
    Tensor forward(const TensorArg& x) const { return function(x, parameter); } \
  };                                                                            \
  INGOT_MODULE(NAME)
INGOT_ACTIVATION_OF(ELU, elu, double, alpha, = 1.0);
INGOT_ACTIVATION_OF(CELU, celu, double, alpha, = 1.0);
INGOT_ACTIVATION_OF(LeakyReLU, leaky_relu, double, negative_slope, = 0.01);
INGOT_ACTIVATION_OF(Hardshrink, hardshrink, double, lambd, = 0.5);
INGOT_ACTIVATION_OF(Softshrink, softshrink, double, lambd, = 0.5);
INGOT_ACTIVATION_OF(GELU, gelu, std::string, approximate, = "none");
INGOT_ACTIVATION_OF(GLU, glu, int64_t, dim, = -1);
INGOT_ACTIVATION_OF(Softmax, softmax, int64_t, dim, );
INGOT_ACTIVATION_OF(LogSoftmax, log_softmax, int64_t, dim, );
INGOT_ACTIVATION_OF(Softmin, softmin, int64_t, dim, );
#undef INGOT_ACTIVATION_OF

struct INGOT_API HardtanhImpl : Layer {
  double min_val, max_val;
  /// Throws Error unless the second number is the larger one.
  explicit HardtanhImpl(double first = -1.0, double second = 1.0);
  Tensor forward(const TensorArg& x) const { return hardtanh(x, min_val, max_val); }
};
INGOT_MODULE(Hardtanh);
struct INGOT_API SoftplusImpl : Layer {
  double beta, threshold;
  explicit SoftplusImpl(double first = 1.0, double second = 20.0) : beta(first), threshold(second) {}
  Tensor forward(const TensorArg& x) const { return softplus(x, beta, threshold); }
};
INGOT_MODULE(Softplus);
struct INGOT_API ThresholdImpl : Layer {
  double threshold, value;
  explicit ThresholdImpl(double first, double second) : threshold(first), value(second) {}
  Tensor forward(const TensorArg& x) const { return ingot::threshold(x, threshold, value); }
};
INGOT_MODULE(Threshold);

struct INGOT_API RReLUImpl : Layer {
  double lower, upper;
  explicit RReLUImpl(double first = 1.0 / 8, double second = 1.0 / 3) : lower(first), upper(second) {}
  Tensor forward(const TensorArg& x) const { return functional::rrelu(x, lower, upper, is_training()); }
};
INGOT_MODULE(RReLU);
/// Over the channels of [N, C, H, W] or [C, H, W].
struct INGOT_API Softmax2dImpl : Layer {
  Tensor forward(const TensorArg& x) const;
};
INGOT_MODULE(Softmax2d);

/// A learned slope below 0, for all channels or for each.
struct INGOT_API PReLUImpl : Layer {
  Tensor weight;
  explicit PReLUImpl(int64_t num_parameters = 1, double initial = 0.25);
  Tensor forward(const TensorArg& x) const { return prelu(x, weight); }
};
INGOT_MODULE(PReLU, weight);

}  // namespace ingot::nn
