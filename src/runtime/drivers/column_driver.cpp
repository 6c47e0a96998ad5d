// Column steps: reductions along the rows, in the canonical order (blocks of 256 rows, a binary tree of blocks, 16
// lanes).
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/canonical_order.h"
#include "base/error.h"
#include "base/pieces.h"
#include "runtime/drivers/combine.h"
#include "runtime/drivers/drivers.h"

namespace ingot::runtime {
namespace {

using canonical::kBlock, canonical::kLanes;
constexpr int64_t kTileColumns = 4096;
constexpr int64_t kFewColumns = 128;  // which fill vectors badly, and calls of the kernel

std::vector<Argument> outs(const ColumnStep& step) {
  std::vector<Argument> outs;
  for (const ColumnStep::Result& r : step.results) outs.push_back(r.out);
  return outs;
}

struct ColumnConstants : PlaneStepConstants {
  ArgumentTable results;  // over [outer..., columns]
  std::vector<AccumulatorOps> ops;
  const bool positions, in_registers;
  bool ordered = false;  // sums and products of floats: their bits hang on the order of rows

  ColumnConstants(const ColumnStep& step, const Step& costs, const BindContext& context)
      : PlaneStepConstants(step.kernel, step.space, step.arguments, costs, context),
        results({}, outs(step), space.size() - 1),
        positions(step.positions),
        in_registers(step.in_registers) {
    for (const ColumnStep::Result& r : step.results) {
      ops.push_back(accumulator_ops(r.combiner, r.type));
      ordered = ordered || r.combiner == Combiner::sum || r.combiner == Combiner::prod;
    }
  }
};

class ColumnDriver final : public PlaneDriver {
 public:
  ColumnDriver(const ColumnConstants& constants, const BindContext& context)
      : PlaneDriver(constants, context),
        results_(constants.results, context),
        ops_(constants.ops),
        in_registers_(constants.in_registers),
        lanes_(lanes_for(constants, rows_)) {
    const int64_t *row_strides = arguments_.row_strides(), *column_strides = arguments_.column_strides();
    // Sixteen rows that follow each other in memory are one of sixteen times the columns.
    side_by_side_ = !constants.positions && !in_registers_ && columns_ > 0 && columns_ < kFewColumns;
    if (lanes_ < kLanes && (columns_ >= kLanes || rows_ < kLanes)) side_by_side_ = false;
    if (side_by_side_) lanes_ = kLanes;
    for (size_t i = 0; i < arguments_.size(); ++i)
      side_by_side_ = side_by_side_ && row_strides[i] == columns_ * column_strides[i];
    if (side_by_side_) {
      wide_strides_ = context.array<int64_t>(arguments_.size());
      std::transform(row_strides, row_strides + arguments_.size(), wide_strides_.begin(),
                     [](int64_t stride) { return kLanes * stride; });
    }
    divide(constants, context);
  }

  void run(const StepState& state, int phase, int share, int shares) const override {
    const int64_t units = planes_ * tiles_;
    if (phase == 0 && chunks_ > 1) return reduce_chunks(state, runtime::share(units * chunks_, share, shares));
    Range range = runtime::share(units, share, shares);
    if (blocks_ == 1 && tiles_ == 1) return reduce_planes(state, range);
    for (int64_t unit = range.begin; unit < range.end; ++unit) {
      if (chunks_ == 1) {
        finish(state, unit, reduce_blocks(state, unit, 0, blocks_));
        continue;
      }
      char* parts = shared(state) + unit * chunks_ * part_bytes_;
      pair_up(parts, chunks_, part_bytes_,
              [&](char* a, const char* b) { combine(a, b, lanes_ * width(unit), width(unit)); });
      finish(state, unit, parts);
    }
  }
  int64_t scratch_bytes(const StepState&) const override { return bytes_for(std::min(chunk_blocks_, blocks_)); }

 private:
  /// Where the order of rows shows in no bit one lane does; rows fewer than lanes leave those without one out, whose
  /// identities change nothing.
  static int64_t lanes_for(const ColumnConstants& constants, int64_t rows) {
    if (constants.in_registers) return kLanes;
    const auto used = static_cast<uint64_t>(std::clamp<int64_t>(rows, 1, kLanes));
    return constants.ordered ? static_cast<int64_t>(std::bit_ceil(used)) : 1;
  }
  int64_t pointer_bytes() const { return (2 * static_cast<int64_t>(arguments_.size() * sizeof(char*)) + 63) / 64 * 64; }
  /// Of scratch, to reduce so many blocks.
  int64_t bytes_for(int64_t blocks) const {
    return pointer_bytes() + (std::bit_width(static_cast<uint64_t>(blocks)) + 1) * call_bytes_;
  }

