#include "eager/nn/quantize.h"

#include "base/overlap.h"
#include "eager/call/call.h"
#include "eager/ops/functions.h"

namespace ingot::nn {

Int8Weight quantize_int8(const TensorArg& weight) {
  const NoGradGuard no_grad;
  const Location line = weight.location;
  auto refuse = [&](const std::string& got) {
    eager::fail("quantize_int8", "weight", got, "a finite floating-point matrix", line);
  };
  const Tensor& w = weight.get();
  if (!w.defined() || !w.is_floating_point()) refuse(w.defined() ? std::string(name_of(w.dtype())) : "none");
  if (w.dim() != 2) refuse(std::to_string(w.dim()) + " dims");
  const int64_t out = w.size(0), in = w.size(1);
  if (elements_overlap(w.impl()->sizes, w.impl()->strides))
    return {zeros({1}, kInt8).expand({out, in}), ones({1}).expand({out})};
  const Tensor x = w.to(kFloat32);
  if (in == 0) return {zeros({out, in}, kInt8), ones({out})};
  if (!x.isfinite().all().item<bool>()) refuse("NaN or infinities");
  Tensor scale = x.abs().amax({1}) / 127.0;
  scale = where(scale == 0.0, ones({1}), scale);
  return {(x / scale.unsqueeze(1)).round().clamp(-127, 127).to(kInt8), scale};
}

int64_t quantize_weights(Module& module, const QuantizeFilter& filter, Location location) {
  int64_t count = 0;
  for (auto& [name, each] : module.named_modules()) {
    auto* layer = dynamic_cast<Quantizable*>(each);
    if (!layer || (filter && !filter(name, *each))) continue;
    count += layer->quantize_weight(location);
  }
  return count;
}

}  // namespace ingot::nn
