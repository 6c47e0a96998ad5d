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
      const Dims& shape = graph_.type(input.value).shape;
      check(input.strides.size() == shape.size(), "an input with a stride for each dim");
      for (const Dims* list : {&shape, &input.strides})
        for (Dim d : *list) check(dims_.knows(d), "sizes and strides of this graph");
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
    const OpInfo& op = checked_info(node.op);
    check(!node.inplace || (!functional_ && op.has(kInplace)),
          functional_ ? "no in-place node" : "an op with an in-place form");
    for (const Operand& operand : node.operands)
      if (operand.is_value()) use(operand.id);

    std::vector<TensorType> types;
    try {
      check_call(graph_, node);
      infer(graph_, node, dims_, &types);
    } catch (const Error& error) {
      check(false, std::string("a call that the op's row and rules admit: ") + error.what());
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

  const Graph& graph_;
  bool functional_;
  DimTable dims_;
  std::vector<bool> defined_;
  NodeId node_ = kNoValue;
};

}  // namespace

void verify(const Graph& graph, bool functional) { Verifier(graph, functional).run(); }

}  // namespace ingot::ir
