// From groups to the steps of a program.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/lower/kernel_plan.h"
#include "codegen/lower/plan.h"

namespace ingot::codegen::lowering {

/// An epilogue with more arguments is a loop of its own.
inline constexpr size_t kMostEpilogueArguments = 24;
/// Sums of so few products are finished in registers: what is stored in between is no small part then.
inline constexpr int64_t kShallow = 256;
/// Whether a kernel is told the number of its columns, and unrolls them.
inline bool short_row(Dim columns) {
  constexpr int64_t kMost = 64;
  return columns.is_constant() && columns.code > 0 && columns.code <= kMost;
}

class StepWriter {
 public:
  StepWriter(const ir::Graph& graph, Layouts& layouts, const Plan& plan, const LowerOptions& options,
             LowerResult& result);
  /// Appends the steps of a group.
  void write(uint32_t group);

 private:
  void write_loop(uint32_t group);
  void write_column(uint32_t group);
  void write_matmul(uint32_t group);
  void write_conv(uint32_t group);
  void write_conv_weight(uint32_t group);
  void write_attention(uint32_t group);
  void write_attention_backward(uint32_t group);
  void write_host(uint32_t group);
  void finish_loop(uint32_t group, KernelWriter& writer);
  OneRow one_row(const MatmulStep& step, DType b, bool k_dense, bool n_dense) const;
  bool widens_rows(const MatmulStep& step, DType b) const;
  ConvolutionForm convolution_form(const Group& g) const;
  Conv2dStep::Winograd winograd();
  uint32_t arena_buffer(Dim bytes);
  uint32_t raw_buffer(ir::ValueId product, DType raw);
  void loop_after_product(uint32_t group, KernelWriter& writer, uint32_t buffer);

  /// Kernel arguments over a collapsed space (outermost first); sets how each buffer moves along the columns.
  std::vector<Argument> arguments(KernelWriter& writer, const Dims& sizes, std::vector<Dims> strides);
  void transpose_arguments(KernelWriter& writer, LoopStep& loop, const std::vector<Dims>& strides);
  void number_indices(KernelWriter& writer, const CollapsedSpace& space, const SmallVector<int, 8>& order);
  /// As Epilogue orders them. `strides` of the arguments end with those over rows and columns.
  std::vector<KernelPtr> epilogues(KernelWriter& writer, const std::vector<Dims>& strides, int vectors,
                                   const std::string& name);
  /// Tiles that end with the epilogue, where there is little to sum: `depth` products.
  std::vector<KernelPtr> finishing_tiles(const KernelWriter& writer, const ProductKernels& kernels, const Dim& depth);
  KernelPtr generate(KernelWriter& writer, const Dims& sizes, const std::string& name);
  /// The kernel of that key, made once.
  KernelPtr made_once(const std::string& key, const std::function<KernelPtr()>& make);
  KernelPtr made_once(const Kernel& kernel, const std::string& name, int outer = 0);
  /// A step of the group that is being written.
  Step named_step() const;
  void append(Step step);
  std::string name_of_group(const Group& g) const;
  /// What follows a product runs tile by tile on a processor; a GPU's library leaves the whole of it in memory.
  bool epilogue_fits(size_t arguments) const { return !target_.cuda_arch && arguments <= kMostEpilogueArguments; }
  Dim moved_bytes(const std::vector<KernelArgument>& arguments, const Dims& sizes, const std::vector<Dims>& strides);
  Argument stored_argument(const StoredOperand& operand, const Dims& strides, Dim offset, DType dtype);
  Argument with_four_dims(Step& step, Argument a, Dims& shape, Dims strides, DType type);
  Argument attention_operand(Step& step, const StoredOperand& operand, Dims& shape, const Dims& strides);
  Argument attention_result(Step& step, const Output& output);
  AttentionProbabilities attention_probabilities(const Group& g, Step& step, std::optional<Buffer>& mask);
  Dim attention_operations(const Group& g, int64_t products);

  const ir::Graph& graph_;
  Layouts& layouts_;
  DimTable& dims_;
  const Plan& plan_;
  const Target& target_;
  const LowerOptions& options_;
  LowerResult& result_;
  std::unordered_map<std::string, KernelPtr> kernels_;  // of this program, by key: equal layers are made once
};

/// Which kernels a product needs. They depend on nothing else.
struct ProductForm {
  enum class Packing : uint8_t { none, rows, columns };
  DType dtype = DType::f32;         // of A
  Packing packing = Packing::none;  // of B, whose rows or columns are dense: by kernels, or none
  RowsOfA a = RowsOfA::along;       // as tiles read it
  bool packs_a = false;             // it is dense neither along k nor along its rows: tiles read a copy
  OneRow one_row = OneRow::tiles;
  bool widens = false;
  std::optional<DType> b = {};  // none: A's
  friend auto operator<=>(const ProductForm&, const ProductForm&) = default;
};
/// Made once.
ProductKernelsPtr product_kernels(const Target& target, const ProductForm& form);

/// Bytes from elements.
Dim bytes(DimTable& dims, Dim elements, DType dtype);
Dims bytes(DimTable& dims, const Dims& elements, DType dtype);

}  // namespace ingot::codegen::lowering
