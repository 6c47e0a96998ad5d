// Where values are stored.
#pragma once
#include <vector>

#include "codegen/lower/plan.h"

namespace ingot::codegen::lowering {

class Buffers {
 public:
  /// Inputs lie in their own buffers. Those of the outputs follow, in order; what is stored in them is not decided yet.
  Buffers(const ir::Graph& graph, Layouts& layouts);

  uint32_t output(size_t number) const { return static_cast<uint32_t>(graph_.inputs.size() + number); }
  uint32_t add(DType dtype, Dim elements);

  bool is_stored(ir::ValueId v) const { return stored_[v].buffer != kNoBuffer; }
  const Stored& stored(ir::ValueId v) const { return stored_[v]; }
  void store(ir::ValueId v, uint32_t buffer, DType dtype) { stored_[v] = {buffer, dtype}; }
  /// The value's; a new one of its type where it has none.
  uint32_t of(ir::ValueId v);

  std::vector<ProgramBuffer> take() { return std::move(buffers_); }
  std::vector<Stored> take_stored() { return std::move(stored_); }

 private:
  const ir::Graph& graph_;
  Layouts& layouts_;
  std::vector<ProgramBuffer> buffers_;
  std::vector<Stored> stored_;  // by value
};

}  // namespace ingot::codegen::lowering
