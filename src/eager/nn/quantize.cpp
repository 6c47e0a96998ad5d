#include "eager/nn/quantize.h"

#include <algorithm>

#include "base/module_path.h"
#include "base/overlap.h"
#include "eager/call/call.h"
#include "eager/ops/functions.h"

namespace ingot::nn {
namespace {

/// A floating matrix, or an Error of `op`.
const Tensor& matrix(const char* op, const TensorArg& weight) {
  const Tensor& w = weight.get();
  auto refuse = [&](const std::string& got) {
    eager::fail(op, "weight", got, "a finite floating-point matrix", weight.location);
  };
  if (!w.defined() || !w.is_floating_point()) refuse(w.defined() ? std::string(name_of(w.dtype())) : "none");
  if (w.dim() != 2) refuse(std::to_string(w.dim()) + " dims");
  return w;
}
void expect_finite(const char* op, const Tensor& w, const Location& line) {
  if (w.numel() && !w.isfinite().all().item<bool>())
    eager::fail(op, "weight", "NaN or infinities", "a finite floating-point matrix", line);
}
bool without_memory(const Tensor& w) { return elements_overlap(w.impl()->sizes, w.impl()->strides); }

}  // namespace

Int8Weight quantize_int8(const TensorArg& weight) {
  const NoGradGuard no_grad;
  const Tensor& w = matrix("quantize_int8", weight);
  const int64_t out = w.size(0), in = w.size(1);
  if (without_memory(w)) return {zeros({1}, kInt8).expand({out, in}), ones({1}).expand({out})};
  const Tensor x = w.to(kFloat32);
  if (in == 0) return {zeros({out, in}, kInt8), ones({out})};
  expect_finite("quantize_int8", x, weight.location);
  Tensor scale = x.abs().amax({1}) / 127.0;
  scale = where(scale == 0.0, ones({1}), scale);
  return {(x / scale.unsqueeze(1)).round().clamp(-127, 127).to(kInt8), scale};
}

Tensor round_weight(const TensorArg& weight, DType dtype) {
  const NoGradGuard no_grad;
  if (!is_half(dtype))
    eager::fail("round_weight", "dtype", std::string(name_of(dtype)), "bf16 or f16", weight.location);
  const Tensor& w = matrix("round_weight", weight);
  if (without_memory(w)) return zeros({1}, dtype).expand({w.size(0), w.size(1)});
  expect_finite("round_weight", w, weight.location);
  const Tensor rounded = w.detach().to(dtype);
  if (rounded.numel() && !rounded.isfinite().all().item<bool>())
    eager::fail("round_weight", "weight", "numbers up to " + std::to_string(w.abs().amax().item<double>()),
                "those that " + std::string(name_of(dtype)) + " has", weight.location);
  return rounded;
}

Tensor widened(const Tensor& weight, const TensorArg& input) {
  const bool wide = input.tensor && input.tensor->defined() &&
                    (input.tensor->dtype() == kFloat32 || input.tensor->dtype() == kFloat64);
  return wide && is_half(weight.dtype()) ? weight.to(input.tensor->dtype(), input.location) : weight;
}

int64_t convert_weights(Module& module, DType format, const QuantizeFilter& filter, Location location) {
  if (!is_half(format) && format != kInt8)
    eager::fail("convert_weights", "format", std::string(name_of(format)), "bf16, f16 or i8", location);
  std::vector<std::function<void()>> converted;
  for (auto& [name, each] : module.named_modules()) {
    auto* layer = dynamic_cast<Quantizable*>(each);
    if (!layer || (filter && !filter(name, *each))) continue;
    const ModulePathScope path(name);
    if (auto put = layer->converted_weight(format, location)) converted.push_back(std::move(put));
  }
  for (const auto& put : converted) put();
  return static_cast<int64_t>(converted.size());
}

int64_t quantize_weights(Module& module, const QuantizeFilter& filter, Location location) {
  return convert_weights(module, kInt8, filter, location);
}

}  // namespace ingot::nn
