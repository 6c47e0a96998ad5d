// The one place where fusion weighs recomputation against memory traffic.
#pragma once
#include <cstdint>

#include "base/dtype.h"
#include "ir/op.h"

namespace ingot::ir {
struct Node;
}

namespace ingot::codegen::lowering {

/// Work of an elementwise op for one element, in units of a multiplication: the nodes of its definition.
int op_cost(OpId op, DType working);
/// Of this node: where an operand is one of its row's special values, a square say, of the code for that.
int op_cost(const ir::Node& node, DType working);
/// From here on an op is computed once and kept rather than computed again.
inline constexpr int kExpensive = 6;
/// A value that one kernel reads at more places is stored, however cheap it is.
inline constexpr int kMostMaps = 16;

/// Values that one kernel computes: bounds the registers that live at once, and so its stack frame.
inline constexpr size_t kMostItems = 128;

/// Facts about a value and those who read it.
struct FusionQuestion {
  int consumers = 0;               // groups that could compute it in place
  bool must_store = false;         // an output, or read from memory by someone
  bool no_operands = false;        // computed from coordinates and scalars alone
  bool reads_memory = false;       // its operands are inputs of the graph, or one that is stored and small ones
  bool larger_space = false;       // a consumer's space repeats it
  int maps = 1;                    // places at which one consumer reads it
  int times = 1;                   // how often that computes an element
  bool lacks_coordinates = false;  // it needs coordinates, which a consumer does not have
  bool ends_product = false;       // the elementwise tail of a matrix product that the consumer cannot be part of
  bool ends_row = false;  // made from reductions that the consumer, which reduces along another dim, cannot be part of
  bool reader_is_full = false;   // a consumer's kernel computes as much as one may
  bool can_store_there = false;  // one consumer computes every element once, before all other readers
  int cost = 0;                  // of the op alone
  int chain_cost = 0;            // with all that would be computed with it
  int64_t bytes = 0;
};

enum class FusionChoice : uint8_t {
  inside,  // computed in every consumer, not stored
  stored,  // computed and stored by one consumer, read by the others
  alone    // a group of its own, or the epilogue of what produces it
};
struct FusionAnswer {
  FusionChoice choice;
  const char* reason;
  int64_t bytes_saved;
};
FusionAnswer weigh(const FusionQuestion& q);

}  // namespace ingot::codegen::lowering
