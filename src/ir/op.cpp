#include "ir/op.h"

#include <array>
#include <deque>
#include <map>
#include <unordered_map>

#include "base/first_use.h"
#include "base/float_environment.h"
#include "base/function_scope.h"
#include "base/mutex.h"
#include "base/program.h"
#include "ir/decompose.h"
#include "ir/derivative.h"
#include "ir/graph.h"
#include "ir/normalize.h"
#include "ir/recurrence.h"
#include "ir/rules/rules.h"
#include "ir/signature.h"

namespace ingot::ir {
namespace {

// The shape of a view is what its layout rule says of a contiguous base.
void shape_of_view(RuleContext& context) {
  const Dims& sizes = shape_of(context, 0);
  Layout base{sizes, contiguous_strides(context.dims, sizes), 0};
  context.outputs[0].shape = info(context.op).layout(context, base).sizes;
}

Accuracy ulp(double f32, double f64) { return {f32, f64, false}; }
Accuracy ulp_of_operand(double f32, double f64) { return {f32, f64, true}; }

void set(OpInfo& op, Rule shapes) { op.shapes = shapes; }
void set(OpInfo& op, LayoutRule layout) {
  op.shapes = shape_of_view;
  op.layout = layout;
}
void set(OpInfo& op, Decomposition decompose) { op.decompose = decompose; }
void set(OpInfo& op, Combiner combiner) { op.combiner = combiner; }
void set(OpInfo& op, Form form) { op.form = form; }
void set(OpInfo& op, StepRule step) { op.step = step; }
void set(OpInfo& op, Gradient gradient) { op.gradient = gradient; }
void set(OpInfo& op, DerivativeRule rule) {
  op.gradient = Gradient::rule;
  op.derivative = rule;
}
void set(OpInfo& op, Accuracy accuracy) { op.accuracy = accuracy; }

template <class Column, class... Columns>
constexpr bool kHas = (std::is_same_v<Column, Columns> || ...);

template <OpKind kind, class... Columns>
OpInfo row(OpId id, std::string_view name, Decomposition decompose, std::string_view signature, int traits, Rule types,
           Columns... columns) {
  static_assert(kind != OpKind::reduction || kHas<Combiner, Columns...>, "a reduction has a combiner");
  static_assert((kind == OpKind::structured) == kHas<Form, Columns...>, "a structured op has a form");
  static_assert(kind == OpKind::composite || kHas<Gradient, Columns...> || kHas<DerivativeRule, Columns...>,
                "what is no composite says what its gradient is");
  OpInfo op;
  op.id = id;
  op.kind = kind;
  op.name = name;
  op.traits = static_cast<uint32_t>(traits);
  op.types = types;
  op.decompose = decompose;
  parse_signature(signature, &op);
  (set(op, columns), ...);
  return op;
}

std::array<OpInfo, kOpCount> make_table() {
  const WholeFloatEnvironment reads_defaults;
  return {
#define INGOT_ROW(kind, decompose, rules, name, signature, traits, type, shape, ...) \
  row<OpKind::kind>(OpId::name, #name, decompose, signature, traits, &types::type,   \
                    &rules::shape __VA_OPT__(, ) __VA_ARGS__),
#define OP_elementwise(...) INGOT_ROW(elementwise, &normal::unchanged, shapes, __VA_ARGS__)
#define OP_coordinate(...) INGOT_ROW(coordinate, &normal::unchanged, shapes, __VA_ARGS__)
#define OP_reduction(...) INGOT_ROW(reduction, &normal::reduction, shapes, __VA_ARGS__)
#define OP_view(...) INGOT_ROW(view, &normal::unchanged, layouts, __VA_ARGS__)
#define OP_structured(...) INGOT_ROW(structured, &normal::unchanged, shapes, __VA_ARGS__)
#define OP_composite(name, ...) INGOT_ROW(composite, &decompositions::name, shapes, name, __VA_ARGS__)
#define OP_host(...) INGOT_ROW(host, &normal::unchanged, shapes, __VA_ARGS__)
#include "ir/ops.def"
  };
}

const std::array<OpInfo, kOpCount>& table() {
  static constinit FirstUse<const std::array<OpInfo, kOpCount>> rows;
  return rows.get(make_table);
}

// Sizes of 0 count as 1, as they do in strides.
void check_count(RuleContext& context, std::span<const Dim> shape) {
  int64_t count = 1;
  for (Dim d : shape)
    if (d.is_constant() && d.code > 0 && (__builtin_mul_overflow(count, d.code, &count) || count > kMostElements))
      context.fail("result", "shape " + shape_text(context.dims, shape), "fewer than 2^59 elements");
}

[[noreturn]] void fail_text(OpId op, std::string_view what, Location location) {
  throw Error(error_text(info(op).name, what, location));
}

/// Calls f; a size that a DimTable refuses is an error of the op.
template <class F>
auto with_checked_sizes(const RuleContext& context, F f) {
  try {
    return f();
  } catch (const SizeOverflow& e) {
    fail_text(context.op, e.what(), context.location);
  }
}

/// A gradient is as the operand that it belongs to.
void infer_gradients(RuleContext& context) {
  const std::vector<bool>& wanted = context.derivative->wanted;
  const size_t shapes = context.attrs.size() - wanted.size();
  context.outputs.clear();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const OperandType& operand = context.operands[i];
    const Attr& shape = context.attrs[shapes + i];
    INGOT_CHECK(operand.is_tensor() || shape.present(), "the shape of a wanted operand");
    if (operand.is_tensor())
      context.outputs.push_back({operand.dtype, *operand.shape});
    else
      context.outputs.push_back({static_cast<DType>(shape.integer), shape.list});
  }
}

void check_operands(RuleContext& context, const OpInfo& op) {
  size_t count = context.operands.size();
  INGOT_CHECK(op.list_first ? count + 1 >= static_cast<size_t>(op.operand_count)
                            : count == static_cast<size_t>(op.operand_count),
              std::string(op.name));
  INGOT_CHECK(context.attrs.size() + op.operand_count == op.arguments.size(), std::string(op.name));
  for (size_t i = 0; i < context.attrs.size(); ++i) {
    const ArgInfo& argument = op.attribute(static_cast<int>(i));
    if (!context.attrs[i].present() && !argument.optional)
      context.fail(argument.name, "nothing", std::string(name_of(argument.kind)));
  }
  for (size_t i = 0; i < count; ++i) {
    const OperandType& given = context.operands[i];
    const ArgInfo& argument = op.operand(static_cast<int>(i));
    if (!given.present()) {
      if (!argument.optional)
        context.fail(operand_name(context, i), "nothing",
                     argument.kind == ArgKind::value     ? "a number"
                     : argument.kind == ArgKind::operand ? "a defined tensor or a number"
                                                         : "a defined tensor");
      continue;
    }
    bool fits = argument.kind == ArgKind::operand || (argument.kind == ArgKind::value) == given.is_scalar();
    if (!fits)
      context.fail(operand_name(context, i), describe(context, given),
                   argument.kind == ArgKind::value ? "a scalar" : "a tensor");
    if (argument.mask && given.dtype != DType::bool_)
      context.fail(operand_name(context, i), describe(context, given), "a bool tensor");
  }
}

// An in-place result is stored into operand 0: its shape must be that, and its category no lower than the result's.
void keep_self(RuleContext& context) {
  const OperandType& self = context.operands[0];
  TensorType& output = context.outputs[0];
  if (!self.is_tensor()) context.fail(operand_name(context, 0), describe(context, self), "a tensor to write to");
  bool same = output.shape.size() == self.shape->size();
  for (size_t i = 0; same && i < output.shape.size(); ++i) same = context.dims.equal(output.shape[i], (*self.shape)[i]);
  if (!same)
    context.fail(operand_name(context, 0), "shape " + shape_text(context.dims, *self.shape),
                 "shape " + shape_text(context.dims, output.shape) + ", that of the result, for an in-place op");
  if (category_of(output.dtype) > category_of(self.dtype))
    context.fail(operand_name(context, 0), describe(context, self),
                 "a dtype that can hold a " + std::string(name_of(output.dtype)) + " result, for an in-place op");
  output = {self.dtype, *self.shape};
}

}  // namespace

