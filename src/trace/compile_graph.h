// A graph through the whole compiler: passes, lowering, loading.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "codegen/lower.h"
#include "eager/code_level.h"
#include "ir/graph.h"
#include "ir/passes/pipeline.h"
#include "runtime/program_runner.h"

namespace ingot::trace {

/// What the code of a compiled function depends on beside its graph.
struct CompileSettings {
  std::vector<std::string> disabled_passes;
  eager::CodeLevel level = eager::code_level();
  std::string key() const;
};

/// A graph that is ready to run, and how it became so.
class CompiledGraph {
 public:
  /// Throws where a stage cannot do it; the caller then falls back. The name is for logs.
  CompiledGraph(ir::Graph graph, const CompileSettings& settings, const std::string& name);

  const std::string& traced_text() const { return traced_; }  // IR before the passes
  const ir::Graph& graph() const { return graph_; }           // after them
  const Program& program() const { return loaded_->program(); }
  const codegen::Explanation& explanation() const { return explanation_; }
  const runtime::LoadedProgram& loaded() const { return *loaded_; }
  /// Bytes of each output, in program().dims.
  const std::vector<Dim>& output_bytes() const { return output_bytes_; }
  /// Each once, in order of their steps.
  std::vector<KernelPtr> kernels() const;
  double milliseconds() const { return milliseconds_; }
  /// Where they went: the passes, then lowering and loading; `nodes` of the graph after it.
  const std::vector<ir::PassTime>& stages() const { return stages_; }
  /// "compiled in 1.94 ms: decompose 0.02, ..."
  std::string times() const;

 private:
  std::string traced_;
  ir::Graph graph_;
  codegen::Explanation explanation_;
  std::unique_ptr<runtime::LoadedProgram> loaded_;
  std::vector<Dim> output_bytes_;
  double milliseconds_ = 0;
  std::vector<ir::PassTime> stages_;
};

}  // namespace ingot::trace
