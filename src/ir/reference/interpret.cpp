#include <cmath>

#include "ir/reference/context.h"

namespace ingot::ir {
namespace {

using Function = void (*)(reference::ReferenceContext&);

/// One function a row: a row without one does not link.
constexpr Function kFunctions[] = {
#define OP(kind, name, ...) reference::name,
#include "ir/ops.def"
};

class Interpreter {
 public:
  Interpreter(const Graph& graph, std::span<const ReferenceScalar> scalars, const ReferenceOptions& options)
      : graph_(graph), scalars_(scalars), round_(options.round), hinted_(options.symbols.empty()) {
    if (!hinted_) sizes_ = graph.dims.evaluate(options.symbols);
    values_.resize(graph.values.size());
  }

  std::vector<ReferenceTensor> run(std::span<const ReferenceTensor> inputs) {
    INGOT_CHECK(inputs.size() == graph_.inputs.size(), "as many tensors as the graph has inputs");
    INGOT_CHECK(scalars_.size() == graph_.scalars.size(), "as many scalars as the graph has");
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorType& type = graph_.type(graph_.inputs[i].value);
      INGOT_CHECK(inputs[i].dtype == type.dtype && inputs[i].shape == sizes(type.shape),
                  "input " + std::to_string(i) + " has another type than the graph's");
      values_[graph_.inputs[i].value] = inputs[i];
    }
    for (const Node& node : graph_.nodes) run(node);
    std::vector<ReferenceTensor> outputs;
    for (ValueId v : graph_.outputs) outputs.push_back(values_[v]);
    return outputs;
  }

 private:
  int64_t size(Dim d) const { return hinted_ ? graph_.dims.hint(d) : DimTable::value_of(d, sizes_); }
  Ints sizes(std::span<const Dim> dims) const {
    Ints result;
    for (Dim d : dims) result.push_back(size(d));
    return result;
  }

  reference::Argument argument(const Operand& o) const {
    reference::Argument a;
    a.present = o.present();
    if (o.kind == Operand::Kind::value) a.tensor = &values_[o.id];
    if (o.kind == Operand::Kind::scalar) a.scalar = scalars_[o.id];
    if (o.kind == Operand::Kind::size) a.scalar = ReferenceScalar(size(o.dim));
    if (o.kind == Operand::Kind::constant) {
      a.scalar = o.category == Category::floating ? ReferenceScalar(o.number) : ReferenceScalar(o.integer);
      a.scalar.category = o.category;
    }
    return a;
  }

  reference::AttrValue attribute(const Attr& a) const {
    reference::AttrValue value;
    value.present = a.present();
    value.integer = a.integer;
    if (a.kind == Attr::Kind::number) value.number = a.as_number();
    value.list = sizes(a.list);
    return value;
  }

  void run(const Node& node) {
    std::vector<reference::Argument> operands;
    for (const Operand& o : node.operands) operands.push_back(argument(o));
    std::vector<reference::AttrValue> attrs;
    for (const Attr& a : node.attrs) attrs.push_back(attribute(a));
    std::vector<ReferenceTensor> outputs;
    for (ValueId v : node.outputs) outputs.emplace_back(graph_.type(v).dtype, sizes(graph_.type(v).shape));
    reference::ReferenceContext context(node, std::move(operands), std::move(attrs), outputs, round_);
    kFunctions[static_cast<int>(node.op)](context);
    for (size_t i = 0; i < outputs.size(); ++i) {
      finish(node, outputs[i]);
      values_[node.outputs[i]] = std::move(outputs[i]);
    }
    // A write: the operand has the new value from here on.
    if (node.inplace) values_[node.operands[0].id] = values_[node.outputs[0]];
  }

  /// The one rounding of an op.
  void finish(const Node& node, ReferenceTensor& t) const {
    INGOT_CHECK(static_cast<int64_t>(t.floating() ? t.real.size() : t.integer.size()) == t.size(),
                std::string(info(node.op).name) + ": the reference lost an element");
    if (!t.floating())
      for (int64_t& x : t.integer) x = wrap_to(t.dtype, x);
    else if (round_)
      for (double& x : t.real) x = round_to(t.dtype, x);
  }

  const Graph& graph_;
  std::span<const ReferenceScalar> scalars_;
  bool round_, hinted_;
  std::vector<int64_t> sizes_;
  std::vector<ReferenceTensor> values_;
};

}  // namespace

std::vector<ReferenceTensor> interpret(const Graph& graph, std::span<const ReferenceTensor> inputs,
                                       std::span<const ReferenceScalar> scalars, const ReferenceOptions& options) {
  return Interpreter(graph, scalars, options).run(inputs);
}

}  // namespace ingot::ir
