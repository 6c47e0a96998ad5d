// Convolution layers, with PyTorch's names and initial values.
#pragma once
#include "eager/nn/checks.h"
#include "eager/nn/functional.h"
#include "eager/nn/module.h"
#include "eager/nn/windows.h"

namespace ingot::nn {

/// What is put around a convolution's input: a number for both sides of all spatial dims, or one for each; "same": as
/// much as gives the output the input's size, for a stride of 1; "valid": nothing.
class ConvPadding {
 public:
  template <class T>
  requires std::is_convertible_v<const T&, IntList> ConvPadding(const T& sizes) : sizes_(sizes) {}
  ConvPadding(std::initializer_list<SizeArg> sizes) : sizes_(sizes) {}
  ConvPadding(const char* word) : word_(word) {}
  ConvPadding(std::string word) : word_(std::move(word)) {}
  const IntList& sizes() const { return sizes_; }
  /// Empty where it is sizes.
  const std::string& word() const { return word_; }

 private:
  IntList sizes_;
  std::string word_;
};

struct ConvOptions {
  IntList stride = 1;
  ConvPadding padding = 0;
  IntList dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  // or "reflect", "replicate", "circular"
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
  /// The options, before a number is drawn.
  static const ConvOptions& checked(const char* name, size_t spatial, const ConvOptions& o);
  static const ConvTransposeOptions& checked(const char* name, size_t spatial, const ConvTransposeOptions& o) {
    return detail::windows(name, spatial, o);
  }
  /// Works out what `padding` and `padding_mode` come to for this weight.
  void set_padding(const ConvOptions& options);
  void set_padding(const ConvTransposeOptions&) {}
  /// What `convolve` makes of x, with what it does not pad itself around it.
  template <class F>
  Tensor around(const TensorArg& x, const ConvOptions& options, F convolve) const {
    if (pairs_.empty()) return convolve(x);
    const bool zeros = options.padding_mode == "zeros";
    const Tensor padded = functional::pad(x, pairs_, zeros ? "constant" : options.padding_mode);
    return convolve(TensorArg(padded, x.location));
  }

  Ints padding_;  // that the op does, of each spatial dim
  Ints pairs_;    // else: before and after, from the last dim inwards
};
#define INGOT_CONVOLUTION(NAME, OPTIONS, spatial, transposed, ...)                                                   \
  struct INGOT_API NAME##Impl : ConvolutionImpl {                                                                    \
    OPTIONS options;                                                                                                 \
    NAME##Impl(int64_t in_channels, int64_t out_channels, const IntList& kernel_size, OPTIONS o = {})                \
        : ConvolutionImpl(#NAME, spatial, in_channels, out_channels, kernel_size, checked(#NAME, spatial, o).groups, \
                          o.bias, transposed),                                                                       \
          options(std::move(o)) {                                                                                    \
      set_padding(options);                                                                                          \
    }                                                                                                                \
    Tensor forward(const TensorArg& x) const { return __VA_ARGS__; }                                                 \
  };                                                                                                                 \
  class NAME : public HandleFrom<NAME, NAME##Impl, From<int64_t, int64_t, const IntList&>,                           \
                                 From<int64_t, int64_t, const IntList&, OPTIONS>> {                                  \
   public:                                                                                                           \
    using HandleFrom::HandleFrom;                                                                                    \
    INGOT_MODULE_FIELDS(NAME, weight, bias)                                                                          \
  }
#define INGOT_CONVOLVED(function)                                                                      \
  around(x, options, [this](const TensorArg& padded) {                                                 \
    return function(padded, weight, bias, options.stride, padding_, options.dilation, options.groups); \
  })
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
