// Loops, from the outside (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, with A
// unpacked): groups of panels, blocks of rows that keep their part of A in L2, panels, blocks of k, tiles of rows. Each
// output sums its k blocks in order, so no division of M, N, K, batch or threads shows in the result.
#include "runtime/drivers/product_driver.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "runtime/cpu.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kGroupBytes = 16 << 20;  // of panels packed for one call
constexpr int64_t kGrainOperations = 1'000'000;
constexpr int64_t kLine = 64;
constexpr int64_t kFewVectors = 12;         // of columns
constexpr int64_t kTilesAtOnce = 8;         // by an epilogue, while they are in L1
constexpr int64_t kGrainBytes = 256 << 10;  // of B: a product of few rows is bound by reading it
constexpr int64_t kCutBlocks = 16;          // of k, at most, in a cut of it: what all panels read of A stays in L2
constexpr int64_t kSmallResult = 16;        // sums of k's blocks take this part of what A and B take, at most

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace

KernelCall call_of(const KernelPtr& source, const BindContext& context) {
  if (!source) return {};
  const LoadedKernel& kernel = context.kernel(source);
  return {kernel.entry, kernel.context};
}

std::vector<KernelCall> calls_of(std::span<const KernelPtr> sources, const BindContext& context) {
  std::vector<KernelCall> calls;
  calls.reserve(sources.size());
  for (const KernelPtr& source : sources) calls.push_back(call_of(source, context));
  return calls;
}

ProductCalls::ProductCalls(const ProductKernels& kernels, const Epilogue& epilogue, const BindContext& context)
    : tiles(calls_of(kernels.tiles, context)),
      packs(calls_of(kernels.packs, context)),
      epilogues(calls_of(epilogue.kernels, context)),
      wide_tiles(calls_of(kernels.wide_tiles, context)),
      pack_a(call_of(kernels.pack_a, context)),
      widen(call_of(kernels.widen, context)),
      widen_rows(call_of(kernels.widen_rows, context)),
      add_row(call_of(kernels.add_row, context)),
      add_rows(call_of(kernels.add_rows, context)),
      transposed(call_of(kernels.transposed, context)) {
  for (const KernelPtr& kernel : epilogue.kernels) epilogue_scratch = std::max(epilogue_scratch, kernel->scratch_bytes);
}

ProductDriver::ProductDriver(const ProductKernels& kernels, const Epilogue& epilogue, const BindContext& context)
    : first_scalar_(context.first_scalar),
      step_(context.step),
      max_rows_(kernels.max_rows),
      max_vectors_(kernels.max_vectors),
      a_element_(size_of(kernels.a)) {
  const auto* before = context.before<ProductDriver>();
  kernels_ = before ? before->kernels_ : std::make_shared<const ProductCalls>(kernels, epilogue, context);
  INGOT_CHECK(static_cast<int64_t>(kernels_->tiles.size()) == max_rows_ * max_vectors_);
}

void ProductDriver::set_sizes(const Sizes& sizes) {
  sizes_ = sizes;
  element_ = size_of(sizes_.dtype), c_element_ = size_of(sizes_.accumulate);
  for (int64_t size : sizes_.batch) batches_ = saturating_product(batches_, size);
  rows_ = Pieces(sizes_.m, max_rows_);
  // Two or four threads shall have the same: weights are packed by these panels, whoever shares them out.
  const int64_t vectors = ceil_div(sizes_.n, kVector);
  panels_ = Pieces(vectors, max_vectors_, vectors < kFewVectors ? 1 : 4);
  k_padded_ = round_up(sizes_.k, 2);  // bf16 is packed in pairs
}

void ProductDriver::set_operands(std::vector<BoundArgument> operands, const Epilogue& epilogue) {
  operands_ = std::move(operands);
  const size_t rank = sizes_.batch.size() + 2;
  for (const BoundArgument& a : operands_) INGOT_CHECK(a.strides.size() == rank);
  a_row_ = operands_[0].strides[rank - 2], a_column_ = operands_[0].strides[rank - 1];
  if (kernels_->epilogues.empty()) {
    INGOT_CHECK(operands_.size() == 3);
    c_row_ = operands_[2].strides[rank - 2];
    INGOT_CHECK(operands_[2].strides[rank - 1] == c_element_ || sizes_.n <= 1, "C's columns are contiguous");
    return;
  }
  const std::vector<Argument>& arguments = epilogue.arguments;
  const auto written = std::find_if(arguments.begin(), arguments.end(), [](const Argument& a) { return !a.read_only; });
  if (written != arguments.end()) result_ = 2 + static_cast<size_t>(written - arguments.begin());
  row_strides_ = {0}, column_strides_ = {c_element_}, index_strides_ = {0};
  for (size_t i = 2; i < operands_.size(); ++i) {
    row_strides_.push_back(operands_[i].strides[rank - 2]);
    column_strides_.push_back(operands_[i].strides[rank - 1]);
    index_strides_.push_back(operands_[i].index_stride);
  }
}

