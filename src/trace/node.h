// A node of the tree of what a compiled function was seen to do: one an event, children where calls went different
// ways.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/function_scope.h"
#include "base/module_path.h"
#include "eager/call/dispatch.h"
#include "eager/call/tensor_guard.h"
#include "eager/tensor.h"

namespace ingot::trace {

struct FlushPoint;

/// An operand as it was recorded; replay compares it exactly.
struct OperandRecord {
  enum class Kind : uint8_t {
    none,
    value,     // number `id` of this segment
    slot,      // tensor from outside, bound to slot `id`
    scalar,    // scalar `id` of this segment; its category is compared, its value belongs to the call
    repeated,  // scalar `id` of this segment once more, told by eager::Operand::origin
    special    // a scalar that the op has code of its own for: number `id` of the row's special values, from 1
  } kind = Kind::none;
  Category category = Category::floating;
  uint32_t id = 0;
};

/// A tensor from outside, at the op that uses it first. Sizes and strides are those of the latest call; everything else
/// is guarded.
struct SlotRecord : eager::TensorGuard {
  uint32_t slot = 0;
  bool captured = false;  // see CallMemory::is_captured
  int64_t offset = 0;     // of the latest call; looked at only where a view of the tensor was recorded
  bool viewed = false;
  uint64_t changed = 0;  // see Node::inferred
  SlotRecord(const detail::TensorImpl& t, uint32_t number, bool is_captured)
      : TensorGuard(t), slot(number), captured(is_captured), offset(t.offset) {}
};

struct OutputRecord {
  eager::OutputMeta meta;             // of the latest call
  Tensor handle;                      // given out again while nobody else holds it, to spare making one
  std::vector<Tensor> other_handles;  // likewise (Segment::another_handle)
  int32_t root_slot = -1;             // a view of this slot
  uint32_t root_value = 0;            // else: the value whose memory it lies in, itself if it is no view
  uint64_t changed = 0;               // see Node::inferred
};

struct Node {
  enum class Event : uint8_t { root, op, flush } event = Event::root;
  OpId op{};
  bool inplace = false;
  const ir::Derivative* derivative = nullptr;
  uint32_t first_value = 0;  // number of the first output
  uint64_t size_attrs = 0;   // bit i: attribute i holds sizes, which may be others in each call (of the first 64)
  std::vector<OperandRecord> operands;
  std::vector<ir::Attr> attrs;
  std::vector<SlotRecord> slots;  // bound here, in order
  std::vector<OutputRecord> outputs;
  // Which sizes reach this node, as a number of the tree: `shapes_in` before it, `shapes_out` after it. A call that
  // arrives with shapes_in and binds the same sizes needs no inference, which costs more than all that is compared; nor
  // does one where nothing that the outputs follow from (attributes, slots, results of other nodes) changed after they
  // were `inferred`, as the tree counts changes (0: never).
  uint64_t shapes_in = 0, shapes_out = 0, inferred = 0;

  Location location = Location::none();
  CalledFunction function;  // that called the op
  std::string module;
  std::unique_ptr<FlushPoint> flush;  // Event::flush
  int64_t compilations = 0;           // of the segment that starts here (roots and flushes)
  int64_t refused = 0;                // calls since then that the recompile limit kept from compiling (the same)
  int64_t earned = 0;                 // compilations beyond the limit that such calls have paid for (the same)
  int64_t hits = 0;                   // calls that passed here (flushes)
  int64_t last_use = 0;               // number of the latest of them, as the recorder counts

  std::vector<std::unique_ptr<Node>> children;
  Node();
  ~Node();
  bool has_sizes() const { return size_attrs || !slots.empty(); }
  /// Whether one more program may be compiled of the segment that starts here; else a call is counted as refused. Past
  /// the limit, kCallsForAProgram of these pay for one: what has become the steady state does not stay eager.
  bool may_compile(int64_t limit);
  static constexpr int64_t kCallsForAProgram = 512;
};

/// Operand `number` of a call of `op`, recorded as special.
eager::Operand special_operand(OpId op, size_t number, const OperandRecord& record);

/// What a node did, for logs and explain: "add(v3, slot 1, scalar 0)".
std::string describe(const Node& node);

/// While it lives, errors name the line, the function and the module of a recorded call, wherever the flush stands.
class NodeScope {
 public:
  explicit NodeScope(const Node& node) : function_(node.function), module_(node.module) {}

 private:
  CallerLine own_{CallerLine::Own()};
  FunctionScope function_;
  ModulePathScope module_;
};

}  // namespace ingot::trace
