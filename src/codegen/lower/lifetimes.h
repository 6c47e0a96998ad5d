// When the buffers of a program's arena are in use.
#pragma once
#include "base/program.h"

namespace ingot::codegen::lowering {

/// From the first to the last step that touches an arena buffer.
void set_lifetimes(Program& program);
/// What a step writes may lie where an operand lay that nobody reads after it: the two become one buffer.
void join_buffers(Program& program);

}  // namespace ingot::codegen::lowering
