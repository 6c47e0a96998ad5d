#include "trace/observation.h"

#include "eager/call/call.h"
#include "eager/call/check_values.h"
#include "eager/data.h"

namespace ingot::trace {
namespace {

/// What is left of a check once its call has ended. The checked operand: a slot, or a view of one.
SlotCheck slot_check(const Segment& segment, const Node& node, size_t checked,
                     const std::vector<eager::Operand>& operands) {
  SlotCheck check{node.op, node.attrs, {}, checked, 0, 0, node.location};
  for (const eager::Operand& operand : operands) {
    if (operand.kind != eager::Operand::Kind::tensor) {
      check.operands.emplace_back();
      continue;
    }
    const detail::TensorImpl& impl = *operand.tensor->impl();
    check.operands.push_back(eager::make_tensor(impl.dtype, impl.sizes, impl.strides, 0, nullptr));
  }
  const OperandRecord& record = node.operands[checked];
  check.slot = static_cast<uint32_t>(segment.root_slot(record));
  if (record.kind == OperandRecord::Kind::value)
    check.offset = segment.values()[record.id]->meta.offset - segment.slots()[check.slot].impl()->offset;
  return check;
}

}  // namespace

bool SlotCheck::passes(const Tensor& memory) const {
  const eager::WithoutInterceptors without_chain;
  const detail::TensorImpl &shape = *operands[checked].impl(), &at = *memory.impl();
  Tensor stand_in = eager::make_tensor(shape.dtype, shape.sizes, shape.strides, at.offset + offset, at.storage);
  SmallVector<eager::Operand, 8> list;
  for (size_t i = 0; i < operands.size(); ++i)
    list.push_back(i == checked ? eager::Operand(stand_in) : eager::Operand(operands[i]));
  const eager::OpCall call{op, false, list, attrs, location};
  try {
    eager::check_operand(call, eager::value_check(call, checked));
  } catch (const Error&) {
    return false;
  }
  return true;
}

Observation::Observation(std::span<const detail::TensorImpl* const> arguments, uint64_t segment)
    : last_storage_(runtime::Storage::adopt(nullptr, 0)->id()), writer_(arguments, segment) {}

void Observation::note_break(const std::string& reason, Location location) {
  if (!break_reason_.empty()) return;
  location = caller_line(location);
  break_reason_ = reason + (location.line ? " at " + location.str() : std::string());
}

void Observation::note_one_by_one(std::string why) {
  ObservedSegment& seen = segments_.emplace_back();
  seen.one_by_one = true;
  seen.why = std::move(why);
}

void Observation::note_segment(const Segment& segment, const FlushPoint& point, std::span<const uint32_t> live,
                               std::span<const uint32_t> aliases, const Variant* variant) {
  ObservedSegment& seen = segments_.emplace_back();
  seen.variant = variant;
  seen.path = {point.id, {live.begin(), live.end()}, {aliases.begin(), aliases.end()}, {}};
  collect_sites(segment.path(), seen.path.sites);
  seen.slots.assign(segment.slots().begin(), segment.slots().end());
  seen.written = point.written_slots;
  seen.writes = segment.writes();
  seen.scalars.assign(segment.scalars().begin(), segment.scalars().end());
  for (uint32_t value : live) seen.live.push_back(segment.values()[value]->handle);
  std::vector<eager::Operand> operands;
  for (const Node* node : segment.path())
    if (ir::info(node->op).has(ir::kRandom))
      seen.draws.push_back({node->operands[node->operands.size() - 2].id,
                            eager::draws_of(segment.call_of(*node, operands), node->outputs[0].meta.sizes)});
  if (!variant) return;
  for (const HostCheck& check : variant->binding.host_checks) {
    if (check.sizes_only || check.counter >= 0) continue;
    const Node& node = *segment.path()[check.node];
    static_cast<void>(segment.call_of(node, operands));
    if (operands[check.operand].kind == eager::Operand::Kind::tensor)
      seen.checks.push_back(slot_check(segment, node, check.operand, operands));
  }
}

}  // namespace ingot::trace