const ArgInfo& OpInfo::operand(int i) const {
  if (list_first && i > 0) i = 0;
  for (const ArgInfo& argument : arguments)
    if (is_operand(argument.kind) && i-- == 0) return argument;
  INGOT_CHECK(false, std::string(name));
}

const ArgInfo& OpInfo::attribute(int i) const {
  for (const ArgInfo& argument : arguments)
    if (!is_operand(argument.kind) && i-- == 0) return argument;
  INGOT_CHECK(false, std::string(name));
}

bool OpInfo::reduces_all(bool given, bool empty) const {
  return !given || (empty && combiner != Combiner::any && combiner != Combiner::all);
}

const OpInfo& info(OpId op) { return table()[static_cast<size_t>(op)]; }

const OpInfo& checked_info(OpId op) {
  if (op >= OpId::count_)
    throw Error("op: got number " + std::to_string(static_cast<int>(op)) + ", expected one of the table");
  return info(op);
}
std::span<const OpInfo> ops() { return table(); }

const OpInfo* find_op(std::string_view name) {
  using Names = std::unordered_map<std::string_view, OpId>;
  static constinit FirstUse<const Names> first;
  const Names& names = first.get([] {
    Names map;
    auto enter = [&](std::string_view key, OpId id) { INGOT_CHECK(map.emplace(key, id).second, std::string(key)); };
#define OP(kind, name, ...) enter(#name, OpId::name);
#define ALIAS(other, name) enter(other, OpId::name);
#include "ir/ops.def"
    return map;
  });
  auto found = names.find(name);
  return found == names.end() ? nullptr : &info(found->second);
}

