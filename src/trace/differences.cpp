#include "trace/differences.h"

#include <fmt/format.h>

#include <algorithm>

#include "eager/call/tensor_guard.h"
#include "eager/execute/numerics.h"
#include "trace/write_back.h"

namespace ingot::trace {
namespace {

using RecordKind = OperandRecord::Kind;
constexpr const char* kCategories[] = {"a bool", "an integer", "a float", "a complex number"};

std::string text_of(OpId op, size_t number, const ir::Attr& attr) {
  switch (attr.kind) {
    case ir::Attr::Kind::none:
      return "none";
    case ir::Attr::Kind::boolean:
      return attr.integer ? "true" : "false";
    case ir::Attr::Kind::integer:
      return std::to_string(attr.integer);
    case ir::Attr::Kind::dtype:
      return std::string(name_of(static_cast<DType>(attr.integer)));
    case ir::Attr::Kind::number:
      return std::to_string(attr.as_number());
    case ir::Attr::Kind::mode:
      return ir::info(op).attribute(static_cast<int>(number)).modes[static_cast<size_t>(attr.integer)];
    case ir::Attr::Kind::list:
      break;
  }
  std::string text = "[";
  for (size_t i = 0; i < attr.list.size(); ++i) text += (i ? ", " : "") + std::to_string(attr.list[i].code);
  return text + "]";
}

std::string text_of(const eager::Operand& operand) {
  if (operand.kind == eager::Operand::Kind::none) return "none";
  if (operand.kind == eager::Operand::Kind::scalar) {
    std::string text = kCategories[static_cast<int>(operand.category)];
    if (!operand.special) return text;
    return text + " of " +
           (operand.category == Category::floating ? fmt::format("{}", operand.number)
                                                   : std::to_string(operand.integer));
  }
  const detail::TensorImpl& impl = *operand.tensor->impl();
  return eager::describe(impl.dtype, impl.sizes, impl.strides);
}

// What was recorded of an operand, as far as a call can differ in it.
std::string text_of(const Node& node, size_t operand) {
  const OperandRecord& record = node.operands[operand];
  if (record.kind == RecordKind::none) return "none";
  if (record.kind == RecordKind::value) return "result " + std::to_string(record.id) + " of the call";
  if (record.kind == RecordKind::slot) {
    for (const SlotRecord& slot : node.slots)
      if (slot.slot == record.id) return slot.str();
    return "tensor " + std::to_string(record.id);
  }
  if (record.kind == RecordKind::repeated) return "scalar " + std::to_string(record.id) + " again";
  if (record.kind == RecordKind::special) return text_of(special_operand(node.op, operand, record));
  return kCategories[static_cast<int>(record.category)];
}

std::string producers_of(std::span<Node* const> path, std::span<const uint32_t> values) {
  std::string text;
  for (uint32_t value : values)
    for (const Node* node : path)
      if (!node->inplace && value >= node->first_value && value < node->first_value + node->outputs.size())
        text += (text.empty() ? "" : ", ") + std::string(ir::info(node->op).name) + " (result " +
                std::to_string(value) + ")";
  return text.empty() ? "none" : text;
}

std::string shared_text(std::span<const uint32_t> aliases) {
  std::string text;
  for (size_t s = 0; s < aliases.size(); ++s)
    if (aliases[s] != s)
      text += (text.empty() ? "" : ", ") + std::to_string(s) +
              (aliases[s] & kSeenElsewhere ? " elsewhere" : " with " + std::to_string(aliases[s]));
  return text.empty() ? "none" : text;
}

}  // namespace

Recompile difference(const Node& recorded, const eager::OpCall& call, CallMismatch mismatch) {
  const std::string op = ir::name_of_call(call.op, call.derivative, call.inplace);
  auto result = [&](std::string guard, std::string before, std::string after) {
    return Recompile{std::move(guard), std::move(before), std::move(after), op, call.location};
  };
  const size_t i = mismatch.number;
  switch (mismatch.part) {
    case CallMismatch::Part::op:
      return result("the op that comes next",
                    recorded.event == Node::Event::op
                        ? ir::name_of_call(recorded.op, recorded.derivative, recorded.inplace)
                        : "the end: " + recorded.module,
                    op);
    case CallMismatch::Part::operands:
      return result("number of operands of " + op, std::to_string(recorded.operands.size()),
                    std::to_string(call.operands.size()));
    case CallMismatch::Part::attribute:
      return result("argument " + ir::name_of_attribute(call.op, i) + " of " + op,
                    text_of(call.op, i, recorded.attrs[i]), text_of(call.op, i, call.attrs[i]));
    case CallMismatch::Part::operand: {
      const std::string name = "operand " + ir::name_of_operand(call.op, call.derivative, i) + " of " + op;
      const OperandRecord& record = recorded.operands[i];
      const eager::Operand& operand = call.operands[i];
      const std::string before = text_of(recorded, i);
      if (operand.kind != eager::Operand::Kind::tensor ||
          (record.kind != RecordKind::value && record.kind != RecordKind::slot))
        return result(name, before, text_of(operand));
      for (const SlotRecord& slot : recorded.slots)
        if (record.kind == RecordKind::slot && slot.slot == record.id)
          if (std::optional<eager::Mismatch> m = slot.why_not(*operand.tensor->impl()))
            return result(std::string(m->fact) + " of " + name, m->before, m->after);
      return result("which tensor " + name + " is", before, "another one");
    }
    case CallMismatch::Part::overlap:
    case CallMismatch::Part::none:
      break;
  }
  return result("which elements " + op + " writes to", describe(recorded), "elements that overlap");
}

Recompile difference(std::span<Node* const> path, const Variant& variant, std::span<const uint32_t> live,
                     std::span<const uint32_t> unseen, std::span<const uint32_t> aliases,
                     std::span<const int64_t> sites) {
  Recompile r;
  r.op = ir::name_of_call(path.back()->op, path.back()->derivative, path.back()->inplace);
  r.location = path.back()->location;
  auto set = [&](std::string guard, std::string before, std::string after) {
    r.guard = std::move(guard), r.before = std::move(before), r.after = std::move(after);
    return r;
  };
  if (compiler::CodeLevel level = eager::code_level(); variant.level != level)
    return set("target and numerics", variant.level.str(), level.str());
  if (!std::equal(live.begin(), live.end(), variant.live.begin(), variant.live.end()))
    return set("which results are kept", producers_of(path, variant.live), producers_of(path, live));
  if (!std::equal(unseen.begin(), unseen.end(), variant.unseen.begin(), variant.unseen.end()))
    return set("which results the tape alone keeps", producers_of(path, variant.unseen), producers_of(path, unseen));
  if (!std::equal(aliases.begin(), aliases.end(), variant.aliases.begin(), variant.aliases.end()))
    return set("which tensors from outside share memory", shared_text(variant.aliases), shared_text(aliases));
  auto at_site = [&](size_t site, std::string before) {
    SiteDescription d = describe_site(path, site);
    r.op = ir::name_of_call(d.node->op, d.node->derivative, d.node->inplace);
    r.location = d.node->location;
    return set(std::move(d.text), std::move(before), std::to_string(sites[site]));
  };
  std::vector<size_t> first_of(static_cast<size_t>(variant.symbol_count), sites.size());
  std::vector<int64_t> symbols(first_of.size(), 0);
  for (size_t i = 0; i < sites.size(); ++i) {
    int32_t symbol = variant.symbol_of[i];
    if (symbol < 0) {
      if (sites[i] != variant.sites[i]) return at_site(i, std::to_string(variant.sites[i]));
    } else if (size_t& first = first_of[static_cast<size_t>(symbol)]; first == sites.size()) {
      first = i;
      symbols[static_cast<size_t>(symbol)] = sites[i];
    } else if (sites[i] != sites[first]) {
      return at_site(i, "the same as " + describe_site(path, first).text + " (" + std::to_string(sites[first]) + ")");
    }
  }
  if (variant.entry && variant.entry->compiled) {
    const DimTable& dims = variant.entry->compiled->program->dims;
    std::vector<int64_t> now = dims.evaluate(symbols);
    for (const DimGuard& guard : dims.guards()) {
      if (dims.holds(guard, now)) continue;
      auto values = [&](int64_t a, int64_t b) { return std::to_string(a) + " and " + std::to_string(b); };
      return set("sizes: " + dims.str(guard), values(dims.hint(guard.a), dims.hint(guard.b)),
                 values(DimTable::value_of(guard.a, now), DimTable::value_of(guard.b, now)));
    }
  }
  return set("sizes", "those of the program", "others");
}

}  // namespace ingot::trace
