// Loop steps: a kernel over planes of rows x columns.
#include <alloca.h>
#include <xmmintrin.h>

#include <algorithm>
#include <vector>

#include "base/canonical_order.h"
#include "base/error.h"
#include "base/pieces.h"
#include "runtime/cpu.h"
#include "runtime/drivers/drivers.h"

namespace ingot::runtime {
namespace {

using canonical::kLanes;
constexpr int64_t kTransposedRows = 64;  // of a tile that is transposed
// Results of this size go past the caches. A core's share of L3 is a few megabytes, whatever its size; lines that are
// written whole need not be fetched first, which matters most where what is read comes in pieces of lines.
constexpr int64_t kStreamedBytes = 32 << 20;
// Lines that are read in turns and written to as many rows: tiles are one line of what is transposed wide, so that each
// line is read when its neighbours' time comes, not before, and results are a few whole lines of a row.
constexpr int64_t kStreamedColumns = 64;

struct LoopConstants : PlaneStepConstants {
  std::vector<const LoadedKernel*> transposing;  // one an argument, or empty
  const LoadedKernel* streaming = nullptr;
  int64_t transposed_columns, local_bytes = 0;  // of a panel; an element of all local row buffers
  const bool copies, rows_whole, may_split;

  LoopConstants(const LoopStep& step, const Step& costs, const BindContext& context)
      : PlaneStepConstants(step.kernel, step.space, step.arguments, costs, context),
        transposed_columns(step.transposing.columns),
        copies(step.copies),
        rows_whole(step.rows_whole),
        may_split(!step.split.reductions.empty()) {
    for (const KernelPtr& k : step.transposing.kernels) transposing.push_back(k ? &context.kernel(k) : nullptr);
    if (step.transposing.streaming) streaming = &context.kernel(step.transposing.streaming);
    for (int64_t bytes : step.local_bytes) local_bytes += bytes;
  }
};

class LoopDriver final : public PlaneDriver {
 public:
  LoopDriver(const LoopStep& step, const LoopConstants& constants, const BindContext& context)
      : PlaneDriver(constants, context), rows_whole_(constants.rows_whole), copies_(constants.copies) {
    const int64_t padded = (columns_ + kLanes - 1) / kLanes * kLanes;
    scratch_bytes_ =
        round_up(round_up(padded * constants.local_bytes, kCacheLine) + constants.scratch_bytes, kCacheLine);
    if (!constants.transposing.empty()) transpose(step, constants, context);
    for (size_t d = 0; copies_ && d < arguments_.rank(); ++d)
      copies_ = arguments_.stride(0, d) == arguments_.stride(1, d);

    int64_t parts = saturating_product(planes_, rows_);
    if (!rows_whole_) parts = saturating_product(parts, (columns_ + kLanes - 1) / kLanes);
    useful_threads = static_cast<int>(std::clamp<int64_t>(parts, 1, useful_threads));
  }

  // What is written in place is there.
  bool idle(const StepState& state, int) const override {
    return copies_ && arguments_.at(state, 0) == arguments_.at(state, 1);
  }

  void run(const StepState& state, int, int share, int shares) const override {
    int64_t total = planes_ * rows_;
    Range rows{0, total}, columns{0, columns_};
    if (shares > 1) {
      // Rows divide evenly enough where each thread has several of them; else columns do, if rows may be cut.
      bool by_rows = rows_whole_ || total >= 8 * shares || columns_ < 4 * kLanes * shares;
      if (by_rows)
        rows = runtime::share(total, share, shares);
      else
        columns = runtime::share(columns_, share, shares, columns_ >= 1024 * shares ? 4 * kLanes : kLanes);
    }
    if (rows.begin >= rows.end) return;
    if (columns.begin >= columns.end && !rows_whole_) return;  // a reduction over no columns has a result all the same

    const size_t count = arguments_.size();
    const int64_t *row_strides = arguments_.row_strides(), *column_strides = arguments_.column_strides();
    char** at = static_cast<char**>(alloca(2 * count * sizeof(char*)));
    char** plane_at = at + count;
    KernelFrame frame = frame_of(state, at);
    frame.columns = columns.end - columns.begin;
    frame.column_index = columns.begin;
    frame.scratch = scratch_bytes_ ? thread_scratch(scratch_bytes_) : nullptr;
    const LoadedKernel& kernel = streaming_ && results_aligned(state) ? *streaming_ : kernel_;
    frame.context = kernel.context;
    const int64_t plane = rows.begin ? rows.begin / rows_ : 0;  // short steps do not wait for a division
    PlaneWalk walk(outer_, arguments_, state, plane_at, plane);
    frame.outer_index = walk.index();
    int64_t in_plane = rows.begin - plane * rows_;
    for (int64_t row = rows.begin; row < rows.end; in_plane = 0) {
      frame.row_index = in_plane;
      frame.rows = std::min(rows_ - frame.row_index, rows.end - row);
      for (size_t i = 0; i < count; ++i)
        at[i] = plane_at[i] + frame.row_index * row_strides[i] + columns.begin * column_strides[i];
      if (transposed_.empty()) {
        kernel_.entry(&frame);
        row += frame.rows;
      } else {
        const int64_t rows_here = frame.rows;
        run_tiles(frame, at, kernel);
        row += rows_here;
      }
      if (row < rows.end) walk.next();
    }
    if (&kernel != &kernel_) _mm_sfence();
  }
  int64_t scratch_bytes(const StepState&) const override { return scratch_bytes_; }