// Memory without gaps.
ProductDriver::Ahead ProductDriver::lines(const char* from, int64_t bytes) {
  return {from, ceil_div(bytes, kLine), 1, kLine};
}

// The slowest thread shall have the least to do: tiles, and packing where each cut packs for itself.
void ProductDriver::divide(const BindContext& context, int64_t packing, bool may_cut_k) {
  const auto [batch, m, n, k, dtype, accumulate] = sizes_;
  int64_t operations = saturating_product(saturating_product(2 * batches_, m), saturating_product(n, k));
  int64_t b_bytes = saturating_product(saturating_product(batches_, element_), saturating_product(n, k));
  int64_t useful = std::max(operations / kGrainOperations, b_bytes / kGrainBytes);
  int64_t most = saturating_product(batches_, saturating_product(rows_.count, panels_.count));
  useful_threads = static_cast<int>(std::clamp<int64_t>(std::min(useful, most), 1, kMostThreads));
  if (may_cut_k && divide_k(useful, context.threads)) return;
  int64_t threads = std::min(useful_threads, context.threads);
  double least = 0;
  for (int64_t panel_cuts = 1; panel_cuts <= std::min(threads, panels_.count); ++panel_cuts) {
    int64_t vectors = 0;  // of the widest cut
    for (int64_t cut = 0; cut < panel_cuts; ++cut) {
      const Range panels = runtime::share(panels_.count, static_cast<int>(cut), static_cast<int>(panel_cuts));
      vectors = std::max(vectors, panels_.begin(panels.end) - panels_.begin(panels.begin));
    }
    for (int64_t row_cuts = 1; row_cuts <= std::min(threads, rows_.count); ++row_cuts) {
      double work = static_cast<double>(vectors) * static_cast<double>(ceil_div(rows_.count, row_cuts) + packing);
      double cost = static_cast<double>(ceil_div(batches_ * panel_cuts * row_cuts, threads)) * work;
      // Among equals, what reads least: each row cut reads all of B's panels again, each panel cut all of A.
      cost *= 1 + 1e-3 * static_cast<double>((row_cuts - 1) * n + (panel_cuts - 1) * m) / static_cast<double>(n + m);
      if (least != 0 && cost >= least) continue;
      least = cost;
      row_cuts_ = static_cast<int>(row_cuts), panel_cuts_ = static_cast<int>(panel_cuts);
    }
  }
}

/// Cuts k instead, where tiles are few and the sums of its blocks are small beside what is read.
bool ProductDriver::divide_k(int64_t useful, int64_t allowed) {
  const int64_t m = sizes_.m, n = sizes_.n, tiles = saturating_product(rows_.count, panels_.count);
  const int64_t threads = std::min(useful, allowed);
  k_blocks_ = ceil_div(sizes_.k, kBlock);
  const int64_t cuts = std::max(4 * threads, ceil_div(k_blocks_, kCutBlocks));
  const bool few = tiles > 0 && saturating_product(batches_, tiles) <= 4 * threads &&
                   saturating_product(saturating_product(m, n), kSmallResult) <= kBlock * (m + n);
  if (threads <= 1 || !few || k_blocks_ < 2 * cuts) return false;
  k_cuts_ = cuts;
  sum_stride_ = kVector * panels_.n * c_element_;
  sum_bytes_ = round_up(m * sum_stride_, kLine);
  shared_bytes = batches_ * k_blocks_ * sum_bytes_;
  phases = 2;
  useful_threads = static_cast<int>(std::min<int64_t>(std::min<int64_t>(useful, kMostThreads), batches_ * cuts));
  return true;
}

