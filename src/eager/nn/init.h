// First values of parameters, under PyTorch's names (torch.nn.init): in place, off the tape.
//
//   for (const Tensor& p : net->parameters()) if (p.dim() > 1) nn::init::kaiming_normal_(p, 0, "fan_out", "relu");
#pragma once
#include <optional>
#include <string_view>

#include "eager/tensor.h"

namespace ingot::nn::init {

/// By how much a layer in front of this function is to be larger: 1 for linear, sigmoid and conv1d to conv3d, 5/3 for
/// tanh, the square root of 2 for relu and of 2 / (1 + param^2) for leaky_relu (param: its slope, 0.01), 3/4 for selu.
INGOT_API double calculate_gain(std::string_view nonlinearity, std::optional<double> param = {},
                                Location location = Location());

/// Uniform in [a, b).
INGOT_API const Tensor& uniform_(const Tensor& tensor, double a = 0, double b = 1, Location location = Location());
INGOT_API const Tensor& normal_(const Tensor& tensor, double mean = 0, double std = 1, Location location = Location());
/// Normal numbers as they are distributed inside [a, b].
INGOT_API const Tensor& trunc_normal_(const Tensor& tensor, double mean = 0, double std = 1, double a = -2,
                                      double b = 2, Location location = Location());
INGOT_API const Tensor& constant_(const Tensor& tensor, double value, Location location = Location());
INGOT_API const Tensor& ones_(const Tensor& tensor, Location location = Location());
INGOT_API const Tensor& zeros_(const Tensor& tensor, Location location = Location());
/// [n, m]: ones on the diagonal, zeros elsewhere.
INGOT_API const Tensor& eye_(const Tensor& tensor, Location location = Location());
/// [out, in, window...] with 1 to 3 dims of a window: in each of `groups`, as many channels as there are stay as they
/// are.
INGOT_API const Tensor& dirac_(const Tensor& tensor, int64_t groups = 1, Location location = Location());

/// Weights of [out, in, window...]. Glorot and Bengio, "Understanding the difficulty of training deep feedforward
/// neural networks", 2010: a variance of gain^2 * 2 / (fan_in + fan_out).
INGOT_API const Tensor& xavier_uniform_(const Tensor& tensor, double gain = 1, Location location = Location());
INGOT_API const Tensor& xavier_normal_(const Tensor& tensor, double gain = 1, Location location = Location());
/// He et al., "Delving deep into rectifiers", 2015: a variance of gain^2 / fan, with the gain of `nonlinearity` (a: the
/// slope of leaky_relu) and the fan of `mode`: fan_in or fan_out.
INGOT_API const Tensor& kaiming_uniform_(const Tensor& tensor, double a = 0, std::string_view mode = "fan_in",
                                         std::string_view nonlinearity = "leaky_relu", Location location = Location());
INGOT_API const Tensor& kaiming_normal_(const Tensor& tensor, double a = 0, std::string_view mode = "fan_in",
                                        std::string_view nonlinearity = "leaky_relu", Location location = Location());
/// [out, in...] as a matrix of `out` rows: its rows, or its columns where these are fewer, are orthogonal and of length
/// `gain`. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2014.
INGOT_API const Tensor& orthogonal_(const Tensor& tensor, double gain = 1, Location location = Location());
/// [n, m]: normal numbers, but in each column a share of `sparsity`, from 0 to 1, is zero. Martens, "Deep learning via
/// Hessian-free optimization", 2010.
INGOT_API const Tensor& sparse_(const Tensor& tensor, double sparsity, double std = 0.01,
                                Location location = Location());

}  // namespace ingot::nn::init
