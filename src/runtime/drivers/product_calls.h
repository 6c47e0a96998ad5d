// The kernels of a product, ready to be called.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "runtime/drivers/product_prologue.h"

namespace ingot::runtime {

/// A kernel that is ready to be called.
struct KernelCall {
  KernelEntry entry = nullptr;
  const void* context = nullptr;
  explicit operator bool() const { return entry != nullptr; }
};
KernelCall call_of(const KernelPtr& source, const BindContext& context);  // of no kernel: false
std::vector<KernelCall> calls_of(std::span<const KernelPtr> sources, const BindContext& context);

/// Those of a product with one row of A, whose B is read as it lies (ProductKernels); what there is no kernel for is
/// false.
struct RowCalls {
  KernelCall add_row, add_rows, transposed;
  RowCalls(const ProductKernels& kernels, const BindContext& context);
};

/// The kernels of a product, its epilogue and its prologue, and which operand (A, B, then the epilogue's arguments) is
/// written first: the same for all sizes.
struct ProductCalls {
  std::vector<KernelCall> tiles, packs, epilogues, finishing, wide_tiles;
  std::vector<KernelCall> finishing_last;  // of a last panel that is not full
  struct SideBySide {
    int64_t rows, panels;
    KernelCall tile;
  };
  std::vector<SideBySide> side_by_side;
  KernelCall pack_a, widen, widen_rows;
  RowCalls of_row;
  int64_t epilogue_scratch = 0;
  size_t written = 2;
  std::optional<PrologueConstants> prologue;
  ProductCalls(const ProductKernels& kernels, const Epilogue& epilogue, const std::optional<LoopStep>& before,
               const BindContext& context);
};

}  // namespace ingot::runtime
