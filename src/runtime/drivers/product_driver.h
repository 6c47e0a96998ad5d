// The loops of a matrix product over generated tiles; where A and B come from is for the kinds of product to say.
#pragma once
#include <algorithm>
#include <vector>

#include "base/canonical_order.h"
#include "base/error.h"
#include "runtime/drivers/step_driver.h"
#include "runtime/memory/weight_cache.h"

namespace ingot::runtime {

/// n cut into pieces of at most `most` whose sizes differ by one at most, larger and smaller ones mixed evenly. Their
/// number is a multiple of `multiple` where n allows.
struct Pieces {
  int64_t n = 0, count = 0, each = 0, extra = 0;
  Pieces() = default;
  Pieces(int64_t total, int64_t most, int64_t multiple = 1) : n(total) {
    count = (total + most - 1) / most;
    count = std::min((count + multiple - 1) / multiple * multiple, total);
    if (count) each = n / count, extra = n % count;
  }
  int64_t begin(int64_t i) const { return i * each + (extra ? i * extra / count : 0); }
  int64_t size(int64_t i) const { return begin(i + 1) - begin(i); }
};

/// A kernel that is ready to be called.
struct KernelCall {
  KernelEntry entry = nullptr;
  const void* context = nullptr;
  explicit operator bool() const { return entry != nullptr; }
};
KernelCall call_of(const KernelPtr& source, const BindContext& context);  // of no kernel: false
std::vector<KernelCall> calls_of(std::span<const KernelPtr> sources, const BindContext& context);

/// The kernels of a product and its epilogue: the same for all sizes.
struct ProductCalls {
  std::vector<KernelCall> tiles, packs, epilogues, wide_tiles;
  KernelCall pack_a, widen, widen_rows, add_row, add_rows, transposed;
  int64_t epilogue_scratch = 0;
  ProductCalls(const ProductKernels& kernels, const Epilogue& epilogue, const BindContext& context);
};

/// C[batch..., m, n] = A[batch..., m, k] x B[batch..., k, n], then an epilogue on each finished piece.
class ProductDriver : public StepDriver {
 public:
  void run(RunState& state, int phase, int share, int shares) const override;

 protected:
  struct Sizes {
    Ints batch;
    int64_t m, n, k;
    DType dtype, accumulate;
  };
  /// To be followed by these in this order, then divide().
  ProductDriver(const ProductKernels& kernels, const Epilogue& epilogue, const BindContext& context);
  void set_sizes(const Sizes& sizes);
  /// A, B (strides over [batch..., row, column]), then the epilogue's arguments.
  void set_operands(std::vector<BoundArgument> operands, const Epilogue& epilogue);
  /// Cuts rows and panels for context.threads. `packing`: tiles that take as long as packing their panel of B, 0 if it
  /// is packed before. Where k may be cut, this driver has the phases of the step to itself.
  void divide(const BindContext& context, int64_t packing, bool may_cut_k = false);
  /// Columns lie in memory in segments, `strides` apart (one an operand): as the pixels of several images do. Only with
  /// an epilogue.
  void set_segments(int64_t columns, std::vector<int64_t> strides) {
    segment_ = columns, segment_strides_ = std::move(strides);
  }

  /// Where the A of a batch starts, given where its argument does.
  virtual const char* a_matrix(const RunState&, int64_t /*batch*/, const char* argument) const { return argument; }
  /// Where the B of a batch starts; it may be put together in `room`, b_room_ bytes of this thread.
  virtual const char* b_matrix(const char* argument, char* /*room*/) const { return argument; }
  /// All of B's panels of a batch, already packed, or null.
  virtual const char* packed_panels(const RunState&, int64_t /*batch*/) const { return nullptr; }
  /// Memory that is read soon: `rows` rows, `stride` apart, of so many lines of 64 bytes.
  struct Ahead {
    const char* from = nullptr;
    int64_t rows = 0, row_lines = 0, stride = 0;
  };
  static Ahead lines(const char* from, int64_t bytes);
  /// What packing these rows of a panel will read, if that is worth fetching.
  virtual Ahead panel_source(const char* /*b*/, int64_t /*panel*/, int64_t /*k_begin*/, int64_t /*k_end*/) const {
    return {};
  }
  /// Packs rows [k_begin, k_end) of one panel, [k][width], from the B that starts at b.
  virtual void pack_panel(const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to) const = 0;

