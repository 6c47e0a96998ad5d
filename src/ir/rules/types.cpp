// Type rules: PyTorch's promotion, and what each group of ops accepts.
#include <algorithm>

#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

struct Promotion {
  // Dtypes of tensors with dims, of zero-dim tensors, and of scalars; each group only raises the category of the one
  // before.
  DType groups[3] = {};
  bool present[3] = {};
  void take(int group, DType dtype) {
    groups[group] = present[group] ? ingot::promote(groups[group], dtype) : dtype;
    present[group] = true;
  }
  static DType combine(DType higher, DType lower) {
    if (category_of(higher) == Category::complex) return higher;
    if (category_of(higher) == Category::floating)
      return category_of(lower) == Category::complex ? (higher == DType::f64 ? DType::c128 : DType::c64) : higher;
    if (higher == DType::bool_ || category_of(lower) >= Category::floating) return ingot::promote(higher, lower);
    return higher;
  }
  DType result() const {
    std::optional<DType> dtype;
    for (int group = 2; group >= 0; --group)
      if (present[group]) dtype = dtype ? combine(groups[group], *dtype) : groups[group];
    return dtype.value_or(DType::f32);
  }
};

/// The common dtype of the operands of kinds tensor, tensors and operand.
DType promoted(RuleContext& context) {
  const OpInfo& op = info(context.op);
  Promotion promotion;
  for (size_t i = 0; i < context.operands.size(); ++i) {
    const OperandType& given = context.operands[i];
    const ArgInfo& argument = op.operand(static_cast<int>(i));
    if (!given.present() || argument.mask || argument.kind == ArgKind::value) continue;
    if (given.is_tensor())
      promotion.take(given.shape->empty() ? 1 : 0, given.dtype);
    else
      promotion.take(2, default_dtype(given.category));
  }
  DType dtype = promotion.result();
  if (category_of(dtype) == Category::complex)
    context.fail(operand_name(context, 0), std::string(name_of(dtype)), "a dtype that kernels compute with");
  return dtype;
}

void set_dtype(RuleContext& context, DType dtype) { context.outputs[0].dtype = context.compute = dtype; }

/// An integral result takes no floating factor.
void check_values(RuleContext& context) {
  const OpInfo& op = info(context.op);
  for (size_t i = 0; i < context.operands.size(); ++i) {
    const OperandType& given = context.operands[i];
    if (!op.list_first && op.operand(static_cast<int>(i)).kind == ArgKind::value && given.is_scalar() &&
        given.category > category_of(context.compute) && given.category > Category::integer)
      context.fail(operand_name(context, i), describe(context, given),
                   "an integer for a " + std::string(name_of(context.compute)) + " result");
  }
}

void require_floating(RuleContext& context, DType dtype) {
  if (!is_floating(dtype))
    context.fail(operand_name(context, 0), std::string(name_of(dtype)), "a floating point dtype");
}

DType self_dtype(const RuleContext& context) { return context.operands[0].dtype; }

std::optional<DType> dtype_attribute(const RuleContext& context) {
  const Attr& given = attribute(context, "dtype");
  if (!given.present()) return std::nullopt;
  DType dtype = static_cast<DType>(given.integer);
  if (category_of(dtype) == Category::complex)
    context.fail("dtype", std::string(name_of(dtype)), "a dtype that kernels compute with");
  return dtype;
}

void check_index(RuleContext& context, std::string_view name) {
  const OperandType& index = operand(context, name);
  // An empty index may be of any integer dtype, as in PyTorch.
  if (index.present() && is_integral(index.dtype) && std::count(index.shape->begin(), index.shape->end(), Dim(0)))
    return;
  if (index.present() && index.dtype != DType::i64 && index.dtype != DType::i32)
    context.fail(name, describe(context, index), "an i64 or i32 tensor");
}

}  // namespace

