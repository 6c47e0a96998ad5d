// Constant sub-expressions of a traced graph, computed by the kernels that would compute them at run time: same bits.
#pragma once
#include <optional>

#include "ir/graph.h"

namespace ingot::compiler {

/// For ir::PipelineOptions: the value of a graph of constants; none where no code can be made for it.
std::optional<ir::Operand> evaluate(const ir::Graph& constants);

}  // namespace ingot::compiler
