// Loops, from the outside (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, with A
// unpacked): groups of panels, spans of k, of which tiles of A are packed, blocks of rows, stretches of k, in which a
// block of rows keeps its part of A in L2, panels, blocks of k, tiles of rows. Each output sums its k blocks in order,
// so no division of M, N, K, batch or threads shows in the result.
#include "runtime/drivers/product_loops.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/drivers/product_packing.h"

namespace ingot::runtime {
namespace {

/// A thread that multiplies by the same packed panels as the last time (a recurrence) takes them the other way round:
/// its caches hold those that came last. Results do not depend on it.
bool other_way_round(const char* panels) {
  uintptr_t& last = latest_panels();  // their address, which is even; the lowest bit: backwards
  const auto at = reinterpret_cast<uintptr_t>(panels);
  last = last == at ? at | 1 : at;
  return last & 1;
}

}  // namespace

ProductDriver::Loops::Loops(const ProductDriver& driver, const StepState& state, int64_t batch, const Part& part,
                            const char* packed)
    : driver_(driver),
      product_(driver.product_),
      result_(driver.result_),
      batch_(batch),
      part_(part),
      blocking_(driver.blocking(part, packed)),
      run_(product_, state, batch, blocking_.rooms),
      packed_(packed),
      backwards_(packed && other_way_round(packed + product_.panel_offset(part.panels.begin))),
      a_(driver.a_matrix(state, batch, run_.scratch.at[0])),
      b_(packed ? nullptr : driver.b_matrix(run_.scratch.at[1], run_.scratch.b)),
      a_row_(product_.packs_a ? blocking_.packed_line : product_.a_row),
      a_step_(product_.a_element) {
  if (product_.a_across() && !product_.packs_tiles)
    a_row_ = product_.a_element, a_step_ = product_.packs_a ? blocking_.packed_line : product_.a_column;
}

void ProductDriver::Loops::run() {
  if (blocking_.few_rows) return few_rows();
  const int64_t panels = part_.panels.end - part_.panels.begin;
  for (group_ = {0, 0}; group_.end < panels;) {
    group_ = {group_.end, std::min(group_.end + blocking_.group, panels)};
    span_ = {part_.k.begin, part_.k.begin};
    do {
      span_ = {span_.end, std::min(span_.end + blocking_.span, part_.k.end)};
      for (int64_t tile = part_.rows.begin; tile < part_.rows.end; tile += blocking_.tiles) {
        begin_rows({tile, std::min(tile + blocking_.tiles, part_.rows.end)});
        stretch_ = {span_.begin, span_.begin};
        do {
          stretch_ = {stretch_.end, std::min(stretch_.end + blocking_.stretch, span_.end)};
          for (at_ = group_.begin; at_ < group_.end; ++at_) stretch_of_panel();
        } while (stretch_.end < span_.end);
      }
    } while (span_.end < part_.k.end);
  }
}

// A block of rows: its part of A is copied, or its rows are listed, where tiles do not read it as it lies.
void ProductDriver::Loops::begin_rows(Range tiles) {
  const int64_t k_size = span_.end - span_.begin;
  first_rows_ = tiles.begin == part_.rows.begin;
  rows_.tiles = tiles.end - tiles.begin, rows_.walk = product_.walk_rows(tiles);
  rows_.row = rows_.walk.begin(), rows_.rows = product_.rows.begin(tiles.end) - rows_.row;
  rows_.a = a_ + rows_.row * product_.a_row;
  if (product_.packs_tiles) {
    pack_tiles(product_, rows_.a + span_.begin * product_.a_column, run_.scratch.a, rows_.walk, rows_.tiles, k_size);
    rows_.a = run_.scratch.a, a_row_ = k_size * product_.a_element;
  } else if (product_.packs_a) {
    rows_.a = own_rows(rows_.row, rows_.rows, span_.begin, k_size) - span_.begin * a_step_;
  }
  if (product_.addresses) {
    driver_.list_rows(batch_, a_, tiles, run_.scratch.addresses);
    rows_.a = reinterpret_cast<const char*>(run_.scratch.addresses);
  }
  if (blocking_.fetches_rows) find_next_rows({tiles.end, std::min(tiles.end + blocking_.tiles, part_.rows.end)});
}

void ProductDriver::Loops::find_next_rows(Range tiles) {
  const Ahead rows = tiles.begin < tiles.end ? driver_.rows_source(a_, tiles) : Ahead();
  next_[0] = {rows.from, rows.rows, 0};
  const int64_t row = product_.rows.begin(tiles.begin), end = product_.rows.begin(tiles.end);
  for (size_t i = 1; i < next_.size(); ++i) {
    const Ahead results = result_.alike(run_, i - 1, row, std::max(row, end));
    next_[i] = {results.from, results.rows, 0};
  }
  for (Stretch& s : next_) s.each = ceil_div(s.lines, rows_.tiles * (group_.end - group_.begin));
}

void ProductDriver::Loops::fetch_next_rows(int64_t tiles) {
  for (Stretch& s : next_)
    for (int64_t n = std::min(s.each * tiles, s.lines); n > 0; --n, --s.lines, s.from += Ahead::kLine)
      __builtin_prefetch(s.from, 0, 2);  // into L2
}

/// These rows of A in memory of this thread: a copy, or what the prologue makes.
const char* ProductDriver::Loops::own_rows(int64_t row, int64_t rows, int64_t k_begin, int64_t k_size) const {
  char* const to = run_.scratch.a;
  if (driver_.prologue_) {
    const int64_t first = batch_ * product_.sizes.m + row;
    driver_.prologue_->make(run_.state, {first, first + rows}, to, blocking_.packed_line, run_.scratch.prologue);
  } else {
    pack_a(product_, a_ + row * product_.a_row + k_begin * product_.a_column, to, rows, k_size, blocking_.packed_line);
  }
  return to;
}

// One panel of a block of rows, over a stretch of k.
void ProductDriver::Loops::stretch_of_panel() {
  Sums sums{.panel = panel_at(at_)};
  if (product_.has_epilogue()) {
    sums.stride = product_.panel_width(sums.panel) * product_.c_element;
    sums.c = run_.scratch.c + (at_ - group_.begin) * blocking_.raw_bytes;
    if (blocking_.span < part_.k.end - part_.k.begin)  // the sums of all blocks of rows wait
      sums.c += (rows_.row - product_.rows.begin(part_.rows.begin)) * sums.stride;
  } else {
    sums.c = run_.scratch.at[2] + rows_.row * product_.c_row + product_.panel_column(sums.panel) * product_.c_element;
    sums.stride = product_.c_row;
  }
  if (stretch_.begin == stretch_.end) return no_sums(sums);
  for (Range k{stretch_.begin, 0}; k.begin < stretch_.end; k.begin = k.end) {
    k.end = std::min(k.begin + kBlock, stretch_.end);
    if (const ProductSplit& split = driver_.split_) {
      sums.stride = split.row_stride();
      sums.c = split.accumulators(driver_.shared(run_.state), batch_, k.begin) + rows_.row * sums.stride +
               product_.panel_column(sums.panel) * product_.c_element;
    }
    block_of_k(sums, k);
  }
}

// Of no k at all.
void ProductDriver::Loops::no_sums(const Sums& sums) {
  for (int64_t i = 0; i < rows_.rows; ++i)
    std::memset(sums.c + i * sums.stride, 0, product_.panel_columns(sums.panel) * product_.c_element);
  if (product_.has_epilogue()) result_.finish(run_, {sums.panel, rows_.row, rows_.rows, sums.c, sums.stride});
}

void ProductDriver::Loops::block_of_k(const Sums& sums, Range k) {
  BlockOfB b = packed_ ? packed_block(sums.panel, k) : own_block(sums.panel, k);
  if (blocking_.fetches_a && at_ == group_.begin && k.begin == part_.k.begin)
    b.next = Ahead::lines(rows_.a + product_.rows.each * a_row_, rows_.rows * a_row_);
  if (product_.packs_tiles && at_ + 1 == group_.end && k.end == span_.end) b.next = next_rows();
  const bool widens = !blocking_.wide_panels && product_.calls->widen && rows_.tiles >= MatmulStep::kManyTiles;
  if (widens) {
    widen(product_, b.at, run_.scratch.wide, k.end - k.begin, product_.panel_width(sums.panel));
    b.at = run_.scratch.wide;
  }
  const bool wide = blocking_.wide_panels || widens;
  const int64_t together = product_.pairs && !wide ? 2 : 1, element = wide ? product_.c_element : product_.element;
  b.lines = lines_fetched((k.end - k.begin) / together, together * element * product_.panel_width(sums.panel));
  tiles_of_rows(sums, k, wide ? product_.calls->wide_tiles : product_.calls->tiles, b);
}

/// What begin_rows() packs next: the next block of rows, or the first one of the next span.
Ahead ProductDriver::Loops::next_rows() const {
  Range span = span_;
  int64_t row = rows_.row + rows_.rows;
  const int64_t end = product_.rows.begin(part_.rows.end);
  if (row >= end)
    span = {span_.end, std::min(span_.end + blocking_.span, part_.k.end)}, row = product_.rows.begin(part_.rows.begin);
  const char* from = a_ + row * product_.a_row + span.begin * product_.a_column;
  const int64_t before = reinterpret_cast<uintptr_t>(from) % Ahead::kLine;
  const int64_t bytes = std::min(rows_.rows, end - row) * product_.a_element;
  return {from - before, span.end - span.begin, ceil_div(before + bytes, Ahead::kLine), product_.a_column};
}

// Next comes what does so in time: mostly what comes next in memory.
ProductDriver::Loops::BlockOfB ProductDriver::Loops::packed_block(int64_t panel, Range k) const {
  auto block_of = [&](int64_t of_panel, int64_t from) {
    return packed_ + product_.panel_offset(of_panel) + from * product_.panel_width(of_panel) * product_.element;
  };
  BlockOfB b{block_of(panel, k.begin), {}};
  int64_t next_at = at_, next_k = k.end;
  if (k.end == stretch_.end) {
    const bool same_group = ++next_at < group_.end;
    next_k = same_group ? stretch_.begin : part_.k.begin;
    if (!same_group && stretch_.end < part_.k.end) next_at = group_.begin, next_k = stretch_.end;
  }
  const int64_t bytes = (k.end - k.begin) * product_.panel_width(panel) * product_.element;
  const char* const end = packed_ + product_.packed_bytes();
  const char* next = next_at < part_.panels.end - part_.panels.begin ? block_of(panel_at(next_at), next_k) : end;
  if (next + bytes <= end) b.next = Ahead::lines(next, bytes);
  return b;
}

// The first block of rows packs what all others find.
ProductDriver::Loops::BlockOfB ProductDriver::Loops::own_block(int64_t panel, Range k) const {
  const int64_t line = product_.panel_width(panel) * (blocking_.wide_panels ? product_.c_element : product_.element);
  const int64_t bytes = (k.end - k.begin) * line;
  char* room = run_.scratch.panels + (blocking_.one_block ? 0 : (at_ - group_.begin) * blocking_.panel_bytes);
  char* own = room + (blocking_.one_block ? 0 : (k.begin - span_.begin) * line);
  BlockOfB b{own, {}};
  const bool last = k.end == stretch_.end;
  const int64_t next_at = at_ + last, next_k = last ? stretch_.begin : k.end;
  if (first_rows_) {
    blocking_.wide_panels ? widen_rows(product_, b_, panel, k.begin, k.end, own)
                          : driver_.pack_panel(b_, panel, k.begin, k.end, own);
    if (next_at < part_.panels.end - part_.panels.begin)
      b.next = driver_.panel_source(b_, panel_at(next_at), next_k, std::min(next_k + kBlock, part_.k.end));
  } else if (next_at < group_.end) {
    b.next = Ahead::lines(last ? room + blocking_.panel_bytes : own + bytes, bytes);
  }
  return b;
}

TileFrame ProductDriver::Loops::frame_of(const Sums& sums, Range k, const char* b) const {
  TileFrame frame{};
  frame.a = rows_.a, frame.b = b, frame.c = sums.c;
  frame.k = k.end - k.begin;
  frame.a_stride = product_.a_across() ? a_step_ : a_row_, frame.c_stride = sums.stride;
  frame.accumulate = k.begin > 0 && !driver_.split_;
  frame.columns = product_.panel_columns(sums.panel);
  frame.results_stride = result_.row_stride();
  if (product_.addresses) {
    const ListedRuns& listed = product_.listed[static_cast<size_t>(k.begin / kBlock)];
    frame.a_stride = product_.max_rows * 8;
    frame.a += listed.first * frame.a_stride;
    frame.runs = listed.runs.data(), frame.run_count = static_cast<int64_t>(listed.runs.size());
    frame.zeros = driver_.zero_runs(run_.state, batch_, sums.panel, k.begin / kBlock);
    if (product_.by_channels()) frame.a_offset = product_.panel_column(sums.panel) * product_.a_element;
  } else if (!product_.packs_tiles) {
    frame.a += k.begin * a_step_;
  }
  return frame;
}

// All tiles of a block of rows, finished a few at a time; meanwhile what comes next is fetched, a piece a tile.
void ProductDriver::Loops::tiles_of_rows(const Sums& sums, Range k, const std::vector<KernelCall>& tiles,
                                         const BlockOfB& b) {
  const int64_t vectors = product_.panels.size(sums.panel), column = product_.panel_column(sums.panel);
  TileFrame frame = frame_of(sums, k, b.at);
  const char *const a = frame.a, *const results = result_.place(run_, rows_.row, column);
  const AheadShares ahead(b.next, rows_.tiles, b.lines);
  const bool finishes = product_.has_epilogue() && !driver_.split_ && k.end >= product_.sizes.k;
  // Of one block of k: tiles finish their sums in registers, or the raw piece stands where the one before stood.
  const bool in_place = finishes && product_.one_block_of_k();
  if (finishes) result_.find_beside(run_, rows_.row, column, frame.beside_results);
  const std::vector<KernelCall>* finishing = in_place ? product_.finishing_tiles(sums.panel) : nullptr;
  std::optional<ResultCall> in_registers;
  if (finishing && result_.in_one_segment(column, frame.columns)) {
    in_registers.emplace(result_, run_);
    in_registers->begin_at(rows_.row, column);
    in_registers->frame.columns = frame.columns;
    frame.finish = &in_registers->frame;
  }
  const int64_t at_once = driver_.tiles_at_once();
  int64_t finished = 0;  // rows
  PieceWalk walk = rows_.walk;
  for (int64_t i = 0, next = 0; i < rows_.tiles; i = next) {
    const int64_t row = walk.begin() - rows_.row, rows = walk.size();
    // As many tiles a call as are alike, and are finished together.
    next = i + 1;
    if (product_.goes_on && rows > product_.whole_k_rows) {
      next = i + std::min(walk.alike(), ahead.alike(i));
      if (finishes && !in_registers) next = std::min(next, i / at_once * at_once + at_once);
    }
    walk.next(next - i);
    const KernelCall& call = product_.tile(in_registers ? *finishing : tiles, rows, vectors);
    frame.tiles = next - i;
    frame.a_tile = product_.addresses ? driver_.address_bytes() : rows * a_row_;
    frame.c_tile = rows * sums.stride, frame.results_tile = rows * frame.results_stride;
    frame.a = a + (product_.addresses ? i * driver_.address_bytes() : row * a_row_);
    if (product_.packs_tiles) frame.a_stride = rows * a_step_, frame.a += (k.begin - span_.begin) * frame.a_stride;
    frame.c = sums.c + (in_place ? row - finished : row) * sums.stride;
    frame.context = call.context;
    ahead.give(i, frame);
    frame.results = results + row * frame.results_stride;
    if (blocking_.fetches_rows) fetch_next_rows(next - i);
    call.entry(&frame);
    const int64_t end = row + frame.tiles * rows;
    if (in_registers) in_registers->advance(end - row);
    if (in_registers || !finishes || (next % at_once != 0 && next < rows_.tiles)) continue;
    char* raw = sums.c + (in_place ? 0 : finished) * sums.stride;
    result_.finish(run_, {sums.panel, rows_.row + finished, end - finished, raw, sums.stride});
    finished = end;
  }
}

// All of k at once, of several panels where there are tiles for them.
void ProductDriver::Loops::few_rows() const {
  const int64_t row = product_.rows.begin(part_.rows.begin), rows = product_.rows.size(part_.rows.begin);
  TileFrame frame{};
  frame.a = a_ + row * product_.a_row, frame.a_stride = a_row_;
  if (product_.packs_a) frame.a = own_rows(row, rows, 0, product_.sizes.k);
  frame.k = product_.sizes.k;
  frame.results_stride = result_.row_stride();
  for (int64_t begin = part_.panels.begin, end = part_.panels.end; begin < end;) {
    const SeveralPanels several = panels_at_once(rows, {begin, end});
    const int64_t panel = several.first, column = product_.panel_column(panel), width = product_.panel_width(panel);
    frame.b = frame.ahead = packed_ + product_.panel_offset(panel);
    frame.b_stride = kVector * product_.k_padded * product_.element;
    frame.columns = std::min(width * several.count, product_.sizes.n - column);
    frame.c = run_.scratch.c, frame.c_stride = width * several.count * product_.c_element;
    if (!product_.has_epilogue())
      frame.c = run_.scratch.at[2] + row * product_.c_row + column * product_.c_element,
      frame.c_stride = product_.c_row;
    frame.results = result_.place(run_, row, column);
    frame.context = several.call.context;
    several.call.entry(&frame);
    for (int64_t i = 0; i < several.count && product_.has_epilogue(); ++i)
      result_.finish(run_, {panel + i, row, rows, frame.c + i * kVector * product_.c_element, frame.c_stride});
    backwards_ ? end -= several.count : begin += several.count;
  }
}

ProductDriver::Loops::SeveralPanels ProductDriver::Loops::panels_at_once(int64_t rows, Range left) const {
  for (const ProductCalls::SideBySide& tile : product_.calls->side_by_side) {
    if (tile.rows != rows || tile.panels > left.end - left.begin) continue;
    const int64_t first = backwards_ ? left.end - tile.panels : left.begin;
    if (product_.panels.begin(first + tile.panels) * kVector > product_.sizes.n) continue;  // a panel is not full
    return {first, tile.panels, tile.tile};
  }
  const int64_t panel = backwards_ ? left.end - 1 : left.begin;
  return {panel, 1, product_.tile(product_.calls->tiles, rows, product_.panels.size(panel))};
}

}  // namespace ingot::runtime
