// What attention and its gradients have in common: the packed operands of a head, products of a block of its queries,
// and kernels over the rows of their scores.
#pragma once
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/pieces.h"
#include "runtime/drivers/product_row.h"

namespace ingot::runtime {

class AttentionRows : public StepDriver {
 protected:
  struct Kernels {
    std::vector<KernelCall> tiles, packs;
    RowCalls of_row;
    KernelCall softmax;
    Kernels(const AttentionProbabilities& step, const BindContext& context);
  };
  /// `heads_as_rows`: of one query a head, the heads that share a key head are the rows of one product.
  AttentionRows(const AttentionProbabilities& step, const Kernels& kernels, Dim value_depth, bool heads_as_rows,
                const BindContext& context);

  static constexpr int64_t kMostRows = 64;  // of a block

  /// Neighbouring queries of a head, or the heads of one query.
  struct Block {
    int64_t batch, key_head, head, row, rows;
  };
  /// A right operand [k, n] in panels.
  struct Packed {
    int64_t k = 0, n = 0;
    Pieces panels;  // in units of 16 columns
    char* memory = nullptr;
  };
  /// A left operand: `stride` is from row to row, or across from one k to the next.
  struct Left {
    const char* at;
    int64_t stride;
    bool across = false;
  };

  Packed packed(int64_t k, int64_t n) const;
  int64_t bytes_of(const Packed& b) const;
  /// Packs what lies at `from`, with these strides in bytes, k in blocks.
  void pack(const std::vector<KernelCall>& packs, const Packed& b, const char* from, int64_t k_stride,
            int64_t n_stride) const;
  /// C = A x B, or C + A x B, over the first `k` of k and the panels that begin before column `n`.
  void multiply(const std::vector<KernelCall>& tiles, const Left& a, int64_t rows, const Packed& b, int64_t k,
                int64_t n, char* c, int64_t c_stride, bool add = false) const;

  int64_t group() const { return key_heads_ ? heads_ / key_heads_ : 0; }
  int64_t row_dim() const { return heads_as_rows_ ? 1 : 2; }
  int64_t row_stride(const BoundArgument& a) const { return a.strides[row_dim()]; }
  /// Where the rows of a block lie; the matrix of its key head.
  char* rows_of(const StepState& state, const BoundArgument& a, const Block& w) const;
  char* matrix_of(const StepState& state, const BoundArgument& a, const Block& w) const;
  /// Keys that a row of a block sees; those that any of its rows sees.
  int64_t visible(const Block& w, int64_t row) const;
  int64_t visible(const Block& w) const { return visible(w, w.rows - 1); }

  /// Whether each key head has one row alone: packing costs more than it spares.
  bool one_row() const { return heads_as_rows_ && rows_ == 1 && !causal_; }
  /// Packs the transposed matrix that a block's key head has of `a`, whose rows are contiguous: a right operand of
  /// scores.
  void pack_transposed(const StepState& state, const BoundArgument& a, const Packed& b, const Block& w) const;
  /// The matrix itself; by packs of a B whose rows are dense.
  void pack_rows(const std::vector<KernelCall>& packs, const StepState& state, const BoundArgument& a, const Packed& b,
                 const Block& w) const;
  /// Of an A that lies along k.
  const std::vector<KernelCall>& tiles() const { return kernels_.tiles; }
  /// The probabilities of a block, score_row_ bytes a row: zero behind what a row sees. Of keys that are not packed the
  /// rows are read as they lie.
  void probabilities(const StepState& state, const Packed& keys, const Block& w, char* scores, char* scratch) const;
  /// A kernel over the rows of matrices like the scores and the mask; in the last matrix it is zero behind what a row
  /// sees.
  void each_row(const KernelCall& kernel, const StepState& state, const Block& w, std::initializer_list<char*> matrices,
                char* scratch) const;
  /// Threads that pay for products of so many operations a score, if they share so many pieces of work.
  int threads_for_scores(int64_t operations, int64_t pieces) const;

  int64_t batch_, heads_, key_heads_, queries_, keys_, depth_, value_depth_;
  int64_t element_ = 4, rows_ = 0, score_row_ = 0, softmax_bytes_ = 0;
  bool causal_ = false, wide_ = false, given_scalars_ = false, heads_as_rows_ = false;
  bool keys_as_they_lie_ = false;
  BoundArgument query_, key_;
  std::optional<BoundArgument> mask_;

 private:
  void score_as_they_lie(const StepState& state, const Block& w, char* scores) const;

  int64_t max_rows_ = 1, max_vectors_ = 1;
  const Kernels& kernels_;
};

}  // namespace ingot::runtime
