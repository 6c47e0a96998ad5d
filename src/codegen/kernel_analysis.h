// What every way to run a kernel asks of it first: how often a value changes, and what is computed for what is stored.
#pragma once
#include <optional>
#include <vector>

#include "codegen/kernel_ir.h"

namespace ingot::codegen {

/// How often a value changes: once a call, in each plane of rows and columns (by an outer index), at each row, at each
/// column.
enum class Level : uint8_t { call, plane, row, column };
/// Of each node: that of the loads, indices and locals it is computed from.
std::vector<Level> find_levels(const Kernel& kernel);

/// What a phase computes at each column, for its stores, local stores and reductions; and once a row.
std::vector<Value> column_roots(const Kernel& kernel, const Phase& phase);
std::vector<Value> row_roots(const Phase& phase);
/// The roots and all that they are computed from, by node.
std::vector<bool> find_live(const Kernel& kernel, const std::vector<Value>& roots);

/// Of each node: the 16-bit float that its number surely is (of i32: whose widened bits it has), as loads and rounding
/// make it and moves, choices and changes of sign keep it; else f32. Goes on behind the nodes that `halves` has.
void find_halves(const Kernel& kernel, std::vector<DType>& halves);
/// The 16 bits that stand for a constant beside such numbers: those of a number that is one, of a mask of the sign or
/// of all but the sign.
std::optional<uint64_t> half_bits(const Node& constant, DType half);

/// Takes out what no store or reduction is computed from: constants that were folded into others.
void drop_dead_nodes(Kernel& kernel);
/// Of form columns, on a processor: whether the columns are known to be few, and a vector of them is summed down its
/// rows with its lanes in registers (see KernelFrame::lanes).
bool sums_in_registers(const Kernel& kernel);

}  // namespace ingot::codegen
