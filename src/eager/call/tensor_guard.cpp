#include "eager/call/tensor_guard.h"

namespace ingot::eager {

std::optional<Mismatch> mismatch(TensorFacts guarded, TensorFacts met) {
  auto flag = [](bool set) { return set ? "true" : "false"; };
  if (guarded.tensor() != met.tensor())
    return Mismatch{"tensor", guarded.tensor() ? "a tensor" : "none", met.tensor() ? "a tensor" : "none"};
  if (guarded.dtype() != met.dtype())
    return Mismatch{"dtype", std::string(name_of(guarded.dtype())), std::string(name_of(met.dtype()))};
  if (guarded.rank() != met.rank()) return Mismatch{"rank", std::to_string(guarded.rank()), std::to_string(met.rank())};
  if (guarded.requires_grad() != met.requires_grad())
    return Mismatch{"requires_grad", flag(guarded.requires_grad()), flag(met.requires_grad())};
  return std::nullopt;
}

TensorGuard::TensorGuard(const detail::TensorImpl& t)
    : facts(t), sizes(t.sizes), strides(t.strides), classes(classify(t.sizes, t.strides)) {}

bool TensorGuard::holds(const detail::TensorImpl& t) const {
  return t.storage && TensorFacts(t) == facts && (same_layout(t) || classify(t.sizes, t.strides) == classes);
}

std::optional<Mismatch> TensorGuard::why_not(const detail::TensorImpl& t) const {
  if (std::optional<Mismatch> different = mismatch(facts, TensorFacts(t))) return different;
  if (holds(t)) return std::nullopt;
  if (!t.storage) return Mismatch{"value", "computed", "still being recorded"};
  return Mismatch{"strides", str(), describe(t.dtype, t.sizes, t.strides)};
}

std::string TensorGuard::str() const { return describe(facts.dtype(), sizes, strides); }

std::string describe(DType dtype, const Ints& sizes, const Ints& strides) {
  std::string text = std::string(name_of(dtype)) + "[";
  int64_t dense = 1;
  bool contiguous = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    contiguous = contiguous && (sizes[i] == 1 || strides[i] == dense);
    dense *= sizes[i];
  }
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  text += "]";
  if (contiguous) return text;
  text += " strides [";
  for (size_t i = 0; i < strides.size(); ++i) text += (i ? ", " : "") + std::to_string(strides[i]);
  return text + "]";
}

}  // namespace ingot::eager
