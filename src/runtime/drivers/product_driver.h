// A matrix product over generated tiles: how it is cut, and how its loops (product_loops.h) are blocked. Where A and B
// come from is for the kinds of product to say.
#pragma once
#include <algorithm>
#include <vector>

#include "runtime/drivers/product.h"
#include "runtime/drivers/product_ahead.h"
#include "runtime/drivers/product_result.h"
#include "runtime/drivers/product_split.h"

namespace ingot::runtime {

/// Computes a product, with an epilogue on each finished piece.
class ProductDriver : public StepDriver {
 public:
  void run(const StepState& state, int phase, int share, int shares) const override;
  int64_t scratch_bytes(const StepState& state) const override;

 protected:
  /// To be followed by product_.set_sizes(), set_operands(), divide().
  ProductDriver(const ProductKernels& kernels, const ProductCalls& calls) : product_(kernels, calls) {}
  /// A, B (strides over [batch..., row, column]), then the epilogue's arguments.
  void set_operands(const BoundArguments& operands, const ProductSegments& segments = {}) {
    product_.set_operands(operands);
    result_ = ProductResult(product_, segments);
  }
  /// Cuts rows and panels for context.threads. `packing`: tiles that take as long as packing their panel of B, 0 if it
  /// is packed before. Where k may be split, this driver has the phases of the step to itself. Binds the prologue, too.
  void divide(const BindContext& context, int64_t packing, bool may_split_k = false);

  /// Where the A of a batch starts, given where its argument does.
  virtual const char* a_matrix(const StepState&, int64_t /*batch*/, const char* argument) const { return argument; }
  /// Of a listed A: the addresses of the rows of these tiles, [tiles][addresses of a row][most rows of a tile], or
  /// those of windows. Of a run whose rows are zeros in all of a tile the first may be null, if there are zero_runs().
  virtual void list_rows(int64_t /*batch*/, const char* /*a*/, Range /*tiles*/, const char** /*to*/) const {}
  /// Of windows: the memory that these tiles are the first to read, mostly; a is where A begins.
  virtual Ahead rows_source(const char* /*a*/, Range /*tiles*/) const { return {}; }
  /// What zeros, multiplied by a run of a panel's rows of B, add to sums: [runs of this block of k][panel's width]. It
  /// is a zero, of the sign that an underflown sum takes from it, or NaN.
  virtual const char* zero_runs(const StepState&, int64_t /*batch*/, int64_t /*panel*/, int64_t /*block*/) const {
    return nullptr;
  }
  /// Where the B of a batch starts; it may be put together in `room`, Product::b_room bytes of this thread.
  virtual const char* b_matrix(const char* argument, char* /*room*/) const { return argument; }
  /// All of B's panels of a batch, already packed, or null.
  virtual const char* packed_panels(const StepState&, int64_t /*batch*/) const { return nullptr; }
  /// What packing these rows of a panel will read, if that is worth fetching.
  virtual Ahead panel_source(const char* /*b*/, int64_t /*panel*/, int64_t /*k_begin*/, int64_t /*k_end*/) const {
    return {};
  }
  /// Packs rows [k_begin, k_end) of one panel, [k][width], from the B that starts at b.
  virtual void pack_panel(const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to) const = 0;

  static constexpr int64_t kBlock = Product::kBlock, kVector = Product::kVector;
  Product product_;

 private:
  class Loops;
  void cut(int64_t threads, int64_t packing);
  /// Tiles that an epilogue finishes at once, while their sums are in L1.
  int64_t tiles_at_once() const {
    constexpr int64_t kBytes = 12 << 10;
    return std::max<int64_t>(kBytes / (product_.max_rows * kVector * product_.max_vectors * product_.c_element), 1);
  }
  /// What one thread takes of a batch: tiles of rows, panels, and of k all or some blocks.
  struct Part {
    Range rows, panels, k;
  };
  int64_t parts() const { return split_ ? split_.splits() : row_cuts_ * panel_cuts_; }
  Part part(int64_t number) const;
  /// How its loops are blocked. `tiles`: of rows, in a block of them; `span`, `stretch`: of k; `group`: panels packed,
  /// or waiting for the next stretch, at a time; raw_bytes: that the sums of one take meanwhile; few_rows: it has one
  /// tile of them, which takes all of k; fetches_a: the first panel's tiles fetch rows of A, not the B that comes next;
  /// fetches_rows: all tiles fetch what the next block of rows reads and writes, line after line.
  struct Blocking {
    bool one_block, wide_panels, few_rows, fetches_a, fetches_rows;
    int64_t tiles, span, stretch, group, panel_bytes, raw_bytes, packed_line;
    ProductRooms rooms;
  };
  Blocking blocking(const Part& part, bool packed) const;
  void multiply(const StepState& state, int64_t batch, const Part& part) const;
  int64_t address_bytes() const { return product_.addresses * 8; }  // of a tile of a listed A

  ProductResult result_;
  ProductSplit split_;
  const ProductPrologue* prologue_ = nullptr;  // what makes rows of A, or null
  int row_cuts_ = 1, panel_cuts_ = 1;
};

}  // namespace ingot::runtime
