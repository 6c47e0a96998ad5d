#include "runtime/drivers/product_driver.h"

#include <algorithm>

#include "runtime/cpu.h"
#include "runtime/drivers/product_loops.h"
#include "runtime/drivers/product_row.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kGroupBytes = 16 << 20;   // of panels packed for one call
constexpr int64_t kStretch = 1024;          // of k, at most, where there are several
constexpr int64_t kSpan = 256;              // of k, of which tiles of A are packed at once
constexpr int64_t kRawBytes = 64 << 10;     // of sums that wait for the next stretch
constexpr int64_t kSpanBytes = 2 << 20;     // of sums that wait for the next span
constexpr int64_t kFewestOfASpan = 512;     // of k, where it is cut for the rows' sake
constexpr int64_t kSpanRows = 512;          // of those sums, at least, where there are so many
constexpr int64_t kMostCuts = 1 << 10;      // of the rows of a thread for that
constexpr int64_t kGrainBytes = 256 << 10;  // of B: a product of few rows is bound by reading it

}  // namespace

// The slowest thread shall have the least to do: tiles, and packing where each cut packs for itself.
void ProductDriver::divide(const BindContext& context, int64_t packing, bool may_split_k) {
  const int64_t m = product_.sizes.m, n = product_.sizes.n, k = product_.sizes.k;
  if (product_.calls->prologue) prologue_ = context.make<ProductPrologue>(*product_.calls->prologue, context);
  int64_t operations = saturating_product(saturating_product(2 * product_.batches, m), saturating_product(n, k));
  int64_t b_bytes =
      saturating_product(saturating_product(product_.batches, product_.element), saturating_product(n, k));
  const int64_t grain = product_.by_channels() ? kChannelGrain : kProductGrain;
  int64_t useful = std::max(operations / grain, b_bytes / kGrainBytes);
  int64_t most = saturating_product(product_.batches, saturating_product(product_.rows.count, product_.panels.count));
  useful_threads = static_cast<int>(std::clamp<int64_t>(std::min(useful, most), 1, kMostThreads));
  if (may_split_k && !prologue_) split_ = ProductSplit(product_, useful, context.threads);
  if (split_) {
    shared_bytes = split_.bytes(product_);
    phases = 2;
    useful_threads = static_cast<int>(
        std::min<int64_t>(std::min<int64_t>(useful, kMostThreads), product_.batches * split_.splits()));
    return;
  }
  cut(std::min(useful_threads, context.threads), packing);
  if (!product_.packs_tiles || !product_.has_epilogue() || k <= kSpan) return;
  // More cuts of rows, so that not all panels have to be packed and read for each few of them.
  const int64_t rows = ceil_div(m, row_cuts_), row_bytes = ceil_div(n, panel_cuts_) * product_.c_element;
  const int64_t rows_at_once = std::max(kSpanRows, kSpanBytes / std::max<int64_t>(row_bytes, 1));
  row_cuts_ *= static_cast<int>(std::clamp<int64_t>(rows / rows_at_once, 1, kMostCuts));
}

