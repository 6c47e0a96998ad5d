// Code of matrix-product tiles.
#pragma once
#include <span>

#include "base/program.h"
#include "codegen/kernel_ir.h"
#include "codegen/x86/emitter.h"

namespace ingot::codegen::x86 {

void emit_tile(const TileSpec& spec, const Target& target, VCode& code);
void emit_transposed_tile(const TileSpec& spec, const Target& target, VCode& code);
/// Runs an epilogue on the sums of tiles.
class TileFinish {
 public:
  /// Takes what it is called with; rdi: its KernelFrame.
  TileFinish(const Kernel& epilogue, VCode& code) : k_(epilogue), code_(code), emitter_(epilogue, code) {}
  /// On a tile's sums, rows-major; `goes_on`: to be called again, for the rows behind.
  void emit(std::span<const VReg> sums, int rows, bool goes_on);
  /// Whether it may work on registers of columns apart: those of f32, which exist as a whole.
  bool by_parts() const;
  /// On the sums of a row each in this part of the columns, the first or the one behind the last call's.
  void emit_part(std::span<const VReg> sums, int part, bool goes_on);

 private:
  std::vector<Stream*> streams_of(const PhasePlan& plan);
  std::vector<VReg> ends_of(std::span<const VReg> sums);

  const Kernel& k_;
  VCode& code_;
  Emitter emitter_;
};

/// The largest tile whose sums fit the registers.
int max_tile_rows(const Target& target, DType dtype, RowsOfA rows_of_a);
int max_tile_vectors(const Target& target, DType dtype);
int max_tile_panels(const Target& target, DType dtype, int rows);
bool may_finish(const Target& target, const Kernel& epilogue);

}  // namespace ingot::codegen::x86
