// From groups to the steps of a program.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/lower/kernel_plan.h"
#include "codegen/lower/plan.h"

namespace ingot::codegen::lowering {

/// An epilogue with more arguments is a loop of its own.
inline constexpr size_t kMostEpilogueArguments = 24;

class StepWriter {
 public:
  StepWriter(const ir::Graph& graph, Layouts& layouts, const Plan& plan, const Target& target,
             const LowerOptions& options, LowerResult& result);
  /// Appends the steps of a group.
  void write(uint32_t group);

 private:
  void write_loop(uint32_t group);
  void write_column(uint32_t group);
  void write_matmul(uint32_t group);
  void write_conv(uint32_t group);
  void write_attention(uint32_t group);
  void write_library(uint32_t group);
  void finish_loop(uint32_t group, KernelWriter& writer);
  uint32_t raw_buffer(ir::ValueId product, DType raw);
  void loop_after_product(uint32_t group, KernelWriter& writer, uint32_t buffer);

  /// Kernel arguments over a collapsed space (outermost first); sets how each buffer moves along the columns.
  std::vector<Argument> arguments(KernelWriter& writer, const Dims& sizes, std::vector<Dims> strides);
  void turn_arguments(KernelWriter& writer, LoopStep& loop, const std::vector<Dims>& strides);
  void number_indices(KernelWriter& writer, const CollapsedSpace& space, const SmallVector<int, 8>& order);
  /// As MatmulStep orders them.
  std::vector<KernelPtr> epilogues(KernelWriter& writer, int vectors, const std::string& name);
  KernelPtr generate(KernelWriter& writer, const Dims& sizes, const std::string& name);
  Step& append(uint32_t group, Step step);
  std::string name_of_group(const Group& g) const;
  /// What follows a product runs tile by tile on a processor; a GPU's library leaves the whole of it in memory.
  bool epilogue_fits(size_t arguments) const { return !target_.cuda_arch && arguments <= kMostEpilogueArguments; }
  Dim moved_bytes(const std::vector<KernelArgument>& arguments, const Dims& sizes, const std::vector<Dims>& strides);
  Argument stored_argument(const StoredOperand& operand, const Dims& strides, Dim offset, DType dtype);

  const ir::Graph& graph_;
  Layouts& layouts_;
  DimTable& dims_;
  const Plan& plan_;
  const Target& target_;
  const LowerOptions& options_;
  LowerResult& result_;
  std::unordered_map<std::string, KernelPtr> kernels_;  // of this program, by key: equal layers are made once
};

/// The kernels of all products of one type on one target; they depend on nothing else.
struct TileKernels {
  int rows = 1, vectors = 1;
  std::vector<KernelPtr> tiles, packs,
      transposed_packs;         // as MatmulStep orders them; packs of a B with dense columns, dense k
  DType a = DType::f32;         // as tiles read it
  KernelPtr add_row, add_rows;  // null where a product is not of multiply-adds
  KernelPtr turned;             // where the target has it
  KernelPtr widen;              // with wide_tiles, as MatmulStep has them
  std::vector<KernelPtr> wide_tiles;
  KernelPtr pack_a, widen_a;  // of any k; of a dense one, null if A is read as it lies
};
const TileKernels& tile_kernels(const Target& target, DType dtype);

/// Bytes from elements.
Dim bytes(DimTable& dims, Dim elements, DType dtype);
Dims bytes(DimTable& dims, const Dims& elements, DType dtype);

}  // namespace ingot::codegen::lowering
