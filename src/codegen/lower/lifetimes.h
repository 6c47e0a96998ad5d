// When the buffers of a program's arena are in use.
#pragma once
#include "base/program.h"
#include "ir/graph.h"

namespace ingot::codegen::lowering {

/// What small loops make of constant inputs alone leaves the arena, to be kept between runs (Place::kept).
void keep_values(Program& program, const ir::Graph& graph);
/// From the first to the last step that touches an arena buffer.
void set_lifetimes(Program& program);
/// What a step writes may lie where an operand lay that nobody reads after it: the two become one buffer.
void join_buffers(Program& program);

}  // namespace ingot::codegen::lowering
