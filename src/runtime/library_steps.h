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
//   kernels    tiles; then the epilogue if there is one: over [channels, pixels], buffer 0 the raw results.
#pragma once
#include <memory>
#include <string>

#include "runtime/step_driver.h"

namespace ingot::runtime {

std::unique_ptr<StepDriver> bind_attention(const LibraryStep& step, const Step& costs, const BindContext& context);
std::unique_ptr<StepDriver> bind_conv2d(const LibraryStep& step, const Step& costs, const BindContext& context);

/// Throws InternalError, with the names that exist, if no step has this name.
std::unique_ptr<StepDriver> bind_library(const LibraryStep& step, const Step& costs, const BindContext& context);

}  // namespace ingot::runtime
