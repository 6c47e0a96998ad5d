// What fusion decides: groups of ops, what each stores, and the buffers.
#pragma once
#include <vector>

#include "codegen/lower.h"
#include "codegen/lower/layout.h"

namespace ingot::codegen::lowering {

inline constexpr uint32_t kNoBuffer = ~0u;

/// A value that a group writes: element `map` of the value, at each point of the space, goes to its place in the
/// buffer.
struct Output {
  ir::ValueId value;
  IndexMap map;
  uint32_t buffer;
  DType dtype;   // of the buffer; the value is converted as the cast op does
  Dims strides;  // over the dims of the value, elements
  Dim offset;
};

/// An operand that a contraction, host step or scatter reads from memory.
struct StoredOperand {
  ir::ValueId value = ir::kNoValue;  // kNoValue: absent
  ir::ValueId root = ir::kNoValue;   // what is stored
  uint32_t buffer = kNoBuffer;       // kNoBuffer: where the root is stored
  DType dtype = DType::f32;
  Dims strides;  // over the dims of the value, elements
  Dim offset;
  bool rounded = false;  // a weight in f32 that a product rounds to bf16 as it packs it
  // Height and width are read from their ends (weights of convolutions).
  bool turned_h = false, turned_w = false;
};

struct Group {
  enum class Kind : uint8_t {
    loop,    // a kernel over the space; rows are reduced if `reduced` is set
    column,  // reduction of one op over an outer dim; its one output is the raw result
    matmul,  // a product with an epilogue over the space
    conv,    // a convolution with an epilogue over the space
    conv_weight,
    attention,
    attention_backward,
    recurrence,
    host
  } kind = Kind::loop;
  Dims space;
  int reduced = -1;                  // dim of the space along which reductions run
  const ir::Node* anchor = nullptr;  // all but loop: the op
  IndexMap anchor_map;               // matmul, conv: of the product over the space
  std::vector<ir::NodeId> members;
  size_t items = 0;  // values that its kernel computes: a member at each of its maps
  int64_t work = 0;  // of these, for an element, as op_cost() has it
  std::vector<Output> outputs;
  std::vector<StoredOperand> operands;  // all but loop and column, in the order of the op
  std::vector<uint32_t> successors;     // groups that read what this one stores
  uint32_t order = 0;                   // number of the last node that founded it: ties in the order of steps
  bool coordinates = false;             // a member needs them: it cannot be an epilogue
  bool forward = false;                 // a member is of the forward pass
  bool recomputes = false;              // a member computes again what the forward pass does not keep
  bool alive = true;
  /// A contraction: what follows it may be its epilogue.
  bool has_epilogue() const { return kind == Kind::matmul || kind == Kind::conv; }
};

/// Where a root is stored.
struct Stored {
  uint32_t buffer = kNoBuffer;
  DType dtype = DType::f32;  // may be wider than the value's: the raw result of a reduction over columns
};

struct Plan {
  std::vector<Group> groups;
  std::vector<uint32_t> order;               // of execution, alive groups
  std::vector<Stored> stored;                // by value
  std::vector<std::vector<uint32_t>> homes;  // by node: groups in which it is computed
  std::vector<ProgramBuffer> buffers;
  bool keep_wide = false;  // LowerOptions::keep_wide
};

/// True if the op is computed from coordinates or memory inside of a kernel: it needs no step of its own.
inline bool inlines(const ir::Node& node) {
  const ir::OpInfo& op = ir::info(node.op);
  return op.kind == ir::OpKind::elementwise || op.kind == ir::OpKind::coordinate || op.form == ir::Form::lookup;
}
/// True for inlined ops that compute from coordinates of the space.
inline bool needs_coordinates(const ir::OpInfo& op) {
  return op.kind == ir::OpKind::coordinate && !op.has(ir::kUniform);
}

}  // namespace ingot::codegen::lowering
