// Loop steps that reduce few, long rows: their reductions are split, a phase at a time. A piece is 2^i blocks of 256
// columns, a whole subtree of the canonical tree, so the cut shows in no bit. Where long rows share an operand (a
// matrix times a vector), pieces of all rows follow each other, so that its piece is read from memory once.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/canonical_order.h"
#include "base/error.h"
#include "base/pieces.h"
#include "runtime/cpu.h"
#include "runtime/drivers/combine.h"
#include "runtime/drivers/drivers.h"

namespace ingot::runtime {
namespace {

using canonical::kBlock, canonical::kLanes;
constexpr int64_t kLeastBlocks = 16;             // of a piece
constexpr int64_t kMostAccumulators = 64 << 20;  // bytes; rows may be one row, expanded
constexpr int64_t kWait = 8;  // threads wait for each other between phases: so much more memory pays for one

class SplitReductionDriver final : public PlaneDriver {
 public:
  SplitReductionDriver(const LoopStep& step, const PlaneStepConstants& constants, int64_t threads,
                       const BindContext& context)
      : PlaneDriver(constants, context),
        split_(step.split),
        ops_(context.array<AccumulatorOps>(split_.reductions.size())) {
    for (size_t r = 0; r < ops_.size(); ++r) {
      ops_[r] = accumulator_ops(split_.reductions[r].combiner, split_.reductions[r].type);
      accumulator_bytes_ += kLanes * ops_[r].element_bytes();
    }
    accumulator_bytes_ = round_up(accumulator_bytes_, kCacheLine);
    divide(threads);
    if (!splits()) return;
    const int64_t columns = ceil_div(std::min(piece_columns_, columns_), kLanes) * kLanes;
    for (int64_t bytes : step.local_bytes) local_bytes_ += columns * bytes;
    call_bytes_ = round_up(local_bytes_ + constants.scratch_bytes, kCacheLine);
    phases = split_.phases + split_.stores_rows;
    const int64_t all_pieces = saturating_product(saturating_product(planes_, rows_), pieces_);
    shared_bytes = saturating_product(all_pieces, accumulator_bytes_ + (local_bytes_ ? call_bytes_ : 0));
    useful_threads = static_cast<int>(std::min<int64_t>(useful_threads, all_pieces));
  }
  bool splits() const { return pieces_ > 1; }

  void run(const StepState& state, int phase, int share, int shares) const override {
    const bool last = phase == split_.phases;  // what is left is to be done once a row
    const int64_t pieces = last ? 1 : pieces_;
    const Range range = runtime::share(all_rows() * pieces, share, shares);
    const size_t count = arguments_.size();
    const int64_t *row_strides = arguments_.row_strides(), *column_strides = arguments_.column_strides();
    char* memory = thread_scratch(scratch_bytes(state));
    char** at = reinterpret_cast<char**>(memory);
    char** row_at = at + count;
    char* accumulators = memory + pointer_bytes();
    char* rest = accumulators + accumulator_bytes_;

    KernelFrame frame = frame_of(state, at);
    frame.rows = 1;
    frame.accumulators = accumulators;
    frame.first_phase = phase;
    if (!last) frame.last_phase = phase;
    int64_t merged = -1;  // row
    for (int64_t item = range.begin; item < range.end; ++item) {
      const auto [row, piece] = row_piece(item, pieces);
      if (row != merged) merge(state, row, phase, accumulators, rest);
      merged = row;
      PlaneWalk walk(outer_, arguments_, state, row_at, row / rows_);
      frame.outer_index = walk.index();
      frame.row_index = row % rows_;
      frame.column_index = piece * piece_columns_;
      frame.columns = last ? columns_ : std::min(piece_columns_, columns_ - frame.column_index);
      frame.scratch = local_bytes_ && !last ? locals(state, row, piece) : rest;
      for (size_t i = 0; i < count; ++i)
        at[i] = row_at[i] + frame.row_index * row_strides[i] + frame.column_index * column_strides[i];
      kernel_.entry(&frame);
      if (last) continue;
      char* to = accumulators_of(state, row, piece);
      for_each_reduction([&](size_t r, int64_t offset, int64_t bytes) {
        if (static_cast<int>(split_.reductions[r].phase) == phase)
          std::memcpy(to + offset, accumulators + offset, bytes);
      });
    }
  }
  int64_t scratch_bytes(const StepState&) const override {
    return pointer_bytes() + accumulator_bytes_ + std::max(pieces_ * accumulator_bytes_, call_bytes_);
  }

