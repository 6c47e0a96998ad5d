// int8 weights with a scale for each output: a quarter of the memory that a layer reads for a token. For inference.
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

/// A module that can hold its weight as int8. Then `weight` is a buffer and no parameter, and `weight_scale` another.
class INGOT_API Quantizable {
 public:
  virtual ~Quantizable() = default;
  /// Takes that form; false where it has it.
  virtual bool quantize_weight(Location location) = 0;
};

/// Which modules, by their names in the tree; none: all.
using QuantizeFilter = std::function<bool(const std::string& name, Module& module)>;
/// Gives every nn::Linear of the tree, and every other module that is Quantizable, an int8 weight, where it has a
/// floating one: it computes F::linear_int8 from then on. Returns how many there were. A state dict of such a model is
/// loaded into one that was quantized before, its weights SkipInit's or not. Functions that were compiled with the
/// module notice.
INGOT_API int64_t quantize_weights(Module& module, const QuantizeFilter& filter = {}, Location location = Location());

}  // namespace ingot::nn