void ProductDriver::run(RunState& state, int phase, int share, int shares) const {
  if (k_cuts_ > 1) return phase == 0 ? run_k(state, share, shares) : add_up(state, share, shares);
  const int64_t cuts = row_cuts_ * panel_cuts_;
  Range range = runtime::share(batches_ * cuts, share, shares);
  for (int64_t item = range.begin; item < range.end; ++item) {
    int cut = static_cast<int>(item % cuts);
    Range panels = runtime::share(panels_.count, cut / row_cuts_, panel_cuts_),
          rows = runtime::share(rows_.count, cut % row_cuts_, row_cuts_);
    multiply(state, item / cuts, rows, panels, {0, sizes_.k});
  }
}

void ProductDriver::run_k(RunState& state, int share, int shares) const {
  const Range range = runtime::share(batches_ * k_cuts_, share, shares);
  for (int64_t item = range.begin; item < range.end; ++item) {
    const Range blocks = runtime::share(k_blocks_, static_cast<int>(item % k_cuts_), static_cast<int>(k_cuts_));
    multiply(state, item / k_cuts_, {0, rows_.count}, {0, panels_.count},
             {blocks.begin * kBlock, std::min(blocks.end * kBlock, sizes_.k)});
  }
}

void ProductDriver::add_up(RunState& state, int share, int shares) const {
  const int64_t tiles = rows_.count * panels_.count;
  const Range range = runtime::share(batches_ * tiles, share, shares);
  for (int64_t item = range.begin; item < range.end; ++item)
    add_up_tile(state, item / tiles, item % rows_.count, item % tiles / rows_.count);
}

char* ProductDriver::block_sum(const RunState& state, int64_t batch, int64_t block) const {
  return shared(state) + (batch * k_blocks_ + block) * sum_bytes_;
}

// The sums of all blocks of k, in order; then the epilogue.
void ProductDriver::add_up_tile(RunState& state, int64_t batch, int64_t tile, int64_t panel) const {
  const bool epilogue = !kernels_->epilogues.empty();
  const int64_t columns = panel_columns(panel);
  Block block{};
  block.tile_begin = tile, block.tile_end = tile + 1;
  block.row = rows_.begin(tile), block.rows = rows_.size(tile);
  block.panel = panel;
  block.c_stride = epilogue ? panel_width(panel) * c_element_ : c_row_;
  const Scratch scratch = lay_out(0, 0, epilogue ? block.rows * block.c_stride : 0);
  PlaneWalk walk(sizes_.batch, operands_, state, scratch.at, batch);
  const Run run{state, walk, scratch};
  block.c = epilogue ? scratch.c : scratch.at[2] + block.row * c_row_ + panel_column(panel) * c_element_;
  auto add = [&](auto zero) {
    using T = decltype(zero);
    for (int64_t row = 0; row < block.rows; ++row) {
      const int64_t offset = (block.row + row) * sum_stride_ + panel_column(panel) * c_element_;
      T* to = reinterpret_cast<T*>(block.c + row * block.c_stride);
      std::memcpy(to, block_sum(state, batch, 0) + offset, static_cast<size_t>(columns) * sizeof(T));
      for (int64_t b = 1; b < k_blocks_; ++b) {
        const T* from = reinterpret_cast<const T*>(block_sum(state, batch, b) + offset);
        for (int64_t j = 0; j < columns; ++j) to[j] += from[j];
      }
    }
  };
  c_element_ == 8 ? add(double()) : add(float());
  if (epilogue) finish(run, block, 0, block.rows);
}