 private:
  /// The frame's rows and columns in tiles, with what is dense along the rows transposed.
  void run_tiles(KernelFrame frame, char** at, const LoadedKernel& kernel) const {
    const int64_t rows = frame.rows, columns = frame.columns, row_index = frame.row_index,
                  column_index = frame.column_index;
    const size_t count = arguments_.size();
    const int64_t *row_strides = arguments_.row_strides(), *column_strides = arguments_.column_strides();
    char** tile_at = static_cast<char**>(alloca(count * sizeof(char*)));
    frame.buffers = tile_at;
    frame.row_strides = panel_strides_.data();
    auto tile = [&](int64_t row, int64_t column, int64_t most_rows, int64_t most_columns) {
      frame.rows = std::min(most_rows, rows - row);
      frame.columns = std::min(most_columns, columns - column);
      frame.row_index = row_index + row, frame.column_index = column_index + column;
      for (size_t i = 0; i < count; ++i) tile_at[i] = at[i] + row * row_strides[i] + column * column_strides[i];
      for (const Transposed& t : transposed_) {
        PackFrame pack{tile_at[t.argument],     frame.scratch + t.panel,    frame.rows,       frame.columns,
                       row_strides[t.argument], column_strides[t.argument], t.kernel->context};
        t.kernel->entry(&pack);
        tile_at[t.argument] = frame.scratch + t.panel;
      }
      kernel.entry(&frame);
    };
    if (&kernel == &kernel_) {
      for (int64_t row = 0; row < rows; row += kTransposedRows)
        for (int64_t column = 0; column < columns; column += panel_columns_)
          tile(row, column, kTransposedRows, panel_columns_);
      return;
    }
    // Along the lines that are transposed.
    for (int64_t column = 0; column < columns; column += kStreamedColumns)
      for (int64_t row = 0; row < rows; row += streamed_rows_) tile(row, column, streamed_rows_, kStreamedColumns);
  }

  void transpose(const LoopStep& step, const LoopConstants& constants, const BindContext& context) {
    const int64_t* row_strides = arguments_.row_strides();
    panel_strides_ = context.array<int64_t>(arguments_.size());
    std::copy_n(row_strides, arguments_.size(), panel_strides_.begin());
    panel_columns_ = constants.transposed_columns;
    const auto transposed = context.array<Transposed>(arguments_.size());
    size_t count = 0;
    for (size_t i = 0; i < constants.transposing.size(); ++i) {
      if (!constants.transposing[i]) continue;
      panel_strides_[i] = panel_columns_ * row_strides[i];
      transposed[count++] = {i, constants.transposing[i], scratch_bytes_};
      streamed_rows_ = std::clamp<int64_t>(kCacheLine / std::max<int64_t>(row_strides[i], 1), 1, streamed_rows_);
      // A panel's lines do not stand in the same sets of L1 as those of the next.
      scratch_bytes_ += kTransposedRows * panel_strides_[i] + 512;
    }
    transposed_ = transposed.first(count);
    if (constants.streaming && streams(step, context)) streaming_ = constants.streaming;
  }

  /// Whether the results are large, and their rows begin at whole lines.
  bool streams(const LoopStep& step, const BindContext& context) {
    const auto results = context.array<size_t>(arguments_.size());
    size_t count = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (step.arguments[i].read_only) continue;
      results[count++] = i;
      bytes += saturating_product(saturating_product(planes_, rows_), columns_ * arguments_.column_strides()[i]);
      for (size_t d = 0; d + 1 < arguments_.rank(); ++d)
        if (arguments_.stride(i, d) % kCacheLine != 0) return false;
    }
    results_ = results.first(count);
    return bytes >= kStreamedBytes;
  }
  bool results_aligned(const StepState& state) const {
    return std::all_of(results_.begin(), results_.end(), [&](size_t i) {
      return reinterpret_cast<uintptr_t>(arguments_.at(state, i)) % kCacheLine == 0;
    });
  }

  struct Transposed {
    size_t argument;
    const LoadedKernel* kernel;
    int64_t panel;  // where in the scratch memory
  };

  const bool rows_whole_;
  bool copies_;  // element by element to the same places
  const LoadedKernel* streaming_ = nullptr;
  std::span<const size_t> results_;   // arguments that are written, where it may stream
  std::span<int64_t> panel_strides_;  // row strides where the kernel reads panels
  std::span<const Transposed> transposed_;
  int64_t panel_columns_ = 0;
  int64_t streamed_rows_ = kTransposedRows;  // of a tile: a line of what is transposed
  int64_t scratch_bytes_ = 0;
};

}  // namespace

StepDriver* bind(const LoopStep& step, const Step& costs, const BindContext& context) {
  const LoopConstants& constants = context.constants([&] { return LoopConstants(step, costs, context); });
  if (constants.may_split)
    if (StepDriver* driver = bind_split_reduction(step, constants, context)) return driver;
  return context.make<LoopDriver>(step, constants, context);
}

}  // namespace ingot::runtime
