// What the stages of lowering decide, as INGOT_DUMP writes it.
#include <fmt/format.h>

#include <iterator>

#include "codegen/lower/lowering.h"
#include "ir/rules/rules.h"

namespace ingot::codegen::lowering {
namespace {

const char* step_name_of(Group::Kind kind) {
  static constexpr const char* kNames[] = {
      "loop", "column", "matmul", "conv", "conv_weight", "attention", "attention_backward", "recurrence", "host"};
  return kNames[static_cast<int>(kind)];
}

std::string group_text(const Lowering& l, uint32_t number, const Group& group) {
  const DimTable& dims = l.result.program.dims;
  std::string text = fmt::format("group {} {} {}", number, step_name_of(group.kind), ir::shape_text(dims, group.space));
  auto out = std::back_inserter(text);
  if (group.reduced >= 0) fmt::format_to(out, " reduces dim {}", group.reduced);
  text += "\n  ops:";
  for (ir::NodeId n : group.members)
    fmt::format_to(out, " %{} {}", l.graph.nodes[n].outputs[0], ir::info(l.graph.nodes[n].op).name);
  text += "\n  stores:";
  for (const Output& o : group.outputs)
    fmt::format_to(out, " %{} in buffer {} strides {} offset {}", o.value, o.buffer, ir::shape_text(dims, o.strides),
                   dims.str(o.offset));
  if (!group.operands.empty()) text += "\n  reads:";
  for (const StoredOperand& o : group.operands)
    if (o.value != ir::kNoValue) fmt::format_to(out, " %{} strides {}", o.value, ir::shape_text(dims, o.strides));
  if (!group.successors.empty()) text += "\n  before:";
  for (uint32_t s : group.successors) fmt::format_to(out, " {}", s);
  return text + "\n";
}

}  // namespace

std::string layouts_text(const Lowering& l) {
  const DimTable& dims = l.result.program.dims;
  std::string text;
  for (ir::ValueId v = 0; v < l.graph.values.size(); ++v) {
    const RootView& p = l.layouts->of(v);
    fmt::format_to(std::back_inserter(text), "%{} {}{} in %{} strides {} offset {}\n", v,
                   ingot::name_of(l.graph.type(v).dtype), ir::shape_text(dims, l.graph.type(v).shape), p.root,
                   ir::shape_text(dims, p.strides), dims.str(p.offset));
  }
  return text;
}

std::string groups_text(const Lowering& l) {
  const GroupGraph& groups = l.fusion->groups;
  std::string text;
  for (uint32_t g = 0; g < groups.size(); ++g)
    if (groups[g].alive) text += group_text(l, g, groups[g]);
  return text;
}

std::string schedule_text(const Lowering& l) {
  std::string text;
  for (uint32_t g : l.plan.order) text += group_text(l, g, l.plan.groups[g]);
  return text;
}

std::string program_text(const Lowering& l) { return str(l.result.program); }

std::string device_text(const Lowering& l) { return l.result.program.device_source; }

}  // namespace ingot::codegen::lowering
