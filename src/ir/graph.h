// The graph: nodes in order of definition over values with types; sizes may be symbols.
#pragma once
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace ingot::ir {

using ValueId = uint32_t;
using NodeId = uint32_t;
inline constexpr uint32_t kNoValue = ~0u;

/// An operand of a node.
struct Operand {
  enum class Kind : uint8_t {
    none,      // an absent tensor
    value,     // a value of the graph
    scalar,    // run-time scalar number `id` of the graph
    constant,  // a literal scalar
    size       // a size as an integer scalar
  } kind = Kind::none;
  Category category = Category::floating;  // scalar, constant
  uint32_t id = kNoValue;
  double number = 0;    // constant, floating
  int64_t integer = 0;  // constant, boolean or integer
  Dim dim;              // size
  static Operand none() { return {}; }
  static Operand value(ValueId v) { return make(Kind::value, v); }
  static Operand scalar(uint32_t number, Category c) {
    Operand o = make(Kind::scalar, number);
    o.category = c;
    return o;
  }
  static Operand constant(double x) {
    Operand o = make(Kind::constant, kNoValue);
    o.number = x;
    return o;
  }
  static Operand constant(int64_t x) {
    Operand o = make(Kind::constant, kNoValue);
    o.category = Category::integer;
    o.integer = x;
    return o;
  }
  static Operand constant(bool x) {
    Operand o = constant(static_cast<int64_t>(x));
    o.category = Category::boolean;
    return o;
  }
  static Operand size(Dim d) {
    Operand o = make(Kind::size, kNoValue);
    o.category = Category::integer;
    o.dim = d;
    return o;
  }
  bool is_value() const { return kind == Kind::value; }
  bool is_scalar() const { return kind >= Kind::scalar; }
  bool present() const { return kind != Kind::none; }
  /// Constants are equal where their bits are: NaN is itself, and -0 is not +0.
  friend bool operator==(const Operand& a, const Operand& b) {
    return a.kind == b.kind && a.category == b.category && a.id == b.id && a.integer == b.integer && a.dim == b.dim &&
           std::bit_cast<int64_t>(a.number) == std::bit_cast<int64_t>(b.number);
  }

 private:
  static Operand make(Kind k, uint32_t id) {
    Operand o;
    o.kind = k;
    o.id = id;
    return o;
  }
};

struct Node {
  OpId op;
  bool inplace = false;                    // before functionalization only: the result is written to operand 0
  const Derivative* derivative = nullptr;  // before decompose only: not the op but its vector-Jacobian product
  std::vector<Operand> operands;
  std::vector<Attr> attrs;
  std::vector<ValueId> outputs;
  Location location = Location::none();
  std::string module;     // path of the module that issued it, for example "h.3.mlp_up"
  bool backward = false;  // part of a derivative, or made from one; what the op itself computes, too, is a node before
  bool recomputed = false;  // backward: computes again what the forward pass does not keep (recompute)
};

struct ValueInfo {
  TensorType type;
  NodeId producer = kNoValue;  // kNoValue: an input
};

/// A graph input as the caller lays it out. A stride is dense where it is the product of the inner sizes.
struct InputInfo {
  ValueId value;
  Dims strides;           // elements
  bool constant = false;  // comes unchanged from outside (a parameter): panels of it may be kept between calls
};

struct INGOT_API Graph {
  DimTable dims;
  std::vector<Node> nodes;
  std::vector<ValueInfo> values;
  std::vector<InputInfo> inputs;
  std::vector<Category> scalars;  // categories of the run-time scalars
  std::vector<ValueId> outputs;

  const TensorType& type(ValueId v) const { return values[v].type; }
  /// A contiguous input.
  ValueId add_input(DType dtype, Dims shape);
  ValueId add_input(DType dtype, Dims shape, Dims strides);
  uint32_t add_scalar(Category c);
  /// Appends a node; its outputs' types come from the op's rules. Returns the first output. Trailing operands and
  /// attributes may be left out; missing and absent ones get their defaults. Dims count from 0. Throws Error, and
  /// leaves the graph alone, for what the op's row and rules do not admit.
  ValueId add(OpId op, std::vector<Operand> operands, std::vector<Attr> attrs = {},
              Location location = Location::none(), bool inplace = false, const Derivative* derivative = nullptr);
};

/// The operand that a default stands for, and the attribute; none where the argument has no default.
Operand default_operand(const ArgInfo& argument);
Attr default_attribute(const ArgInfo& argument);
/// Gives missing and absent operands and attributes of a call their defaults.
void complete(const OpInfo& op, std::vector<Operand>* operands, std::vector<Attr>* attrs);
/// Runs the rules of a node again; fills its outputs' types, and the dtype in which an elementwise node computes.
void infer(const Graph& graph, const Node& node, DimTable& dims, std::vector<TensorType>* outputs,
           DType* compute = nullptr);

/// By value: whether `roots` are made from it, or it is one of them.
std::vector<bool> reached_from(const Graph& graph, std::span<const Operand> roots);

/// Row-major strides for a shape.
INGOT_API Dims contiguous_strides(DimTable& dims, std::span<const Dim> shape);

/// Throws Error where a call has operands or attributes that its op's row does not have, or that are not of the graph.
/// What the rules then say of their types and sizes is infer's matter.
void check_call(const Graph& graph, const Node& node);
/// Throws InternalError, with the graph's text, where an invariant does not hold: definition before use, types that the
/// rules give, `functional`: no in-place node.
INGOT_API void verify(const Graph& graph, bool functional = true);
/// IR text, version 1. parse(print(g)) prints the same bytes.
INGOT_API std::string print(const Graph& graph);
/// Throws Error with line and column of what is wrong.
INGOT_API Graph parse(std::string_view text);

}  // namespace ingot::ir
