// Attention: scores of a block of queries against all keys in scratch, softmax over each row, product with the values.
// Keys and values are packed once a key head. Causal attention skips the keys behind a block's last query; the length
// of a block is the same on every machine, so the skipping shows in no bit.
#include <algorithm>

#include "runtime/steps/attention_rows.h"
#include "runtime/steps/steps.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kCausalQueries = 16;  // in a block

class AttentionDriver final : public AttentionRows {
 public:
  struct Kernels : AttentionRows::Kernels {
    std::vector<KernelCall> value_packs;
    Kernels(const AttentionStep& step, const BindContext& context)
        : AttentionRows::Kernels(step.probabilities, context), value_packs(calls_of(step.products->packs, context)) {}
  };

  AttentionDriver(const AttentionStep& step, const Kernels& kernels, const BindContext& context)
      : AttentionRows(step.probabilities, kernels, step.value_depth, true, context), packs_(kernels.value_packs) {
    out_ = context.argument(step.out), value_ = context.argument(step.value);
    block_rows_ = causal_ && !heads_as_rows_ ? kCausalQueries : kMostRows;
    const int64_t heads = saturating_product(batch_, key_heads_), blocks = ceil_div(rows_, block_rows_);
    useful_threads = threads_for_scores(2 * (depth_ + value_depth_), saturating_product(heads, blocks));
    const int64_t threads = std::min(useful_threads, context.threads);
    if (heads > 0 && heads % threads != 0 && heads < 4 * threads) cuts_ = std::min(threads, blocks);
  }

  void run(const StepState& state, int, int share, int shares) const override {
    Range range = runtime::share(batch_ * key_heads_ * cuts_, share, shares);
    Packed keys = packed(depth_, keys_), values = packed(keys_, value_depth_);
    keys.memory = thread_scratch(scratch_bytes(state));
    values.memory = keys.memory + bytes_of(keys);
    char* scores = values.memory + bytes_of(values);
    int64_t in_scratch = -1;  // key head whose keys and values lie there
    for (int64_t item = range.begin; item < range.end; ++item) {
      const int64_t head = item / cuts_;
      Block w{};
      w.batch = head / key_heads_, w.key_head = head % key_heads_;
      if (in_scratch != head) {
        pack_transposed(state, key_, keys, w);
        pack_rows(packs_, state, value_, values, w);
      }
      in_scratch = head;
      // Later blocks see more keys: each cut takes every cuts_-th block.
      const int64_t first = item % cuts_, blocks = ceil_div(rows_, block_rows_);
      for (int64_t member = 0; member < (heads_as_rows_ ? 1 : group()); ++member)
        for (int64_t block = first; block < blocks; block += cuts_) {
          w.head = w.key_head * group() + member;
          w.row = block * block_rows_, w.rows = std::min(block_rows_, rows_ - w.row);
          probabilities(state, keys, w, scores, scores + scores_bytes());
          multiply(tiles(), {scores, score_row_}, w.rows, values, visible(w), value_depth_, rows_of(state, out_, w),
                   row_stride(out_));
        }
    }
  }
  int64_t scratch_bytes(const StepState&) const override {
    return bytes_of(packed(depth_, keys_)) + bytes_of(packed(keys_, value_depth_)) + scores_bytes() + softmax_bytes_;
  }

 private:
  int64_t scores_bytes() const { return round_up(std::min(block_rows_, rows_) * score_row_, 64); }  // of a block
  int64_t block_rows_ = 0, cuts_ = 1;
  BoundArgument out_, value_;
  const std::vector<KernelCall>& packs_;  // of values
};

}  // namespace

StepDriver* bind(const AttentionStep& step, const Step&, const BindContext& context) {
  return context.make<AttentionDriver>(step, context.constants([&] { return AttentionDriver::Kernels(step, context); }),
                                       context);
}

}  // namespace ingot::runtime
