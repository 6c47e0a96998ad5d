// Loops, from the outside (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, with A
// unpacked): groups of panels, blocks of rows, stretches of k, in which a block of rows keeps its part of A in L2,
// panels, blocks of k, tiles of rows. Each output sums its k blocks in order, so no division of M, N, K, batch or
// threads shows in the result.
#include "runtime/drivers/product_driver.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/cpu.h"
#include "runtime/drivers/product_packing.h"
#include "runtime/drivers/product_row.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kGroupBytes = 16 << 20;   // of panels packed for one call
constexpr int64_t kStretch = 1024;          // of k, at most, where there are several
constexpr int64_t kRawBytes = 64 << 10;     // of sums that wait for the next stretch
constexpr int64_t kTilesAtOnce = 8;         // by an epilogue, while they are in L1
constexpr int64_t kGrainBytes = 256 << 10;  // of B: a product of few rows is bound by reading it

/// A thread that multiplies by the same packed panels as the last time (a recurrence) takes them the other way round:
/// its caches hold those that came last. Results do not depend on it.
bool other_way_round(const char* panels) {
  constinit static thread_local uintptr_t last = 0;  // their address, which is even; the lowest bit: backwards
  const auto at = reinterpret_cast<uintptr_t>(panels);
  last = last == at ? at | 1 : at;
  return last & 1;
}

}  // namespace

// The slowest thread shall have the least to do: tiles, and packing where each cut packs for itself.
void ProductDriver::divide(const BindContext& context, int64_t packing, bool may_split_k) {
  const int64_t m = product_.sizes.m, n = product_.sizes.n, k = product_.sizes.k;
  int64_t operations = saturating_product(saturating_product(2 * product_.batches, m), saturating_product(n, k));
  int64_t b_bytes =
      saturating_product(saturating_product(product_.batches, product_.element), saturating_product(n, k));
  const int64_t grain = product_.by_channels() ? kChannelGrain : kProductGrain;
  int64_t useful = std::max(operations / grain, b_bytes / kGrainBytes);
  int64_t most = saturating_product(product_.batches, saturating_product(product_.rows.count, product_.panels.count));
  useful_threads = static_cast<int>(std::clamp<int64_t>(std::min(useful, most), 1, kMostThreads));
  if (may_split_k) split_ = ProductSplit(product_, useful, context.threads);
  if (split_) {
    shared_bytes = split_.bytes(product_);
    phases = 2;
    useful_threads = static_cast<int>(
        std::min<int64_t>(std::min<int64_t>(useful, kMostThreads), product_.batches * split_.splits()));
    return;
  }
  const int64_t threads = std::min(useful_threads, context.threads);
  if (threads == 1) return;
  double least = 0;
  for (int64_t panel_cuts = 1; panel_cuts <= std::min(threads, product_.panels.count); ++panel_cuts) {
    int64_t vectors = 0;  // of the widest cut
    for (int64_t cut = 0; cut < panel_cuts; ++cut) {
      const Range panels = runtime::share(product_.panels.count, static_cast<int>(cut), static_cast<int>(panel_cuts));
      vectors = std::max(vectors, product_.panels.begin(panels.end) - product_.panels.begin(panels.begin));
    }
    for (int64_t row_cuts = 1; row_cuts <= std::min(threads, product_.rows.count); ++row_cuts) {
      double work =
          static_cast<double>(vectors) * static_cast<double>(ceil_div(product_.rows.count, row_cuts) + packing);
      double cost = static_cast<double>(ceil_div(product_.batches * panel_cuts * row_cuts, threads)) * work;
      // Among equals, what reads least: each row cut reads all of B's panels again, each panel cut all of A.
      cost *= 1 + 1e-3 * static_cast<double>((row_cuts - 1) * n + (panel_cuts - 1) * m) / static_cast<double>(n + m);
      if (least != 0 && cost >= least) continue;
      least = cost;
      row_cuts_ = static_cast<int>(row_cuts), panel_cuts_ = static_cast<int>(panel_cuts);
    }
  }
}

ProductDriver::Part ProductDriver::part(int64_t number) const {
  if (split_) return {{0, product_.rows.count}, {0, product_.panels.count}, split_.part_of_k(product_, number)};
  const int cut = static_cast<int>(number);
  return {runtime::share(product_.rows.count, cut % row_cuts_, row_cuts_),
          runtime::share(product_.panels.count, cut / row_cuts_, panel_cuts_),
          {0, product_.sizes.k}};
}

