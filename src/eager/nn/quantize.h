// Weights of linear layers in fewer bytes, which is what a layer reads for a token: bf16 or f16, half of f32; int8 with
// a scale for each output, a quarter. Sums are f32 as before. For inference.
#pragma once
#include <functional>
#include <string>

#include "eager/nn/module.h"

namespace ingot::nn {

struct Int8Weight {
  Tensor weight, scale;  // i8 [out, in], f32 [out]
};
/// Of a floating [out, in]: scale = amax(|row|) / 127, 1 for a row of zeros; weight / scale, rounded to the nearest
/// even. Throws Error for a weight that is not finite. Of one without memory (SkipInit), one without memory.
INGOT_API Int8Weight quantize_int8(const TensorArg& weight);
/// A floating [out, in] rounded to bf16 or f16, to the nearest even. Throws Error for another dtype, for a weight that
/// is not finite, and for one that f16 has no number for. Of one without memory, one without memory.
INGOT_API Tensor round_weight(const TensorArg& weight, DType dtype);
/// A weight for an input that is f32 or f64: cast to that where it is bf16 or f16. A compiled product reads it as it
/// lay before.
INGOT_API Tensor widened(const Tensor& weight, const TensorArg& input);

/// A module that can hold its weight in another format: bf16 or f16, a parameter that is widened to the input's dtype;
/// int8, when `weight` is a buffer and no parameter, and `weight_scale` another.
class INGOT_API Quantizable {
 public:
  virtual ~Quantizable() = default;
  /// Makes a weight of that form, and gives what puts it in place, without an error; none where it has that form, or
  /// int8. Throws Error for a weight that the form has no numbers for.
  virtual std::function<void()> converted_weight(DType format, Location location) = 0;
};

/// Which modules, by their names in the tree; none: all.
using QuantizeFilter = std::function<bool(const std::string& name, Module& module)>;
/// Gives every nn::Linear of the tree, and every other module that is Quantizable, a weight of kBFloat16, kFloat16 or
/// kInt8, where it has another floating one. Inputs, biases and results stay what they are, f32 say: the layer computes
/// linear(x, weight.to(x's dtype), bias), or F::linear_int8. Returns how many there were. A state dict of such a model
/// is loaded into one that was converted before, its weights SkipInit's or not. Functions that were compiled with the
/// module notice. Throws Error for another format and for a weight that it has no numbers for; no module has changed
/// then.
INGOT_API int64_t convert_weights(Module& module, DType format, const QuantizeFilter& filter = {},
                                  Location location = Location());
/// convert_weights to kInt8.
INGOT_API int64_t quantize_weights(Module& module, const QuantizeFilter& filter = {}, Location location = Location());

}  // namespace ingot::nn
