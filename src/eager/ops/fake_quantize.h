// Rounding to the numbers that a quantized tensor has, while a model is trained for it.
#pragma once
#include "eager/tensor.h"

namespace ingot {

/// (clamp(round(x / scale) + zero_point, quant_min, quant_max) - zero_point) * scale, in x's dtype, where x / scale is
/// x times the reciprocal and is rounded to the nearest even. Its gradient is that of x where nothing is cut, else 0
/// (the straight-through estimator; B. Jacob et al., Quantization and Training of Neural Networks for Efficient
/// Integer-Arithmetic-Only Inference, 2018); scale and zero_point, numbers or tensors of one element, have none. Throws
/// Error for a dtype that is not floating, and where quant_min is above quant_max or a number `zero_point` beyond them.
INGOT_API Tensor fake_quantize_per_tensor_affine(const TensorArg& self, const OperandArg& scale,
                                                 const OperandArg& zero_point, int64_t quant_min, int64_t quant_max);
/// The same with a scale and a zero point for each position of dim `axis`, tensors of one dim.
INGOT_API Tensor fake_quantize_per_channel_affine(const TensorArg& self, const TensorArg& scale,
                                                  const TensorArg& zero_point, int64_t axis, int64_t quant_min,
                                                  int64_t quant_max);

}  // namespace ingot