namespace types {

void promote(RuleContext& context) {
  set_dtype(context, promoted(context));
  check_values(context);
}

namespace {
// A bound that i32 does not hold is one all the same.
void compare_in_i64(RuleContext& context) {
  if (context.compute == DType::i32) context.compute = DType::i64;
}
}  // namespace

void bounded(RuleContext& context) {
  if (std::none_of(context.operands.begin() + 1, context.operands.end(), [](const auto& o) { return o.present(); }))
    context.fail(operand_name(context, 1), "no bound", "one at least");
  promote(context);
  compare_in_i64(context);
}

void numeric(RuleContext& context) {
  promote(context);
  if (context.compute == DType::bool_)
    context.fail(operand_name(context, 0), "bool",
                 "a numeric dtype (for logic: logical_and, logical_xor, logical_not)");
}

void integral(RuleContext& context) {
  set_dtype(context, promoted(context));
  if (is_floating(context.compute))
    context.fail(operand_name(context, 0), std::string(name_of(context.compute)), "an integer or bool dtype");
}

void whole(RuleContext& context) {
  integral(context);
  if (context.compute == DType::bool_) context.fail(operand_name(context, 0), "bool", "an integer dtype");
}

void floating(RuleContext& context) {
  DType dtype = promoted(context);
  set_dtype(context, is_floating(dtype) ? dtype : DType::f32);
}

// Beyond, a rounding of the operand changes more digits of the result than it is worth, and the graph is large.
void polygamma(RuleContext& context) {
  constexpr int64_t kMost = 30;
  floating(context);
  const int64_t n = integer_attribute(context, "n");
  if (n < 0 || n > kMost) context.fail("n", std::to_string(n), "0 to " + std::to_string(kMost));
}

void floating_from_self(RuleContext& context) {
  floating(context);
  if (self_dtype(context) != DType::bool_) context.compute = self_dtype(context);
}

void float_only(RuleContext& context) {
  set_dtype(context, promoted(context));
  require_floating(context, context.compute);
}

// A tensor without dims counts as any other: PyTorch broadcasts before it promotes.
void joined_float(RuleContext& context) {
  set_dtype(context, ingot::promote(self_dtype(context), context.operands[1].dtype));
  require_floating(context, context.compute);
}

void each_float(RuleContext& context) {
  for (size_t i = 0; i < context.operands.size(); ++i)
    if (context.operands[i].is_tensor() && !is_floating(context.operands[i].dtype))
      context.fail(operand_name(context, i), describe(context, context.operands[i]), "a floating point dtype");
  float_only(context);
}

void float_power(RuleContext& context) {
  promoted(context);
  set_dtype(context, DType::f64);
}

void division(RuleContext& context) {
  if (integer_attribute(context, "rounding_mode") == 0)
    floating(context);
  else
    numeric(context);
}

void predicate(RuleContext& context) {
  context.compute = promoted(context);
  context.outputs[0].dtype = DType::bool_;
}

void same_predicate(RuleContext& context) {
  const OperandType &self = context.operands[0], &other = context.operands[1];
  if (self.dtype != other.dtype)
    context.fail("other", describe(context, other), std::string(name_of(self.dtype)) + ", the dtype of self");
  predicate(context);
}

void self(RuleContext& context) {
  for (TensorType& output : context.outputs) output.dtype = self_dtype(context);
  context.compute = self_dtype(context);
}

void self_number(RuleContext& context) {
  self(context);
  if (context.compute == DType::bool_) context.fail(operand_name(context, 0), "bool", "a numeric dtype");
}

void bounded_self(RuleContext& context) {
  self_number(context);
  compare_in_i64(context);
}

void self_float(RuleContext& context) {
  self(context);
  require_floating(context, context.compute);
  for (const char* name : {"weight", "bias", "running_mean", "running_var"})
    if (const OperandType& given = operand(context, name); given.is_tensor() && !is_floating(given.dtype))
      context.fail(name, describe(context, given), "a floating point dtype");
}

void self_and_src(RuleContext& context) {
  self(context);
  const OperandType& src = operand(context, "src");
  if (src.dtype != context.compute)
    context.fail("src", describe(context, src), std::string(name_of(context.compute)) + ", the dtype of self");
}

void square(RuleContext& context) {
  set_dtype(context, self_dtype(context) == DType::bool_ ? DType::i64 : self_dtype(context));
}

void fill(RuleContext& context) {
  self(context);
  const OperandType& value = operand(context, "value");
  Category given = value.is_tensor() ? category_of(value.dtype) : value.category;
  if (value.is_tensor() && !value.shape->empty())
    context.fail("value", describe(context, value), "a scalar or a zero-dim tensor");
  // The fraction of a scalar is cut, as in PyTorch.
  if (value.is_tensor() && context.compute != DType::bool_ && given > category_of(context.compute))
    context.fail("value", describe(context, value),
                 "a value that a " + std::string(name_of(context.compute)) + " tensor can hold");
}

void cast(RuleContext& context) {
  context.compute = self_dtype(context);
  const std::optional<DType> dtype = dtype_attribute(context);
  if (!dtype) context.fail("dtype", "none", "a dtype");
  context.outputs[0].dtype = *dtype;
}

void creation(RuleContext& context) {
  Category category = context.operands.empty() ? Category::floating : Category::boolean;
  for (const OperandType& value : context.operands) category = std::max(category, value.category);
  set_dtype(context, dtype_attribute(context).value_or(default_dtype(category)));
}

void counting(RuleContext& context) {
  creation(context);
  if (context.compute != DType::bool_) return;
  if (dtype_attribute(context)) context.fail("dtype", "bool", "a numeric dtype");
  set_dtype(context, DType::i64);  // of a bool start and step
}

void counter(RuleContext& context) {
  if (self_dtype(context) != DType::i64)
    context.fail("counter", describe(context, context.operands[0]), "an i64 tensor");
  set_dtype(context, DType::i64);
}

void random_float(RuleContext& context) {
  set_dtype(context, dtype_attribute(context).value_or(DType::f32));
  if (!is_floating(context.compute))
    context.fail("dtype", std::string(name_of(context.compute)), "a floating point dtype");
}

void random_integer(RuleContext& context) {
  set_dtype(context, dtype_attribute(context).value_or(DType::i64));
  for (size_t i = 0; i < context.operands.size(); ++i)
    if (context.operands[i].category > Category::integer)
      context.fail(operand_name(context, i), describe(context, context.operands[i]), "an integer");
}

void creation_float(RuleContext& context) { set_dtype(context, dtype_attribute(context).value_or(DType::f32)); }

void image(RuleContext& context) {
  self(context);
  if (!is_floating(context.compute) && context.compute != DType::u8)
    context.fail(operand_name(context, 0), std::string(name_of(context.compute)), "a floating point dtype or u8");
}

void index(RuleContext& context) {
  self(context);
  check_index(context, "index");
  check_index(context, "indices");
}

void positions_of_floats(RuleContext& context) {
  require_floating(context, self_dtype(context));
  positions(context);
}

void positions(RuleContext& context) {
  context.compute = self_dtype(context);
  context.outputs.back().dtype = DType::i64;
}

void coordinates(RuleContext& context) {
  set_dtype(context, dtype_attribute(context).value_or(DType::i64));
  if (!is_integral(context.compute)) context.fail("dtype", std::string(name_of(context.compute)), "an integer dtype");
}

void scattered(RuleContext& context) {
  self(context);
  check_index(context, "index");
  for (const char* name : {"src", "source", "value"}) {
    const OperandType& given = operand(context, name);
    if (given.is_tensor() && given.dtype != context.compute)
      context.fail(name, describe(context, given), std::string(name_of(context.compute)) + ", the dtype of self");
  }
  check_values(context);
}

void search(RuleContext& context) {
  const OperandType& named = operand(context, "boundaries");
  const OperandType& sequence = named.present() ? named : operand(context, "sorted_sequence");
  const OperandType &values = operand(context, "self"), &sorter = operand(context, "sorter");
  context.compute = values.is_tensor() ? ingot::promote(sequence.dtype, values.dtype) : sequence.dtype;
  if (sorter.present() && sorter.dtype != DType::i64)
    context.fail("sorter", describe(context, sorter), "an i64 tensor");
  enum { kNone, kLeft };
  if (boolean_attribute(context, "right") && integer_attribute(context, "side") == kLeft)
    context.fail("side", "left beside right = true", "one side");
  context.outputs[0].dtype = boolean_attribute(context, "out_int32") ? DType::i32 : DType::i64;
}

void sum(RuleContext& context) {
  DType self = self_dtype(context);
  set_dtype(context, dtype_attribute(context).value_or(is_floating(self) ? self : DType::i64));
}

void position(RuleContext& context) {
  if (self_dtype(context) == DType::bool_) context.fail("self", "bool", "a numeric dtype");
  context.compute = self_dtype(context);
  context.outputs[0].dtype = DType::i64;
}

void count(RuleContext& context) {
  context.compute = self_dtype(context);
  context.outputs[0].dtype = DType::i64;
}

void truth(RuleContext& context) {
  // PyTorch keeps u8 here, from the time before bool.
  set_dtype(context, self_dtype(context) == DType::u8 ? DType::u8 : DType::bool_);
}

void value_and_position(RuleContext& context) {
  self(context);
  context.outputs[1].dtype = DType::i64;
}

void mean(RuleContext& context) {
  DType dtype = dtype_attribute(context).value_or(self_dtype(context));
  if (!is_floating(dtype))
    context.fail(operand_name(context, 0), std::string(name_of(dtype)), "a floating point dtype, or one as `dtype`");
  set_dtype(context, dtype);
}

void negated_mean(RuleContext& context) {
  if (self_dtype(context) == DType::bool_) context.fail(operand_name(context, 0), "bool", "a numeric dtype");
  mean(context);
}

void norm(RuleContext& context) {
  require_floating(context, self_dtype(context));
  mean(context);
}

void int8_weight(RuleContext& context) {
  self(context);
  require_floating(context, context.compute);
  auto expect = [&](std::string_view name, DType dtype, const char* why) {
    const OperandType& given = operand(context, name);
    if (given.is_tensor() && given.dtype != dtype)
      context.fail(name, describe(context, given), std::string(name_of(dtype)) + why);
  };
  expect("weight", DType::i8, "");
  const bool wide = context.compute == DType::f64 && operand(context, "weight_scale").dtype == DType::f64;
  expect("weight_scale", wide ? DType::f64 : DType::f32, "");
  expect("bias", context.compute, ", the dtype of input");
}

void same(RuleContext& context) {
  DType dtype = self_dtype(context);
  for (size_t i = 0; i < context.operands.size(); ++i)
    if (context.operands[i].is_tensor() && context.operands[i].dtype != dtype) {
      // A layer's weight is what it is: its input is wrong.
      const bool weight = operand_name(context, i) == "weight";
      const size_t wrong = weight ? 0 : i, right = weight ? i : 0;
      context.fail(
          operand_name(context, wrong), describe(context, context.operands[wrong]),
          std::string(name_of(context.operands[right].dtype)) + ", the dtype of " + operand_name(context, right));
    }
  if (dtype == DType::bool_) context.fail(operand_name(context, 0), "bool", "a numeric dtype");
  set_dtype(context, dtype);
}

void product(RuleContext& context) {
  same(context);
  const Attr& given = attribute(context, "out_dtype");
  if (!given.present()) return;
  const DType dtype = self_dtype(context), out = static_cast<DType>(given.integer);
  if (out != dtype && !(is_half(dtype) && out == DType::f32))
    context.fail("out_dtype", std::string(name_of(out)),
                 std::string(name_of(dtype)) + ", the dtype of self" + (is_half(dtype) ? ", or f32" : ""));
  context.outputs[0].dtype = out;
}

void same_float(RuleContext& context) {
  same(context);
  require_floating(context, context.compute);
}

void float_product(RuleContext& context) {
  product(context);
  require_floating(context, context.compute);
}

void matrices(RuleContext& context) {
  same(context);
  if (context.compute != DType::f64)
    context.fail(operand_name(context, 0), describe(context, context.operands[0]), "an f64 tensor");
  for (TensorType& output : context.outputs) output.dtype = DType::f64;
}

void factored(RuleContext& context) {
  matrices(context);
  context.outputs[1].dtype = DType::i32;
}

void eliminated(RuleContext& context) {
  matrices(context);
  context.outputs[1].dtype = context.outputs[2].dtype = DType::i32;
}

void pivots(RuleContext& context) {
  context.compute = self_dtype(context);
  if (context.compute != DType::i32 && context.compute != DType::i64)
    context.fail("pivots", describe(context, context.operands[0]), "an i32 or i64 tensor");
  context.outputs[0].dtype = DType::i64;
}

void states(RuleContext& context) {
  same_float(context);
  for (auto& output : context.outputs) output.dtype = context.compute;
}

void attention(RuleContext& context) {
  self_float(context);
  for (size_t i = 1; i < 4; ++i) {
    const OperandType& given = context.operands[i];
    bool mask = i == 3 && given.dtype == DType::bool_;
    if (given.present() && given.dtype != context.compute && !mask)
      context.fail(operand_name(context, i), describe(context, given),
                   std::string(name_of(context.compute)) + (i == 3 ? " or bool" : "") + ", the dtype of query");
  }
  if (attribute(context, "dropout_p").as_number() != 0)
    context.fail("dropout_p", std::to_string(attribute(context, "dropout_p").as_number()),
                 "0 (F::scaled_dot_product_attention drops weights)");
}

void attention_backward(RuleContext& context) {
  attention(context);
  const OperandType& given = operand(context, "grad_output");
  if (given.dtype != context.compute)
    context.fail("grad_output", describe(context, given),
                 std::string(name_of(context.compute)) + ", the dtype of query");
}

}  // namespace types
}  // namespace ingot::ir
