// Matrix products: tiles over packed panels of B, A as it lies, k in blocks of 512, an epilogue on each finished piece.
//
// Loops, from the outside (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, with A
// unpacked): groups of panels, blocks of rows that keep their part of A in L2, panels, blocks of k, tiles of rows. Each
// output sums its k blocks in order, so no division of M, N, batch or threads shows in the result.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "runtime/cpu.h"
#include "runtime/step_driver.h"
#include "runtime/weight_cache.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kBlock = 512;           // of k
constexpr int64_t kVector = 16;           // columns
constexpr int64_t kGroupBytes = 4 << 20;  // of panels packed for one call
constexpr int64_t kGrainOperations = 1'000'000;
constexpr int64_t kGrainBytes = 64 << 10;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// n cut into pieces of at most `most` whose sizes differ by one at most.
struct Pieces {
  int64_t n = 0, count = 0, each = 0, extra = 0;
  Pieces() = default;
  Pieces(int64_t total, int64_t most) : n(total), count(ceil_div(total, most)) {
    if (count) each = n / count, extra = n % count;
  }
  int64_t begin(int64_t i) const { return i * each + std::min(i, extra); }
  int64_t size(int64_t i) const { return each + (i < extra); }
};

struct Call {
  KernelEntry entry = nullptr;
  const void* context = nullptr;
};

void prefetch(const char* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
}

class MatmulDriver final : public StepDriver {
 public:
  MatmulDriver(const MatmulStep& step, const BindContext& context)
      : first_scalar_(context.first_scalar), step_(context.step), max_vectors_(step.max_vectors) {
    m_ = context.value(step.m), n_ = context.value(step.n), k_ = context.value(step.k);
    element_ = size_of(step.dtype), c_element_ = size_of(step.accumulate);
    batch_ = context.values_of(step.batch);
    for (int64_t size : batch_) batches_ = saturating_product(batches_, size);
    operands_ = {context.argument(step.a), context.argument(step.b)};
    const size_t rank = batch_.size() + 2;
    INGOT_CHECK(operands_[0].strides.size() == rank && operands_[1].strides.size() == rank);
    a_row_ = operands_[0].strides[rank - 2], a_column_ = operands_[0].strides[rank - 1];
    b_row_ = operands_[1].strides[rank - 2], b_column_ = operands_[1].strides[rank - 1];
    for (const KernelPtr& kernel : step.tiles) tiles_.push_back(call_of(kernel, context));
    for (const KernelPtr& kernel : step.packs) packs_.push_back(call_of(kernel, context));
    if (step.pack_a) pack_a_ = call_of(step.pack_a, context);
    INGOT_CHECK(pack_a_.entry || a_column_ == element_ || k_ == 1, "k is not contiguous in A");
    if (step.epilogue) {
      epilogue_ = call_of(step.epilogue, context);
      epilogue_scratch_ = step.epilogue->scratch_bytes;
      row_strides_.push_back(0), column_strides_.push_back(c_element_), index_strides_.push_back(0);
      for (const Argument& a : step.epilogue_arguments) {
        operands_.push_back(context.argument(a));
        row_strides_.push_back(operands_.back().strides[rank - 2]);
        column_strides_.push_back(operands_.back().strides[rank - 1]);
        index_strides_.push_back(operands_.back().index_stride);
      }
    } else {
      operands_.push_back(context.argument(step.c));
      c_row_ = operands_[2].strides[rank - 2];
      INGOT_CHECK(operands_[2].strides[rank - 1] == c_element_ || n_ <= 1, "C's columns are contiguous");
    }
    rows_ = Pieces(m_, step.max_rows);
    panels_ = Pieces(ceil_div(n_, kVector), step.max_vectors);
    k_padded_ = round_up(k_, 2);  // bf16 is packed in pairs
    if (step.b_is_weight) {
      weight_buffer = step.b.buffer;
      find_weights();
    }
    divide(context);
  }