  // Work is cut into planes, tiles of columns, and where these are few into chunks of 2^i blocks: whole subtrees of the
  // canonical tree, so the cut shows in no bit.
  void divide(const ColumnConstants& constants, const BindContext& context) {
    blocks_ = ceil_div(rows_, kBlock);
    tile_columns_ = std::min(columns_, kTileColumns);
    tiles_ = columns_ ? ceil_div(columns_, tile_columns_) : 0;
    chunk_blocks_ = std::max<int64_t>(blocks_, 1);
    int64_t threads = std::min(useful_threads, context.threads);
    int64_t units = planes_ * tiles_;
    if (threads > 1 && units > 0 && units % threads != 0 && units < 4 * threads) {
      int64_t cuts = ceil_div(4 * threads, units);
      const auto fitting = static_cast<uint64_t>(std::max<int64_t>(blocks_ / cuts, 1));
      const auto chunk = static_cast<int64_t>(std::bit_floor(fitting));
      // Rows rather than columns, if that is even: a thread then reads what lies together, and often what it wrote.
      if (int64_t most = ceil_div(ceil_div(blocks_, chunk), threads) * chunk * kBlock;
          4 * most * threads <= 5 * rows_) {
        chunk_blocks_ = chunk;
      } else if (!side_by_side_) {
        tile_columns_ = std::max<int64_t>(ceil_div(columns_ / cuts, 64), 1) * 64;
        tile_columns_ = std::min(tile_columns_, columns_);
        tiles_ = ceil_div(columns_, tile_columns_);
      }
    }
    chunks_ = std::max<int64_t>(ceil_div(blocks_, chunk_blocks_), 1);
    for (const AccumulatorOps& ops : ops_) element_bytes_ += ops.element_bytes();
    part_bytes_ = (kLanes * tile_columns_ * element_bytes_ + 63) / 64 * 64;
    call_bytes_ = part_bytes_ + (constants.scratch_bytes + 63) / 64 * 64;
    if (chunks_ > 1) {
      shared_bytes = planes_ * tiles_ * chunks_ * part_bytes_;
      phases = 2;
    }
    useful_threads = static_cast<int>(std::clamp<int64_t>(planes_ * tiles_ * chunks_, 1, useful_threads));
  }

  // One call a plane.
  void reduce_planes(const StepState& state, Range planes) const {
    if (planes.begin >= planes.end) return;
    const int64_t pointers = static_cast<int64_t>((arguments_.size() + results_.size()) * sizeof(char*) + 63) / 64 * 64;
    char* scratch = thread_scratch(pointers + call_bytes_);
    char** at = reinterpret_cast<char**>(scratch);
    char** results_at = at + arguments_.size();
    KernelFrame frame = frame_of(state, at);
    frame.row_index = frame.column_index = 0;
    set_rows(frame, rows_, columns_);
    frame.scratch = scratch + pointers;
    PlaneWalk walk(outer_, arguments_, state, at, planes.begin),
        results(outer_, results_, state, results_at, planes.begin);
    frame.outer_index = walk.index();
    for (int64_t plane = planes.begin;;) {
      kernel_.entry(&frame);
      finish(frame.scratch, columns_, 0, results_at);
      if (++plane == planes.end) return;
      walk.next(), results.next();
    }
  }

  void put(size_t result, const char* from, int64_t columns, char* to) const {
    const int64_t bytes = ops_[result].result_bytes(), stride = results_.column_strides()[result];
    if (stride == bytes) {
      std::memcpy(to, from, columns * bytes);
    } else {
      for (int64_t c = 0; c < columns; ++c) std::memcpy(to + c * stride, from + c * bytes, bytes);
    }
  }

  void reduce_chunks(const StepState& state, Range items) const {
    for (int64_t item = items.begin; item < items.end; ++item) {
      int64_t first = item % chunks_ * chunk_blocks_;
      char* part = reduce_blocks(state, item / chunks_, first, std::min(first + chunk_blocks_, blocks_));
      std::memcpy(shared(state) + item * part_bytes_, part, part_bytes_);
    }
  }

  /// So many rows of a block.
  void set_rows(KernelFrame& frame, int64_t rows, int64_t columns) const {
    const bool wide = side_by_side_ && rows % kLanes == 0;
    frame.lanes = wide || joins_lanes() ? 1 : lanes_;
    frame.columns = wide ? kLanes * columns : columns;
    frame.row_strides = wide ? wide_strides_.data() : arguments_.row_strides();
    frame.rows = wide ? rows / kLanes : rows;
  }

