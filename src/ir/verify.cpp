#include "ir/graph.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, bool functional)
      : graph_(graph), functional_(functional), dims_(graph.dims), defined_(graph.values.size()) {}

  void run() {
    for (const InputInfo& input : graph_.inputs) {
      define(input.value, kNoValue);
      check(input.strides.size() == graph_.type(input.value).shape.size(), "an input with a stride for each dim");
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      node_ = static_cast<NodeId>(i);
      check_node(graph_.nodes[i]);
    }
    node_ = kNoValue;
    for (ValueId output : graph_.outputs) use(output);
  }

 private:
  void check(bool condition, const std::string& expected) const {
    if (condition) return;
    std::string where = node_ == kNoValue ? "graph"
                                          : "node " + std::to_string(node_) + " (" +
                                                std::string(info(graph_.nodes[node_].op).name) + ")";
    throw InternalError("ir::verify: " + where + ": expected " + expected + "\n" + print(graph_));
  }
  void define(ValueId id, NodeId producer) {
    check(id < defined_.size(), "a value of the graph");
    check(!defined_[id], "one definition of a value");
    check(graph_.values[id].producer == producer, "the value's producer");
    defined_[id] = true;
  }
  void use(ValueId id) const {
    check(id < defined_.size() && defined_[id], "definition before use of value " + std::to_string(id));
  }

  void check_node(const Node& node) {
    const OpInfo& op = info(node.op);
    check(!node.inplace || (!functional_ && op.has(kInplace)),
          functional_ ? "no in-place node" : "an op with an in-place form");
    for (const Operand& operand : node.operands) {
      if (operand.is_value()) use(operand.id);
      if (operand.kind == Operand::Kind::scalar)
        check(operand.id < graph_.scalars.size() && graph_.scalars[operand.id] == operand.category,
              "a scalar of the graph");
    }
    check(op.list_first || node.operands.size() == static_cast<size_t>(op.operand_count), "all operands");
    check(node.attrs.size() + op.operand_count == op.arguments.size(), "all attributes");
    for (size_t i = 0; i < node.attrs.size(); ++i) check_attribute(op.attribute(static_cast<int>(i)), node.attrs[i]);

    std::vector<TensorType> types;
    try {
      infer(graph_, node, dims_, &types);
    } catch (const Error& error) {
      check(false, std::string("operands that the rules admit: ") + error.what());
    }
    check(types.size() == node.outputs.size(), "all outputs");
    for (size_t i = 0; i < types.size(); ++i) {
      define(node.outputs[i], node_);
      const TensorType& given = graph_.type(node.outputs[i]);
      bool same = given.dtype == types[i].dtype && given.shape.size() == types[i].shape.size();
      for (size_t d = 0; same && d < given.shape.size(); ++d) same = dims_.equal(given.shape[d], types[i].shape[d]);
      check(same, "output " + std::to_string(i) + " of type " + std::string(name_of(types[i].dtype)) +
                      shape_text(dims_, types[i].shape));
    }
  }

  void check_attribute(const ArgInfo& argument, const Attr& attr) const {
    if (!attr.present()) {
      check(argument.optional, "attribute " + argument.name);
      return;
    }
    Attr::Kind kind = Attr::Kind::list;
    switch (argument.kind) {
      case ArgKind::boolean:
        kind = Attr::Kind::boolean;
        break;
      case ArgKind::dim:
      case ArgKind::new_dim:
      case ArgKind::integer:
        kind = Attr::Kind::integer;
        break;
      case ArgKind::number:
        kind = Attr::Kind::number;
        break;
      case ArgKind::dtype:
        kind = Attr::Kind::dtype;
        break;
      case ArgKind::mode:
        kind = Attr::Kind::mode;
        break;
      default:
        break;
    }
    check(attr.kind == kind, "attribute " + argument.name + " of kind " + std::to_string(static_cast<int>(kind)));
    if (argument.kind == ArgKind::size) check(attr.list.size() == 1, "one size as " + argument.name);
    if (argument.kind == ArgKind::mode)
      check(attr.integer >= 0 && attr.integer < static_cast<int64_t>(argument.modes.size()),
            "a mode as " + argument.name);
  }

  const Graph& graph_;
  bool functional_;
  DimTable dims_;
  std::vector<bool> defined_;
  NodeId node_ = kNoValue;
};

}  // namespace

void verify(const Graph& graph, bool functional) { Verifier(graph, functional).run(); }

}  // namespace ingot::ir