// For so many threads.
void ProductDriver::cut(int64_t threads, int64_t packing) {
  if (threads == 1) return;
  const int64_t m = product_.sizes.m, n = product_.sizes.n;
  double least = 0;
  for (int64_t panel_cuts = 1; panel_cuts <= std::min(threads, product_.panels.count); ++panel_cuts) {
    int64_t vectors = 0;  // of the widest cut
    for (int64_t cut = 0; cut < panel_cuts; ++cut) {
      const Range panels = runtime::share(product_.panels.count, static_cast<int>(cut), static_cast<int>(panel_cuts));
      vectors = std::max(vectors, product_.panels.begin(panels.end) - product_.panels.begin(panels.begin));
    }
    for (int64_t row_cuts = 1; row_cuts <= std::min(threads, product_.rows.count); ++row_cuts) {
      // Each cut makes all of its rows of A, which takes about as long as to multiply them by a few columns.
      double work = static_cast<double>(vectors + (prologue_ ? 1 : 0)) *
                    static_cast<double>(ceil_div(product_.rows.count, row_cuts) + packing);
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
  auto fitting = [&](int64_t part_of_k, int64_t room) {
    return room / std::max<int64_t>(product_.a_bytes * part_of_k / std::max<int64_t>(product_.sizes.k, 1), 1);
  };
  // Lines of A that are packed in pieces are read once, one after another: all of them, of a span of k.
  b.span = product_.packs_tiles && !split_ ? std::min(kSpan, k_size) : k_size;
  // Where B is packed here and few rows' part of A fits: in spans in which all rows' part does, so that panels are used
  // as they are packed, instead of written to memory and read again for each block of rows. Or else in spans of which
  // the panels stay in a cache, if the sums do.
  const int64_t columns = kVector * (product_.panels.begin(part.panels.end) - product_.panels.begin(part.panels.begin));
  if (!packed && !product_.packs_a && !product_.addresses && !split_ && fitting(k_size, room_of_a) < rows) {
    const int64_t span = room_of_a / (rows * product_.a_element) / kBlock * kBlock;
    if (span >= kFewestOfASpan)
      b.span = std::min(span, k_size);
    else if (saturating_product(rows, columns * product_.c_element) <= kSpanBytes)
      b.span = std::min(kStretch, k_size);
  }
  b.stretch = b.span;
  if (packed && !product_.packs_a && !product_.addresses && !split_ && k_size > kStretch &&
      fitting(k_size, room_of_a) < rows)
    b.stretch = round_up(ceil_div(k_size, ceil_div(k_size, kStretch)), kBlock);
  const bool b_in_l2 = saturating_product(columns, k_size * product_.element) <= l2 / 3;
  // Where little is summed, tiles wait for what they read and write, a panel's columns at a time: a processor that sees
  // a line or two of each row does not fetch ahead by itself.
  const int64_t row_bytes = product_.a_bytes + product_.sizes.n * product_.c_element;
  b.fetches_rows = !split_ && b_in_l2 && k_size <= kBlock && panel_cuts_ == 1 &&
                   saturating_product(product_.sizes.m, row_bytes) > std::max(cache_sizes().l3 / 4, 4 * l2);
  // Where B stays in L2, what a prologue makes is read at once, and need not go beyond L1 by much.
  const int64_t most_rows = prologue_ && b_in_l2
                                ? std::max(fitting(b.stretch, cache_sizes().l1 * 3 / 2), 16 * product_.max_rows)
                                : std::max(b.fetches_rows ? room_of_a / row_bytes : fitting(b.stretch, room_of_a),
                                           4 * (product_.rows.each + 1));
  b.tiles = ceil_div(row_tiles, ceil_div(rows, most_rows));
  b.one_block = b.tiles >= row_tiles;
  // Where all of B stays in L2, what comes from afar is A: the first panel's tiles fetch the rows of the next ones.
  b.fetches_a = product_.rows_of_a == RowsOfA::along && !product_.packs_a && !split_ &&
                product_.a_row == product_.sizes.k * product_.a_element && b_in_l2;
  // Panels packed here are used by one block of rows at once, or kept for all blocks of rows a group at a time.
  b.wide_panels = product_.calls->widen_rows && !packed && product_.b_column == product_.element &&
                  product_.rows.count >= MatmulStep::kManyTiles;
  b.panel_bytes = kVector * product_.max_vectors * std::min(b.one_block ? kBlock : round_up(b.span, 2), k_padded) *
                  (b.wide_panels ? product_.c_element : product_.element);
  b.group = part.panels.end - part.panels.begin;
  if (!packed && !b.one_block)
    b.group = std::clamp<int64_t>(kGroupBytes / std::max<int64_t>(b.panel_bytes, 1), 1, b.group);

  const int64_t block_rows = std::min(b.tiles * (product_.rows.each + 1), rows);
  // What one block of k sums up is finished before the next tiles are: they take its place.
  const int64_t raw_rows = product_.one_block_of_k() ? std::min(tiles_at_once() * product_.max_rows, block_rows)
                           : b.span < k_size         ? rows
                                                     : block_rows;
  const int64_t raw_bytes =
      product_.has_epilogue() ? raw_rows * kVector * product_.max_vectors * product_.c_element : 0;
  if (b.stretch < k_size) {  // the sums of all panels of a group wait
    b.raw_bytes = raw_bytes;
    const int64_t most = b.span < k_size ? kSpanBytes : kRawBytes;
    if (raw_bytes) b.group = std::clamp<int64_t>(most / raw_bytes, 1, b.group);
  }
  // Lines of packed A start at differing sets of the cache.
  const int64_t packed_lines = product_.a_across() ? block_rows : k_size;
  b.packed_line = (round_up(packed_lines * product_.a_element, 64) / 64 | 1) * 64;
  b.rooms = {.panels = packed ? 0 : (b.one_block ? 1 : b.group) * b.panel_bytes,
             .a = !product_.packs_a      ? 0
                  : product_.packs_tiles ? block_rows * b.span * product_.a_element
                                         : (product_.a_across() ? k_size : block_rows) * b.packed_line,
             .addresses = b.tiles * address_bytes(),
             .c = b.stretch < k_size ? b.group * raw_bytes : raw_bytes,
             .prologue = prologue_ ? prologue_->scratch_bytes() : 0};
  b.few_rows = packed && !split_ && row_tiles == 1 && rows <= product_.whole_k_rows && k_size > 0;
  if (b.few_rows && !product_.calls->side_by_side.empty()) b.rooms.c *= product_.calls->side_by_side.front().panels;
  return b;
}

void ProductDriver::multiply(const StepState& state, int64_t batch, const Part& part) const {
  if (part.rows.begin >= part.rows.end || part.panels.begin >= part.panels.end) return;
  const char* packed = packed_panels(state, batch);
  if (!packed && !split_ && reads_b_as_it_lies(product_))
    multiply_row(product_, result_, state, batch, part.panels);
  else
    Loops(*this, state, batch, part, packed).run();
}

}  // namespace ingot::runtime
