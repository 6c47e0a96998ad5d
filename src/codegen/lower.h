// From a graph of primitives to a program: layouts, fusion groups, kernels, buffers. A pure function of its arguments.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/program.h"
#include "codegen/kernel_ir.h"
#include "ir/graph.h"
#include "ir/passes/pipeline.h"

namespace ingot::codegen {

struct LowerOptions {
  /// An output that is an input, a view of one, or the same value as an earlier output gets no step: the caller aliases
  /// it.
  bool outputs_may_alias = false;
  /// Strides (elements, in the graph's dims) of the memory that each output is written to; none: all are row-major.
  std::vector<Dims> output_strides = {};
  /// Outputs, by number, that may lie in the order of the program's choice, beside those that `output_strides` tell.
  std::vector<uint32_t> free_outputs = {};
  // What may be left out to bisect a fault. Results are the same, but where keep_wide rounds at the end of a kernel.
  bool channels_last = true;  // images lie with their channels innermost between convolutions
  bool fuse = true;           // ops share kernels
  bool siblings = true;       // kernels over one space that read one value become one
  bool split_cat = true;      // the pointwise reader of a cat becomes one kernel for each part
  bool side_by_side = true;   // rows of few columns that are reduced fill vectors together
  bool transpose = true;      // what is dense along the rows is transposed tile by tile, instead of gathered
  bool keep = true;           // what is made of constant inputs alone is kept between runs
  bool slice = true;          // a batch whose parts do not meet is computed a slice at a time, where caches gain by it
  bool prologue = true;       // a product makes the rows of its left operand when their turn comes
  bool join_buffers = true;   // what a step writes may lie where an operand lay that nobody reads after it
  /// Convolutions may be computed from transformed tiles (Winograd), which rounds otherwise.
  bool winograd = false;
  /// Values of 16-bit floats stay f32 between the ops of a kernel; what is stored is rounded.
  bool keep_wide = false;
  /// For slices: bytes of cache of all threads that will run the program (0: not known, nothing is sliced), the least
  /// of a batch that they can share, and, where it is not 0, how many of the batch a slice has, whatever it costs.
  int64_t cache_bytes = 0, least_slice = 1, slice_size = 0;
  /// The fewest rows of a left operand that a product makes itself: of fewer, threads share its columns, and each would
  /// make them all.
  int64_t prologue_rows = 128;
  bool slices() const { return slice && (cache_bytes > 0 || slice_size > 0); }
  /// The graph is one eager op: guards tell sizes that share code from those that have other code.
  bool one_op = false;
  /// The graph is a part of another program, which finds slices, kept values and lifetimes itself.
  bool part = false;
  /// A kernel with this key that was made before, or null; may be empty.
  std::function<KernelPtr(const std::string& key)> find = {};
  /// Told what follows from every stage that ran, as text.
  std::function<void(std::string_view stage, const std::string& text)> after = {};
};

namespace lowering {
struct Lowering;
}

/// A stage of lowering, or a choice that the stage before it makes.
struct Stage {
  std::string_view name;
  void (*run)(lowering::Lowering&);                // none: a choice
  std::string (*text)(const lowering::Lowering&);  // what follows from it
  bool LowerOptions::*option = nullptr;            // that leaves it out; none: what follows relies on it
  bool whole = false;                              // it takes a program as a whole (LowerOptions::part)
};
/// In order.
std::span<const Stage> stages();

/// Why a value is computed where it is.
struct FusionDecision {
  ir::ValueId value;
  uint32_t group;  // where it is computed; the first one, where it is computed in several
  bool fused;      // with a consumer
  const char* reason;
  int64_t bytes_saved;  // of memory traffic a call, at the sizes of the trace
};

/// What one group of ops became.
struct FusionGroup {
  std::string name;                 // of its kernel
  std::vector<ir::NodeId> members;  // in order of the graph; a node may be computed in several groups
  std::vector<ir::ValueId> stored;
  std::vector<uint32_t> steps;  // of the program
};

struct Explanation {
  std::vector<FusionGroup> groups;  // in order of execution
  std::vector<FusionDecision> decisions;
  std::vector<std::string> notes;  // layouts that needed a copy, order of a reduction, form of a contraction
  /// The whole as text: groups with members and kernels, decisions with reasons, operations and bytes a step.
  std::string str(const ir::Graph& graph, const Program& program) const;
};

/// What a step runs over, with symbols as such.
std::string space_of(const DimTable& dims, const Step& step);
/// Which of the ways to compute it lowering chose: "epilogue, B packed once".
std::string algorithm_of(const Step& step);

struct LowerResult {
  Program program;
  Explanation explanation;
  std::vector<ir::PassTime> stages;  // those that ran
  /// Dims of each output from the outermost in memory, where no strides were given; dense in that order.
  std::vector<SmallVector<int64_t, 6>> output_orders;
};

/// The graph is functional and consists of primitives. Inputs of the program are those of the graph in order, outputs
/// and run-time scalars too. Guards that a size decision needed stand in program.dims. For a CUDA target the kernels
/// carry text and program.device_source is the unit to compile; products, convolutions and attention are steps without
/// kernels, for a library of the device.
LowerResult lower(const ir::Graph& graph, const Target& target, const LowerOptions& options = {});

}  // namespace ingot::codegen
