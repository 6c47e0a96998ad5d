// What layers check of their settings when they are made. Each function gives back what it is given, for an
// initialiser, or throws Error that names the layer and the setting.
#pragma once
#include "eager/ops/arguments.h"

namespace ingot::nn::detail {

INGOT_API int64_t positive(const char* layer, const char* setting, int64_t value);
INGOT_API int64_t not_negative(const char* layer, const char* setting, int64_t value);
INGOT_API int64_t divisible(const char* layer, const char* setting, int64_t value, const char* by, int64_t divisor);
/// One number, or one for each of `dims` (0: any number of them).
INGOT_API const IntList& positive(const char* layer, const char* setting, const IntList& values, size_t dims);
INGOT_API const IntList& not_negative(const char* layer, const char* setting, const IntList& values, size_t dims);
/// Of a norm that is taken over windows: not 0.
INGOT_API double order(const char* layer, double p);
/// Of a triplet loss: above 0.
INGOT_API double margin(const char* layer, double margin);
/// From 0 to 1.
INGOT_API double share(const char* layer, const char* setting, double value);
[[noreturn]] INGOT_API void refuse(const char* layer, const char* setting, const std::string& got,
                                   const std::string& expected);

/// An input of a layer, with so many dims.
INGOT_API const TensorArg& with_dims(const char* layer, const TensorArg& x, int64_t fewest, int64_t most);

/// "shape [2, 3]", for messages: holds nobody to these sizes.
std::string shape_of(const Tensor& t);

/// The options of a layer that looks through windows: what it has of stride, padding, dilation, groups and the like.
template <class Options>
const Options& windows(const char* layer, size_t dims, const Options& o) {
  if (o.stride.present()) positive(layer, "stride", o.stride, dims);
  if constexpr (
      requires { o.padding; } && !requires { o.padding_mode; })
    not_negative(layer, "padding", o.padding, dims);
  if constexpr (requires { o.dilation; }) positive(layer, "dilation", o.dilation, dims);
  if constexpr (requires { o.output_padding; }) not_negative(layer, "output_padding", o.output_padding, dims);
  if constexpr (requires { o.groups; }) positive(layer, "groups", o.groups);
  if constexpr (requires { o.divisor_override; })
    if (o.divisor_override == 0) refuse(layer, "divisor_override", "0", "another number");
  return o;
}

}  // namespace ingot::nn::detail