void ProductDriver::run(const StepState& state, int phase, int share, int shares) const {
  if (split_ && phase == 1) return split_.add_up(product_, result_, state, shared(state), share, shares);
  const Range range = runtime::share(product_.batches * parts(), share, shares);
  for (int64_t item = range.begin; item < range.end; ++item) multiply(state, item / parts(), part(item % parts()));
}

int64_t ProductDriver::scratch_bytes(const StepState& state) const {
  if (product_.batches == 0) return 0;
  const bool packed = packed_panels(state, 0);
  if (!packed && !split_ && reads_b_as_it_lies(product_))
    return ProductRun::scratch_bytes(product_, rooms_of_row(product_));
  int64_t most = split_ ? ProductRun::scratch_bytes(product_, ProductSplit::rooms(product_)) : 0;
  for (int64_t number = 0; number < parts(); ++number)
    if (const Part p = part(number); p.rows.begin < p.rows.end && p.panels.begin < p.panels.end)
      most = std::max(most, ProductRun::scratch_bytes(product_, blocking(p, packed).rooms));
  return most;
}

ProductDriver::Blocking ProductDriver::blocking(const Part& part, bool packed) const {
  Blocking b{};
  const int64_t k_size = part.k.end - part.k.begin, k_padded = round_up(k_size, 2);
  const int64_t row_tiles = part.rows.end - part.rows.begin;
  const int64_t rows = product_.rows.begin(part.rows.end) - product_.rows.begin(part.rows.begin);
  // A block of rows has a third of L2 for its part of A, or half of a small L2. Where all of k leaves room for few
  // rows, it has stretches of nearly equal size, if B is packed before and A read as it lies.
  const int64_t l2 = cache_sizes().l2, room_of_a = std::max<int64_t>(l2 / 3, std::min<int64_t>(l2 / 2, 256 << 10));
  auto fitting = [&](int64_t part_of_k) {
    return room_of_a / std::max<int64_t>(product_.a_bytes * part_of_k / std::max<int64_t>(product_.sizes.k, 1), 1);
  };
  b.stretch = k_size;
  if (packed && !product_.packs_a && !product_.addresses && !split_ && k_size > kStretch && fitting(k_size) < rows)
    b.stretch = round_up(ceil_div(k_size, ceil_div(k_size, kStretch)), kBlock);
  const int64_t most_rows = std::max(fitting(b.stretch), 4 * (product_.rows.each + 1));
  b.tiles = ceil_div(row_tiles, ceil_div(rows, most_rows));
  b.one_block = b.tiles >= row_tiles;
  // Where all of B stays in L2, what comes from afar is A: the first panel's tiles fetch the rows of the next ones.
  const int64_t columns = kVector * (product_.panels.begin(part.panels.end) - product_.panels.begin(part.panels.begin));
  b.fetches_a = product_.rows_of_a == RowsOfA::along && !product_.packs_a && !split_ &&
                product_.a_row == product_.sizes.k * product_.a_element &&
                saturating_product(columns, k_size * product_.element) <= l2 / 3;
  // Panels packed here are used by one block of rows at once, or kept for all blocks of rows a group at a time.
  b.wide_panels = product_.calls->widen_rows && !packed && product_.b_column == product_.element &&
                  product_.rows.count >= MatmulStep::kManyTiles;
  b.panel_bytes = kVector * product_.max_vectors * (b.one_block ? std::min(kBlock, k_padded) : k_padded) *
                  (b.wide_panels ? product_.c_element : product_.element);
  b.group = part.panels.end - part.panels.begin;
  if (!packed)
    b.group = b.one_block ? 1 : std::clamp<int64_t>(kGroupBytes / std::max<int64_t>(b.panel_bytes, 1), 1, b.group);

  const int64_t block_rows = std::min(b.tiles * (product_.rows.each + 1), rows);
  // What one block of k sums up is finished before the next tiles are: they take its place.
  const int64_t raw_rows =
      product_.one_block_of_k() ? std::min(kTilesAtOnce * product_.max_rows, block_rows) : block_rows;
  const int64_t raw_bytes =
      product_.has_epilogue() ? raw_rows * kVector * product_.max_vectors * product_.c_element : 0;
  if (b.stretch < k_size) {  // the sums of all panels of a group wait
    b.raw_bytes = raw_bytes;
    if (raw_bytes) b.group = std::clamp<int64_t>(kRawBytes / raw_bytes, 1, b.group);
  }
  // Lines of packed A start at differing sets of the cache.
  const int64_t packed_lines = product_.a_across() ? block_rows : k_size;
  b.packed_line = (round_up(packed_lines * product_.a_element, 64) / 64 | 1) * 64;
  b.rooms = {.panels = packed ? 0 : b.group * b.panel_bytes,
             .a = !product_.packs_a      ? 0
                  : product_.packs_tiles ? block_rows * k_size * product_.a_element
                                         : (product_.a_across() ? k_size : block_rows) * b.packed_line,
             .addresses = b.tiles * address_bytes(),
             .c = b.stretch < k_size ? b.group * raw_bytes : raw_bytes};
  b.few_rows = packed && !split_ && row_tiles == 1 && rows <= product_.whole_k_rows && k_size > 0;
  if (b.few_rows && !product_.calls->side_by_side.empty()) b.rooms.c *= product_.calls->side_by_side.front().panels;
  return b;
}

