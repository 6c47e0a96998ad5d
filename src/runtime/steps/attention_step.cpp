// Attention: scores of a block of queries against all keys in scratch, softmax over each row, product with the values.
// Keys and values are packed once a key head. Causal attention skips the keys behind a block's last query; the length
// of a block is the same on every machine, so the skipping shows in no bit.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "base/canonical_order.h"
#include "base/error.h"
#include "runtime/drivers/pieces.h"
#include "runtime/drivers/product_calls.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kVector = canonical::kLanes;
constexpr int64_t kBlock = canonical::kProductBlock;
constexpr int64_t kQueries = 64, kCausalQueries = 16;  // in a block
constexpr int64_t kGrainOperations = 1'000'000;

class AttentionDriver final : public StepDriver {
 public:
  AttentionDriver(const AttentionStep& step, const BindContext& context) : first_scalar_(context.first_scalar) {
    batch_ = context.value(step.batch), heads_ = context.value(step.heads), queries_ = context.value(step.queries);
    depth_ = context.value(step.depth), value_depth_ = context.value(step.value_depth);
    key_heads_ = context.value(step.key_heads), keys_ = context.value(step.keys);
    INGOT_CHECK(key_heads_ > 0 ? heads_ % key_heads_ == 0 : heads_ == 0, "key heads divide heads");
    element_ = size_of(step.dtype);
    wide_ = step.dtype == DType::f64;
    out_ = context.argument(step.out), query_ = context.argument(step.query);
    key_ = context.argument(step.key), value_ = context.argument(step.value);
    if (step.mask) mask_ = context.argument(*step.mask);
    causal_ = step.causal;
    max_rows_ = step.scores->max_rows, max_vectors_ = step.scores->max_vectors;
    given_scale_ = step.scale.has_value();
    const auto* before = context.before<AttentionDriver>();
    kernels_ = before ? before->kernels_ : std::make_shared<const Kernels>(step, context);
    softmax_bytes_ = round_up(round_up(keys_, kVector) * step.local_bytes, 64) + step.softmax->scratch_bytes;

    key_panels_ = Pieces((keys_ + kVector - 1) / kVector, max_vectors_);
    value_panels_ = Pieces((value_depth_ + kVector - 1) / kVector, max_vectors_);
    // A row of scores; the next starts at another set of L1.
    score_row_ = round_up(keys_, kVector) * element_ + 64;
    // One query a head: the heads that share a key head are the rows of one product.
    heads_as_rows_ = queries_ == 1;
    rows_ = heads_as_rows_ ? group() : queries_;
    block_rows_ = causal_ && !heads_as_rows_ ? kCausalQueries : kQueries;
    divide(context);
  }

  void run(RunState& state, int, int share, int shares) const override {
    Range range = runtime::share(batch_ * key_heads_ * cuts_, share, shares);
    int64_t packed = -1;  // key head whose keys and values lie in our scratch
    for (int64_t item = range.begin; item < range.end; ++item) {
      Work work = lay_out();
      const int64_t head = item / cuts_;
      work.batch = head / key_heads_, work.key_head = head % key_heads_;
      const int64_t blocks = (rows_ + block_rows_ - 1) / block_rows_;
      // Later blocks see more keys: each cut takes every cuts_-th block.
      const int64_t first = item % cuts_;
      if (packed != head) pack(state, work);
      packed = head;
      for (int64_t member = 0; member < (heads_as_rows_ ? 1 : group()); ++member)
        for (int64_t block = first; block < blocks; block += cuts_) {
          work.head = work.key_head * group() + member;
          work.row = block * block_rows_, work.rows = std::min(block_rows_, rows_ - work.row);
          attend(state, work);
        }
    }
  }

 private:
  struct Kernels {
    std::vector<KernelCall> tiles, value_packs, key_packs;
    KernelCall softmax;
    Kernels(const AttentionStep& step, const BindContext& context)
        : tiles(calls_of(step.scores->tiles, context)),
          value_packs(calls_of(step.values->packs, context)),
          key_packs(calls_of(step.scores->packs, context)),
          softmax(call_of(step.softmax, context)) {}
  };
  struct Work {
    char *keys, *values, *scores, *scratch;
    int64_t batch, key_head, head, row, rows;
  };

