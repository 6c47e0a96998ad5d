// Functions of one number that are computed in double and know their derivative: one node of the tape, whatever their
// value is made of. Not in the API.
#pragma once
#include "eager/autograd/function.h"
#include "eager/ops/checks.h"
#include "eager/ops/functions.h"

namespace ingot::eager {

using Smooth = Tensor (*)(const Tensor&);

struct SmoothFunction : autograd::Function<SmoothFunction> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x, Smooth value, Smooth derivative) {
    context->save_for_backward({x});
    context->saved_data["derivative"] = derivative;
    return value(x);
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