void ProductDriver::multiply(const StepState& state, int64_t batch, const Part& part) const {
  const Range row_tiles = part.rows, panels = part.panels, k = part.k;
  if (row_tiles.begin >= row_tiles.end || panels.begin >= panels.end) return;
  const char* packed = packed_panels(state, batch);
  if (!packed && !split_ && reads_b_as_it_lies(product_)) return multiply_row(product_, result_, state, batch, panels);
  const int64_t k_size = k.end - k.begin;
  const bool epilogue = product_.has_epilogue();
  const Blocking blocking = this->blocking(part, packed);
  const int64_t block_tiles = blocking.tiles, group = blocking.group, panel_bytes = blocking.panel_bytes,
                packed_line = blocking.packed_line;
  const bool one_block = blocking.one_block, wide_panels = blocking.wide_panels;
  const int64_t b_element = wide_panels ? product_.c_element : product_.element;
  int64_t a_row = product_.packs_a ? packed_line : product_.a_row, a_step = product_.a_element;
  if (product_.packs_tiles)
    a_row = k_size * product_.a_element;
  else if (product_.a_across())
    a_row = product_.a_element, a_step = product_.packs_a ? packed_line : product_.a_column;
  const ProductRun run(product_, state, batch, blocking.rooms);
  const ProductRun::Scratch& scratch = run.scratch;
  const char* a = a_matrix(state, batch, scratch.at[0]);
  const char* b = packed ? nullptr : b_matrix(scratch.at[1], scratch.b);
  const char* packed_end = packed ? packed + product_.packed_bytes() : nullptr;
  const bool backwards = packed && other_way_round(packed + product_.panel_offset(panels.begin));
  if (blocking.few_rows) {
    const char* rows = a + product_.rows.begin(row_tiles.begin) * product_.a_row;
    if (product_.packs_a) {
      pack_a(product_, rows, scratch.a, product_.rows.size(row_tiles.begin), k_size, packed_line);
      rows = scratch.a;
    }
    return few_rows(run, part, rows, a_row, packed, backwards);
  }

  const int64_t panel_count = panels.end - panels.begin;
  auto panel_at = [&](int64_t at) { return backwards ? panels.end - 1 - at : panels.begin + at; };
  for (int64_t group_begin = 0; group_begin < panel_count; group_begin += group) {
    const int64_t group_end = std::min(group_begin + group, panel_count);
    for (int64_t tile = row_tiles.begin; tile < row_tiles.end; tile += block_tiles) {
      Block block{};
      const Range tiles{tile, std::min(tile + block_tiles, row_tiles.end)};
      block.tiles = tiles.end - tiles.begin, block.walk = product_.walk_rows(tiles);
      block.row = block.walk.begin(), block.rows = product_.rows.begin(tiles.end) - block.row;
      block.a_row = a_row, block.a_step = a_step;
      const char* a_block = a + block.row * product_.a_row;
      if (product_.packs_tiles) {
        pack_tiles(product_, a_block + k.begin * product_.a_column, scratch.a, block.walk, block.tiles, k_size);
        a_block = scratch.a;
      } else if (product_.packs_a) {
        pack_a(product_, a_block + k.begin * product_.a_column, scratch.a, block.rows, k_size, packed_line);
        a_block = scratch.a - k.begin * a_step;
      }
      if (product_.addresses) {
        list_rows(a, tiles, scratch.addresses);
        a_block = reinterpret_cast<const char*>(scratch.addresses);
      }
      Range stretch{k.begin, k.begin};
      do {
        stretch = {stretch.end, std::min(stretch.end + blocking.stretch, k.end)};
        for (int64_t at = group_begin; at < group_end; ++at) {
          block.panel = panel_at(at);
          const int64_t width = product_.panel_width(block.panel);
          block.c = epilogue ? scratch.c + (at - group_begin) * blocking.raw_bytes
                             : scratch.at[2] + block.row * product_.c_row +
                                   product_.panel_column(block.panel) * product_.c_element;
          block.c_stride = epilogue ? width * product_.c_element : product_.c_row;
          char* room = scratch.panels + (at - group_begin) * panel_bytes;
          if (k_size == 0) {
            for (int64_t i = 0; i < block.rows; ++i)
              std::memset(block.c + i * block.c_stride, 0, product_.panel_columns(block.panel) * product_.c_element);
            if (epilogue) result_.finish(run, {block.panel, block.row, block.rows, block.c, block.c_stride});
          }
          for (block.k = stretch.begin; block.k < stretch.end; block.k += block.k_count) {
            block.k_count = std::min(kBlock, stretch.end - block.k), block.k_before = block.k - k.begin;
            if (split_) {
              block.c_stride = split_.row_stride();
              block.c = split_.accumulators(shared(state), batch, block.k) + block.row * block.c_stride +
                        product_.panel_column(block.panel) * product_.c_element;
            }
            const bool last_k = block.k + block.k_count >= stretch.end;
            const int64_t bytes = block.k_count * width * b_element;
            char* own = room + (one_block ? 0 : (block.k - k.begin) * width * b_element);
            const char* b_block = own;
            Ahead next;
            if (packed) {
              auto block_of = [&](int64_t panel, int64_t from) {
                return packed + product_.panel_offset(panel) + from * product_.panel_width(panel) * product_.element;
              };
              b_block = block_of(block.panel, block.k);
              // What comes next in time: mostly what comes next in memory.
              int64_t next_at = at, next_k = block.k + block.k_count;
              if (last_k && ++next_at < group_end)
                next_k = stretch.begin;
              else if (last_k && stretch.end < k.end)
                next_at = group_begin, next_k = stretch.end;
              else if (last_k)
                next_k = k.begin;
              const char* following = next_at < panel_count ? block_of(panel_at(next_at), next_k) : packed_end;
              if (following + bytes <= packed_end) next = Ahead::lines(following, bytes);
            } else {
              const int64_t next_k = last_k ? k.begin : block.k + block.k_count, next_at = at + last_k;
              if (tile == row_tiles.begin) {
                const int64_t k_end = block.k + block.k_count;
                wide_panels ? widen_rows(product_, b, block.panel, block.k, k_end, own)
                            : pack_panel(b, block.panel, block.k, k_end, own);
                if (next_at < panel_count)
                  next = panel_source(b, panel_at(next_at), next_k, std::min(next_k + kBlock, k.end));
              } else if (next_at < group_end) {
                next = Ahead::lines(last_k ? room + panel_bytes : own + bytes, bytes);
              }
            }
            if (blocking.fetches_a && at == group_begin && block.k == k.begin)
              next = Ahead::lines(a_block + product_.rows.each * a_row, block.rows * a_row);
            const bool widens = !wide_panels && product_.calls->widen && block.tiles >= MatmulStep::kManyTiles;
            if (widens) {
              widen(product_, b_block, scratch.wide, block.k_count, width);
              b_block = scratch.wide;
            }
            tile_rows(run, block, wide_panels || widens ? product_.calls->wide_tiles : product_.calls->tiles,
                      product_.addresses || product_.packs_tiles ? a_block : a_block + block.k * a_step, b_block, next);
          }
        }
      } while (stretch.end < k.end);
    }
  }
}

