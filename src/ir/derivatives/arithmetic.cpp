// Sums, products, quotients, powers, and what selects one of several operands.
#include "ir/derivative.h"

namespace ingot::ir::derivatives {

std::vector<Operand> add(GraphBuilder& b, const DerivedCall& call) {
  const Operand& g = call.cotangent();
  return {g, call.wanted[1] ? b.scaled(g, call.operand("alpha")) : Operand::none(), Operand::none()};
}

std::vector<Operand> mul(GraphBuilder& b, const DerivedCall& call) {
  const Operand& g = call.cotangent();
  auto times = [&](int i) {
    return call.wanted[static_cast<size_t>(1 - i)] ? b.mul(g, call.operands[static_cast<size_t>(i)]) : Operand::none();
  };
  return {times(1), times(0)};
}

}  // namespace ingot::ir::derivatives
