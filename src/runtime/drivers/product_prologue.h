// The prologue of a product: the loop that makes rows of its A when their turn comes.
#pragma once
#include "runtime/drivers/step_driver.h"

namespace ingot::runtime {

/// The same for all sizes.
struct PrologueConstants : PlaneConstants {
  /// `scalars_before`: those of the step that are not the loop's.
  PrologueConstants(const LoopStep& loop, size_t scalars_before, const BindContext& context);
  size_t result, scalars_before;  // result: the argument that is A
  int64_t local_bytes = 0;        // an element of all local row buffers
};

/// At given sizes. Rows of all planes are counted as one.
class ProductPrologue : private Planes {
 public:
  ProductPrologue(const PrologueConstants& constants, const BindContext& context);
  /// What make() needs beside its results, aligned to 64.
  int64_t scratch_bytes() const { return scratch_bytes_; }
  /// `to_stride`: bytes from row to row.
  void make(const StepState& state, Range rows, char* to, int64_t to_stride, char* scratch) const;

 private:
  size_t result_, scalars_before_;
  int64_t scratch_bytes_;
};

}  // namespace ingot::runtime