// One batch's rows and panels, given as ranges of tiles; all of k, or some of its blocks.
void ProductDriver::multiply(RunState& state, int64_t batch, Range row_tiles, Range panels, Range k) const {
  if (row_tiles.begin >= row_tiles.end || panels.begin >= panels.end) return;
  const char* packed = packed_panels(state, batch);
  if (!packed && reads_b_as_it_lies()) return multiply_row(state, batch, panels, k);
  const int64_t k_size = k.end - k.begin, k_padded = round_up(k_size, 2);
  const int64_t rows = rows_.begin(row_tiles.end) - rows_.begin(row_tiles.begin);
  const bool epilogue = !kernels_->epilogues.empty();
  // The rows whose part of A takes a third of L2, in blocks of nearly equal size.
  const int64_t fitting =
      std::max(cache_sizes().l2 / 3 / std::max<int64_t>(k_size * a_element_, 1), 4 * (rows_.each + 1));
  const int64_t block_tiles = ceil_div(row_tiles.end - row_tiles.begin, ceil_div(rows, fitting));
  const bool one_block = block_tiles >= row_tiles.end - row_tiles.begin;
  // Panels packed here are used by one block of rows at once, or kept for all blocks of rows a group at a time.
  const bool wide_panels =
      kernels_->widen_rows && !packed && b_column_ == element_ && rows_.count >= MatmulStep::kManyTiles;
  const int64_t b_element = wide_panels ? c_element_ : element_;
  const int64_t panel_bytes = kVector * max_vectors_ * (one_block ? std::min(kBlock, k_padded) : k_padded) * b_element;
  int64_t group = panels.end - panels.begin;
  if (!packed) group = one_block ? 1 : std::clamp<int64_t>(kGroupBytes / std::max<int64_t>(panel_bytes, 1), 1, group);

  const int64_t most_rows = std::min(block_tiles * (rows_.each + 1), rows);
  // Rows of packed A start at differing sets of L1.
  const int64_t a_stride = kernels_->pack_a ? round_up(k_size * a_element_, 64) + 64 : a_row_;
  Scratch scratch = lay_out(packed ? 0 : group * panel_bytes, kernels_->pack_a ? most_rows * a_stride : 0,
                            epilogue ? most_rows * kVector * max_vectors_ * c_element_ : 0);
  PlaneWalk walk(sizes_.batch, operands_, state, scratch.at, batch);
  const Run run{state, walk, scratch};
  const char* a = a_matrix(state, batch, scratch.at[0]);
  const char* b = packed ? nullptr : b_matrix(scratch.at[1], scratch.b);
  const char* packed_end = packed ? packed + packed_bytes() : nullptr;

  for (int64_t group_begin = panels.begin; group_begin < panels.end; group_begin += group) {
    const int64_t group_end = std::min(group_begin + group, panels.end);
    for (int64_t tile = row_tiles.begin; tile < row_tiles.end; tile += block_tiles) {
      Block block{};
      block.tile_begin = tile, block.tile_end = std::min(tile + block_tiles, row_tiles.end);
      block.row = rows_.begin(tile), block.rows = rows_.begin(block.tile_end) - block.row;
      block.a_stride = a_stride;
      const char* a_block = a + block.row * a_row_;
      if (kernels_->pack_a) {
        pack_rows(a_block + k.begin * a_column_, scratch.a, block.rows, k_size, a_stride);
        a_block = scratch.a - k.begin * a_element_;
      }
      for (block.panel = group_begin; block.panel < group_end; ++block.panel) {
        const int64_t width = panel_width(block.panel);
        block.c = epilogue ? scratch.c : scratch.at[2] + block.row * c_row_ + panel_column(block.panel) * c_element_;
        block.c_stride = epilogue ? width * c_element_ : c_row_;
        char* room = scratch.panels + (block.panel - group_begin) * panel_bytes;
        if (k_size == 0) {
          for (int64_t i = 0; i < block.rows; ++i)
            std::memset(block.c + i * block.c_stride, 0, panel_columns(block.panel) * c_element_);
          if (epilogue) finish(run, block, 0, block.rows);
        }
        for (block.k = k.begin; block.k < k.end; block.k += kBlock) {
          if (k_cuts_ > 1) {
            block.c_stride = sum_stride_;
            block.c = block_sum(state, batch, block.k / kBlock) + block.row * sum_stride_ +
                      panel_column(block.panel) * c_element_;
          }
          const int64_t bytes = std::min(kBlock, k.end - block.k) * width * b_element;
          char* own = room + (one_block ? 0 : (block.k - k.begin) * width * b_element);
          const char* b_block = own;
          Ahead next;
          if (packed) {
            b_block = packed + panel_offset(block.panel) + block.k * width * element_;
            // What comes next in memory is what comes next in time.
            if (b_block + 2 * bytes <= packed_end) next = lines(b_block + bytes, bytes);
          } else {
            const bool last_k = block.k + kBlock >= k.end;
            const int64_t next_k = last_k ? k.begin : block.k + kBlock, next_panel = block.panel + last_k;
            if (tile == row_tiles.begin) {
              const int64_t k_end = std::min(block.k + kBlock, k.end);
              wide_panels ? widen_rows(b, block.panel, block.k, k_end, own)
                          : pack_panel(b, block.panel, block.k, k_end, own);
              if (next_panel < panels.end) next = panel_source(b, next_panel, next_k, std::min(next_k + kBlock, k.end));
            } else if (next_panel < group_end) {
              next = lines(last_k ? room + panel_bytes : own + bytes, bytes);
            }
          }
          const bool widens =
              !wide_panels && kernels_->widen && block.tile_end - block.tile_begin >= MatmulStep::kManyTiles;
          if (widens) {
            widen(b_block, scratch.wide, std::min(kBlock, k.end - block.k), width);
            b_block = scratch.wide;
          }
          tile_rows(run, block, wide_panels || widens ? kernels_->wide_tiles : kernels_->tiles,
                    a_block + block.k * a_element_, b_block, next);
        }
      }
    }
  }
}

