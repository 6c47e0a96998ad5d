// IR text. One line a fact:
//
//   ingot.ir 1
//   symbol s0 = 8
//   scalar $0 = floating
//   input %0 = f32[s0, 64] strides [64, 1] constant
//   %1 = softmax(%0, dim=1) : f32[s0, 64] at "model.cpp":12 in "h.3"
//   output %1
//
// Values are numbered in the order of the text. Absent attributes and dense strides are left out.
#include <charconv>
#include <cmath>

#include "ir/graph.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

/// The shortest text that reads back as the same double, and always as a floating one.
std::string number_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  char digits[32];
  auto end = std::to_chars(digits, digits + sizeof digits, x).ptr;
  std::string text(digits, end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

/// "vjp[110][01] ", by order.
std::string derivative_text(const Derivative* derivative) {
  if (!derivative) return {};
  std::string masks;
  for (const Derivative* d = derivative; d; d = d->of) {
    std::string mask = "[";
    for (bool wanted : d->wanted) mask += wanted ? '1' : '0';
    masks = mask + "]" + masks;
  }
  return "vjp" + masks + " ";
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), numbers_(graph.values.size(), kNoValue) {}

  std::string text() {
    line("ingot.ir 1");
    for (int64_t i = 0; i < graph_.dims.symbol_count(); ++i)
      line("symbol s" + std::to_string(i) + " = " + std::to_string(graph_.dims.symbol_hint(i)));
    constexpr const char* categories[] = {"boolean", "integer", "floating", "complex"};
    for (size_t i = 0; i < graph_.scalars.size(); ++i)
      line("scalar $" + std::to_string(i) + " = " + categories[static_cast<int>(graph_.scalars[i])]);
    for (const InputInfo& input : graph_.inputs) line(input_text(input));
    for (const Node& node : graph_.nodes) line(node_text(node));
    std::string outputs = "output";
    for (size_t i = 0; i < graph_.outputs.size(); ++i) outputs += (i ? ", " : " ") + value(graph_.outputs[i]);
    line(outputs);
    return std::move(text_);
  }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }
  std::string define(ValueId id) {
    if (id < numbers_.size()) numbers_[id] = next_;
    return "%" + std::to_string(next_++);
  }
  // A graph that does not verify is printed too: a use without a definition shows as such.
  std::string value(ValueId id) const {
    if (id >= numbers_.size() || numbers_[id] == kNoValue) return "%undefined" + std::to_string(id);
    return "%" + std::to_string(numbers_[id]);
  }
  std::string type_text(ValueId id) const {
    if (id >= graph_.values.size()) return "unknown";
    const TensorType& type = graph_.type(id);
    return std::string(name_of(type.dtype)) + shape_text(graph_.dims, type.shape);
  }

  std::string input_text(const InputInfo& input) {
    std::string text = "input " + define(input.value) + " = " + type_text(input.value);
    if (!(contiguous_strides(dims_, graph_.type(input.value).shape) == input.strides))
      text += " strides " + shape_text(graph_.dims, input.strides);
    return input.constant ? text + " constant" : text;
  }

  std::string operand_text(const Operand& operand) const {
    switch (operand.kind) {
      case Operand::Kind::none:
        return "none";
      case Operand::Kind::value:
        return value(operand.id);
      case Operand::Kind::scalar:
        return "$" + std::to_string(operand.id);
      case Operand::Kind::size:
        return "size(" + graph_.dims.str(operand.dim) + ")";
      case Operand::Kind::constant:
        break;
    }
    if (operand.category == Category::floating) return number_text(operand.number);
    if (operand.category == Category::boolean) return operand.integer ? "true" : "false";
    return std::to_string(operand.integer);
  }

  std::string attribute_text(const ArgInfo& argument, const Attr& attr) const {
    switch (attr.kind) {
      case Attr::Kind::none:
        return "none";
      case Attr::Kind::boolean:
        return attr.integer ? "true" : "false";
      case Attr::Kind::integer:
        return std::to_string(attr.integer);
      case Attr::Kind::number:
        return number_text(attr.as_number());
      case Attr::Kind::dtype:
        return std::string(name_of(static_cast<DType>(attr.integer)));
      case Attr::Kind::mode:
        return static_cast<size_t>(attr.integer) < argument.modes.size() ? argument.modes[attr.integer] : "unknown";
      case Attr::Kind::list:
        break;
    }
    if (argument.kind == ArgKind::size && attr.list.size() == 1) return graph_.dims.str(attr.list[0]);
    return shape_text(graph_.dims, attr.list);
  }

  std::string node_text(const Node& node) {
    const OpInfo& op = info(node.op);
    const size_t attributes = op.arguments.size() - static_cast<size_t>(op.operand_count);
    std::string arguments, results, types;
    auto separate = [](std::string& list) { list += list.empty() ? "" : ", "; };
    for (const Operand& operand : node.operands) {
      separate(arguments);
      arguments += operand_text(operand);
    }
    for (size_t i = 0; i < node.attrs.size(); ++i) {
      if (!node.attrs[i].present()) continue;
      separate(arguments);
      if (i >= attributes) {
        arguments += "shape" + std::to_string(i - attributes) + "=" +
                     std::string(name_of(static_cast<DType>(node.attrs[i].integer))) +
                     shape_text(graph_.dims, node.attrs[i].list);
        continue;
      }
      const ArgInfo& argument = op.attribute(static_cast<int>(i));
      arguments += argument.name + "=" + attribute_text(argument, node.attrs[i]);
    }
    for (ValueId output : node.outputs) {
      separate(results);
      results += define(output);
      separate(types);
      types += type_text(output);
    }
    std::string text = results + " = " + derivative_text(node.derivative) + std::string(op.name) +
                       (node.inplace ? "_" : "") + "(" + arguments + ") : " + types;
    if (node.location.line) text += " at " + quoted(node.location.file) + ":" + std::to_string(node.location.line);
    if (!node.module.empty()) text += " in " + quoted(node.module);
    return text;
  }

  const Graph& graph_;
  DimTable dims_{graph_.dims};  // for strides that the graph does not name
  std::vector<uint32_t> numbers_;
  uint32_t next_ = 0;
  std::string text_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).text(); }

}  // namespace ingot::ir
