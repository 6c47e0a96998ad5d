#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "conformance/conformance.h"
#include "ir/graph.h"
#include "ir/op.h"

namespace ingot::cli {
namespace {

/// How ops of a kind are called, and what becomes of them: alone, and where the row allows a form beside the usual.
struct KindText {
  const char *name, *lowering, *other_lowering;
  ir::Trait other;
};
const KindText& text_of(ir::OpKind kind) {
  static const KindText kTexts[] = {
      {"elementwise", "one scalar definition, fused", "", ir::kNoTrait},
      {"coordinate", "one scalar definition over coordinates, fused", "", ir::kNoTrait},
      {"reduction", "a reduction, fused with its neighbours", "", ir::kNoTrait},
      {"view", "an address computation", "", ir::kNoTrait},
      {"structured", "its own kernels", "", ir::kNoTrait},
      {"composite", "other ops", "other ops, some of them C++", ir::kHost},
      {"host", "C++, a step of the program", "C++, at a graph break", ir::kMayBreak},
  };
  return kTexts[static_cast<size_t>(kind)];
}

std::string arguments_of(const ir::OpInfo& op) {
  std::string text;
  for (const ir::ArgInfo& a : op.arguments) {
    if (!text.empty()) text += ", ";
    text += a.name + (a.optional ? "?" : "");
    if (!a.has_default) continue;
    if (a.kind == ir::ArgKind::mode)
      text += "=" + a.modes[a.default_mode];
    else
      text += fmt::format("={}", a.default_number);
  }
  return text;
}

/// Whether the row's type rule takes tensors of this dtype, beside operands of the same, of positions, or of bools, or
/// an int8 weight.
bool takes(const ir::OpInfo& op, DType dtype) {
  static const Dims kShape{2, 3};
  const std::function<DType(std::string_view name)> beside[] = {
      [&](std::string_view) { return dtype; }, [](std::string_view) { return DType::i64; },
      [](std::string_view) { return DType::bool_; },
      [&](std::string_view name) {
        return name == "weight" ? DType::i8 : name == "weight_scale" ? DType::f32 : dtype;
      }};
  for (const auto& others : beside) {
    std::vector<ir::OperandType> operands;
    bool first = true;
    for (const ir::ArgInfo& a : op.arguments) {
      if (!ir::is_operand(a.kind)) continue;
      ir::OperandType type;
      if (a.kind != ir::ArgKind::value) {
        type.kind = ir::OperandType::Kind::tensor;
        type.dtype = a.mask ? DType::bool_ : first ? dtype : others(a.name);
        type.shape = &kShape;
        first = first && a.mask;
      } else {
        type.kind = ir::OperandType::Kind::scalar;
        type.category = Category::boolean;  // as weak as a scalar can be
      }
      operands.push_back(type);
    }
    std::vector<ir::Attr> attrs;
    for (const ir::ArgInfo& a : op.arguments)
      if (!ir::is_operand(a.kind))
        attrs.push_back(a.kind == ir::ArgKind::dtype && !a.optional ? ir::Attr::of(dtype) : ir::default_attribute(a));
    DimTable dims;
    std::vector<ir::TensorType> outputs(op.outputs);
    ir::RuleContext context{op.id, operands, attrs, dims, Location::none(), outputs};
    try {
      op.types(context);
      return true;
    } catch (const Error&) {
    }
  }
  return false;
}

std::string dtypes_of(const ir::OpInfo& op) {
  struct Group {
    const char* name;
    std::vector<DType> members;
  };
  static const Group groups[] = {{"floats", {DType::f64, DType::f32, DType::f16, DType::bf16}},
                                 {"integers", {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8}},
                                 {"bool", {DType::bool_}}};
  std::string text;
  for (const Group& group : groups) {
    std::string some;
    size_t count = 0;
    for (DType d : group.members)
      if (takes(op, d)) some += (count++ ? " " : "") + std::string(name_of(d));
    if (count) text += (text.empty() ? "" : ", ") + (count == group.members.size() ? group.name : some);
  }
  return text;
}

const char* lowering_of(const ir::OpInfo& op) {
  const KindText& text = text_of(op.kind);
  return text.other && op.has(text.other) ? text.other_lowering : text.lowering;
}

const char* gradient_of(const ir::OpInfo& op) {
  constexpr const char* kNames[] = {"derived", "rule", "constant", "none"};
  return kNames[static_cast<size_t>(op.gradient)];
}

/// What a region of autocast makes of it.
const char* autocast_of(const ir::OpInfo& op) {
  return op.has(ir::kLower16) ? "16 bits" : op.has(ir::kFull) ? "f32" : op.has(ir::kWidest) ? "the widest" : "";
}

/// docs/operators.md.
void print_markdown(const std::string& cases) {
  std::string missing;
  if (!cases.empty()) {
    const conformance::CaseOps ops = conformance::case_ops(cases);
    missing = ops.missing.empty()
                  ? fmt::format("None of the {} ops of the conformance cases is missing.\n\n", ops.count)
                  : fmt::format("Of the {} ops of the conformance cases, these are missing: {}.\n\n", ops.count,
                                fmt::join(ops.missing, ", "));
  }
  fmt::print(
      "# Operators\n\nWritten by `ingot ops --markdown --cases FOLDER` from the op table (`src/ir/ops.def`): {} rows. "
      "Names, arguments and defaults are PyTorch's; a `?` marks what may be left out. A dtype stands here if the type "
      "rule takes it for the first tensor. 16-bit floats are computed in f32 and rounded once. A gradient is derived "
      "from that of the other ops, has a rule of its own, is constant (zero wherever it exists), or there is none. "
      "In a region of autocast (`AutocastGuard`) floats are taken in what stands there, or as they come.\n\n"
      "{}| op | arguments | dtypes | in place | gradient | autocast | lowered to |\n|---|---|---|---|---|---|---|\n",
      ir::ops().size(), missing);
  for (const ir::OpInfo& op : ir::ops())
    fmt::print("| `{}` | {} | {} | {} | {} | {} | {} |\n", op.name, arguments_of(op), dtypes_of(op),
               op.has(ir::kInplace) ? "yes" : "", gradient_of(op), autocast_of(op), lowering_of(op));
}

}  // namespace

int run_ops(const CommonOptions& options, bool markdown, const std::string& cases) {
  if (markdown) {
    print_markdown(cases);
    return 0;
  }
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const ir::OpInfo& op : ir::ops())
      list.push_back({{"name", op.name},
                      {"kind", text_of(op.kind).name},
                      {"arguments", arguments_of(op)},
                      {"dtypes", dtypes_of(op)},
                      {"lowering", lowering_of(op)},
                      {"autocast", autocast_of(op)},
                      {"outputs", op.outputs},
                      {"in_place", op.has(ir::kInplace)},
                      {"ulp_f32", op.accuracy.f32},
                      {"ulp_f64", op.accuracy.f64},
                      {"ulp_of_operand", op.accuracy.of_operand}});
    fmt::print("{}\n", list.dump());
    return 0;
  }
  fmt::print("{:<24}{:<13}{:<10}{:<6}arguments\n", "op", "kind", "in-place", "ulp");
  for (const ir::OpInfo& op : ir::ops())
    fmt::print("{:<24}{:<13}{:<10}{:<6}{}\n", op.name, text_of(op.kind).name, op.has(ir::kInplace) ? "yes" : "",
               op.accuracy.f32 > 0 ? fmt::format("{}", op.accuracy.f32) : "", arguments_of(op));
  fmt::print("{} ops\n", ir::ops().size());
  return 0;
}

}  // namespace ingot::cli
