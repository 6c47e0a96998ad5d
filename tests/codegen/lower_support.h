// Lowers a graph, runs the program, and compares with the reference interpreter.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "codegen/lower.h"
#include "ir/reference.h"

namespace ingot::codegen::test {

using ir::Attr;
using ir::Graph;
using ir::Operand;
using ir::ValueId;

inline Operand val(ValueId v) { return Operand::value(v); }
inline Attr dim(int64_t d) { return Attr::of(d); }
inline Attr ints(Dims d) { return Attr::of(std::move(d)); }

/// Runs a program. Inputs are laid out as their InputInfo says, outputs as LowerResult::output_orders; none: row-major.
std::vector<ir::ReferenceTensor> run_program(const ir::Graph& graph, const Program& program,
                                             std::span<const ir::ReferenceTensor> inputs,
                                             std::span<const ir::ReferenceScalar> scalars = {},
                                             std::span<const int64_t> symbols = {},
                                             std::span<const SmallVector<int64_t, 6>> output_orders = {});

/// Values in [-2, 2) for floats, [0, bound) for integers; the same for the same seed.
ir::ReferenceTensor random_tensor(const ir::Graph& graph, ir::ValueId v, uint32_t seed, int64_t bound = 7,
                                  std::span<const int64_t> symbols = {});

/// Lowers and runs the graph on random inputs; fails the test where an output differs from the reference by more than
/// `tolerance` relative to the largest magnitude. Returns what lowering gave.
LowerResult check_against_reference(const ir::Graph& graph, double tolerance, LowerOptions options = {},
                                    std::vector<int64_t> symbols = {}, std::vector<ir::ReferenceScalar> scalars = {});

/// The same for a graph of any ops: the pipeline runs first, the reference judges the graph as it was written.
LowerResult check_compiled(const ir::Graph& graph, double tolerance, LowerOptions options = {},
                           std::vector<int64_t> symbols = {}, std::vector<ir::ReferenceScalar> scalars = {});

/// Generated networks of one kind: INGOT_CONVOLUTIONS, for long runs and for slow builds.
int how_many(int usual);
/// What tells two results apart: the signs of zeros, but not those of NaN.
std::vector<uint64_t> bits_of(const std::vector<double>& numbers);

/// Number of steps of a kind.
template <class Kind>
int count_steps(const Program& program) {
  return static_cast<int>(
      std::count_if(program.steps.begin(), program.steps.end(), [](const Step& s) { return s.is<Kind>(); }));
}

}  // namespace ingot::codegen::test