// All of k at once, of several panels where there are tiles for them.
void ProductDriver::few_rows(const ProductRun& run, const Part& part, const char* a, int64_t a_row, const char* packed,
                             bool backwards) const {
  const int64_t row = product_.rows.begin(part.rows.begin), rows = product_.rows.size(part.rows.begin);
  TileFrame frame{};
  frame.a = a, frame.a_stride = a_row;
  frame.k = product_.sizes.k;
  frame.results_stride = result_.row_stride();
  for (int64_t begin = part.panels.begin, end = part.panels.end; begin < end;) {
    int64_t count = 1;
    KernelCall call;
    const int64_t last = backwards ? end - 1 : begin, vectors = product_.panels.size(last);
    for (const ProductCalls::SideBySide& tile : product_.calls->side_by_side) {
      if (tile.rows != rows || tile.panels > end - begin) continue;
      const int64_t from = backwards ? end - tile.panels : begin;
      if (product_.panels.begin(from + tile.panels) * kVector > product_.sizes.n) continue;  // a panel is not full
      count = tile.panels, call = tile.tile;
      break;
    }
    const int64_t panel = backwards ? end - count : begin, column = product_.panel_column(panel);
    if (!call) call = product_.tile(product_.calls->tiles, rows, vectors);
    frame.b = frame.ahead = packed + product_.panel_offset(panel);
    frame.b_stride = kVector * product_.k_padded * product_.element;
    frame.columns = std::min(kVector * vectors * count, product_.sizes.n - column);
    frame.c = run.scratch.c, frame.c_stride = kVector * vectors * count * product_.c_element;
    if (!product_.has_epilogue())
      frame.c = run.scratch.at[2] + row * product_.c_row + column * product_.c_element, frame.c_stride = product_.c_row;
    frame.results = result_.place(run, row, column);
    frame.context = call.context;
    call.entry(&frame);
    for (int64_t i = 0; i < count && product_.has_epilogue(); ++i)
      result_.finish(run, {panel + i, row, rows, frame.c + i * kVector * product_.c_element, frame.c_stride});
    (backwards ? end : begin) += backwards ? -count : count;
  }
}

