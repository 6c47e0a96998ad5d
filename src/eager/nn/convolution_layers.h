// Convolution layers, with PyTorch's names and initial values.
#pragma once
#include "eager/nn/checks.h"
#include "eager/nn/functional.h"
#include "eager/nn/module.h"

namespace ingot::nn {

struct ConvOptions {
  IntList stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
struct ConvTransposeOptions {
  IntList stride = 1, padding = 0, output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  IntList dilation = 1;
};

/// What convolution layers hold. A kernel size of one number is that of every spatial dim.
struct INGOT_API ConvolutionImpl : Layer {
  Tensor weight, bias;

 protected:
  ConvolutionImpl(const char* name, size_t spatial, int64_t in_channels, int64_t out_channels,
                  const IntList& kernel_size, int64_t groups, bool with_bias, bool transposed);
};
template <class Self, class Impl, class Options>
class ConvolutionHandle : public Handle<Self, Impl> {
 public:
  using Handle<Self, Impl>::Handle;
  ConvolutionHandle(int64_t in_channels, int64_t out_channels, const IntList& kernel_size, Options o = {},
                    detail::MadeAt at = detail::MadeAt())
      : Handle<Self, Impl>(in_channels, out_channels, kernel_size, std::move(o), at) {}
};

#define INGOT_CONVOLUTION(NAME, OPTIONS, spatial, transposed, ...)                                    \
  struct INGOT_API NAME##Impl : ConvolutionImpl {                                                     \
    OPTIONS options;                                                                                  \
    NAME##Impl(int64_t in_channels, int64_t out_channels, const IntList& kernel_size, OPTIONS o = {}) \
        : ConvolutionImpl(#NAME, spatial, in_channels, out_channels, kernel_size,                     \
                          detail::windows(#NAME, spatial, o).groups, o.bias, transposed),             \
          options(std::move(o)) {}                                                                    \
    Tensor forward(const TensorArg& x) const { return __VA_ARGS__; }                                  \
  };                                                                                                  \
  class NAME : public ConvolutionHandle<NAME, NAME##Impl, OPTIONS> {                                  \
   public:                                                                                            \
    using ConvolutionHandle::ConvolutionHandle;                                                       \
    INGOT_MODULE_FIELDS(NAME, weight, bias)                                                           \
  }
#define INGOT_CONVOLVED(function) \
  function(x, weight, bias, options.stride, options.padding, options.dilation, options.groups)
#define INGOT_CONVOLVED_TRANSPOSED(function) \
  function(x, weight, bias, options.stride, options.padding, options.output_padding, options.groups, options.dilation)
INGOT_CONVOLUTION(Conv1d, ConvOptions, 1, false, INGOT_CONVOLVED(conv1d));
INGOT_CONVOLUTION(Conv2d, ConvOptions, 2, false, INGOT_CONVOLVED(conv2d));
INGOT_CONVOLUTION(Conv3d, ConvOptions, 3, false, INGOT_CONVOLVED(conv3d));
INGOT_CONVOLUTION(ConvTranspose1d, ConvTransposeOptions, 1, true, INGOT_CONVOLVED_TRANSPOSED(conv_transpose1d));
INGOT_CONVOLUTION(ConvTranspose2d, ConvTransposeOptions, 2, true, INGOT_CONVOLVED_TRANSPOSED(conv_transpose2d));
INGOT_CONVOLUTION(ConvTranspose3d, ConvTransposeOptions, 3, true, INGOT_CONVOLVED_TRANSPOSED(conv_transpose3d));
#undef INGOT_CONVOLUTION
#undef INGOT_CONVOLVED
#undef INGOT_CONVOLVED_TRANSPOSED

}  // namespace ingot::nn
