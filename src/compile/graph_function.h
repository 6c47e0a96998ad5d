// Graphs made by hand as functions.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "compile/compile.h"

namespace ingot {

/// A graph as a function: the door for other front ends (ir.h). Tensors in the order of the graph's inputs, scalars
/// likewise; the results are fresh tensors, row-major. A call makes the checks that eager makes, on dtypes, sizes and
/// values, and throws Error, in eager's words where an op refuses, with everything left as it was. Inputs lie in memory
/// as the graph says; each of its symbols is a size or a stride of an input. May be called from many threads.
class INGOT_API CompiledGraphFunction {
 public:
  CompiledGraphFunction(ir::Graph graph, const CompileOptions& options);
  std::vector<Tensor> operator()(std::span<const Tensor> inputs, std::span<const Scalar> scalars = {}) const;

 private:
  struct State;
  class Call;
  std::shared_ptr<const State> state_;
};
/// Throws Error for a graph that is not sound.
INGOT_API CompiledGraphFunction compile(ir::Graph graph, const CompileOptions& options = {});

}  // namespace ingot