  int64_t group() const { return key_heads_ ? heads_ / key_heads_ : 0; }
  int64_t row_dim() const { return heads_as_rows_ ? 1 : 2; }
  int64_t row_stride(const BoundArgument& a) const { return a.strides[row_dim()]; }
  char* row_of(const RunState& state, const BoundArgument& a, const Work& w) const {
    return a.at(state) + w.batch * a.strides[0] + w.head * a.strides[1] + w.row * a.strides[row_dim()];
  }
  // Keys that the row of a block sees.
  int64_t visible(const Work& w, int64_t row) const {
    return causal_ ? std::min(keys_, heads_as_rows_ ? 1 : w.row + row + 1) : keys_;
  }

  void divide(const BindContext& context) {
    int64_t scores = saturating_product(saturating_product(batch_, heads_), saturating_product(queries_, keys_));
    int64_t useful = saturating_product(scores, 2 * (depth_ + value_depth_)) / kGrainOperations;
    int64_t heads = saturating_product(batch_, key_heads_), blocks = (rows_ + block_rows_ - 1) / block_rows_;
    useful_threads =
        static_cast<int>(std::clamp<int64_t>(std::min(useful, saturating_product(heads, blocks)), 1, kMostThreads));
    int64_t threads = std::min(useful_threads, context.threads);
    if (heads > 0 && heads % threads != 0 && heads < 4 * threads) cuts_ = std::min(threads, blocks);
  }

  Work lay_out() const {
    int64_t keys = key_panels_.n * kVector * round_up(depth_, 2) * element_;
    int64_t values = value_panels_.n * kVector * round_up(keys_, 2) * element_;
    int64_t scores = std::min(block_rows_, rows_) * score_row_;
    char* memory = thread_scratch(keys + values + scores + softmax_bytes_ + 3 * 64);
    Work w{};
    w.keys = memory;
    w.values = w.keys + round_up(keys, 64);
    w.scores = w.values + round_up(values, 64);
    w.scratch = w.scores + round_up(scores, 64);
    return w;
  }

  // All panels of a matrix [k, n], k in blocks.
  void pack_matrix(const std::vector<KernelCall>& packs, const Pieces& panels, const char* from, char* to,
                   int64_t k_size, int64_t n_size, int64_t k_stride, int64_t n_stride) const {
    for (int64_t panel = 0; panel < panels.count; ++panel) {
      const int64_t column = kVector * panels.begin(panel), width = kVector * panels.size(panel);
      const KernelCall& call = packs[panels.size(panel) - 1];
      for (int64_t k = 0; k < k_size; k += kBlock) {
        PackFrame frame;
        frame.b = from + k * k_stride + column * n_stride;
        frame.panel = to + (column * round_up(k_size, 2) + k * width) * element_;
        frame.k = std::min(kBlock, k_size - k);
        frame.columns = std::min(width, n_size - column);
        frame.k_stride = k_stride, frame.n_stride = n_stride;
        frame.context = call.context;
        call.entry(&frame);
      }
    }
  }

  void pack(const RunState& state, const Work& w) const {
    auto matrix = [&](const BoundArgument& a) {
      return a.at(state) + w.batch * a.strides[0] + w.key_head * a.strides[1];
    };
    pack_matrix(kernels_->key_packs, key_panels_, matrix(key_), w.keys, depth_, keys_, element_, key_.strides[2]);
    pack_matrix(kernels_->value_packs, value_panels_, matrix(value_), w.values, keys_, value_depth_, value_.strides[2],
                element_);
  }