  // Packs B if it is not the one packed last, unless it changes too often to be kept.
  void prepare(RunState& state, const InputIdentity& identity, WeightSlot& slot) const override {
    auto& mine = state.weights[step_];
    const void* data = state.buffers[weight_buffer];
    if (mine && mine->matches(data, identity, k_, n_)) return;
    mine.reset();
    if (identity.storage == 0 || k_ == 0) return;
    std::lock_guard lock(slot.mutex);
    if (!slot.current || !slot.current->matches(data, identity, k_, n_)) {
      slot.current.reset();
      if (slot.given_up()) return;
      ++slot.packs;
      auto fresh =
          std::make_shared<PackedWeight>(saturating_product(static_cast<int64_t>(weights_.size()), weight_bytes()));
      fresh->data = data, fresh->identity = identity, fresh->k = k_, fresh->n = n_;
      int64_t panels = panels_.count, total = panels * static_cast<int64_t>(weights_.size());
      int useful = static_cast<int>(std::min<int64_t>(total, threads_for(fresh->bytes, 0)));
      parallel(useful, [&](int thread, int threads) {
        Range range = share(total, thread, threads);
        for (int64_t i = range.begin; i < range.end; ++i) {
          const char* b = operands_[1].at(state) + weights_[i / panels];
          pack_panel(b, i % panels, 0, k_, fresh->panels + i / panels * weight_bytes() + panel_offset(i % panels));
        }
      });
      slot.current = std::move(fresh);
    }
    mine = slot.current;
  }

  void run(RunState& state, const Team& team) const override {
    Range range = share(batches_ * row_cuts_ * panel_cuts_, team.thread, team.threads);
    for (int64_t item = range.begin; item < range.end; ++item) {
      int64_t cut = item % (row_cuts_ * panel_cuts_);
      Range panels = share(panels_.count, static_cast<int>(cut / row_cuts_), panel_cuts_);
      Range rows = share(rows_.count, static_cast<int>(cut % row_cuts_), row_cuts_);
      multiply(state, item / (row_cuts_ * panel_cuts_), rows, panels);
    }
  }

 private:
  static Call call_of(const KernelPtr& source, const BindContext& context) {
    if (!source) return {};
    const LoadedKernel& kernel = context.kernel(source);
    return {kernel.entry, kernel.context};
  }

  // The matrices of a weight: their offsets in B, in order of batch, equal ones (stride 0) once.
  void find_weights() {
    weights_ = {0};
    weight_of_batch_.assign(1, 0);
    for (size_t d = 0; d < batch_.size(); ++d) {
      int64_t stride = operands_[1].strides[d], size = batch_[d];
      std::vector<int64_t> offsets, numbers;
      for (int64_t offset : weights_)
        for (int64_t i = 0; i < (stride ? size : 1); ++i) offsets.push_back(offset + i * stride);
      for (int64_t number : weight_of_batch_)
        for (int64_t i = 0; i < size; ++i) numbers.push_back(stride ? number * size + i : number);
      weights_ = std::move(offsets), weight_of_batch_ = std::move(numbers);
    }
  }

