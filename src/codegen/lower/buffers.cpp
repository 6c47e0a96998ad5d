#include "codegen/lower/buffers.h"

namespace ingot::codegen::lowering {

Buffers::Buffers(const ir::Graph& graph, Layouts& layouts)
    : graph_(graph), layouts_(layouts), stored_(graph.values.size()) {
  for (uint32_t i = 0; i < graph.inputs.size(); ++i) {
    buffers_.push_back({Place::input, i, 0, 0, 0});
    ir::ValueId v = graph.inputs[i].value;
    store(v, i, graph.type(v).dtype);
  }
  for (uint32_t k = 0; k < graph.outputs.size(); ++k) buffers_.push_back({Place::output, k, 0, 0, 0});
}

uint32_t Buffers::add(DType dtype, Dim elements) {
  buffers_.push_back({Place::arena, 0, layouts_.dims().mul(elements, size_of(dtype)), 0, 0});
  return static_cast<uint32_t>(buffers_.size() - 1);
}

uint32_t Buffers::of(ir::ValueId v) {
  const DType dtype = graph_.type(v).dtype;
  if (!is_stored(v)) store(v, add(dtype, layouts_.elements(v)), dtype);
  return stored_[v].buffer;
}

}  // namespace ingot::codegen::lowering