  int64_t panel_column(int64_t panel) const { return kVector * panels_.begin(panel); }
  int64_t panel_width(int64_t panel) const { return kVector * panels_.size(panel); }
  int64_t panel_columns(int64_t panel) const {
    return std::min(panel_column(panel) + panel_width(panel), sizes_.n) - panel_column(panel);
  }
  // In packed B: bytes before a panel, and of all.
  int64_t panel_offset(int64_t panel) const { return panel_column(panel) * k_padded_ * element_; }
  int64_t packed_bytes() const { return kVector * panels_.n * k_padded_ * element_; }

  static constexpr int64_t kBlock = canonical::kProductBlock;  // of k
  static constexpr int64_t kVector = 16;                       // columns
  const uint32_t first_scalar_, step_;
  const int64_t max_rows_, max_vectors_;  // of a tile
  Sizes sizes_;
  int64_t element_ = 4, a_element_ = 4, c_element_ = 4,  // a: as tiles read it
      k_padded_ = 0, batches_ = 1;
  int64_t a_row_ = 0, a_column_ = 0;
  int64_t b_row_ = 0, b_column_ = 0, b_room_ = 0;
  std::shared_ptr<const ProductCalls> kernels_;
  OneRow one_row_ = OneRow::tiles;
  std::vector<BoundArgument> operands_;
  Pieces rows_, panels_;  // panels in units of 16 columns

 private:
  // Pieces of a thread's scratch.
  struct Scratch {
    char *panels, *wide, *a, *b, *c, *epilogue;
    char** at;
  };

  // One panel's piece of one block of rows.
  struct Block {
    int64_t tile_begin, tile_end, row, rows;
    int64_t panel, k;
    char* c;
    int64_t a_stride, c_stride;
  };

  // What all blocks of a batch have in common.
  struct Run {
    RunState& state;
    const PlaneWalk& walk;
    const Scratch& scratch;
  };
  bool divide_k(int64_t useful, int64_t threads);
  void multiply(RunState& state, int64_t batch, Range row_tiles, Range panels, Range k) const;
  bool reads_b_as_it_lies() const;
  void multiply_row(RunState& state, int64_t batch, Range panels, Range k) const;
  void add_rows(const char* a, const char* b, char* total, char* sums, int64_t columns, Range k) const;
  void add_columns(const char* a, const char* b, char* total, int64_t columns, Range k) const;
  void run_k(RunState& state, int share, int shares) const;
  void add_up(RunState& state, int share, int shares) const;
  void add_up_tile(RunState& state, int64_t batch, int64_t tile, int64_t panel) const;
  char* block_sum(const RunState& state, int64_t batch, int64_t block) const;
  Scratch lay_out(int64_t panel_bytes, int64_t a_bytes, int64_t c_bytes) const;
  void widen(const char* packed, char* to, int64_t k, int64_t width) const;
  void widen_rows(const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to) const;
  void pack_rows(const char* a, char* to, int64_t rows, int64_t k, int64_t to_stride) const;
  void tile_rows(const Run& run, const Block& block, const std::vector<KernelCall>& calls, const char* a, const char* b,
                 const Ahead& next) const;
  void finish(const Run& run, const Block& block, int64_t row, int64_t rows) const;
  char* place(const Run& run, size_t operand, int64_t row, int64_t column) const;

  int64_t c_row_ = 0;
  size_t result_ = 2;                                                     // the operand that is written first
  SmallVector<int64_t, 4> row_strides_, column_strides_, index_strides_;  // of the epilogue's buffers
  int row_cuts_ = 1, panel_cuts_ = 1;
  // Where k is long and the result small, k is cut: the sums of its blocks are kept apart, then added in order.
  int64_t k_cuts_ = 1, k_blocks_ = 1, sum_stride_ = 0, sum_bytes_ = 0;
  int64_t segment_ = INT64_MAX;
  std::vector<int64_t> segment_strides_;
};

}  // namespace ingot::runtime
