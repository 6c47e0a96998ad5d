// Builds graphs in terms of ops: b.add(x, y), b.softmax(x, b.attr(dim)). Every op of the table is a member.
#pragma once
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace ingot::ir {

/// An operand or an attribute of a builder's call. Operands and attributes each keep their order; what is left out has
/// its default.
struct Argument {
  bool is_attribute = false;
  Operand operand;
  Attr attr;
  Argument(Operand o) : operand(std::move(o)) {}
  Argument(double x) : operand(Operand::constant(x)) {}
  Argument(Attr a) : is_attribute(true), attr(std::move(a)) {}
  Argument(Dims dims) : is_attribute(true), attr(Attr::of(std::move(dims))) {}
  Argument(DType d) : is_attribute(true), attr(Attr::of(d)) {}
};

/// A composite or reduction with a derivative of its own, and the nodes that it was written as.
struct BuiltCall {
  OpId op;
  std::vector<Operand> operands;
  std::vector<Attr> attrs;
  std::vector<Operand> outputs;
  size_t first, end;  // numbers of its nodes
};

/// Adds nodes to a graph in the form that the compiler's later passes and lowering take: a composite is decomposed at
/// once, a reduction reduces one dim, 16-bit floats are widened where an op computes (decompose.h has the contract).
class INGOT_API GraphBuilder {
 public:
  /// `convolves_bf16`: convolutions of bf16 read their operands as they are, like other products.
  explicit GraphBuilder(Graph& graph, bool convolves_bf16 = false) : graph_(graph), convolves_bf16_(convolves_bf16) {}

  /// Source line and module of the nodes that follow.
  void at(Location location, std::string module) {
    location_ = location;
    module_ = std::move(module);
  }
  /// Whether the nodes that follow are said to be part of a derivative.
  void set_backward(bool backward) { backward_ = backward; }
  /// Whether an op is all that its program computes: eager makes one for each way to write it.
  void set_one_op(bool one_op) { one_op_ = one_op; }
  std::vector<Operand> call(OpId op, std::vector<Operand> operands, std::vector<Attr> attrs);
  /// A derivative of a call (ir::Derivative), written as primitives.
  std::vector<Operand> derived(OpId op, const Derivative& derivative, std::vector<Operand> operands,
                               std::vector<Attr> attrs);
  /// The gradients of these operands through what `write` makes of them, from the cotangents of what it gives; absent
  /// where one is zero or not wanted. `results`, where present, stand for what it gives.
  using Write = std::function<std::vector<Operand>(const std::vector<Operand>&)>;
  std::vector<Operand> gradients(const Write& write, std::vector<Operand> operands, const std::vector<bool>& wanted,
                                 std::span<const Operand> results, std::span<const Operand> cotangents);

#define OP(kind, name, ...)                                                      \
  template <class... Arguments>                                                  \
  Operand name(Arguments&&... arguments) {                                       \
    return first(OpId::name, {Argument(std::forward<Arguments>(arguments))...}); \
  }
#include "ir/ops.def"

  Graph& graph() { return graph_; }
  DimTable& dims() { return graph_.dims; }
  /// A copy: the graph's own moves as it grows.
  Dims shape(const Operand& value) const { return graph_.type(value.id).shape; }
  DType dtype(const Operand& value) const { return graph_.type(value.id).dtype; }
  size_t rank(const Operand& value) const { return graph_.type(value.id).shape.size(); }

  // Short forms.
  static Attr attr(int64_t integer) { return Attr::of(integer); }
  static Attr flag(bool value) { return Attr::of(value); }
  static Operand integer(int64_t value) { return Operand::constant(value); }
  /// A size as a scalar operand; a constant one as a floating constant where it divides.
  static Operand size_operand(Dim size);
  static Operand divisor(Dim size);
  /// x with another dtype; itself where it has it.
  Operand to(const Operand& x, DType dtype);
  /// A view with these sizes; x itself where it has them.
  Operand reshape(const Operand& x, Dims sizes);
  Operand reduce_dims(OpId op, const Operand& x, Dims dims, bool keepdim);
  /// A zero-dim tensor with this value.
  Operand scalar(const Operand& value, DType dtype);
  /// x, one value a channel, with the sizes to broadcast at dim `channel` of `rank` dims.
  Operand per_channel(const Operand& x, size_t channel, size_t rank);
  /// x + y * 1 and so on where the factor is the constant one.
  Operand scaled(const Operand& x, const Operand& factor);

  // For normal forms (normalize.h).
  /// The node itself: the call is complete, and in the form that lowering takes.
  std::vector<Operand> primitive(OpId op, std::vector<Operand> operands, std::vector<Attr> attrs);
  /// x as the bf16 tensor that an op of this builder widened, or a view or elements of one; absent where x is something
  /// else. Not what a call itself has cast: that is a value of f32 like any other.
  std::optional<Operand> narrow(const Operand& x);
  /// A node that reads bf16 in the place of these operands, which were widened.
  Operand primitive_of_narrow(OpId op, std::vector<Operand> narrow, std::vector<Attr> attrs, std::vector<Operand> wide);
  bool convolves_bf16() const { return convolves_bf16_; }
  bool one_op() const { return one_op_; }
  /// Whether what is written now is for its derivative.
  bool deriving() const { return deriving_ > 0; }
  /// The operands of a node, widened.
  const std::vector<Operand>& wide_operands(NodeId node) const;

 private:
  Operand first(OpId op, std::initializer_list<Argument> arguments);

  Graph& graph_;
  const bool convolves_bf16_;
  Location location_ = Location::none();
  std::string module_;
  std::unordered_map<ValueId, ValueId> narrow_;            // what ops widened, and from what
  std::unordered_map<NodeId, std::vector<Operand>> wide_;  // of nodes that read bf16
  std::vector<BuiltCall> built_;                           // while a call is written to be derived
  int deriving_ = 0;
  bool backward_ = false;  // nodes belong to a derivative
  bool one_op_ = false;
};

}  // namespace ingot::ir
