// Checks that need the data: positions within a dim, integers divided by zero, probabilities. Before anything is
// written.
#include <cmath>

#include "eager/autograd/autograd.h"
#include "eager/call/call.h"
#include "eager/call/check_values.h"
#include "eager/data.h"
#include "eager/execute/execute.h"
#include "eager/ops/factories.h"
#include "ir/rules/rules.h"

namespace ingot::eager {
namespace {

/// Calls f with each element, in order: as its own type, or a 16-bit float as f64.
template <class F>
void for_each_element(const Tensor& tensor, F&& f) {
  const detail::TensorImpl& t = *tensor.impl();
  auto each = [&](auto zero) {
    const auto* data = reinterpret_cast<const decltype(zero)*>(data_of(t));
    if (!tensor.is_contiguous()) return for_each_offset(t, [&](int64_t offset) { f(data[offset]); });
    const int64_t n = count(t.sizes);
    for (int64_t i = 0; i < n; ++i) f(data[i]);
  };
  switch (t.dtype) {
    case DType::f32:
      return each(float{});
    case DType::f64:
      return each(double{});
    case DType::i64:
      return each(int64_t{});
    case DType::i32:
      return each(int32_t{});
    case DType::i16:
      return each(int16_t{});
    case DType::i8:
      return each(int8_t{});
    case DType::u8:
    case DType::bool_:
      return each(uint8_t{});
    default:
      for_each_offset(
          t, [&](int64_t offset) { f(read_element(t.dtype, data_of(t) + offset * size_of(t.dtype)).to_double()); });
  }
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
    // Below low (0 or less) one difference is negative, from high on the other one; no sum of a loop of 64-bit
    // extremes, for which plain x86-64 has no instruction.
    const int64_t n = count(t.sizes);
    uint64_t outside = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<uint64_t>(data[i]);
      outside |= (v - static_cast<uint64_t>(low)) | (static_cast<uint64_t>(high) - 1 - v);
    }
    if (outside >> 63 == 0) return;
  }
  // A dim along which an element is repeated needs one look.
  Ints sizes = t.sizes;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (t.strides[d] == 0) sizes[d] = std::min<int64_t>(sizes[d], 1);
  Tensor distinct = make_tensor(t.dtype, sizes, t.strides, t.offset, t.storage);
  for_each_element(distinct, [&](auto v) { check(static_cast<int64_t>(v)); });
}

void check_divisor(const OpCall& call, size_t operand) {
  const Operand& divisor = call.operands[operand];
  bool zero = false;
  if (divisor.kind == Operand::Kind::scalar) {
    zero = divisor.number == 0;
  } else {
    materialize(*divisor.tensor, ir::info(call.op).name.data(), call.location);
    for_each_element(*divisor.tensor, [&](auto v) { zero |= v == 0; });
  }
  const ir::ArgInfo& argument = ir::info(call.op).operand(static_cast<int>(operand));
  if (zero)
    fail(ir::info(call.op).name, argument.name, "a zero",
         argument.kind == ir::ArgKind::value ? "another number" : "no zero: integers cannot be divided by it",
         call.location);
}

void check_interval(const OpCall& call, const ValueCheck& check) {
  const Operand& given = call.operands[check.operand];
  auto require = [&](double v) {
    if (v >= check.low && v <= check.high) return;
    std::string low = std::to_string(static_cast<int64_t>(check.low));
    fail(ir::info(call.op).name, ir::info(call.op).operand(static_cast<int>(check.operand)).name, std::to_string(v),
         std::isinf(check.high) ? "no number below " + low
                                : "numbers from " + low + " to " + std::to_string(static_cast<int64_t>(check.high)),
         call.location);
  };
  if (given.kind == Operand::Kind::scalar) return require(given.number);
  materialize(*given.tensor, ir::info(call.op).name.data(), call.location);
  for_each_element(*given.tensor, [&](auto v) { require(static_cast<double>(v)); });
}

void check_weights(const OpCall& call, size_t operand) {
  const Tensor& weights = *call.operands[operand].tensor;
  materialize(weights, ir::info(call.op).name.data(), call.location);
  const int64_t row = weights.impl()->sizes.back();
  int64_t seen = 0;
  double largest = 0;
  auto refuse = [&](const std::string& got) {
    fail(ir::info(call.op).name, ir::info(call.op).operand(static_cast<int>(operand)).name, got,
         "finite numbers, none of them negative, and in each row one above 0", call.location);
  };
  for_each_element(weights, [&](auto element) {
    const auto v = static_cast<double>(element);
    if (!(v >= 0) || std::isinf(v)) refuse(std::to_string(v));
    largest = std::max(largest, v);
    if (++seen % row != 0) return;
    if (largest == 0) refuse("a row of zeros");
    largest = 0;
  });
}