ProductDriver::Scratch ProductDriver::lay_out(int64_t panel_bytes, int64_t a_bytes, int64_t c_bytes) const {
  const int64_t wide_bytes = kernels_->widen ? kBlock * kVector * max_vectors_ * c_element_ : 0;
  int64_t sizes[] = {panel_bytes,
                     wide_bytes,
                     a_bytes,
                     b_room_,
                     c_bytes,
                     kernels_->epilogue_scratch,
                     2 * static_cast<int64_t>((operands_.size() + 1) * sizeof(char*))};
  int64_t offsets[7], total = 0;
  for (int i = 0; i < 7; ++i) {
    offsets[i] = total;
    total += round_up(sizes[i], 64) + (sizes[i] > 4096 ? 512 : 0);  // see allocator.cpp for the stagger
  }
  char* memory = thread_scratch(total);
  return {memory + offsets[0],
          memory + offsets[1],
          memory + offsets[2],
          memory + offsets[3],
          memory + offsets[4],
          memory + offsets[5],
          reinterpret_cast<char**>(memory + offsets[6])};
}

// Pairs of rows of a packed block to f32, one after the other.
void ProductDriver::widen(const char* packed, char* to, int64_t k, int64_t width) const {
  const int64_t row = width * c_element_;
  char* buffers[] = {const_cast<char*>(packed), to, to + row};
  const int64_t row_strides[] = {row, 2 * row, 2 * row}, column_strides[] = {4, 4, 4}, index_strides[] = {0, 0, 0};
  KernelFrame frame{};
  frame.buffers = buffers;
  frame.row_strides = row_strides, frame.column_strides = column_strides, frame.index_strides = index_strides;
  frame.rows = ceil_div(k, 2), frame.columns = width;
  frame.context = kernels_->widen.context;
  kernels_->widen.entry(&frame);
}

// A panel of f32, [k][width].
void ProductDriver::widen_rows(const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to) const {
  const int64_t row = panel_width(panel) * c_element_, columns = panel_columns(panel);
  if (columns < panel_width(panel)) std::memset(to, 0, static_cast<size_t>((k_end - k_begin) * row));
  char* buffers[] = {const_cast<char*>(b) + k_begin * b_row_ + panel_column(panel) * element_, to};
  const int64_t row_strides[] = {b_row_, row}, column_strides[] = {element_, c_element_}, index_strides[] = {0, 0};
  KernelFrame frame{};
  frame.buffers = buffers;
  frame.row_strides = row_strides, frame.column_strides = column_strides, frame.index_strides = index_strides;
  frame.rows = k_end - k_begin, frame.columns = columns;
  frame.context = kernels_->widen_rows.context;
  kernels_->widen_rows.entry(&frame);
}

void ProductDriver::pack_rows(const char* a, char* to, int64_t rows, int64_t k, int64_t to_stride) const {
  char* buffers[] = {const_cast<char*>(a), to};
  const int64_t row_strides[] = {a_row_, to_stride}, column_strides[] = {a_column_, a_element_},
                index_strides[] = {0, 0};
  KernelFrame frame{};
  frame.buffers = buffers;
  frame.row_strides = row_strides, frame.column_strides = column_strides, frame.index_strides = index_strides;
  frame.rows = rows, frame.columns = k;
  frame.context = kernels_->pack_a.context;
  kernels_->pack_a.entry(&frame);
}

