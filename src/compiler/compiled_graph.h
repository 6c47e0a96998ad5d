// A graph as a program, and how it became one. Immutable: what runs it is loaded from it.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/lower.h"
#include "ir/graph.h"
#include "ir/passes/pipeline.h"

namespace ingot::compiler {

struct CompiledGraph {
  std::string key;  // all that the program depends on: a line of settings, then the graph before the passes
  ir::Graph graph;  // after them
  std::vector<uint32_t> saved_outputs;  // for a backward pass alone, as the graph has them now
  std::vector<ir::Recipe> recipes;      // of Settings::saved_outputs that are none of its outputs any more
  std::shared_ptr<const Program> program;
  codegen::Explanation explanation;
  std::vector<Dim> output_bytes;                       // of each output, in program->dims
  std::vector<SmallVector<int64_t, 6>> output_orders;  // as codegen::LowerResult has them
  std::vector<ir::PassTime> stages;  // the passes, then lowering and loading; `nodes` of the graph after it
  double milliseconds = 0;           // that they took

  std::string_view traced_text() const;
  /// Each once, in order of their steps.
  std::vector<KernelPtr> kernels() const;
  /// "compiled in 1.94 ms: decompose 0.02, ..."
  std::string times() const;
  /// Of memory, an estimate.
  int64_t bytes() const;
};
using CompiledGraphPtr = std::shared_ptr<const CompiledGraph>;

}  // namespace ingot::compiler