/// Of what stopped first, matrix by matrix.
void check_finished(const OpCall& call, size_t operand) {
  const Tensor& info = *call.operands[operand].tensor;
  materialize(info, ir::info(call.op).name.data(), call.location);
  const bool alone = count(info.impl()->sizes) == 1, by_minor = call.attrs[0].integer != 0;
  int64_t matrix = 0;
  for_each_element(info, [&](auto element) {
    const std::string stop = std::to_string(static_cast<int64_t>(element));
    if (element != 0)
      fail(ir::info(call.op).name, ir::info(call.op).operand(static_cast<int>(operand)).name,
           (alone ? "a matrix" : "matrix " + std::to_string(matrix)) +
               (by_minor ? " whose leading minor of order " + stop + " is not positive"
                         : " that is singular (pivot " + stop + " is 0)"),
           by_minor ? "positive definite ones" : "one that has an inverse", call.location);
    ++matrix;
  });
}

/// Negative numbers wrap in an unsigned dtype, as in PyTorch; but a bound does not.
void check_held(const OpCall& call, const ValueCheck& check) {
  using Bound = ir::DataCheck::Bound;
  const Operand& given = call.operands[check.operand];
  const bool whole = given.category <= Category::integer;
  const auto [lowest, highest] = integer_range(check.dtype);
  const double end = 2.0 * static_cast<double>(highest / 2 + 1);
  const bool wraps = lowest == 0 && check.bound == Bound::none;
  const bool beyond = check.bound == Bound::lower ? given.number < 0 : check.bound == Bound::upper && given.number > 0;
  if (beyond || detail::holds(whole ? Scalar(given.integer) : Scalar(given.number),
                              wraps ? 1 - end : static_cast<double>(lowest), end))
    return;
  fail(ir::info(call.op).name, ir::info(call.op).operand(static_cast<int>(check.operand)).name,
       whole ? std::to_string(given.integer) : std::to_string(given.number),
       "a number that " + std::string(name_of(check.dtype)) + " holds, from " + std::to_string(lowest) + " to " +
           std::to_string(highest),
       call.location);
}

void check_order(const OpCall& call, const ValueCheck& check) {
  const Operand &a = call.operands[check.operand - 1], &b = call.operands[check.operand];
  bool whole = a.category <= Category::integer && b.category <= Category::integer;
  bool less = whole ? a.integer < b.integer : a.number < b.number;
  bool equal = whole ? a.integer == b.integer : a.number == b.number;
  const ir::OpInfo& op = ir::info(call.op);
  if (less || (equal && !check.strict)) {
    if (!check.strict || !is_integral(check.dtype)) return;
    // The end of numbers that the result's dtype holds.
    const auto [lowest, highest] = integer_range(check.dtype);
    const size_t wrong = a.integer < lowest ? check.operand - 1 : check.operand;
    if (a.integer >= lowest && b.integer - 1 <= highest) return;
    const int64_t last = wrong == check.operand ? 1 : 0;
    fail(op.name, op.operand(static_cast<int>(wrong)).name, std::to_string(call.operands[wrong].integer),
         "a number from " + std::to_string(lowest + last) + " to " + std::to_string(highest + last) +
             ", for a result of " + std::string(name_of(check.dtype)),
         call.location);
  }
  auto text = [](const Operand& o) {
    return o.category <= Category::integer ? std::to_string(o.integer) : std::to_string(o.number);
  };
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

DType dtype_of_operand(const Operand& o) { return o.tensor->impl()->dtype; }
DType dtype_of_operand(const ir::OperandType& o) { return o.dtype; }
bool is_scalar(const Operand& o) { return o.kind == Operand::Kind::scalar; }
bool is_scalar(const ir::OperandType& o) { return o.is_scalar(); }

// Written for eager's operands and for those of a graph.

/// The dtype that has to hold a scalar of `row`: the attribute's, or that of the tensors, of those with dims first;
/// f32, which holds all, where scalars alone say what it is.
template <class AnyOperand>
DType holding_dtype(const ir::OpInfo& row, std::span<const AnyOperand> operands, std::span<const ir::Attr> attrs) {
  const int count = static_cast<int>(attrs.size());
  for (int i = 0; i < count; ++i)
    if (attrs[i].present() && row.attribute(i).kind == ir::ArgKind::dtype) return static_cast<DType>(attrs[i].integer);
  std::optional<DType> found;
  for (const bool with_dims : {true, false})
    for (size_t i = 0; i < operands.size() && (with_dims || found.value_or(DType::bool_) == DType::bool_); ++i) {
      const ir::ArgInfo& argument = row.operand(static_cast<int>(i));
      if (!is_present(operands[i]) || is_scalar(operands[i]) || argument.mask ||
          argument.check.kind == ir::DataCheck::Kind::positions || (rank_of(operands[i]) > 0) != with_dims)
        continue;
      found = found ? promote(*found, dtype_of_operand(operands[i])) : dtype_of_operand(operands[i]);
    }
  return found.value_or(DType::f32);
}

template <class AnyOperand>
bool holds(const ir::OpInfo& row, const ir::ArgInfo& argument, const AnyOperand& operand,
           std::span<const AnyOperand> operands, std::span<const ir::Attr> attrs) {
  using Kind = ir::DataCheck::Kind;
  const ir::DataCheck& check = argument.check;
  if (!is_present(operand) || (check.with >= 0 && attrs[check.with].integer == 0) ||
      (check.without >= 0 && is_present(operands[check.without])))
    return false;
  if (check.kind == Kind::held) {
    if (!is_scalar(operand)) return false;
    const DType dtype = holding_dtype(row, operands, attrs);
    if (!is_integral(dtype)) return false;
    // Where dtypes are promoted, a floating scalar makes a floating result.
    return is_integer(operand) ? dtype != DType::i64
                               : row.types != &ir::types::promote && row.types != &ir::types::bounded;
  }
  if (check.kind == Kind::divisor)
    return argument.kind == ir::ArgKind::value || (is_integer(operands[0]) && is_integer(operand));
  return check.kind != Kind::positions || is_integer(operand);
}

template <class AnyOperand>
ValueChecks checks_of(OpId op, std::span<const AnyOperand> operands, std::span<const ir::Attr> attrs) {
  ValueChecks checks;
  const ir::OpInfo& row = ir::info(op);
  for (const int number : row.checked) {
    const ir::DataCheck& stated = row.operand(number).check;
    if (!holds(row, row.operand(number), operands[number], operands, attrs)) continue;
    ValueCheck check;
    check.kind = stated.kind;
    check.operand = static_cast<size_t>(number);
    check.wraps = stated.wraps;
    check.low = stated.low;
    check.high = stated.high;
    check.strict = stated.strict;
    check.bound = stated.bound;
    if (stated.kind == ir::DataCheck::Kind::held || stated.strict) check.dtype = holding_dtype(row, operands, attrs);
    if (stated.kind == ir::DataCheck::Kind::positions)
      check.dim = ir::dim_of_positions(stated, attrs, rank_of(operands[0]));
    if (stated.ignored >= 0) check.ignored = attrs[stated.ignored].integer;
    checks.push_back(check);
  }
  return checks;
}

}  // namespace

