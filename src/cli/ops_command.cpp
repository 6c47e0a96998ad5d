#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "ir/op.h"

namespace ingot::cli {
namespace {

const char* kind_name(ir::OpKind kind) {
  switch (kind) {
    case ir::OpKind::elementwise:
      return "elementwise";
    case ir::OpKind::reduction:
      return "reduction";
    case ir::OpKind::view:
      return "view";
    case ir::OpKind::structured:
      return "structured";
    case ir::OpKind::composite:
      return "composite";
    case ir::OpKind::host:
      return "host";
  }
  return "";
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

}  // namespace

int run_ops(const CommonOptions& options) {
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const ir::OpInfo& op : ir::ops())
      list.push_back({{"name", op.name},
                      {"kind", kind_name(op.kind)},
                      {"arguments", arguments_of(op)},
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
    fmt::print("{:<24}{:<13}{:<10}{:<6}{}\n", op.name, kind_name(op.kind), op.has(ir::kInplace) ? "yes" : "",
               op.accuracy.f32 > 0 ? fmt::format("{}", op.accuracy.f32) : "", arguments_of(op));
  fmt::print("{} ops\n", ir::ops().size());
  return 0;
}

}  // namespace ingot::cli
