// Functions of one number that are computed in double and know their derivative: one node of the tape, whatever their
// value is made of. Not in the API.
#pragma once
#include <algorithm>

#include "eager/autograd/function.h"
#include "eager/call/dispatch.h"
#include "eager/ops/checks.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "runtime/thread_pool.h"

namespace ingot::eager {

using Smooth = Tensor (*)(const Tensor&);

/// Of a long tensor, in eager calls, a piece after the other, so that what is in between stays in cache.
inline Tensor in_pieces(Smooth function, const Tensor& x) {
  const int64_t piece = 8192 * int64_t{num_threads()}, n = x.numel();
  if (intercepted() || n <= 2 * piece) return function(x);
  const Tensor line = x.reshape({-1}), result = empty_like(line);
  for (int64_t begin = 0; begin < n; begin += piece) {
    const int64_t length = std::min(piece, n - begin);
    result.narrow(0, begin, length).copy_(function(line.narrow(0, begin, length)));
  }
  return result.view(x.sizes());
}

struct SmoothFunction : autograd::Function<SmoothFunction> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x, Smooth value, Smooth derivative) {
    context->save_for_backward({x});
    context->saved_data["derivative"] = derivative;
    return in_pieces(value, x);
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* context, const std::vector<Tensor>& gradients) {
    const auto derivative = std::any_cast<Smooth>(context->saved_data["derivative"]);
    return {gradients[0] * derivative(context->get_saved_variables()[0]), Tensor(), Tensor()};
  }
};

/// Element by element; of floats in their dtype, else in f32.
inline Tensor smooth(const char* op, const TensorArg& self, Smooth value, Smooth derivative) {
  const CallerLine line(self.location);
  const Tensor& x = present(op, "self", self);
  return SmoothFunction::apply(x.to(kFloat64), value, derivative).to(is_floating(x.dtype()) ? x.dtype() : kFloat32);
}

}  // namespace ingot::eager
