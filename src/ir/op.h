// The op table as data: every list of ops in the program comes from ops.def.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dim.h"
#include "base/dtype.h"
#include "base/error.h"

namespace ingot {

enum class Combiner : uint8_t;  // base/program.h

enum class OpId : uint16_t {
#define OP(kind, name, ...) name,
#include "ir/ops.def"
  count_
};
inline constexpr int kOpCount = static_cast<int>(OpId::count_);

namespace ir {

/// What the middle of the compiler does with an op.
enum class OpKind : uint8_t {
  elementwise,  // one scalar definition (codegen/elementwise.h), operands broadcast
  coordinate,   // one scalar definition over the coordinates of the element (full, arange, tril)
  reduction,    // one combiner over the dims of attribute `dim`
  view,         // an address computation: a layout rule, no work
  structured,   // a primitive with a form of its own in lowering (cat, index_select, matmul ...)
  composite,    // a decomposition into other ops
  host          // a C++ function: a step of a program
};

enum Trait : uint32_t {
  kNoTrait = 0,
  kCommutative = 1,     // of the first two operands
  kInplace = 2,         // has an in-place form that writes to the first operand
  kRandom = 4,          // its last two operands, seed and offset, are taken from the generator: a draw for each
                        // element of the result, or of the first operand if it has more
  kMayBreak = 16,       // its shape depends on data: a graph break in compiled code is allowed
  kExact = 32,          // moves or selects values: a 16-bit float needs no wider type on the way
  kHost = 64,           // may need host steps: plain C++, without a kernel
  kOverwrites = 128,    // of operand 0 it reads an element only to write it: the result may lie in its memory
  kReplaces = 256,      // in place, nothing of operand 0 is read
  kRenames = 512,       // a view of each element of operand 0 once
  kReshapes = 1024,     // a view that keeps the order of elements, not the dims: a copy where strides do not permit it
  kOfMemory = 2048,     // a view of the memory of operand 0, whatever its dims: it may reach beyond the tensor
  kUniform = 4096,      // of kind coordinate: the same at all coordinates
  kCounts = 8192,       // its elements begin at operand 0 and go on by operand 1
  kSkipsEmpty = 16384,  // passes over tensors of sizes [0], which go with any shape
  // In an autocast region (eager/autocast.h) floating operands are taken in its dtype, in f32, or in the widest of
  // theirs.
  kLower16 = 32768,
  kFull = 65536,
  kWidest = 131072,
  kMatrices = 262144  // of kind host: its operands end in the two dims of matrices of f64, which are one batch
};

/// What lowering makes of a structured op.
enum class Form : uint8_t {
  step,     // a step of the runtime; so is a host op
  lookup,   // inside of kernels: the element of operand 0 at the positions of operand 1 along attribute `dim`
  product,  // a matrix product; what follows is its epilogue
  window,   // a convolution; what follows is its epilogue
  window_weight,
  attention,  // a step of its own
  attention_backward,
  recurrence,  // steps along dim 0, one after another (recurrence.h)
  join,        // each operand is written into its part
  overwrite    // a copy of operand 0, then operand 1 over a strided part of it
};

/// Arguments of a signature. The first four are operands (a list of tensors must come first), the others attributes.
enum class ArgKind : uint8_t {
  tensor,   // a tensor
  operand,  // a tensor or a scalar; the scalar's category is structural, its value given at run time unless special
  value,    // a scalar only, value given at run time (alpha, eps)
  tensors,  // a list of tensors; its length is structural
  dim,      // structural: a dim, normalised to 0 <= dim < rank (0 for a zero-dim tensor)
  new_dim,  // structural: a dim of the result, which has one more; normalised to 0 <= dim <= rank
  dims,     // structural: a list of dims, normalised
  boolean,  // structural, as are the next five
  integer,
  integers,  // none negative
  number,    // floating point (the order of a norm)
  dtype,
  mode,  // one of the listed words
  size,  // a size class attribute: static at first, a symbol once it varies
  sizes
};
constexpr bool is_operand(ArgKind k) { return k <= ArgKind::tensors; }

/// A structural or size attribute of a call. `list` holds dims, integers and sizes; a size is list[0].
struct Attr {
  enum class Kind : uint8_t { none, boolean, integer, dtype, number, mode, list } kind = Kind::none;
  int64_t integer = 0;  // boolean 0/1; dtype and mode by number; a number's bits
  Dims list;
  Attr() = default;
  static Attr of(bool b) { return make(Kind::boolean, b); }
  static Attr of(int64_t i) { return make(Kind::integer, i); }
  static Attr of(DType d) { return make(Kind::dtype, static_cast<int64_t>(d)); }
  static Attr number(double x) { return make(Kind::number, std::bit_cast<int64_t>(x)); }
  double as_number() const { return std::bit_cast<double>(integer); }
  static Attr mode(int number) { return make(Kind::mode, number); }
  static Attr of(Dims dims) {
    Attr a;
    a.kind = Kind::list;
    a.list = std::move(dims);
    return a;
  }
  /// Of a derivative: dtype and sizes of an operand of the call before it that is not among its own (see Derivative).
  static Attr shape_of(DType dtype, Dims sizes) {
    Attr a = of(std::move(sizes));
    a.integer = static_cast<int64_t>(dtype);
    return a;
  }
  bool present() const { return kind != Kind::none; }
  friend bool operator==(const Attr&, const Attr&) = default;

