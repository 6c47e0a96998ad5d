#include "eager/ops/fake_quantize.h"

#include <string>

#include "base/function_scope.h"
#include "eager/autograd/autograd.h"
#include "eager/ops/checks.h"
#include "eager/ops/functions.h"

namespace ingot {
namespace {

using eager::fail;
using eager::shape_text;

const Tensor& checked(const char* op, const TensorArg& self, int64_t quant_min, int64_t quant_max) {
  if (quant_min > quant_max)
    fail(op, "quant_min", std::to_string(quant_min), "at most quant_max, " + std::to_string(quant_max), self.location);
  return eager::present_floating(op, "self", self);
}

Tensor quantized(const Tensor& x, const Tensor& scale, const Tensor& zero_point, int64_t quant_min, int64_t quant_max) {
  Tensor inside, y;
  {
    const NoGradGuard no_grad;
    const Tensor level = (x * scale.reciprocal()).round() + zero_point;
    inside = (level >= quant_min) & (level <= quant_max);
    y = (level.clamp(quant_min, quant_max) - zero_point) * scale;
  }
  const Tensor through = where(inside, x, 0.0);
  return y + (through - through.detach());  // adds a zero, which has the gradient
}

}  // namespace

Tensor fake_quantize_per_tensor_affine(const TensorArg& self, const OperandArg& scale, const OperandArg& zero_point,
                                       int64_t quant_min, int64_t quant_max) {
  constexpr const char* kOp = "fake_quantize_per_tensor_affine";
  const FunctionScope scope(kOp, self.location);
  const Tensor& x = checked(kOp, self, quant_min, quant_max);
  if (zero_point.is_scalar)
    if (const double at = zero_point.value.to_double();
        at < static_cast<double>(quant_min) || at > static_cast<double>(quant_max))
      fail(kOp, "zero_point", std::to_string(zero_point.value.to_int64_saturated()),
           "a number from quant_min to quant_max", self.location);
  const auto held = [&](const char* argument, const OperandArg& given) {
    if (given.is_scalar) return full({}, given.value, x.dtype());
    TensorArg one;
    one.tensor = given.tensor, one.location = self.location;
    const Tensor& t = eager::present(kOp, argument, one);
    if (t.numel() != 1) fail(kOp, argument, shape_text(t), "a number or one element", self.location);
    return t.detach().reshape({}).to(x.dtype());
  };
  const Tensor one_step = held("scale", scale);
  return quantized(x, one_step, held("zero_point", zero_point), quant_min, quant_max);
}

Tensor fake_quantize_per_channel_affine(const TensorArg& self, const TensorArg& scale, const TensorArg& zero_point,
                                        int64_t axis, int64_t quant_min, int64_t quant_max) {
  constexpr const char* kOp = "fake_quantize_per_channel_affine";
  const FunctionScope scope(kOp, self.location);
  const Tensor& x = checked(kOp, self, quant_min, quant_max);
  const int64_t dim = eager::wrapped_dim(kOp, "axis", axis, x.dim(), self.location);
  IntList shape{};
  for (int64_t d = 0; d < x.dim(); ++d) shape.add(d == dim ? x.size(d) : Size::of(1));
  const auto held = [&](const char* argument, const TensorArg& given) {
    const Tensor& t = eager::present(kOp, argument, given);
    if (x.dim() == 0 || t.dim() != 1 || t.size(0) != x.size(dim))
      fail(kOp, argument, shape_text(t),
           "one number for each position of dim " + std::to_string(axis) + " of " + shape_text(x), self.location);
    return t.detach().view(shape).to(x.dtype());
  };
  const Tensor one_step = held("scale", scale);
  return quantized(x, one_step, held("zero_point", zero_point), quant_min, quant_max);
}

}  // namespace ingot