  // C = A x B over the first k_size of k and the panels that begin before n_end.
  void multiply(const char* a, int64_t a_stride, const char* b, int64_t b_rows, const Pieces& panels, int64_t n_end,
                char* c, int64_t c_stride, int64_t rows, int64_t k_size) const {
    const Pieces tiles(rows, max_rows_);
    for (int64_t panel = 0; panel < panels.count && kVector * panels.begin(panel) < n_end; ++panel) {
      const int64_t column = kVector * panels.begin(panel), vectors = panels.size(panel);
      TileFrame frame;
      frame.columns = std::min(kVector * vectors, n_end - column);
      frame.a_stride = a_stride, frame.c_stride = c_stride;
      if (k_size == 0)
        for (int64_t i = 0; i < rows; ++i)
          std::memset(c + i * c_stride + column * element_, 0, frame.columns * element_);
      for (int64_t k = 0; k < k_size; k += kBlock) {
        frame.b = b + (column * round_up(b_rows, 2) + k * kVector * vectors) * element_;
        frame.k = std::min(kBlock, k_size - k);
        frame.accumulate = k > 0;
        for (int64_t tile = 0; tile < tiles.count; ++tile) {
          const KernelCall& call = kernels_->tiles[(tiles.size(tile) - 1) * max_vectors_ + vectors - 1];
          frame.a = a + tiles.begin(tile) * a_stride + k * element_;
          frame.c = c + tiles.begin(tile) * c_stride + column * element_;
          frame.ahead = frame.b, frame.results = frame.c, frame.results_stride = c_stride;
          frame.context = call.context;
          call.entry(&frame);
        }
      }
    }
  }

  void attend(const RunState& state, const Work& w) const {
    const int64_t needed = visible(w, w.rows - 1);
    multiply(row_of(state, query_, w), row_stride(query_), w.keys, depth_, key_panels_, needed, w.scores, score_row_,
             w.rows, depth_);
    softmax(state, w, needed);
    multiply(w.scores, score_row_, w.values, keys_, value_panels_, value_depth_, row_of(state, out_, w),
             row_stride(out_), w.rows, needed);
  }

  void softmax(const RunState& state, const Work& w, int64_t needed) const {
    const char* mask = mask_ ? row_of(state, *mask_, w) : nullptr;
    const int64_t mask_row = mask_ ? row_stride(*mask_) : 0, mask_column = mask_ ? mask_->strides[3] : 0;
    const double scale = 1 / std::sqrt(static_cast<double>(depth_));
    const uint64_t default_scale =
        wide_ ? std::bit_cast<uint64_t>(scale) : std::bit_cast<uint32_t>(static_cast<float>(scale));
    const int64_t row_strides[] = {score_row_, score_row_, mask_row}, index_strides[] = {0, 0, 0};
    const int64_t column_strides[] = {element_, element_, mask_column};
    const int64_t outer_index[] = {w.head, w.batch};
    KernelFrame frame{};
    frame.row_strides = row_strides, frame.column_strides = column_strides, frame.index_strides = index_strides;
    frame.scalars = given_scale_ ? state.scalars.data() + first_scalar_ : &default_scale;
    frame.scratch = w.scratch;
    frame.outer_index = outer_index;
    frame.context = kernels_->softmax.context;
    const int64_t step = causal_ ? 1 : w.rows;  // rows that see the same keys
    for (int64_t row = 0; row < w.rows; row += step) {
      char* scores = w.scores + row * score_row_;
      char* buffers[] = {scores, scores, const_cast<char*>(mask) + row * mask_row};
      frame.buffers = buffers;
      frame.rows = step, frame.columns = visible(w, row);
      frame.row_index = w.row + row;
      kernels_->softmax.entry(&frame);
      if (causal_) std::memset(scores + frame.columns * element_, 0, (needed - frame.columns) * element_);
    }
  }

  const uint32_t first_scalar_;
  int64_t batch_, heads_, key_heads_, queries_, keys_, depth_, value_depth_;
  int64_t element_ = 4, rows_ = 0, block_rows_ = 0, score_row_ = 0, softmax_bytes_ = 0, cuts_ = 1;
  int64_t max_rows_ = 1, max_vectors_ = 1;
  bool causal_ = false, wide_ = false, given_scale_ = false, heads_as_rows_ = false;
  BoundArgument out_, query_, key_, value_;
  std::optional<BoundArgument> mask_;
  std::shared_ptr<const Kernels> kernels_;
  Pieces key_panels_, value_panels_;  // in units of 16 columns
};

}  // namespace

std::shared_ptr<StepDriver> bind(const AttentionStep& step, const Step&, const BindContext& context) {
  return std::make_shared<AttentionDriver>(step, context);
}

}  // namespace ingot::runtime
