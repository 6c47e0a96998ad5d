// Layers without parameters that look at an image through windows: pooling, resampling, patches.
#pragma once
#include "eager/nn/checks.h"
#include "eager/nn/fractional_pool.h"
#include "eager/nn/module.h"
#include "eager/nn/pooling.h"
#include "eager/nn/resample.h"

namespace ingot::nn {

struct MaxPoolOptions {
  IntList stride = {}, padding = 0, dilation = 1;
  bool ceil_mode = false;
};
struct AvgPoolOptions {
  IntList stride = {}, padding = 0;
  bool ceil_mode = false, count_include_pad = true;
  std::optional<int64_t> divisor_override = {};
};
#define INGOT_POOLING(NAME, OPTIONS, dims, ...)                                                                    \
  struct INGOT_API NAME##Impl : Layer {                                                                            \
    IntList kernel_size;                                                                                           \
    OPTIONS options;                                                                                               \
    explicit NAME##Impl(const IntList& kernel, OPTIONS o = {})                                                     \
        : kernel_size(detail::positive(#NAME, "kernel_size", kernel, dims)),                                       \
          options(detail::windows(#NAME, dims, o)) {}                                                              \
    __VA_ARGS__                                                                                                    \
  };                                                                                                               \
  class NAME                                                                                                       \
      : public HandleFrom<NAME, NAME##Impl, From<std::initializer_list<SizeArg>>, From<const IntList&, OPTIONS>> { \
   public:                                                                                                         \
    using HandleFrom::HandleFrom;                                                                                  \
    INGOT_MODULE_FIELDS(NAME)                                                                                      \
  }
// Beside its result, functional::max_pool_with_indices.
#define INGOT_WITH_INDICES(function, ...)                                       \
  Tensor forward(const TensorArg& x) const { return function(x, __VA_ARGS__); } \
  std::tuple<Tensor, Tensor> forward_with_indices(const TensorArg& x) const {   \
    return functional::function##_with_indices(x, __VA_ARGS__);                 \
  }
#define INGOT_MAX_ARGUMENTS kernel_size, options.stride, options.padding, options.dilation, options.ceil_mode
#define INGOT_AVG_POOLED(function)                                                                                 \
  Tensor forward(const TensorArg& x) const {                                                                       \
    return function(x, kernel_size, options.stride, options.padding, options.ceil_mode, options.count_include_pad, \
                    options.divisor_override);                                                                     \
  }
INGOT_POOLING(MaxPool1d, MaxPoolOptions, 1, INGOT_WITH_INDICES(max_pool1d, INGOT_MAX_ARGUMENTS));
INGOT_POOLING(MaxPool2d, MaxPoolOptions, 2, INGOT_WITH_INDICES(max_pool2d, INGOT_MAX_ARGUMENTS));
INGOT_POOLING(MaxPool3d, MaxPoolOptions, 3, INGOT_WITH_INDICES(max_pool3d, INGOT_MAX_ARGUMENTS));
INGOT_POOLING(AvgPool1d, AvgPoolOptions, 1, INGOT_AVG_POOLED(avg_pool1d));
INGOT_POOLING(AvgPool2d, AvgPoolOptions, 2, INGOT_AVG_POOLED(avg_pool2d));
INGOT_POOLING(AvgPool3d, AvgPoolOptions, 3, INGOT_AVG_POOLED(avg_pool3d));
#undef INGOT_POOLING
#undef INGOT_MAX_ARGUMENTS
#undef INGOT_AVG_POOLED

// The norm of what is in each window.
struct LPPoolOptions {
  IntList stride = {};
  bool ceil_mode = false;
};
#define INGOT_LP_POOLING(NAME, dims, function)                                                   \
  struct INGOT_API NAME##Impl : Layer {                                                          \
    double norm_type;                                                                            \
    IntList kernel_size;                                                                         \
    LPPoolOptions options;                                                                       \
    NAME##Impl(double p, const IntList& kernel, LPPoolOptions o = {})                            \
        : norm_type(detail::order(#NAME, p)),                                                    \
          kernel_size(detail::positive(#NAME, "kernel_size", kernel, dims)),                     \
          options(detail::windows(#NAME, dims, o)) {}                                            \
    Tensor forward(const TensorArg& x) const {                                                   \
      return functional::function(x, norm_type, kernel_size, options.stride, options.ceil_mode); \
    }                                                                                            \
  };                                                                                             \
  class NAME : public HandleFrom<NAME, NAME##Impl, From<double, const IntList&>,                 \
                                 From<double, const IntList&, LPPoolOptions>> {                  \
   public:                                                                                       \
    using HandleFrom::HandleFrom;                                                                \
    INGOT_MODULE_FIELDS(NAME)                                                                    \
  }
INGOT_LP_POOLING(LPPool1d, 1, lp_pool1d);
INGOT_LP_POOLING(LPPool2d, 2, lp_pool2d);
INGOT_LP_POOLING(LPPool3d, 3, lp_pool3d);
#undef INGOT_LP_POOLING

struct MaxUnpoolOptions {
  IntList stride = {}, padding = 0;
};
// Puts what max_pool_with_indices gave back to where it was.
#define INGOT_UNPOOLING(NAME, dims, function)                                                             \
  struct INGOT_API NAME##Impl : Layer {                                                                   \
    IntList kernel_size;                                                                                  \
    MaxUnpoolOptions options;                                                                             \
    explicit NAME##Impl(const IntList& kernel, MaxUnpoolOptions o = {})                                   \
        : kernel_size(detail::positive(#NAME, "kernel_size", kernel, dims)),                              \
          options(detail::windows(#NAME, dims, o)) {}                                                     \
    Tensor forward(const TensorArg& x, const TensorArg& indices, const IntList& output_size = {}) const { \
      return functional::function(x, indices, kernel_size, options.stride, options.padding, output_size); \
    }                                                                                                     \
  };                                                                                                      \
  class NAME : public HandleFrom<NAME, NAME##Impl, From<std::initializer_list<SizeArg>>,                  \
                                 From<const IntList&, MaxUnpoolOptions>> {                                \
   public:                                                                                                \
    using HandleFrom::HandleFrom;                                                                         \
    INGOT_MODULE_FIELDS(NAME)                                                                             \
  }
INGOT_UNPOOLING(MaxUnpool1d, 1, max_unpool1d);
INGOT_UNPOOLING(MaxUnpool2d, 2, max_unpool2d);
INGOT_UNPOOLING(MaxUnpool3d, 3, max_unpool3d);
#undef INGOT_UNPOOLING

#define INGOT_ADAPTIVE_POOLING(NAME, dims, ...)                                                                       \
  struct INGOT_API NAME##Impl : Layer {                                                                               \
    IntList output_size;                                                                                              \
    explicit NAME##Impl(const IntList& size) : output_size(detail::not_negative(#NAME, "output_size", size, dims)) {} \
    __VA_ARGS__                                                                                                       \
  };                                                                                                                  \
  class NAME : public HandleFrom<NAME, NAME##Impl, From<std::initializer_list<SizeArg>>> {                            \
   public:                                                                                                            \
    using HandleFrom::HandleFrom;                                                                                     \
    INGOT_MODULE_FIELDS(NAME)                                                                                         \
  }
#define INGOT_ADAPTIVE_AVG(function) \
  Tensor forward(const TensorArg& x) const { return function(x, output_size); }
INGOT_ADAPTIVE_POOLING(AdaptiveAvgPool1d, 1, INGOT_ADAPTIVE_AVG(adaptive_avg_pool1d));
INGOT_ADAPTIVE_POOLING(AdaptiveAvgPool2d, 2, INGOT_ADAPTIVE_AVG(adaptive_avg_pool2d));
INGOT_ADAPTIVE_POOLING(AdaptiveAvgPool3d, 3, INGOT_ADAPTIVE_AVG(adaptive_avg_pool3d));
INGOT_ADAPTIVE_POOLING(AdaptiveMaxPool1d, 1, INGOT_WITH_INDICES(adaptive_max_pool1d, output_size));
INGOT_ADAPTIVE_POOLING(AdaptiveMaxPool2d, 2, INGOT_WITH_INDICES(adaptive_max_pool2d, output_size));
INGOT_ADAPTIVE_POOLING(AdaptiveMaxPool3d, 3, INGOT_WITH_INDICES(adaptive_max_pool3d, output_size));
#undef INGOT_ADAPTIVE_POOLING
#undef INGOT_ADAPTIVE_AVG
#undef INGOT_WITH_INDICES

// One of the two.
struct FractionalMaxPoolOptions {
  IntList output_size = {};
  std::vector<double> output_ratio = {};  // of the input's size; one for each dim, or for all
};
namespace detail {
INGOT_API const FractionalMaxPoolOptions& fractional(const char* layer, size_t dims, const FractionalMaxPoolOptions& o);
}  // namespace detail
// Windows at random, in training or not.
#define INGOT_FRACTIONAL_POOLING(NAME, dims, function)                                                       \
  struct INGOT_API NAME##Impl : Layer {                                                                      \
    IntList kernel_size;                                                                                     \
    FractionalMaxPoolOptions options;                                                                        \
    NAME##Impl(const IntList& kernel, FractionalMaxPoolOptions o)                                            \
        : kernel_size(detail::positive(#NAME, "kernel_size", kernel, dims)),                                 \
          options(detail::fractional(#NAME, dims, o)) {}                                                     \
    Tensor forward(const TensorArg& x) const {                                                               \
      return functional::function(x, kernel_size, options.output_size, options.output_ratio);                \
    }                                                                                                        \
    std::tuple<Tensor, Tensor> forward_with_indices(const TensorArg& x) const {                              \
      return functional::function##_with_indices(x, kernel_size, options.output_size, options.output_ratio); \
    }                                                                                                        \
  };                                                                                                         \
  class NAME : public HandleFrom<NAME, NAME##Impl, From<const IntList&, FractionalMaxPoolOptions>> {         \
   public:                                                                                                   \
    using HandleFrom::HandleFrom;                                                                            \
    INGOT_MODULE_FIELDS(NAME)                                                                                \
  }
INGOT_FRACTIONAL_POOLING(FractionalMaxPool2d, 2, fractional_max_pool2d);
INGOT_FRACTIONAL_POOLING(FractionalMaxPool3d, 3, fractional_max_pool3d);
#undef INGOT_FRACTIONAL_POOLING

struct UpsampleOptions {
  IntList size = {};
  std::vector<double> scale_factor = {};
  std::string mode = "nearest";
  std::optional<bool> align_corners = {};
};
struct INGOT_API UpsampleImpl : Layer {
  UpsampleOptions options;
  explicit UpsampleImpl(UpsampleOptions o);
  Tensor forward(const TensorArg& x) const {
    return functional::interpolate(x, options.size, options.scale_factor, options.mode, options.align_corners);
  }
};
class Upsample : public HandleFrom<Upsample, UpsampleImpl, From<UpsampleOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(Upsample)
};

struct INGOT_API PixelShuffleImpl : Layer {
  int64_t upscale_factor;
  explicit PixelShuffleImpl(int64_t factor)
      : upscale_factor(detail::positive("PixelShuffle", "upscale_factor", factor)) {}
  Tensor forward(const TensorArg& x) const { return functional::pixel_shuffle(x, upscale_factor); }
};
INGOT_MODULE(PixelShuffle);
struct INGOT_API PixelUnshuffleImpl : Layer {
  int64_t downscale_factor;
  explicit PixelUnshuffleImpl(int64_t factor)
      : downscale_factor(detail::positive("PixelUnshuffle", "downscale_factor", factor)) {}
  Tensor forward(const TensorArg& x) const { return functional::pixel_unshuffle(x, downscale_factor); }
};
INGOT_MODULE(PixelUnshuffle);

struct INGOT_API ChannelShuffleImpl : Layer {
  int64_t groups;
  explicit ChannelShuffleImpl(int64_t count) : groups(detail::positive("ChannelShuffle", "groups", count)) {}
  Tensor forward(const TensorArg& x) const { return functional::channel_shuffle(x, groups); }
};
INGOT_MODULE(ChannelShuffle);

struct PatchOptions {
  IntList dilation = 1, padding = 0, stride = 1;
};
struct INGOT_API UnfoldImpl : Layer {
  IntList kernel_size;
  PatchOptions options;
  explicit UnfoldImpl(const IntList& kernel, PatchOptions o = {})
      : kernel_size(detail::positive("Unfold", "kernel_size", kernel, 2)), options(detail::windows("Unfold", 2, o)) {}
  Tensor forward(const TensorArg& x) const {
    return functional::unfold(x, kernel_size, options.dilation, options.padding, options.stride);
  }
};
class Unfold
    : public HandleFrom<Unfold, UnfoldImpl, From<std::initializer_list<SizeArg>>, From<const IntList&, PatchOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(Unfold)
};
struct INGOT_API FoldImpl : Layer {
  IntList output_size, kernel_size;
  PatchOptions options;
  FoldImpl(const IntList& size, const IntList& kernel, PatchOptions o = {})
      : output_size(detail::positive("Fold", "output_size", size, 2)),
        kernel_size(detail::positive("Fold", "kernel_size", kernel, 2)),
        options(detail::windows("Fold", 2, o)) {}
  Tensor forward(const TensorArg& x) const {
    return functional::fold(x, output_size, kernel_size, options.dilation, options.padding, options.stride);
  }
};
class Fold : public HandleFrom<Fold, FoldImpl, From<const IntList&, const IntList&>,
                               From<const IntList&, const IntList&, PatchOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(Fold)
};

}  // namespace ingot::nn