 private:
  static Attr make(Kind k, int64_t i) {
    Attr a;
    a.kind = k;
    a.integer = i;
    return a;
  }
};

/// A modifier of a call, as `inplace` is: not the op itself but its vector-Jacobian product. With respect to the call
/// that it derives,
///   operands are those of that call, then its outputs, then a cotangent for each output. All may be absent: what the
///   derivative does not read, and cotangents that are zero;
///   attributes are those of that call, then one for each of its operands: dtype and sizes where a wanted operand is
///   absent (Attr::shape_of);
///   results are the gradients of the wanted operands, in order, each with its operand's dtype and sizes.
/// A derivative can be derived in turn: then `of` is what "that call" is.
struct Derivative {
  const Derivative* of = nullptr;
  std::vector<bool> wanted;  // of the operands of the call that it derives
  int order() const { return of ? of->order() + 1 : 1; }
  int results() const { return static_cast<int>(std::count(wanted.begin(), wanted.end(), true)); }
  friend bool operator==(const Derivative&, const Derivative&) = default;
};
/// The one object that is this derivative; it stays. Calls of many operands ask for all gradients or none, so that
/// there are not many (limits.md).
INGOT_API const Derivative* derivative_of(const Derivative* of, const std::vector<bool>& wanted);

/// What is checked of an operand's data before the op computes.
struct DataCheck {
  enum class Kind : uint8_t {
    none,
    positions,  // integers: each is a position of a dim of operand 0
    divisor,    // where integers are divided by it: no zero
    interval,   // each lies in [low, high]
    weights,    // finite, none negative; in each row one is above 0
    finished,   // integers, one for each matrix that is factored: 0, or where that stopped
    order,      // a scalar no lower than the operand before it; above it where `strict`
    held        // a scalar that the tensors' dtype holds where that is an integer's
  } kind = Kind::none;
  enum class Of : uint8_t { number, attribute, channel } of = Of::number;  // positions: which dim
  int dim = 0;         // Of::number, from the end where negative; Of::attribute: that attribute, if absent all elements
  bool wraps = false;  // positions from the end, -size to -1, are allowed as well
  int ignored = -1;    // positions: the attribute whose value is allowed as well
  double low = 0, high = std::numeric_limits<double>::infinity();
  bool strict = false;
  enum class Bound : uint8_t { none, lower, upper } bound = Bound::none;  // held: may lie below, above all numbers
  int with = -1;     // an attribute, a mode: checked only where it is not the first one
  int without = -1;  // an operand: checked only where it is absent
};

/// How a number that a user may write becomes a size of the rules (eager/call/call.cpp).
enum class Settling : uint8_t {
  none,      // no negative one
  inferred,  // -1: what the other sizes leave of the elements
  kept,      // -1: the size that the dim has
  wrapped,   // a position of attribute `dim`, from the end where negative
  clamped,   // the same, cut to the dim, and no less than the clamped one before it
  cyclic     // one for each of attribute `dims`, modulo its size; without dims modulo the number of elements
};

struct ArgInfo {
  std::string name;
  ArgKind kind;
  bool optional = false;  // may be absent (None)
  bool mask = false;      // kind tensor, written `mask`: a bool tensor that takes no part in promotion
  DataCheck check;
  Settling settling = Settling::none;
  bool has_default = false;
  double default_number = 0;     // operands, numbers, booleans, integers, dims (a list of one element stands for all)
  bool default_integer = false;  // it was written as an integer
  int default_mode = 0;
  std::vector<std::string> modes;
  std::vector<double> special;  // kind operand, value: a scalar of one of these values is structural
};

/// Type and shape of a tensor value.
struct TensorType {
  DType dtype = DType::f32;
  Dims shape;
};

/// An operand as the rules see it.
struct OperandType {
  enum class Kind : uint8_t { none, tensor, scalar } kind = Kind::none;
  DType dtype = DType::f32;                // tensor
  Category category = Category::floating;  // scalar
  const Dims* shape = nullptr;             // tensor
  bool is_tensor() const { return kind == Kind::tensor; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool present() const { return kind != Kind::none; }
};

/// What a type or shape rule works on. Eager passes constants only, so the same rules serve eager and symbolic graphs.
struct RuleContext {
  OpId op;
  std::span<const OperandType> operands;
  std::span<const Attr> attrs;
  DimTable& dims;
  Location location;
  std::vector<TensorType>& outputs;
  bool inplace = false;  // the result keeps operand 0's dtype and shape
  const Derivative* derivative = nullptr;
  /// Set by the type rule of an elementwise op: the dtype to which its tensors (but for masks) are converted before its
  /// scalar definition runs.
  DType compute = DType::f32;
  /// See fail_call.
  [[noreturn]] void fail(std::string_view argument, const std::string& got, const std::string& expected) const;
};
using Rule = void (*)(RuleContext&);

/// Sizes, strides and offset, in elements.
struct Layout {
  Dims sizes, strides;
  Dim offset;
};
/// Layout of a view of `base`; throws Error through the context.
using LayoutRule = Layout (*)(RuleContext&, const Layout& base);

/// The largest error of an elementwise function for default arguments, in units in the last place of the exact value,
/// or of its operand where that is larger; 0: none is stated.
struct Accuracy {
  double f32 = 0, f64 = 0;
  bool of_operand = false;
};

class GraphBuilder;
struct CompositeCall;
struct DerivedCall;
struct Operand;
/// An op as a graph of primitives in the form that decompose.h promises.
using Decomposition = std::vector<Operand> (*)(GraphBuilder&, const CompositeCall&);
/// The gradients of a call's operands; absent where one is zero everywhere, or not wanted (derivative.h).
using DerivativeRule = std::vector<Operand> (*)(GraphBuilder&, const DerivedCall&);
/// One step of a sequence (recurrence.h).
struct StepCall;
using StepRule = std::vector<Operand> (*)(GraphBuilder&, const StepCall&);

/// What the derivative of an op is.
enum class Gradient : uint8_t {
  derived,   // of a composite: that of its decomposition
  rule,      // a function of ir/derivatives
  constant,  // zero wherever it exists
  none       // not differentiable
};

struct OpInfo {
  OpId id;
  OpKind kind;
  std::string_view name;
  std::vector<ArgInfo> arguments;  // in the order of the signature
  int operand_count = 0;           // a list counts as one
  bool list_first = false;
  std::vector<int> checked;  // the operands with a DataCheck
  uint32_t traits = 0;
  int outputs = 1;
  Rule types = nullptr, shapes = nullptr;
  LayoutRule layout = nullptr;  // views
  Decomposition decompose = nullptr;
  std::optional<Combiner> combiner;
  Form form = Form::step;
  StepRule step = nullptr;  // of Form::recurrence
  Accuracy accuracy;
  Gradient gradient = Gradient::derived;
  DerivativeRule derivative = nullptr;
  bool has(Trait t) const { return traits & t; }
  /// Whether a reduction given these dims reduces all of them: without any, but for PyTorch's any and all, for which an
  /// empty list is none.
  INGOT_API bool reduces_all(bool given, bool empty) const;
  INGOT_API const ArgInfo& operand(
      int i) const;  // i-th operand argument (list_first: any member of the list is argument 0)
  INGOT_API const ArgInfo& attribute(int i) const;
};

INGOT_API const OpInfo& info(OpId op);
/// The same for a number that may be none of an op; throws Error.
const OpInfo& checked_info(OpId op);
/// Every row, in the order of the table.
INGOT_API std::span<const OpInfo> ops();
/// By name or alias; null if unknown.
INGOT_API const OpInfo* find_op(std::string_view name);

/// Throws Error: "OP: ARGUMENT: got GOT, expected EXPECTED (FILE:LINE)".
[[noreturn]] void fail_call(OpId op, std::string_view argument, const std::string& got, const std::string& expected,
                            Location location);
/// Number of outputs of a call.
inline int output_count(OpId op, const Derivative* derivative) {
  return derivative ? derivative->results() : info(op).outputs;
}
/// A call and its arguments in words: "add_", "backward of linear"; by its name in the row, or by its number.
INGOT_API std::string name_of_call(OpId op, const Derivative* derivative, bool inplace = false);
INGOT_API std::string name_of_operand(OpId op, const Derivative* derivative, size_t i);
INGOT_API std::string name_of_attribute(OpId op, size_t i);
/// True if attribute `i` of a call holds sizes, which may be symbols: those of size arguments, and what a derivative
/// has beyond the attributes of the row.
INGOT_API bool holds_sizes(const OpInfo& op, size_t i);

/// Types and shapes of the outputs of a call; throws Error for what a user got wrong.
void infer(RuleContext& context);
/// Layout of a view of `base`, operand 0 of the call; throws as infer does.
Layout infer_layout(RuleContext& context, const Layout& base);

}  // namespace ir
}  // namespace ingot