  // Cuts rows and panels so that the slowest thread has the least to do: tiles, and packing where each cut packs for
  // itself.
  void divide(const BindContext& context) {
    int64_t operations = saturating_product(saturating_product(2 * batches_, m_), saturating_product(n_, k_));
    int64_t b_bytes = saturating_product(saturating_product(batches_, element_), saturating_product(n_, k_));
    int64_t useful = std::max(operations / kGrainOperations, b_bytes / kGrainBytes);
    int64_t most = saturating_product(batches_, saturating_product(rows_.count, panels_.count));
    useful_threads = static_cast<int>(std::clamp<int64_t>(std::min(useful, most), 1, 1024));
    int64_t threads = std::min(useful_threads, context.threads);
    // Packing a panel takes as long as about five tiles.
    int64_t packing = weight_buffer >= 0 ? 0 : 5;
    double least = 0;
    for (int64_t panel_cuts = 1; panel_cuts <= std::min(threads, panels_.count); ++panel_cuts)
      for (int64_t row_cuts = 1; row_cuts <= std::min(threads, rows_.count); ++row_cuts) {
        double work = static_cast<double>(ceil_div(panels_.count, panel_cuts)) *
                      static_cast<double>(ceil_div(rows_.count, row_cuts) + packing);
        double cost = static_cast<double>(ceil_div(batches_ * panel_cuts * row_cuts, threads)) * work;
        // Among equals, what reads least: each row cut reads all of B's panels again, each panel cut all of A.
        cost *=
            1 + 1e-3 * static_cast<double>((row_cuts - 1) * n_ + (panel_cuts - 1) * m_) / static_cast<double>(n_ + m_);
        if (least == 0 || cost < least) {
          least = cost;
          row_cuts_ = static_cast<int>(row_cuts), panel_cuts_ = static_cast<int>(panel_cuts);
        }
      }
  }

  int64_t panel_columns(int64_t panel) const {
    return std::min(kVector * (panels_.begin(panel) + panels_.size(panel)), n_) - kVector * panels_.begin(panel);
  }
  int64_t panel_width(int64_t panel) const { return kVector * panels_.size(panel); }
  // Of a panel in packed B: bytes before it, and before its k.
  int64_t panel_offset(int64_t panel) const { return kVector * panels_.begin(panel) * k_padded_ * element_; }
  int64_t weight_bytes() const { return kVector * panels_.n * k_padded_ * element_; }

  void pack_panel(const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to) const {
    const Call& pack = packs_[panels_.size(panel) - 1];
    for (int64_t k = k_begin; k < k_end; k += kBlock) {
      PackFrame frame;
      frame.b = b + k * b_row_ + kVector * panels_.begin(panel) * b_column_;
      frame.panel = to + (k - k_begin) * panel_width(panel) * element_;
      frame.k = std::min(kBlock, k_end - k);
      frame.columns = panel_columns(panel);
      frame.k_stride = b_row_, frame.n_stride = b_column_;
      frame.context = pack.context;
      pack.entry(&frame);
    }
  }

  // Pieces of this thread's scratch.
  struct Scratch {
    char *panels, *a, *c, *epilogue;
    char** at;
  };

