// Attention: scores of a block of queries against all keys in scratch, softmax over each row, product with the values.
// Keys and values are packed once a key head; one row reads them as they lie. Causal attention skips the keys
// behind a block's last query; the length of a block is the same on every machine, so the skipping shows in no bit.
#include <algorithm>

#include "runtime/steps/attention_rows.h"
#include "runtime/steps/steps.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kCausalForwardQueries = 16;  // in a block

class AttentionDriver final : public AttentionRows {
 public:
  struct Kernels : AttentionRows::Kernels {
    std::vector<KernelCall> value_packs;
    RowCalls of_values;
    Kernels(const AttentionStep& step, const BindContext& context)
        : AttentionRows::Kernels(step.probabilities, context),
          value_packs(calls_of(step.products->packs, context)),
          of_values(*step.products, context) {}
  };

  AttentionDriver(const AttentionStep& step, const Kernels& kernels, const BindContext& context)
      : AttentionRows(step.probabilities, kernels, step.value_depth, true, context),
        packs_(kernels.value_packs),
        of_values_(kernels.of_values) {
    values_as_they_lie_ = one_row() && of_values_.add_rows;
    out_ = context.argument(step.out), value_ = context.argument(step.value);
    block_rows_ = causal_ && !heads_as_rows_ ? kCausalForwardQueries : kMostRows;
    const int64_t heads = saturating_product(batch_, key_heads_), blocks = ceil_div(rows_, block_rows_);
    useful_threads = threads_for_scores(2 * (depth_ + value_depth_), saturating_product(heads, blocks));
    const int64_t threads = std::min(useful_threads, context.threads);
    if (heads > 0 && heads % threads != 0 && heads < 4 * threads) cuts_ = std::min(threads, blocks);
  }

  void run(const StepState& state, int, int share, int shares) const override {
    Range range = runtime::share(batch_ * key_heads_ * cuts_, share, shares);
    Packed keys = packed_keys(), values = packed_values();
    keys.memory = thread_scratch(scratch_bytes(state));
    values.memory = keys.memory + bytes_of(keys);
    char* scores = values.memory + bytes_of(values);
    int64_t in_scratch = -1;  // key head whose keys and values lie there
    for (int64_t item = range.begin; item < range.end; ++item) {
      const int64_t head = item / cuts_;
      Block w{};
      w.batch = head / key_heads_, w.key_head = head % key_heads_;
      if (in_scratch != head) {
        if (!keys_as_they_lie_) pack_transposed(state, key_, keys, w);
        if (!values_as_they_lie_) pack_rows(packs_, state, value_, values, w);
      }
      in_scratch = head;
      // Later blocks see more keys: each cut takes every cuts_-th block.
      const int64_t first = item % cuts_, blocks = ceil_div(rows_, block_rows_);
      for (int64_t member = 0; member < (heads_as_rows_ ? 1 : group()); ++member)
        for (int64_t block = first; block < blocks; block += cuts_) {
          w.head = w.key_head * group() + member;
          w.row = block * block_rows_, w.rows = std::min(block_rows_, rows_ - w.row);
          probabilities(state, keys, w, scores, scores + scores_bytes());
          if (values_as_they_lie_) {
            weigh_as_they_lie(state, w, scores, scores + scores_bytes());
          } else {
            multiply(tiles(), {scores, score_row_}, w.rows, values, visible(w), value_depth_, rows_of(state, out_, w),
                     row_stride(out_));
          }
        }
    }
  }
  int64_t scratch_bytes(const StepState&) const override {
    return bytes_of(packed_keys()) + bytes_of(packed_values()) + scores_bytes() +
           std::max(softmax_bytes_, value_depth_ * element_);
  }

 private:
  Packed packed_keys() const { return keys_as_they_lie_ ? Packed() : packed(depth_, keys_); }
  Packed packed_values() const { return values_as_they_lie_ ? Packed() : packed(keys_, value_depth_); }
  /// The result of one row; `sums`: room for it.
  void weigh_as_they_lie(const StepState& state, const Block& w, const char* probabilities, char* sums) const {
    multiply_by_rows({.calls = of_values_,
                      .dtype = wide_ ? DType::f64 : DType::f32,
                      .a = probabilities,
                      .a_step = element_,
                      .b = matrix_of(state, value_, w),
                      .b_element = element_,
                      .b_stride = value_.strides[2],
                      .k = keys_,
                      .columns = value_depth_},
                     rows_of(state, out_, w), sums);
  }
  int64_t scores_bytes() const { return round_up(std::min(block_rows_, rows_) * score_row_, 64); }  // of a block
  int64_t block_rows_ = 0, cuts_ = 1;
  BoundArgument out_, value_;
  const std::vector<KernelCall>& packs_;  // of values
  const RowCalls& of_values_;
  bool values_as_they_lie_ = false;
};

}  // namespace

StepDriver* bind(const AttentionStep& step, const Step&, const BindContext& context) {
  return context.make<AttentionDriver>(step, context.constants([&] { return AttentionDriver::Kernels(step, context); }),
                                       context);
}

}  // namespace ingot::runtime