ValueChecks value_checks(OpId op, std::span<const ir::OperandType> operands, std::span<const ir::Attr> attrs) {
  return checks_of(op, operands, attrs);
}
ValueChecks value_checks(const OpCall& call) {
  if (call.derivative) return {};  // made before the op itself was computed
  return checks_of(call.op, call.operands, call.attrs);
}
ValueCheck value_check(const OpCall& call, size_t operand) {
  for (const ValueCheck& check : value_checks(call))
    if (check.operand == operand) return check;
  INGOT_CHECK(false, "an operand that is checked");
  return {};
}

void check_operand(const OpCall& call, const ValueCheck& check) {
  switch (check.kind) {
    case ValueCheck::Kind::none:
      return;
    case ValueCheck::Kind::divisor:
      return check_divisor(call, check.operand);
    case ValueCheck::Kind::interval:
      return check_interval(call, check);
    case ValueCheck::Kind::weights:
      return check_weights(call, check.operand);
    case ValueCheck::Kind::finished:
      return check_finished(call, check.operand);
    case ValueCheck::Kind::order:
      return check_order(call, check);
    case ValueCheck::Kind::held:
      return check_held(call, check);
    case ValueCheck::Kind::positions: {
      const Ints& sizes = call.operands[0].tensor->impl()->sizes;
      const int64_t size = check.dim < 0 || sizes.empty() ? count(sizes) : sizes[check.dim];
      check_positions(call, check.operand, check.wraps ? -size : 0, size, check.ignored ? &*check.ignored : nullptr);
    }
  }
}

void check_values(const OpCall& call) {
  for (const ValueCheck& check : value_checks(call)) check_operand(call, check);
}

bool positions_have_room(const OpCall& call, const ValueCheck& check) {
  if (check.kind != ValueCheck::Kind::positions) return true;
  const Ints& sizes = call.operands[0].tensor->impl()->sizes;
  const int64_t places = check.dim < 0 ? count(sizes) : sizes.empty() ? 1 : sizes[check.dim];
  return places > 0 || count(call.operands[check.operand].tensor->impl()->sizes) == 0;
}

void check_numbers(std::string_view function, std::string_view argument, const Tensor& numbers, int64_t low,
                   int64_t high, Location location) {
  if (intercepted()) return;
  materialize(numbers, function.data(), location);
  for_each_element(numbers, [&](auto element) {
    const auto v = static_cast<int64_t>(element);
    if (v < low || v >= high)
      fail(function, argument, std::to_string(v),
           "numbers from " + std::to_string(low) + " to " + std::to_string(high - 1), location);
  });
}

// As a position of one place, which compiled programs check where they compute it.
void require(const CalledFunction& wrong, const Tensor& holds) {
  const FunctionScope scope(wrong);
  const NoGradGuard no_grad;
  zeros({1}, kBool).index_select(0, holds.all().logical_not().to(kInt64).reshape({1}));
}

void require_numbers(const CalledFunction& wrong, const Tensor& numbers, int64_t low, const Size& high,
                     Location location) {
  if (!intercepted()) return check_numbers(wrong.name, wrong.argument, numbers, low, high.value(), location);
  require(wrong, numbers.ge(low).logical_and(numbers.lt(high)));
}

}  // namespace ingot::eager
