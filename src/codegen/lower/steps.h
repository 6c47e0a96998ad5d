// From groups to the steps of a program.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/lower/collapse.h"
#include "codegen/lower/kernel_writer.h"
#include "codegen/lower/plan.h"

namespace ingot::codegen::lowering {

/// Whether a kernel is told the number of its columns, and unrolls them.
inline bool short_row(Dim columns) {
  constexpr int64_t kMost = 64;
  return columns.is_constant() && columns.code > 0 && columns.code <= kMost;
}

/// What all kinds of step are written with, and those of loops, columns and host ops.
struct StepWriter {
  StepWriter(const ir::Graph& graph, Layouts& layouts, const Plan& plan, const LowerOptions& options,
             LowerResult& result);
  /// Appends the steps of a group.
  void write(uint32_t group);
  void write_loop(uint32_t group);
  void write_column(uint32_t group);
  bool few_columns(Dim rows, Dim columns);
  void write_host(uint32_t group);
  /// A loop whose kernel is written: `writer` may hold more than the group.
  void finish_loop(uint32_t group, KernelWriter& writer);
  bool computes_side_by_side(const Group& g, const SmallVector<int, 8>& order,
                             const std::vector<KernelArgument>& arguments) const;
  /// A new buffer of the arena.
  uint32_t arena_buffer(Dim bytes);

  /// Kernel arguments over a collapsed space (outermost first); sets how each buffer moves along the columns.
  std::vector<Argument> arguments(KernelWriter& writer, const Dims& sizes, std::vector<Dims> strides);
  void transpose_arguments(KernelWriter& writer, LoopStep& loop, const std::vector<Dims>& strides);
  void number_indices(KernelWriter& writer, const CollapsedSpace& space, const SmallVector<int, 8>& order);
  KernelPtr generate(KernelWriter& writer, const Dims& sizes, const std::string& name);
  /// The kernel of that key, made once.
  KernelPtr made_once(const std::string& key, const std::function<KernelPtr()>& make);
  KernelPtr made_once(const Kernel& kernel, const std::string& name, int outer = 0);
  /// One that was made before, or null.
  KernelPtr known(const std::string& key) const;
  void remember(const KernelPtr& kernel) { kernels_[kernel->key] = kernel; }
  /// A step of the group that is being written.
  Step named_step() const;
  void append(Step step);
  std::string name_of_group(const Group& g) const;
  Dim moved_bytes(const std::vector<KernelArgument>& arguments, const Dims& sizes, const std::vector<Dims>& strides);
  /// Whether it lies as a constant input of the graph does: a weight from outside.
  bool is_constant(const StoredOperand& operand) const;
  Argument stored_argument(const StoredOperand& operand, const Dims& strides, Dim offset, DType dtype);

  const ir::Graph& graph;
  Layouts& layouts;
  DimTable& dims;
  const Plan& plan;
  const Target& target;
  const LowerOptions& options;
  LowerResult& result;

 private:
  std::unordered_map<std::string, KernelPtr> kernels_;  // of this program, by key: equal layers are made once
};

/// Bytes from elements.
Dim bytes(DimTable& dims, Dim elements, DType dtype);
Dims bytes(DimTable& dims, const Dims& elements, DType dtype);

}  // namespace ingot::codegen::lowering
