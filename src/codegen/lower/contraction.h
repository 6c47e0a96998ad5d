// Steps of matrix products, and what products of any step have in common: their kernels and epilogues.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "codegen/lower/steps.h"

namespace ingot::codegen::lowering {

/// An epilogue with more arguments is a loop of its own.
inline constexpr size_t kMostEpilogueArguments = 24;
/// Sums of so few products are finished in registers: what is stored in between is no small part then.
inline constexpr int64_t kShallow = 256;

/// Which kernels a product needs. They depend on nothing else.
struct ProductForm {
  enum class Packing : uint8_t { none, rows, columns };
  DType dtype = DType::f32;         // of A
  Packing packing = Packing::none;  // of B, whose rows or columns are dense: by kernels, or none
  RowsOfA a = RowsOfA::along;       // as tiles read it
  bool packs_a = false;             // it is dense neither along k nor along its rows: tiles read a copy
  OneRow one_row = OneRow::tiles;
  bool widens = false;
  std::optional<DType> b = {};      // none: A's
  int taps = 0, window_stride = 1;  // of windows (TileSpec)
  friend auto operator<=>(const ProductForm&, const ProductForm&) = default;
};
/// Made once.
ProductKernelsPtr product_kernels(const Target& target, const ProductForm& form);

void write_matmul(StepWriter& w, uint32_t group);

/// A buffer of the arena for the whole of a product, without its epilogue.
uint32_t raw_buffer(StepWriter& w, ir::ValueId product, DType raw);
/// The epilogue as a loop that reads it.
void loop_after_product(StepWriter& w, uint32_t group, KernelWriter& writer, uint32_t buffer);
/// What follows a product runs tile by tile on a processor; a GPU's library leaves the whole of it in memory.
inline bool epilogue_fits(const StepWriter& w, size_t arguments) {
  return !w.target.cuda_arch && arguments <= kMostEpilogueArguments;
}
/// As Epilogue orders them. `strides` of the arguments end with those over rows and columns. `columns`: of the product,
/// if its results come in whole panels.
std::vector<KernelPtr> epilogues(StepWriter& w, KernelWriter& writer, const std::vector<Dims>& strides, int vectors,
                                 const std::optional<Dim>& columns, const std::string& name);
/// Tiles that end with the epilogue, where there is little to sum: `depth` products. For all columns of a tile; behind
/// them, if the product has few columns, for as many as it has.
std::vector<KernelPtr> finishing_tiles(StepWriter& w, const KernelWriter& writer, const ProductForm& form,
                                       const Dim& depth, const std::optional<Dim>& columns);

}  // namespace ingot::codegen::lowering
