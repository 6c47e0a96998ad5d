// Library steps: C++ functions over generated kernels, known by the name in LibraryStep. Their conventions:
//
// Both compute in one type, f32 or f64 (16-bit operands are converted before and the result after), and take the
// kernels of a matrix product of that type; "tiles" and "packs" are ordered as in MatmulStep.
//
// "attention": out = softmax(q k^T * scale + mask) v.
//   arguments  out [B, H, T, Dv], q [B, H, T, D], k [B, Hk, S, D], v [B, Hk, S, Dv]; optionally mask [B, H, T, S]
//              (expanded by strides of 0). `shapes` has the same shapes. Last dims of all but the mask are contiguous.
//              Hk divides H: head h reads key head h / (H / Hk).
//   sizes      causal (0 or 1: row t sees keys 0 .. t), max_rows, max_vectors, bytes an element of the softmax's
//   locals. scalars    scale, in the type computed in; empty: 1 / sqrt(D). kernels    tiles; packs of a B whose columns
//   are contiguous; packs of a B whose k is; the softmax: a rows kernel over
//              buffers 0 (raw scores, dense), 1 (probabilities, dense, the memory of 0: it stores a row after its last
//              read), 2 (mask, if there is one; a bool that is false, or -inf, hides a key), with scalar 0 the scale.
//
// "conv2d": NCHW input, as a product of weights [Cout / groups, (kh, kw, c)] and patches [(kh, kw, c), pixels];
// with one input channel a group, a loop over the taps.
//   arguments  input [N, C, H, W] and weight [Cout, C / groups, KH, KW], any strides; then over [N, Cout, OH * OW]
//   (three
//              strides): without an epilogue the result, pixels contiguous; with one, its buffers 1, 2, ...
//   shapes     of input and weight.
//   sizes      stride (h, w), padding (h, w), dilation (h, w), groups, weight is constant (0 or 1), has an epilogue
//              (0 or 1), max_rows, max_vectors.
//   scalars    of the epilogue.
//   kernels    tiles; then the epilogues if there are any, as MatmulStep orders them: over [channels, pixels], buffer 0
//              the raw results.
//
// The others are host ops, under the name of their row: arguments are the results (row-major) and then the operands
// that are present, as they lie; sizes are the attributes in their order, those of a list one by one, an absent one 0.
#pragma once
#include <memory>
#include <string_view>

#include "runtime/step_driver.h"

namespace ingot::runtime {

using BindLibraryStep = std::shared_ptr<StepDriver>(const LibraryStep& step, const Step& costs,
                                                    const BindContext& context);
BindLibraryStep bind_attention, bind_conv2d, bind_cumsum, bind_cumprod, bind_cummax, bind_cummin, bind_logcumsumexp,
    bind_sort, bind_topk, bind_searchsorted, bind_nonzero_static, bind_scatter, bind_scatter_reduce;

struct LibraryRow {
  std::string_view name;
  BindLibraryStep* bind;
};
inline constexpr LibraryRow kLibrarySteps[] = {
    {"attention", bind_attention},
    {"conv2d", bind_conv2d},
    {"cumsum", bind_cumsum},
    {"cumprod", bind_cumprod},
    {"cummax", bind_cummax},
    {"cummin", bind_cummin},
    {"logcumsumexp", bind_logcumsumexp},
    {"sort", bind_sort},
    {"topk", bind_topk},
    {"searchsorted", bind_searchsorted},
    {"nonzero_static", bind_nonzero_static},
    {"scatter", bind_scatter},
    {"scatter_reduce", bind_scatter_reduce},
};
constexpr bool has_library_step(std::string_view name) {
  for (const LibraryRow& row : kLibrarySteps)
    if (row.name == name) return true;
  return false;
}

/// Throws InternalError, with the names that exist, if no step has this name.
std::shared_ptr<StepDriver> bind_library(const LibraryStep& step, const Step& costs, const BindContext& context);

}  // namespace ingot::runtime
