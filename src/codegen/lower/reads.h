// What a node of a group reads, element by element.
#pragma once
#include <span>
#include <vector>

#include "codegen/lower/layout.h"

namespace ingot::codegen::lowering {

/// The dim that a reduction runs over.
int reduced_dim(const ir::Node& node);
/// Coordinates of a reduction's result where those of its operand are `over_operand`.
IndexMap reduction_result_map(std::span<const Dim> operand, int dim, bool keepdim, const IndexMap& over_operand);

/// The position that an element of a list gives, where the list counts from a size or a number in known steps.
std::optional<Coordinate> counted(const ir::Graph& graph, const Layouts& layouts, OperandRead element);

/// How a node reads its operands, for one map of its result over the space of its group. `reduced` is the dim of the
/// space along which the group's reductions run.
std::vector<OperandRead> operand_reads(const ir::Graph& graph, Layouts& layouts, const ir::Node& node,
                                       const IndexMap& map, int reduced);

}  // namespace ingot::codegen::lowering
