#include "runtime/drivers/product_prologue.h"

#include <algorithm>

#include "base/canonical_order.h"
#include "base/error.h"
#include "base/pieces.h"

namespace ingot::runtime {

PrologueConstants::PrologueConstants(const LoopStep& loop, size_t before, const BindContext& context)
    : PlaneConstants(loop.kernel, loop.space, loop.arguments, context), scalars_before(before) {
  const auto written = std::ranges::find(loop.arguments, false, &Argument::read_only);
  INGOT_CHECK(written != loop.arguments.end(), "a prologue without a result");
  result = static_cast<size_t>(written - loop.arguments.begin());
  for (int64_t bytes : loop.local_bytes) local_bytes += bytes;
}

ProductPrologue::ProductPrologue(const PrologueConstants& constants, const BindContext& context)
    : Planes(constants, context), result_(constants.result), scalars_before_(constants.scalars_before) {
  const int64_t padded = round_up(columns_, canonical::kLanes);
  scratch_bytes_ = round_up(padded * constants.local_bytes, 64) + constants.scratch_bytes;
}

void ProductPrologue::make(const StepState& state, Range rows, char* to, int64_t to_stride, char* scratch) const {
  const size_t count = arguments_.size();
  SmallVector<char*, 16> plane_at(count, nullptr), at(count, nullptr);
  SmallVector<int64_t, 16> row_strides;
  for (size_t i = 0; i < count; ++i) row_strides.push_back(arguments_.row_strides()[i]);
  KernelFrame frame = frame_of(state, at.begin());
  frame.row_strides = row_strides.begin();
  frame.scalars += scalars_before_;
  frame.scratch = scratch;
  if (rows.begin >= rows.end) return;
  const int64_t plane = rows.begin / rows_;
  PlaneWalk walk(outer_, arguments_, state, plane_at.begin(), plane);
  frame.outer_index = walk.index();
  row_strides[result_] = to_stride;
  frame.row_index = rows.begin - plane * rows_;
  for (int64_t row = rows.begin; row < rows.end; row += frame.rows, frame.row_index = 0) {
    if (row > rows.begin) walk.next();
    frame.rows = std::min(rows_ - frame.row_index, rows.end - row);
    for (size_t i = 0; i < count; ++i) at[i] = plane_at[i] + frame.row_index * row_strides[i];
    at[result_] = to + (row - rows.begin) * to_stride;
    kernel_.entry(&frame);
  }
}

}  // namespace ingot::runtime