// One block of k, one panel, all tiles of the row block, finished a few at a time; meanwhile the next block of B is
// fetched, a piece a tile.
void ProductDriver::tile_rows(const Run& run, const Block& block, const std::vector<KernelCall>& calls, const char* a,
                              const char* b, const Ahead& next) const {
  TileFrame frame;
  frame.b = b;
  frame.k = std::min(kBlock, sizes_.k - block.k);
  frame.a_stride = block.a_stride, frame.c_stride = block.c_stride;
  frame.accumulate = block.k > 0 && k_cuts_ == 1;
  frame.columns = panel_columns(block.panel);
  const int64_t vectors = panels_.size(block.panel), tiles = block.tile_end - block.tile_begin;
  // What is contiguous is shared out evenly; of rows a tile fetches as many lines as it can, of one column of lines.
  const int64_t lines = std::max<int64_t>(frame.k / 2, 1), pieces = ceil_div(next.rows, lines);
  const bool even = next.stride == kLine;
  const int64_t fetching = tiles < 4 ? 0 : even ? tiles : pieces * next.row_lines;
  const int64_t share = next.rows * kLine / tiles, even_step = std::min(ceil_div(share, lines), kLine);
  const bool finishes = !kernels_->epilogues.empty() && k_cuts_ == 1 && block.k + kBlock >= sizes_.k;
  const char* results = place(run, result_, block.row, panel_column(block.panel));
  frame.results_stride = operands_[result_].strides[sizes_.batch.size()];
  int64_t finished = 0;  // rows
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t tile = block.tile_begin + i, row = rows_.begin(tile) - block.row;
    const KernelCall& call = calls[(rows_.size(tile) - 1) * max_vectors_ + vectors - 1];
    frame.a = a + row * block.a_stride;
    frame.c = block.c + row * block.c_stride;
    frame.context = call.context;
    frame.ahead = b, frame.ahead_step = 0;
    if (next.from && i < fetching) {
      frame.ahead = next.from + (even ? i * share : i / pieces * kLine + i % pieces * lines * next.stride);
      frame.ahead_step = even ? even_step : next.stride;
    }
    frame.results = results + row * frame.results_stride;
    call.entry(&frame);
    if (!finishes || (i % kTilesAtOnce != kTilesAtOnce - 1 && i + 1 < tiles)) continue;
    const int64_t end = row + rows_.size(tile);
    finish(run, block, finished, end - finished);
    finished = end;
  }
}

/// Where a row and column of C's are in an operand behind A and B.
char* ProductDriver::place(const Run& run, size_t operand, int64_t row, int64_t column) const {
  const Ints& strides = operands_[operand].strides;
  const size_t rank = strides.size();
  const int64_t segment = column / segment_;
  return run.scratch.at[operand] + row * strides[rank - 2] + column % segment_ * strides[rank - 1] +
         (segment ? segment * segment_strides_[operand] : 0);
}

// Rows [row, row + rows) of a block.
void ProductDriver::finish(const Run& run, const Block& block, int64_t row, int64_t rows) const {
  const size_t count = operands_.size() - 1;  // the raw piece instead of A and B
  char** at = run.scratch.at + operands_.size();
  const int64_t first = panel_column(block.panel), last = first + panel_columns(block.panel);
  int64_t row_strides[32];
  INGOT_CHECK(count <= std::size(row_strides), "an epilogue of more than 31 operands");
  std::copy(row_strides_.begin(), row_strides_.end(), row_strides);
  row_strides[0] = block.c_stride;
  KernelFrame frame;
  frame.buffers = at;
  frame.row_strides = row_strides;
  frame.column_strides = column_strides_.data();
  frame.index_strides = index_strides_.data();
  frame.scalars = run.state.scalars.data() + first_scalar_;
  frame.rows = rows;
  frame.scratch = run.scratch.epilogue;
  frame.row_index = block.row + row;
  frame.outer_index = run.walk.index();
  for (int64_t column = first; column < last; column += frame.columns) {
    frame.columns = std::min(last - column, segment_ - column % segment_), frame.column_index = column;
    at[0] = block.c + row * block.c_stride + (column - first) * c_element_;
    for (size_t i = 1; i < count; ++i) at[i] = place(run, i + 1, block.row + row, column);
    const auto vectors = static_cast<size_t>(frame.columns / kVector);
    const bool known = frame.columns % kVector == 0 && vectors < kernels_->epilogues.size();
    const KernelCall& call = kernels_->epilogues[known ? vectors : 0];
    frame.context = call.context;
    call.entry(&frame);
  }
}

}  // namespace ingot::runtime