  // One batch's rows and panels, given as ranges of tiles.
  void multiply(RunState& state, int64_t batch, Range row_tiles, Range panels) const {
    if (row_tiles.begin >= row_tiles.end || panels.begin >= panels.end) return;
    const int64_t rows = rows_.begin(row_tiles.end) - rows_.begin(row_tiles.begin);
    const PackedWeight* weight = state.weights[step_].get();
    const bool packed = weight != nullptr;
    // The rows whose part of A takes half of L2.
    int64_t block_rows = std::max(cache_sizes().l2 / 2 / std::max<int64_t>(k_ * element_, 1), 4 * (rows_.each + 1));
    block_rows = std::min(ceil_div(rows, ceil_div(rows, block_rows)), rows);
    const int64_t block_tiles = std::max<int64_t>(block_rows / std::max<int64_t>(rows_.each, 1), 1);
    const bool one_block = block_tiles >= row_tiles.end - row_tiles.begin;
    // Panels packed here are used by one block of rows at once, or kept for all blocks of rows a group at a time.
    const int64_t panel_bytes =
        kVector * max_vectors_ * (one_block ? std::min(kBlock, k_padded_) : k_padded_) * element_;
    int64_t group = panels.end - panels.begin;
    if (!packed) group = one_block ? 1 : std::clamp<int64_t>(kGroupBytes / std::max<int64_t>(panel_bytes, 1), 1, group);

    const int64_t most_rows = std::min((block_tiles) * (rows_.each + 1), rows);
    // Rows of packed A start at differing sets of L1.
    const int64_t a_stride = pack_a_.entry ? round_up(k_ * element_, 64) + 64 : a_row_;
    Scratch scratch = lay_out(packed ? 0 : group * panel_bytes, pack_a_.entry ? most_rows * a_stride : 0,
                              epilogue_.entry ? most_rows * kVector * max_vectors_ * c_element_ : 0);
    PlaneWalk walk(batch_, operands_, state, scratch.at, batch);
    const char* a = scratch.at[0];
    const char* b = scratch.at[1];
    const char* weight_panels = packed ? weight->panels + weight_of_batch_[batch] * weight_bytes() : nullptr;

    for (int64_t group_begin = panels.begin; group_begin < panels.end; group_begin += group) {
      const int64_t group_end = std::min(group_begin + group, panels.end);
      for (int64_t tile = row_tiles.begin; tile < row_tiles.end; tile += block_tiles) {
        const int64_t tile_end = std::min(tile + block_tiles, row_tiles.end);
        const int64_t row = rows_.begin(tile), row_count = rows_.begin(tile_end) - row;
        const char* a_block = a + row * a_row_;
        if (pack_a_.entry) {
          pack_rows(a_block, scratch.a, row_count, a_stride);
          a_block = scratch.a;
        }
        for (int64_t panel = group_begin; panel < group_end; ++panel) {
          const int64_t column = kVector * panels_.begin(panel), width = panel_width(panel);
          char* c = epilogue_.entry ? scratch.c : scratch.at[2] + row * c_row_ + column * c_element_;
          const int64_t c_stride = epilogue_.entry ? width * c_element_ : c_row_;
          char* room = scratch.panels + (panel - group_begin) * panel_bytes;
          if (k_ == 0)
            for (int64_t i = 0; i < row_count; ++i) std::memset(c + i * c_stride, 0, panel_columns(panel) * c_element_);
          for (int64_t k = 0; k < k_; k += kBlock) {
            const char* b_block = room + (one_block ? 0 : k * width * element_);
            const int64_t bytes = std::min(kBlock, k_ - k) * width * element_;
            const char* next = nullptr;
            if (packed) {
              b_block = weight_panels + panel_offset(panel) + k * width * element_;
              next = b_block + bytes;  // what comes next in memory is what comes next in time
              if (next + bytes > weight_panels + weight_bytes()) next = nullptr;
            } else if (tile == row_tiles.begin) {
              pack_panel(b, panel, k, std::min(k + kBlock, k_), const_cast<char*>(b_block));
            }
            tile_rows(a_block + k * element_, a_stride, b_block, c, c_stride, tile, tile_end, panel, k, next, bytes);
          }
          if (epilogue_.entry) finish(state, walk, scratch, row, row_count, panel, c_stride);
        }
      }
    }
  }

  Scratch lay_out(int64_t panel_bytes, int64_t a_bytes, int64_t c_bytes) const {
    int64_t sizes[] = {panel_bytes, a_bytes, c_bytes, epilogue_scratch_,
                       2 * static_cast<int64_t>((operands_.size() + 1) * sizeof(char*))};
    int64_t offsets[5], total = 0;
    for (int i = 0; i < 5; ++i) {
      offsets[i] = total;
      total += round_up(sizes[i], 64) + (sizes[i] > 4096 ? 512 : 0);  // see allocator.cpp for the stagger
    }
    char* memory = thread_scratch(total);
    return {memory + offsets[0], memory + offsets[1], memory + offsets[2], memory + offsets[3],
            reinterpret_cast<char**>(memory + offsets[4])};
  }

  void pack_rows(const char* a, char* to, int64_t rows, int64_t to_stride) const {
    char* buffers[] = {const_cast<char*>(a), to};
    const int64_t row_strides[] = {a_row_, to_stride}, column_strides[] = {a_column_, element_},
                  index_strides[] = {0, 0};
    KernelFrame frame{};
    frame.buffers = buffers;
    frame.row_strides = row_strides, frame.column_strides = column_strides, frame.index_strides = index_strides;
    frame.rows = rows, frame.columns = k_;
    frame.context = pack_a_.context;
    pack_a_.entry(&frame);
  }

