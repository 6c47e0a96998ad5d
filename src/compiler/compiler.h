// The door to the compiler. Whoever has a graph to run comes through it: recordings, eager ops, constants, graphs that
// were built by hand.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/code_level.h"
#include "compiler/compiled_graph.h"
#include "runtime/program_runner.h"

namespace ingot::compiler {

/// What a program depends on beside its graph.
struct Settings {
  CodeLevel level;
  std::vector<std::string> disabled = {};  // passes and stages of lowering, by name
  bool passes = true;                      // false: the graph consists of primitives
  std::vector<Dims> output_strides = {};   // as codegen::LowerOptions has them
  // For a backward pass alone: they may lie in any order, or be left to a recipe. Ascending.
  std::vector<uint32_t> saved_outputs = {};
  int threads = 0;                 // that will run it, for slices of a batch; 0: it stays whole
  bool one_op = false;             // as ir::PipelineOptions has it
  bool pack_weights_only = false;  // of the loaded program: nothing of the compiled one depends on it
};
/// These names and those of INGOT_DISABLE=name,... Throws Error for one that may not be left out, listing those that
/// may.
std::vector<std::string> disabled_stages(std::span<const std::string> names);
/// INGOT_SLICE=n: how many of a batch a slice has, whatever it costs, where a batch may be sliced at all; 0 where it is
/// not set. Throws Error for what is no number.
int64_t forced_slice();
/// INGOT_RECOMPUTE_FROM=bytes: from which size on a value may be computed again (ir::recompute); without it
/// ir::kRecomputedFrom. Throws as forced_slice().
int64_t recomputed_from();
/// All that the program depends on, as text: equal keys are equal programs.
std::string key_of(const ir::Graph& graph, const Settings& settings);

/// A program that can run, loaded for whoever asked for it: its memory and its bindings are theirs.
struct ReadyProgram {
  CompiledGraphPtr compiled;
  std::unique_ptr<runtime::LoadedProgram> loaded;
  double milliseconds = 0;  // that all this took
  explicit operator bool() const { return loaded != nullptr; }
};

/// `key` is that of the graph and the settings. Throws where a stage cannot do it; the caller then falls back. The name
/// is for logs; what has none is not logged, timed or dumped.
ReadyProgram compile(const std::string& key, ir::Graph graph, const Settings& settings, const std::string& name);
/// Without a name. Where no code can be made for the target, the scalar executor runs the same kernels, and `reason`
/// says why.
ReadyProgram compile_or_interpret(ir::Graph graph, Settings settings, std::string* reason);

}  // namespace ingot::compiler