void fail_call(OpId op, std::string_view argument, const std::string& got, const std::string& expected,
               Location location) {
  std::string text(argument);
  fail_text(op, text.append(": got ").append(got).append(", expected ").append(expected), location);
}

void RuleContext::fail(std::string_view argument, const std::string& got, const std::string& expected) const {
  fail_call(op, argument, got, expected, location);
}

std::string name_of_call(OpId op, const Derivative* derivative, bool inplace) {
  std::string name(info(op).name);
  for (const Derivative* d = derivative; d; d = d->of) name = "backward of " + name;
  return inplace ? name + "_" : name;
}
std::string name_of_operand(OpId op, const Derivative* derivative, size_t i) {
  const OpInfo& row = info(op);
  return derivative || row.list_first ? std::to_string(i) : row.operand(static_cast<int>(i)).name;
}
std::string name_of_attribute(OpId op, size_t i) {
  const OpInfo& row = info(op);
  const size_t own = row.arguments.size() - static_cast<size_t>(row.operand_count);
  return i < own ? row.attribute(static_cast<int>(i)).name : "shape of operand " + std::to_string(i - own);
}

bool holds_sizes(const OpInfo& op, size_t i) {
  if (i + op.operand_count >= op.arguments.size()) return true;
  const ArgKind kind = op.attribute(static_cast<int>(i)).kind;
  return kind == ArgKind::size || kind == ArgKind::sizes;
}

const Derivative* derivative_of(const Derivative* of, const std::vector<bool>& wanted) {
  static constinit Mutex mutex;
  static constinit FirstUse<std::deque<Derivative>> all;
  static constinit FirstUse<std::map<std::pair<const Derivative*, std::vector<bool>>, const Derivative*>> known;
  std::lock_guard lock(mutex);
  auto [found, fresh] = known->try_emplace({of, wanted});
  if (fresh) found->second = &all->emplace_back(Derivative{of, wanted});
  return found->second;
}

void infer(RuleContext& context) {
  const OpInfo& op = info(context.op);
  if (context.derivative) return infer_gradients(context);
  check_operands(context, op);
  context.outputs.resize(op.outputs);
  with_checked_sizes(context, [&] {
    op.types(context);
    op.shapes(context);
    for (const TensorType& output : context.outputs) check_count(context, output.shape);
    if (context.inplace) keep_self(context);
  });
}

Layout infer_layout(RuleContext& context, const Layout& base) {
  return with_checked_sizes(context, [&] {
    Layout layout = info(context.op).layout(context, base);
    check_count(context, layout.sizes);
    return layout;
  });
}

}  // namespace ingot::ir
