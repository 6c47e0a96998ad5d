#include "trace/node.h"

#include "trace/flush_point.h"

namespace ingot::trace {

bool Node::may_compile(int64_t limit) {
  if (compilations < limit + earned) return true;
  if (++refused < kCallsForAProgram) return false;
  refused = 0, ++earned;
  return true;
}

Node::Node() = default;
Node::~Node() {
  // A tree is as deep as its calls are long: taken apart without recursion.
  std::vector<std::unique_ptr<Node>> pending;
  pending.swap(children);
  while (!pending.empty()) {
    std::unique_ptr<Node> node = std::move(pending.back());
    pending.pop_back();
    for (auto& child : node->children) pending.push_back(std::move(child));
    node->children.clear();
  }
}

eager::Operand special_operand(OpId op, size_t number, const OperandRecord& record) {
  double value = ir::info(op).operand(static_cast<int>(number)).special[record.id - 1];
  eager::Operand operand = record.category == Category::floating ? Scalar(value) : Scalar(static_cast<int64_t>(value));
  operand.special = static_cast<uint8_t>(record.id);
  return operand;
}

std::string describe(const Node& node) {
  if (node.event == Node::Event::root) return "start";
  if (node.event == Node::Event::flush) return "flush: " + node.module;
  std::string text = ir::name_of_call(node.op, node.derivative, node.inplace) + "(";
  size_t binding = 0;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const OperandRecord& operand = node.operands[i];
    if (i) text += ", ";
    switch (operand.kind) {
      case OperandRecord::Kind::none:
        text += "none";
        break;
      case OperandRecord::Kind::value:
        text += "v" + std::to_string(operand.id);
        break;
      case OperandRecord::Kind::repeated:
        text += "scalar " + std::to_string(operand.id) + " again";
        break;
      case OperandRecord::Kind::scalar: {
        constexpr const char* categories[] = {"bool", "integer", "float", "complex"};
        text += categories[static_cast<int>(operand.category)];
        break;
      }
      case OperandRecord::Kind::special: {
        eager::Operand value = special_operand(node.op, i, operand);
        text += value.category == Category::floating ? std::to_string(value.number) : std::to_string(value.integer);
        break;
      }
      case OperandRecord::Kind::slot:
        text += "slot " + std::to_string(operand.id);
        if (binding < node.slots.size() && node.slots[binding].slot == operand.id) {
          const SlotRecord& slot = node.slots[binding++];
          text += ": " + slot.str();
        }
        break;
    }
  }
  text += ")";
  for (size_t i = 0; i < node.attrs.size(); ++i) {
    const ir::Attr& attr = node.attrs[i];
    if (!attr.present()) continue;
    text += " " + ir::name_of_attribute(node.op, i) + "=";
    if (attr.kind == ir::Attr::Kind::list) {
      text += "[";
      for (size_t d = 0; d < attr.list.size(); ++d) text += (d ? ", " : "") + std::to_string(attr.list[d].code);
      text += "]";
    } else {
      text += std::to_string(attr.integer);
    }
  }
  return text;
}

}  // namespace ingot::trace
