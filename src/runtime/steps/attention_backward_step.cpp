// The gradients of attention, by blocks of queries: the probabilities P again, by the code of attention; then, with G
// the gradient of the result, S = P (G v^T - rows' sums of P (G v^T)) scale. Nothing is kept of the forward pass.
//
// The order of sums: a row's sum is that of its columns in the canonical order; for_query = S k is a product over the
// keys. for_key = S^T q and for_value = P^T G are sums over queries: blocks of 64 (causal: 32) queries in order, heads
// that share a key head one after another; each block is a product from zero, added to +0 and those before it. Threads
// take whole key heads, so the order is the same for any number of them.
//
// What is hidden has no part in S, NaN as well. As in attention, the products meet a hidden place as zero times what
// lies there, if the block reaches it at all: a NaN in a row is seen by keys that are hidden to that row.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "runtime/steps/attention_rows.h"
#include "runtime/steps/steps.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kCausalBackwardQueries = 32;  // in a block

class AttentionBackwardDriver final : public AttentionRows {
 public:
  struct Kernels : AttentionRows::Kernels {
    std::vector<KernelCall> across, row_packs;
    KernelCall slope;
    Kernels(const AttentionBackwardStep& step, const BindContext& context)
        : AttentionRows::Kernels(step.probabilities, context),
          across(calls_of(step.across->tiles, context)),
          row_packs(calls_of(step.across->packs, context)),
          slope(call_of(step.slope, context)) {}
  };

  AttentionBackwardDriver(const AttentionBackwardStep& step, const Kernels& kernels, const BindContext& context)
      : AttentionRows(step.probabilities, kernels, step.value_depth, false, context), calls_(kernels) {
    value_ = context.argument(step.value), gradient_ = context.argument(step.gradient);
    auto wanted = [&](const std::optional<Argument>& a) {
      return a ? std::optional(context.argument(*a)) : std::nullopt;
    };
    for_query_ = wanted(step.for_query), for_key_ = wanted(step.for_key), for_value_ = wanted(step.for_value);
    block_rows_ = causal_ ? kCausalBackwardQueries : kMostRows;
    slope_bytes_ = step.slope->scratch_bytes;
    useful_threads = threads_for_scores(6 * depth_ + 4 * value_depth_, saturating_product(batch_, key_heads_));
  }

  void run(const StepState& state, int, int share, int shares) const override {
    const Range range = runtime::share(batch_ * key_heads_, share, shares);
    if (range.begin == range.end) return;
    const Scratch scratch = lay_out(state);
    for (int64_t head = range.begin; head < range.end; ++head) {
      Block w{};
      w.batch = head / key_heads_, w.key_head = head % key_heads_;
      pack_transposed(state, key_, scratch.keys, w);
      if (slopes()) pack_transposed(state, value_, scratch.values, w);
      if (for_query_) pack_rows(calls_.row_packs, state, key_, scratch.key_rows, w);
      if (for_key_) clear(state, *for_key_, w, depth_);
      if (for_value_) clear(state, *for_value_, w, value_depth_);
      for (int64_t member = 0; member < group(); ++member)
        for (w.row = 0; w.row < rows_; w.row += block_rows_) {
          w.head = w.key_head * group() + member;
          w.rows = std::min(block_rows_, rows_ - w.row);
          add_block(state, scratch, w);
        }
    }
  }
  int64_t scratch_bytes(const StepState&) const override {
    const std::array<int64_t, 7> sizes = scratch_parts();
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  }

 private:
  struct Scratch {
    Packed keys, values, key_rows;  // of a key head: transposed, transposed, as it is
    char *scores, *slopes, *panels, *kernel;
  };

  bool slopes() const { return for_query_ || for_key_; }

  /// Of each part, in the order of Scratch.
  std::array<int64_t, 7> scratch_parts() const {
    const int64_t rows = std::min(block_rows_, rows_), scores = round_up(rows * score_row_, 64);
    return {bytes_of(packed(depth_, keys_)),
            slopes() ? bytes_of(packed(value_depth_, keys_)) : 0,
            for_query_ ? bytes_of(packed(keys_, depth_)) : 0,
            scores,
            slopes() ? scores : 0,
            std::max(bytes_of(packed(rows, depth_)), bytes_of(packed(rows, value_depth_))),
            std::max(softmax_bytes_, slope_bytes_)};
  }

  Scratch lay_out(const StepState& state) const {
    Scratch s{packed(depth_, keys_), packed(value_depth_, keys_), packed(keys_, depth_), {}, {}, {}, {}};
    char** const parts[] = {&s.keys.memory, &s.values.memory, &s.key_rows.memory, &s.scores,
                            &s.slopes,      &s.panels,        &s.kernel};
    const std::array<int64_t, 7> sizes = scratch_parts();
    char* next = thread_scratch(scratch_bytes(state));
    for (size_t i = 0; i < std::size(parts); ++i) *parts[i] = next, next += sizes[i];
    return s;
  }

  void clear(const StepState& state, const BoundArgument& a, const Block& w, int64_t columns) const {
    char* row = matrix_of(state, a, w);
    for (int64_t key = 0; key < keys_; ++key, row += a.strides[2]) std::memset(row, 0, columns * element_);
  }

  /// result += A^T B: A are scores of the block, B the rows that it has of `a`.
  void add_product(const StepState& state, const Scratch& scratch, const Block& w, const char* scores,
                   const BoundArgument& a, int64_t columns, const BoundArgument& result) const {
    Packed rows = packed(w.rows, columns);
    rows.memory = scratch.panels;
    pack(calls_.row_packs, rows, rows_of(state, a, w), a.strides[2], element_);
    multiply(calls_.across, {scores, score_row_, true}, visible(w), rows, w.rows, columns, matrix_of(state, result, w),
             result.strides[2], true);
  }

  void add_block(const StepState& state, const Scratch& s, const Block& w) const {
    probabilities(state, s.keys, w, s.scores, s.kernel);
    if (for_value_) add_product(state, s, w, s.scores, gradient_, value_depth_, *for_value_);
    if (!slopes()) return;
    multiply(tiles(), {rows_of(state, gradient_, w), gradient_.strides[2]}, w.rows, s.values, value_depth_, visible(w),
             s.slopes, score_row_);
    each_row(calls_.slope, state, w, {s.scores, s.slopes, s.slopes}, s.kernel);
    if (for_query_)
      multiply(tiles(), {s.slopes, score_row_}, w.rows, s.key_rows, visible(w), depth_, rows_of(state, *for_query_, w),
               for_query_->strides[2]);
    if (for_key_) add_product(state, s, w, s.slopes, query_, depth_, *for_key_);
  }

  int64_t block_rows_ = 0, slope_bytes_ = 0;
  BoundArgument value_, gradient_;
  std::optional<BoundArgument> for_query_, for_key_, for_value_;
  const Kernels& calls_;
};

}  // namespace

StepDriver* bind(const AttentionBackwardStep& step, const Step&, const BindContext& context) {
  return context.make<AttentionBackwardDriver>(
      step, context.constants([&] { return AttentionBackwardDriver::Kernels(step, context); }), context);
}

}  // namespace ingot::runtime
