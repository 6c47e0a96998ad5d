// Checks that need the data: positions within a dim, integers divided by zero. Before anything is written.
#include <vector>

#include "eager/call.h"
#include "eager/data.h"
#include "eager/execute.h"

namespace ingot::eager {
namespace {

int64_t integer_at(const detail::TensorImpl& t, int64_t offset) {
  return read_element(t.dtype, data_of(t) + offset * size_of(t.dtype)).to<int64_t>();
}

/// Every value of `positions` lies in [low, high), or is `ignored`.
void check_positions(const OpCall& call, size_t operand, int64_t low, int64_t high, const int64_t* ignored = nullptr) {
  const Tensor& positions = *call.operands[operand].tensor;
  settle(positions, ir::info(call.op).name.data(), call.location);
  const detail::TensorImpl& t = *positions.impl();
  auto check = [&](int64_t v) {
    if ((v >= low && v < high) || (ignored && v == *ignored)) return;
    fail(ir::info(call.op).name, ir::info(call.op).operand(static_cast<int>(operand)).name,
         "the position " + std::to_string(v),
         "positions from " + std::to_string(low) + " to " + std::to_string(high - 1), call.location);
  };
  if (t.dtype == DType::i64 && positions.is_contiguous()) {
    const int64_t* data = reinterpret_cast<const int64_t*>(data_of(t));
    int64_t n = count(t.sizes), smallest = low, largest = low;
    for (int64_t i = 0; i < n; ++i) smallest = std::min(smallest, data[i]), largest = std::max(largest, data[i]);
    if (smallest >= low && (largest < high || n == 0)) return;
  }
  for_each_offset(t, [&](int64_t offset) { check(integer_at(t, offset)); });
}

const detail::TensorImpl& tensor_of(const OpCall& call, size_t i) { return *call.operands[i].tensor->impl(); }

bool is_integer(const Operand& o) {
  if (o.kind == Operand::Kind::scalar) return o.category <= Category::integer;
  return category_of(o.tensor->impl()->dtype) <= Category::integer;
}

void check_divisor(const OpCall& call) {
  const Operand& divisor = call.operands[1];
  if (!is_integer(call.operands[0]) || !is_integer(divisor)) return;
  bool zero = false;
  if (divisor.kind == Operand::Kind::scalar) {
    zero = divisor.integer == 0;
  } else {
    settle(*divisor.tensor, ir::info(call.op).name.data(), call.location);
    const detail::TensorImpl& t = *divisor.tensor->impl();
    for_each_offset(t, [&](int64_t offset) { zero |= integer_at(t, offset) == 0; });
  }
  if (zero) fail(ir::info(call.op).name, "other", "a zero", "no zero: integers cannot be divided by it", call.location);
}

}  // namespace

void check_values(const OpCall& call) {
  switch (call.op) {
    case OpId::index_select:
    case OpId::gather: {
      const detail::TensorImpl& self = tensor_of(call, 0);
      int64_t size = self.sizes.empty() ? 1 : self.sizes[call.attrs[0].integer];
      return check_positions(call, 1, 0, size);
    }
    case OpId::embedding:
      return check_positions(call, 1, 0, tensor_of(call, 0).sizes[0]);
    case OpId::nll_loss:
    case OpId::cross_entropy: {
      if (category_of(tensor_of(call, 1).dtype) != Category::integer) return;  // probabilities
      const detail::TensorImpl& input = tensor_of(call, 0);
      int64_t ignored = call.attrs[0].integer;
      return check_positions(call, 1, 0, input.sizes[input.sizes.size() == 1 ? 0 : 1], &ignored);
    }
    case OpId::div:
      if (call.attrs[0].integer == 0) return;
      return check_divisor(call);
    case OpId::floor_divide:
    case OpId::remainder:
    case OpId::fmod:
      return check_divisor(call);
    default:
      return;
  }
}

}  // namespace ingot::eager
