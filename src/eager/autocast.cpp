#include "eager/autocast.h"

#include <algorithm>
#include <optional>

#include "base/inline_vector.h"
#include "eager/call/call.h"
#include "eager/call/script.h"
#include "eager/data.h"
#include "ir/traits.h"

namespace ingot {
namespace {

using eager::OpCall;
using eager::Operand;

bool is_cast(const Operand& o) {
  if (o.kind != Operand::Kind::tensor) return false;
  const DType dtype = o.tensor->impl()->dtype;
  return is_floating(dtype) && dtype != DType::f64;
}

/// Who stands in the chain of a thread in a region; which of them it is says the dtype.
class Autocast final : public eager::Interceptor {
 public:
  constexpr explicit Autocast(DType lower) : Interceptor(eager::Stage::autocast), lower_(lower) {}
  DType lower() const { return lower_; }

  using Interceptor::call;
  void call(const OpCall& call, std::span<Tensor> outputs) override {
    const std::optional<DType> asked = dtype_of(call);
    auto differs = [&](const Operand& o) { return is_cast(o) && o.tensor->impl()->dtype != *asked; };
    if (!asked || std::none_of(call.operands.begin(), call.operands.end(), differs)) return proceed(call, outputs);
    InlineVector<Tensor, 6> casts;
    InlineVector<Operand, 6> operands;
    casts.reserve(call.operands.size());
    operands.reserve(call.operands.size());
    const ir::Attr dtype = ir::Attr::of(*asked);
    for (const Operand& o : call.operands) {
      if (!differs(o)) {
        operands.emplace_back(o);
        continue;
      }
      const eager::ScriptWriter::Aside aside;
      Tensor& cast = casts.emplace_back();
      proceed({OpId::cast, false, {&o, 1}, {&dtype, 1}, call.location}, {&cast, 1});
      operands.emplace_back(cast);
    }
    OpCall changed = call;
    changed.operands = operands;
    proceed(changed, outputs);
  }

 private:
  /// In which the floating operands are taken; none: as they come. A derivative's are those of its call.
  std::optional<DType> dtype_of(const OpCall& call) const {
    if (call.inplace || call.derivative) return {};
    if (ir::has_trait(call.op, ir::kLower16)) return lower_;
    if (ir::has_trait(call.op, ir::kFull)) {
      const bool told = std::any_of(call.attrs.begin(), call.attrs.end(),
                                    [](const ir::Attr& a) { return a.kind == ir::Attr::Kind::dtype; });
      return told ? std::optional<DType>() : DType::f32;
    }
    if (!ir::has_trait(call.op, ir::kWidest)) return {};
    std::optional<DType> widest;
    for (const Operand& o : call.operands)
      if (is_cast(o)) widest = widest ? promote(*widest, o.tensor->impl()->dtype) : o.tensor->impl()->dtype;
    return widest;
  }

  DType lower_;
};

constinit Autocast to_bf16(DType::bf16), to_f16(DType::f16);

const Autocast* current() { return static_cast<const Autocast*>(eager::interceptor(eager::Stage::autocast)); }

}  // namespace

AutocastGuard::AutocastGuard(DType dtype, bool enabled, Location location) {
  if (dtype != DType::bf16 && dtype != DType::f16)
    eager::fail("AutocastGuard", "dtype", std::string(name_of(dtype)), "kBFloat16 or kFloat16", location);
  Autocast* const lower = dtype == DType::bf16 ? &to_bf16 : &to_f16;
  outer_ = eager::set_interceptor(eager::Stage::autocast, enabled ? lower : nullptr);
}
AutocastGuard::~AutocastGuard() { eager::set_interceptor(eager::Stage::autocast, outer_); }

bool is_autocast_enabled() { return current(); }
DType get_autocast_dtype() { return current() ? current()->lower() : DType::bf16; }

}  // namespace ingot