  // One block of k, one panel, all tiles of the row block; meanwhile the next block of B is fetched, a piece a tile.
  void tile_rows(const char* a, int64_t a_stride, const char* b, char* c, int64_t c_stride, int64_t tile_begin,
                 int64_t tile_end, int64_t panel, int64_t k, const char* next, int64_t next_bytes) const {
    TileFrame frame;
    frame.b = b;
    frame.k = std::min(kBlock, k_ - k);
    frame.a_stride = a_stride, frame.c_stride = c_stride;
    frame.accumulate = k > 0;
    frame.columns = panel_columns(panel);
    const int64_t vectors = panels_.size(panel), first = rows_.begin(tile_begin);
    const int64_t piece = next && tile_end - tile_begin >= 4 ? round_up(next_bytes / (tile_end - tile_begin), 64) : 0;
    for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
      const Call& call = tiles_[(rows_.size(tile) - 1) * max_vectors_ + vectors - 1];
      const int64_t row = rows_.begin(tile) - first;
      frame.a = a + row * a_stride;
      frame.c = c + row * c_stride;
      frame.context = call.context;
      if (piece) {
        int64_t offset = (tile - tile_begin) * piece;
        if (offset < next_bytes) prefetch(next + offset, std::min(piece, next_bytes - offset));
      }
      call.entry(&frame);
    }
  }

  void finish(RunState& state, const PlaneWalk& walk, const Scratch& scratch, int64_t row, int64_t rows, int64_t panel,
              int64_t c_stride) const {
    const size_t count = operands_.size() - 1;  // the raw tile instead of A and B
    char** at = scratch.at + operands_.size();
    const int64_t column = kVector * panels_.begin(panel);
    at[0] = scratch.c;
    for (size_t i = 1; i < count; ++i) at[i] = scratch.at[i + 1] + row * row_strides_[i] + column * column_strides_[i];
    int64_t row_strides[32];
    INGOT_CHECK(count <= 32, "an epilogue of more than 31 operands");
    std::copy(row_strides_.begin(), row_strides_.end(), row_strides);
    row_strides[0] = c_stride;
    KernelFrame frame;
    frame.buffers = at;
    frame.row_strides = row_strides;
    frame.column_strides = column_strides_.data();
    frame.index_strides = index_strides_.data();
    frame.scalars = state.scalars.data() + first_scalar_;
    frame.rows = rows, frame.columns = panel_columns(panel);
    frame.scratch = scratch.epilogue;
    frame.row_index = row, frame.column_index = column;
    frame.outer_index = walk.index();
    frame.context = epilogue_.context;
    epilogue_.entry(&frame);
  }

  const uint32_t first_scalar_, step_;
  const int64_t max_vectors_;
  int64_t m_ = 0, n_ = 0, k_ = 0, k_padded_ = 0, batches_ = 1;
  int64_t element_ = 4, c_element_ = 4;
  int64_t a_row_ = 0, a_column_ = 0, b_row_ = 0, b_column_ = 0, c_row_ = 0;
  Ints batch_;
  std::vector<BoundArgument> operands_;  // A, B, then C or the epilogue's
  std::vector<Call> tiles_, packs_;
  Call pack_a_, epilogue_;
  int64_t epilogue_scratch_ = 0;
  std::vector<int64_t> row_strides_, column_strides_, index_strides_;  // of the epilogue's buffers
  Pieces rows_, panels_;                                               // panels in units of 16 columns
  int row_cuts_ = 1, panel_cuts_ = 1;
  std::vector<int64_t> weights_, weight_of_batch_;
};

}  // namespace

std::unique_ptr<StepDriver> bind_matmul(const MatmulStep& step, const BindContext& context) {
  return std::make_unique<MatmulDriver>(step, context);
}

}  // namespace ingot::runtime