  /// Of one block the kernel itself gives the results.
  bool joins_lanes() const { return in_registers_ && blocks_ == 1; }

  int64_t width(int64_t unit) const { return std::min(tile_columns_, columns_ - unit % tiles_ * tile_columns_); }

  // Canonical combination of blocks [first, last) of one unit: a binary counter whose digits are subtrees. The result
  // lies in this thread's scratch.
  char* reduce_blocks(const StepState& state, int64_t unit, int64_t first, int64_t last) const {
    const size_t count = arguments_.size();
    const int64_t *row_strides = arguments_.row_strides(), *column_strides = arguments_.column_strides();
    char* scratch = thread_scratch(bytes_for(last - first));
    char** at = reinterpret_cast<char**>(scratch);
    char** plane_at = at + count;
    char* stack = scratch + pointer_bytes();
    int64_t column = unit % tiles_ * tile_columns_, columns = width(unit);

    KernelFrame frame = frame_of(state, at);
    frame.column_index = column;
    PlaneWalk walk(outer_, arguments_, state, plane_at, unit / tiles_);
    frame.outer_index = walk.index();

    int64_t depth = 0;
    auto pop = [&] {
      --depth;
      combine(stack + (depth - 1) * call_bytes_, stack + depth * call_bytes_, lanes_ * columns, columns);
    };
    for (int64_t block = first; block < last; ++block) {
      frame.row_index = block * kBlock;
      set_rows(frame, std::min(kBlock, rows_ - frame.row_index), columns);
      frame.scratch = stack + depth * call_bytes_;
      for (size_t i = 0; i < count; ++i)
        at[i] = plane_at[i] + frame.row_index * row_strides[i] + column * column_strides[i];
      kernel_.entry(&frame);
      ++depth;
      for (int64_t done = block - first + 1; done % 2 == 0; done /= 2) pop();
    }
    while (depth > 1) pop();
    return stack;
  }

  /// Of a reduction's part, which holds the lanes of these columns.
  int64_t lane_elements(int64_t columns) const { return round_up(lanes_ * columns, kLanes); }

  // a = a combined with b, over the first `count` elements of every reduction.
  void combine(char* a, const char* b, int64_t count, int64_t columns) const {
    int64_t offset = 0;
    for (const AccumulatorOps& ops : ops_) {
      int64_t indices = offset + lane_elements(columns) * ops.value_bytes;
      ops.combine(a + offset, b + offset, a + indices, b + indices, count);
      offset += lane_elements(columns) * ops.element_bytes();
    }
  }

  // The lanes of a part become the results of the unit's columns.
  void finish(const StepState& state, int64_t unit, char* part) const {
    int64_t column = unit % tiles_ * tile_columns_, columns = width(unit);
    std::vector<char*> at(results_.size());
    PlaneWalk walk(outer_, results_, state, at.data(), unit / tiles_);
    finish(part, columns, column, at.data());
  }
  void finish(char* part, int64_t columns, int64_t column, char* const* at) const {
    int64_t offset = 0;
    for (size_t r = 0; r < ops_.size(); ++r) {
      const AccumulatorOps& ops = ops_[r];
      char* values = part + offset;
      char* indices = values + lane_elements(columns) * ops.value_bytes;
      if (blocks_ == 0)
        for (int64_t c = 0; c < columns; ++c) ops.empty(values + c * ops.value_bytes, indices + c * 8);
      for (int64_t half = blocks_ && !joins_lanes() ? lanes_ / 2 : 0; half; half /= 2)
        ops.combine(values, values + half * columns * ops.value_bytes, indices, indices + half * columns * 8,
                    half * columns);
      put(r, ops.indexed ? indices : values, columns, at[r] + column * results_.column_strides()[r]);
      offset += lane_elements(columns) * ops.element_bytes();
    }
  }

  BoundArguments results_;
  std::span<const AccumulatorOps> ops_;
  const bool in_registers_;
  int64_t lanes_;
  bool side_by_side_ = false;
  std::span<int64_t> wide_strides_;
  int64_t blocks_ = 0, tiles_ = 0, tile_columns_ = 0, chunks_ = 1, chunk_blocks_ = 1;
  int64_t element_bytes_ = 0, part_bytes_ = 0,
          call_bytes_ = 0;  // of an element, of a part, of a part with kernel scratch
};

}  // namespace

StepDriver* bind(const ColumnStep& step, const Step& costs, const BindContext& context) {
  const ColumnConstants& constants = context.constants([&] { return ColumnConstants(step, costs, context); });
  return context.make<ColumnDriver>(constants, context);
}

}  // namespace ingot::runtime
