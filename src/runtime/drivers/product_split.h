// A product as a split reduction: where k is long and the result small, threads take blocks of k; each block's partial
// accumulators are kept apart, then added in the order of the blocks, so the split shows in no bit.
#pragma once
#include "runtime/drivers/product_result.h"

namespace ingot::runtime {

class ProductSplit {
 public:
  ProductSplit() = default;
  /// Splits k where that pays: `useful` threads would, `allowed` may run it.
  ProductSplit(const Product& product, int64_t useful, int64_t allowed);
  explicit operator bool() const { return splits_ > 1; }

  int64_t splits() const { return splits_; }
  /// What one split takes of k: whole blocks.
  Range part_of_k(const Product& product, int64_t split) const;

  /// What the partial accumulators of all blocks take. All blocks of a batch lie one after the other, each as C does.
  int64_t bytes(const Product& product) const { return product.batches * blocks_ * block_bytes_; }
  int64_t row_stride() const { return row_stride_; }
  /// Those of the block of k that begins at `k`, given where all begin.
  char* accumulators(char* all, int64_t batch, int64_t k) const {
    return all + (batch * blocks_ + k / Product::kBlock) * block_bytes_;
  }
  /// What the thread's scratch holds while they are added up.
  static ProductRooms rooms(const Product& product);
  /// One of `shares` shares of adding them up and finishing what they give.
  void add_up(const Product& product, const ProductResult& result, const StepState& state, char* all, int share,
              int shares) const;

 private:
  void add_tile(const ProductRun& run, const ProductResult& result, char* batch, int64_t tile, int64_t panel) const;

  int64_t splits_ = 1, blocks_ = 1;
  int64_t row_stride_ = 0, block_bytes_ = 0;
};

}  // namespace ingot::runtime