 private:
  int64_t pointer_bytes() const {
    return round_up(2 * static_cast<int64_t>(arguments_.size() * sizeof(char*)), kCacheLine);
  }
  int64_t all_rows() const { return planes_ * rows_; }
  char* accumulators_of(const StepState& state, int64_t row, int64_t piece) const {
    return shared(state) + (row * pieces_ + piece) * accumulator_bytes_;
  }
  // Of a piece: they last from phase to phase, so they belong to no thread.
  char* locals(const StepState& state, int64_t row, int64_t piece) const {
    return shared(state) + all_rows() * pieces_ * accumulator_bytes_ + (row * pieces_ + piece) * call_bytes_;
  }

  struct RowPiece {
    int64_t row, piece;
  };
  RowPiece row_piece(int64_t item, int64_t pieces) const {
    if (!rows_share_) return {item / pieces, item % pieces};
    const int64_t plane = item / (pieces * rows_), in_plane = item % (pieces * rows_);
    return {plane * rows_ + in_plane % rows_, in_plane / rows_};
  }

  /// Calls f(number, offset in the accumulators of a piece, bytes there).
  template <class F>
  void for_each_reduction(F f) const {
    int64_t offset = 0;
    for (size_t r = 0; r < ops_.size(); ++r) {
      const int64_t bytes = kLanes * ops_[r].element_bytes();
      f(r, offset, bytes);
      offset += bytes;
    }
  }

  void divide(int64_t threads) {
    const int64_t rows = saturating_product(planes_, rows_);
    piece_columns_ = columns_;
    if (share_in_cache()) return;
    if (threads == 1 || rows == 0 || rows % threads == 0 || rows >= 4 * threads) return;
    const int64_t blocks = ceil_div(columns_, kBlock), cuts = ceil_div(4 * threads, rows);
    const auto fitting = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(blocks / cuts)));
    piece_columns_ = std::max(fitting, kLeastBlocks) * kBlock;
    pieces_ = ceil_div(columns_, piece_columns_);
  }

  /// Pieces as long as fit in the cache of what all rows read, if a row of that does not.
  bool share_in_cache() {
    int64_t bytes = 0;  // a column
    for (size_t i = 0; i < arguments_.size(); ++i)
      if (arguments_.row_strides()[i] == 0) bytes += std::abs(arguments_.column_strides()[i]);
    const int64_t cache = cache_sizes().l2 / 2;
    if (split_.phases > 1 || rows_ < 2 || bytes == 0 || columns_ <= cache / bytes) return false;
    const auto blocks = static_cast<uint64_t>(std::max<int64_t>(cache / 2 / bytes / kBlock, 1));
    const int64_t columns = static_cast<int64_t>(std::bit_floor(blocks)) * kBlock, pieces = ceil_div(columns_, columns);
    const int64_t parts = saturating_product(saturating_product(planes_, rows_), pieces);
    if (saturating_product(parts, accumulator_bytes_) > kMostAccumulators) return false;
    piece_columns_ = columns, pieces_ = pieces;
    rows_share_ = true;
    return true;
  }

  /// The whole row's lanes of what the phases before this one reduced. `room` holds one accumulator a piece.
  void merge(const StepState& state, int64_t row, int phase, char* accumulators, char* room) const {
    for_each_reduction([&](size_t r, int64_t offset, int64_t bytes) {
      if (static_cast<int>(split_.reductions[r].phase) >= phase) return;
      for (int64_t i = 0; i < pieces_; ++i)
        std::memcpy(room + i * bytes, accumulators_of(state, row, i) + offset, bytes);
      const int64_t indices = kLanes * ops_[r].value_bytes;
      pair_up(room, pieces_, bytes,
              [&](char* a, const char* b) { ops_[r].combine(a, b, a + indices, b + indices, kLanes); });
      std::memcpy(accumulators + offset, room, bytes);
    });
  }

  const LoopStep::SplitReduction& split_;  // of the program
  std::span<AccumulatorOps> ops_;
  int64_t pieces_ = 1, piece_columns_ = 0;
  bool rows_share_ = false;  // an operand, whose pieces stay in the cache
  int64_t accumulator_bytes_ = 0, local_bytes_ = 0,
          call_bytes_ = 0;  // of a piece; the last with the kernel's own scratch
};

}  // namespace

StepDriver* bind_split_reduction(const LoopStep& step, const PlaneStepConstants& constants,
                                 const BindContext& context) {
  const int64_t useful = threads_for(context.value(constants.bytes) / kWait, context.value(constants.operations));
  const int64_t threads = std::min<int64_t>(useful, context.threads);
  if (threads == 1 && step.split.phases > 1) return nullptr;  // most often; see share_in_cache
  auto* driver = context.make<SplitReductionDriver>(step, constants, threads, context);
  return driver->splits() ? driver : nullptr;
}

}  // namespace ingot::runtime
