// Checks that need the data: positions within a dim, integers divided by zero, probabilities. Before anything is
// written.
#include <cmath>

#include "eager/call/call.h"
#include "eager/call/check_values.h"
#include "eager/data.h"
#include "eager/execute/execute.h"
#include "ir/rules/rules.h"

namespace ingot::eager {
namespace {

int64_t integer_at(const detail::TensorImpl& t, int64_t offset) {
  return read_element(t.dtype, data_of(t) + offset * size_of(t.dtype)).to<int64_t>();
}

/// Every value of `positions` lies in [low, high), or is `ignored`.
void check_positions(const OpCall& call, size_t operand, int64_t low, int64_t high, const int64_t* ignored = nullptr) {
  const Tensor& positions = *call.operands[operand].tensor;
  materialize(positions, ir::info(call.op).name.data(), call.location);
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
  // A dim along which an element is repeated needs one look.
  Ints sizes = t.sizes;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (t.strides[d] == 0) sizes[d] = std::min<int64_t>(sizes[d], 1);
  Tensor distinct = make_tensor(t.dtype, sizes, t.strides, t.offset, t.storage);
  for_each_offset(*distinct.impl(), [&](int64_t offset) { check(integer_at(t, offset)); });
}

void check_divisor(const OpCall& call, size_t operand) {
  const Operand& divisor = call.operands[operand];
  bool zero = false;
  if (divisor.kind == Operand::Kind::scalar) {
    zero = divisor.integer == 0;
  } else {
    materialize(*divisor.tensor, ir::info(call.op).name.data(), call.location);
    const detail::TensorImpl& t = *divisor.tensor->impl();
    for_each_offset(t, [&](int64_t offset) { zero |= integer_at(t, offset) == 0; });
  }
  if (zero) fail(ir::info(call.op).name, "other", "a zero", "no zero: integers cannot be divided by it", call.location);
}

void check_interval(const OpCall& call, const ValueCheck& check, size_t operand) {
  const Operand& given = call.operands[operand];
  auto require = [&](double v) {
    if (v >= check.low && v <= check.high) return;
    std::string low = std::to_string(static_cast<int64_t>(check.low));
    fail(ir::info(call.op).name, ir::info(call.op).operand(static_cast<int>(operand)).name, std::to_string(v),
         std::isinf(check.high) ? "no number below " + low
                                : "numbers from " + low + " to " + std::to_string(static_cast<int64_t>(check.high)),
         call.location);
  };
  if (given.kind == Operand::Kind::scalar) return require(given.number);
  materialize(*given.tensor, ir::info(call.op).name.data(), call.location);
  const detail::TensorImpl& t = *given.tensor->impl();
  for_each_offset(
      t, [&](int64_t offset) { require(read_element(t.dtype, data_of(t) + offset * size_of(t.dtype)).to_double()); });
}

void check_weights(const OpCall& call, size_t operand) {
  const Tensor& weights = *call.operands[operand].tensor;
  materialize(weights, ir::info(call.op).name.data(), call.location);
  const detail::TensorImpl& t = *weights.impl();
  const int64_t row = t.sizes.back();
  int64_t seen = 0;
  double largest = 0;
  auto refuse = [&](const std::string& got) {
    fail(ir::info(call.op).name, ir::info(call.op).operand(static_cast<int>(operand)).name, got,
         "finite numbers, none of them negative, and in each row one above 0", call.location);
  };
  for_each_offset(t, [&](int64_t offset) {
    const double v = read_element(t.dtype, data_of(t) + offset * size_of(t.dtype)).to_double();
    if (!(v >= 0) || std::isinf(v)) refuse(std::to_string(v));
    largest = std::max(largest, v);
    if (++seen % row != 0) return;
    if (largest == 0) refuse("a row of zeros");
    largest = 0;
  });
}

void check_order(const OpCall& call, const ValueCheck& check) {
  const Operand &a = call.operands[check.operand - 1], &b = call.operands[check.operand];
  bool whole = a.category <= Category::integer && b.category <= Category::integer;
  bool less = whole ? a.integer < b.integer : a.number < b.number;
  bool equal = whole ? a.integer == b.integer : a.number == b.number;
  if (less || (equal && !check.strict)) return;
  auto text = [](const Operand& o) {
    return o.category <= Category::integer ? std::to_string(o.integer) : std::to_string(o.number);
  };
  const ir::OpInfo& op = ir::info(call.op);
  fail(op.name, op.operand(static_cast<int>(check.operand)).name, text(b),
       std::string(check.strict ? "a number above " : "no number below ") +
           op.operand(static_cast<int>(check.operand - 1)).name + " (" + text(a) + ")",
       call.location);
}

bool is_integer(DType dtype) { return category_of(dtype) <= Category::integer; }

bool is_integer(const Operand& o) {
  return o.kind == Operand::Kind::scalar ? o.category <= Category::integer : is_integer(o.tensor->impl()->dtype);
}
bool is_present(const Operand& o) { return o.kind != Operand::Kind::none; }
size_t rank_of(const Operand& o) { return o.tensor->impl()->sizes.size(); }

bool is_integer(const ir::OperandType& o) {
  return o.is_scalar() ? o.category <= Category::integer : is_integer(o.dtype);
}
bool is_present(const ir::OperandType& o) { return o.present(); }
size_t rank_of(const ir::OperandType& o) { return o.shape->size(); }

// Written for eager's operands and for those of a graph.
template <class AnyOperand>
bool holds(const ir::DataCheck& check, const AnyOperand& operand, std::span<const AnyOperand> operands,
           std::span<const ir::Attr> attrs) {
  if (!is_present(operand) || (check.with >= 0 && attrs[check.with].integer == 0) ||
      (check.without >= 0 && is_present(operands[check.without])))
    return false;
  if (check.kind == ir::DataCheck::Kind::divisor) return is_integer(operands[0]) && is_integer(operand);
  return check.kind != ir::DataCheck::Kind::positions || is_integer(operand);
}

template <class AnyOperand>
ValueCheck check_of(OpId op, std::span<const AnyOperand> operands, std::span<const ir::Attr> attrs) {
  ValueCheck check;
  const ir::OpInfo& row = ir::info(op);
  for (const int number : row.checked) {
    const ir::DataCheck& stated = row.operand(number).check;
    if (!holds(stated, operands[number], operands, attrs)) continue;
    ++check.operands;
    if (check.operands > 1) continue;
    check.kind = stated.kind;
    check.operand = static_cast<size_t>(number);
    check.wraps = stated.wraps;
    check.low = stated.low;
    check.high = stated.high;
    check.strict = stated.strict;
    if (stated.kind == ir::DataCheck::Kind::positions)
      check.dim = ir::dim_of_positions(stated, attrs, rank_of(operands[0]));
    if (stated.ignored >= 0) check.ignored = attrs[stated.ignored].integer;
  }
  return check;
}

}  // namespace

ValueCheck value_check(OpId op, std::span<const ir::OperandType> operands, std::span<const ir::Attr> attrs) {
  return check_of(op, operands, attrs);
}
ValueCheck value_check(const OpCall& call) {
  if (call.derivative) return {};  // made before the op itself was computed
  return check_of(call.op, call.operands, call.attrs);
}

void check_operand(const OpCall& call, const ValueCheck& check, size_t operand) {
  switch (check.kind) {
    case ValueCheck::Kind::none:
      return;
    case ValueCheck::Kind::divisor:
      return check_divisor(call, operand);
    case ValueCheck::Kind::interval:
      return check_interval(call, check, operand);
    case ValueCheck::Kind::weights:
      return check_weights(call, operand);
    case ValueCheck::Kind::order:
      return check_order(call, check);
    case ValueCheck::Kind::positions: {
      const Ints& sizes = call.operands[0].tensor->impl()->sizes;
      const int64_t size = check.dim < 0 || sizes.empty() ? count(sizes) : sizes[check.dim];
      check_positions(call, operand, check.wraps ? -size : 0, size, check.ignored ? &*check.ignored : nullptr);
    }
  }
}

void check_values(const OpCall& call) {
  const ValueCheck check = value_check(call);
  if (check.kind == ValueCheck::Kind::none) return;
  for (size_t i = 0; i < check.operands; ++i) check_operand(call, check, check.operand + i);
}

bool positions_have_room(const OpCall& call, const ValueCheck& check, size_t operand) {
  if (check.kind != ValueCheck::Kind::positions) return true;
  const Ints& sizes = call.operands[0].tensor->impl()->sizes;
  const int64_t places = check.dim < 0 ? count(sizes) : sizes.empty() ? 1 : sizes[check.dim];
  return places > 0 || count(call.operands[operand].tensor->impl()->sizes) == 0;
}

void check_numbers(std::string_view function, std::string_view argument, const Tensor& numbers, int64_t low,
                   int64_t high, Location location) {
  if (intercepted()) return;
  materialize(numbers, function.data(), location);
  const detail::TensorImpl& t = *numbers.impl();
  for_each_offset(t, [&](int64_t offset) {
    const int64_t v = integer_at(t, offset);
    if (v < low || v >= high)
      fail(function, argument, std::to_string(v),
           "numbers from " + std::to_string(low) + " to " + std::to_string(high - 1), location);
  });
}

}  // namespace ingot::eager
