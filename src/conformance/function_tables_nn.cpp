// torch.nn.functional.
#include "conformance/function_tables.h"
#include "conformance/signature.h"
#include "eager/nn/functional.h"
#include "eager/nn/grid.h"
#include "eager/nn/losses.h"
#include "eager/nn/pooling.h"
#include "eager/nn/resample.h"
#include "eager/nn/windows.h"
#include "eager/ops/selection.h"

namespace ingot::conformance {
namespace {

/// Convolution padded by a word.
using ConvolveByWord = Tensor(const TensorArg&, const TensorArg&, const TensorArg&, const IntList&, Word,
                              const IntList&, int64_t);

}  // namespace

FunctionTable nn_functions() {
  namespace F = nn::functional;
  constexpr May kBreaks = May::break_graph, kHost = May::use_host;
  constexpr const char* kConvolution = "input, weight, bias=null, stride=1, padding, dilation=1, groups=1";
  constexpr const char* kUnpool = "input, indices, kernel_size, stride=null, padding=0, output_size=null";
  return {
      {"nn.functional.conv1d", call<ConvolveByWord>(F::conv1d, kConvolution)},
      {"nn.functional.conv2d", call<ConvolveByWord>(F::conv2d, kConvolution)},
      {"nn.functional.conv3d", call<ConvolveByWord>(F::conv3d, kConvolution)},
      {"nn.functional.max_unpool1d", call(F::max_unpool1d, kUnpool, kHost)},
      {"nn.functional.max_unpool2d", call(F::max_unpool2d, kUnpool, kHost)},
      {"nn.functional.max_unpool3d", call(F::max_unpool3d, kUnpool, kHost)},
      {"nn.functional.normalize", call(F::normalize, "input, p=2, dim=1, eps=1e-12")},
      {"nn.functional.pixel_shuffle", call(F::pixel_shuffle, "input, upscale_factor")},
      {"nn.functional.pixel_unshuffle", call(F::pixel_unshuffle, "input, downscale_factor")},
      {"nn.functional.channel_shuffle", call(F::channel_shuffle, "input, groups")},
      {"nn.functional.grid_sample",
       call(F::grid_sample, "input, grid, mode=bilinear, padding_mode=zeros, align_corners=false")},
      {"nn.functional.one_hot", call(one_hot, "self, num_classes=-1", kBreaks | kHost)},
      {"nn.functional.bilinear", call(F::bilinear, "input1, input2, weight, bias=null")},
      {"nn.functional.pdist", call(F::pdist, "self, p=2", kHost)},

      {"nn.functional.cosine_embedding_loss",
       call(F::cosine_embedding_loss, "input1, input2, target, margin=0, reduction=mean")},
      {"nn.functional.gaussian_nll_loss",
       call(F::gaussian_nll_loss, "input, target, var, full=false, eps=1e-6, reduction=mean", kBreaks)},
      {"nn.functional.hinge_embedding_loss", call(F::hinge_embedding_loss, "input, target, margin=1, reduction=mean")},
      {"nn.functional.linear_cross_entropy",
       call(F::linear_cross_entropy,
            "input, linear_weight, target, linear_bias=null, weight=null, reduction=mean, ignore_index=-100, "
            "label_smoothing=0")},
      {"nn.functional.margin_ranking_loss",
       call(F::margin_ranking_loss, "input1, input2, target, margin=0, reduction=mean")},
      {"nn.functional.multi_margin_loss",
       call(F::multi_margin_loss, "input, target, p=1, margin=1, weight=null, reduction=mean")},
      {"nn.functional.multilabel_margin_loss", call(F::multilabel_margin_loss, "input, target, reduction=mean", kHost)},
      {"nn.functional.multilabel_soft_margin_loss",
       call(F::multilabel_soft_margin_loss, "input, target, weight=null, reduction=mean")},
      {"nn.functional.poisson_nll_loss",
       call(F::poisson_nll_loss, "input, target, log_input=true, full=false, eps=1e-8, reduction=mean")},
      {"nn.functional.triplet_margin_loss",
       call(F::triplet_margin_loss, "anchor, positive, negative, margin=1, p=2, eps=1e-6, swap=false, reduction=mean")},
  };
}

}  // namespace ingot::conformance