// One block of k, one panel, all tiles of the row block, finished a few at a time; meanwhile the next block of B is
// fetched, a piece a tile.
void ProductDriver::tile_rows(const ProductRun& run, const Block& block, const std::vector<KernelCall>& calls,
                              const char* a, const char* b, const Ahead& next) const {
  TileFrame frame;
  frame.b = b;
  frame.k = block.k_count;
  frame.a_stride = product_.a_across() ? block.a_step : block.a_row, frame.c_stride = block.c_stride;
  frame.accumulate = block.k > 0 && !split_;
  if (product_.addresses) {
    const ListedRuns& listed = product_.listed[static_cast<size_t>(block.k / kBlock)];
    frame.a_stride = product_.max_rows * 8;
    a += listed.first * frame.a_stride;
    frame.runs = listed.runs.data(), frame.run_count = static_cast<int64_t>(listed.runs.size());
    if (product_.by_channels()) frame.a_offset = product_.panel_column(block.panel) * product_.a_element;
  }
  frame.columns = product_.panel_columns(block.panel);
  const int64_t vectors = product_.panels.size(block.panel), tiles = block.tiles;
  const AheadShares ahead(next, tiles, frame.k);
  const bool finishes = product_.has_epilogue() && !split_ && block.k + block.k_count >= product_.sizes.k;
  const char* results = result_.place(run, block.row, product_.panel_column(block.panel));
  frame.results_stride = result_.row_stride();
  // Of one block of k: tiles finish their sums in registers, or the raw piece stands where the one before stood.
  const bool in_place = finishes && product_.one_block_of_k();
  const std::vector<KernelCall>* finishing = in_place ? product_.finishing_tiles(block.panel) : nullptr;
  const bool in_registers = finishing && result_.in_one_segment(product_.panel_column(block.panel), frame.columns);
  std::optional<ResultCall> result;
  if (in_registers) {
    result.emplace(result_, run);
    result->begin_at(block.row, product_.panel_column(block.panel));
    result->frame.columns = frame.columns;
    frame.finish = &result->frame;
  }
  const std::vector<KernelCall>& kernels = in_registers ? *finishing : calls;
  int64_t finished = 0;  // rows
  PieceWalk walk = block.walk;
  for (int64_t i = 0, next = 0; i < tiles; i = next) {
    const int64_t row = walk.begin() - block.row, rows = walk.size();
    // As many tiles a call as are alike, and are finished together.
    next = i + 1;
    if (product_.goes_on && rows > product_.whole_k_rows && ahead.evenly(i)) {
      next = i + walk.alike();
      if (finishes && !in_registers) next = std::min(next, i / kTilesAtOnce * kTilesAtOnce + kTilesAtOnce);
    }
    walk.next(next - i);
    const KernelCall& call = product_.tile(kernels, rows, vectors);
    frame.tiles = next - i;
    frame.a_tile = product_.addresses ? address_bytes() : rows * block.a_row;
    frame.c_tile = rows * block.c_stride, frame.results_tile = rows * frame.results_stride;
    frame.a = a + (product_.addresses ? i * address_bytes() : row * block.a_row);
    if (product_.packs_tiles) frame.a_stride = rows * block.a_step, frame.a += block.k_before * frame.a_stride;
    frame.c = block.c + (in_place ? row - finished : row) * block.c_stride;
    frame.context = call.context;
    ahead.give(i, frame);
    frame.results = results + row * frame.results_stride;
    call.entry(&frame);
    const int64_t end = row + frame.tiles * rows;
    if (in_registers) result->advance(end - row);
    if (in_registers || !finishes || (next % kTilesAtOnce != 0 && next < tiles)) continue;
    char* raw = block.c + (in_place ? 0 : finished) * block.c_stride;
    result_.finish(run, {block.panel, block.row + finished, end - finished, raw, block.c_stride});
    finished = end;
  }
}

}  // namespace ingot::runtime
