#include "runtime/steps/attention_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/canonical_order.h"
#include "base/error.h"
#include "runtime/drivers/product.h"

namespace ingot::runtime {

AttentionRows::Kernels::Kernels(const AttentionProbabilities& step, const BindContext& context)
    : tiles(calls_of(step.products->tiles, context)),
      packs(calls_of(step.products->packs, context)),
      of_row(*step.products, context),
      softmax(call_of(step.softmax, context)) {}

AttentionRows::AttentionRows(const AttentionProbabilities& step, const Kernels& kernels, Dim value_depth,
                             bool heads_as_rows, const BindContext& context)
    : kernels_(kernels) {
  batch_ = context.value(step.batch), heads_ = context.value(step.heads), queries_ = context.value(step.queries);
  depth_ = context.value(step.depth), value_depth_ = context.value(value_depth);
  key_heads_ = context.value(step.key_heads), keys_ = context.value(step.keys);
  INGOT_CHECK(key_heads_ > 0 ? heads_ % key_heads_ == 0 : heads_ == 0, "key heads divide heads");
  element_ = size_of(step.dtype);
  wide_ = step.dtype == DType::f64;
  query_ = context.argument(step.query), key_ = context.argument(step.key);
  if (step.mask) mask_ = context.argument(*step.mask);
  causal_ = step.causal;
  max_rows_ = step.products->max_rows, max_vectors_ = step.products->max_vectors;
  given_scalars_ = step.scale || step.fill;
  softmax_bytes_ = round_up(round_up(keys_, canonical::kLanes) * step.local_bytes, 64) + step.softmax->scratch_bytes;
  // A row of scores; the next starts at another set of L1.
  score_row_ = round_up(keys_, canonical::kLanes) * element_ + 64;
  heads_as_rows_ = heads_as_rows && queries_ == 1;
  rows_ = heads_as_rows_ ? group() : queries_;
  keys_as_they_lie_ = one_row() && depth_ > 0 && kernels.of_row.transposed && keys_ >= canonical::kLanes;
}

AttentionRows::Packed AttentionRows::packed(int64_t k, int64_t n) const {
  return {k, n, Pieces(ceil_div(n, canonical::kLanes), max_vectors_), nullptr};
}

int64_t AttentionRows::bytes_of(const Packed& b) const {
  return round_up(b.panels.n * canonical::kLanes * round_up(b.k, 2) * element_, 64);
}

void AttentionRows::pack(const std::vector<KernelCall>& packs, const Packed& b, const char* from, int64_t k_stride,
                         int64_t n_stride) const {
  for (int64_t panel = 0; panel < b.panels.count; ++panel) {
    const int64_t column = canonical::kLanes * b.panels.begin(panel), width = canonical::kLanes * b.panels.size(panel);
    const KernelCall& call = packs[b.panels.size(panel) - 1];
    for (int64_t k = 0; k < b.k; k += canonical::kProductBlock) {
      PackFrame frame;
      frame.b = from + k * k_stride + column * n_stride;
      frame.panel = b.memory + (column * round_up(b.k, 2) + k * width) * element_;
      frame.k = std::min(canonical::kProductBlock, b.k - k);
      frame.columns = std::min(width, b.n - column);
      frame.k_stride = k_stride, frame.n_stride = n_stride;
      frame.context = call.context;
      call.entry(&frame);
    }
  }
}

void AttentionRows::multiply(const std::vector<KernelCall>& tiles, const Left& a, int64_t rows, const Packed& b,
                             int64_t k_size, int64_t n, char* c, int64_t c_stride, bool add) const {
  const Pieces pieces(rows, max_rows_);
  const int64_t a_row = a.across ? element_ : a.stride, a_step = a.across ? a.stride : element_;
  for (int64_t panel = 0; panel < b.panels.count && canonical::kLanes * b.panels.begin(panel) < n; ++panel) {
    const int64_t column = canonical::kLanes * b.panels.begin(panel), vectors = b.panels.size(panel);
    TileFrame frame;
    frame.columns = std::min(canonical::kLanes * vectors, n - column);
    frame.a_stride = a.stride, frame.c_stride = c_stride;
    if (k_size == 0 && !add)
      for (int64_t i = 0; i < rows; ++i) std::memset(c + i * c_stride + column * element_, 0, frame.columns * element_);
    for (int64_t k = 0; k < k_size; k += canonical::kProductBlock) {
      frame.b = b.memory + (column * round_up(b.k, 2) + k * canonical::kLanes * vectors) * element_;
      frame.k = std::min(canonical::kProductBlock, k_size - k);
      frame.accumulate = add || k > 0;
      for (int64_t tile = 0; tile < pieces.count; ++tile) {
        const KernelCall& call = tiles[(pieces.size(tile) - 1) * max_vectors_ + vectors - 1];
        frame.a = a.at + pieces.begin(tile) * a_row + k * a_step;
        frame.c = c + pieces.begin(tile) * c_stride + column * element_;
        frame.ahead = frame.b, frame.results = frame.c, frame.results_stride = c_stride;
        frame.context = call.context;
        call.entry(&frame);
      }
    }
  }
}

char* AttentionRows::rows_of(const StepState& state, const BoundArgument& a, const Block& w) const {
  return a.at(state) + w.batch * a.strides[0] + w.head * a.strides[1] + w.row * a.strides[row_dim()];
}

char* AttentionRows::matrix_of(const StepState& state, const BoundArgument& a, const Block& w) const {
  return a.at(state) + w.batch * a.strides[0] + w.key_head * a.strides[1];
}

int64_t AttentionRows::visible(const Block& w, int64_t row) const {
  return causal_ ? std::min(keys_, heads_as_rows_ ? 1 : w.row + row + 1) : keys_;
}

void AttentionRows::pack_transposed(const StepState& state, const BoundArgument& a, const Packed& b,
                                    const Block& w) const {
  pack(kernels_.packs, b, matrix_of(state, a, w), element_, a.strides[2]);
}

void AttentionRows::pack_rows(const std::vector<KernelCall>& packs, const StepState& state, const BoundArgument& a,
                              const Packed& b, const Block& w) const {
  pack(packs, b, matrix_of(state, a, w), a.strides[2], element_);
}

void AttentionRows::probabilities(const StepState& state, const Packed& keys, const Block& w, char* scores,
                                  char* scratch) const {
  if (keys_as_they_lie_) {
    score_as_they_lie(state, w, scores);
  } else {
    multiply(kernels_.tiles, {rows_of(state, query_, w), row_stride(query_)}, w.rows, keys, depth_, visible(w), scores,
             score_row_);
  }
  each_row(kernels_.softmax, state, w, {scores, scores}, scratch);
}

void AttentionRows::score_as_they_lie(const StepState& state, const Block& w, char* scores) const {
  multiply_by_columns({.calls = kernels_.of_row,
                       .dtype = DType::f32,
                       .a = rows_of(state, query_, w),
                       .a_step = element_,
                       .b = matrix_of(state, key_, w),
                       .b_element = element_,
                       .b_stride = key_.strides[2],
                       .k = depth_,
                       .columns = keys_},
                      scores);
}

void AttentionRows::each_row(const KernelCall& kernel, const StepState& state, const Block& w,
                             std::initializer_list<char*> matrices, char* scratch) const {
  constexpr size_t kMost = 4;
  const size_t count = matrices.size();
  INGOT_CHECK(count < kMost);
  int64_t row_strides[kMost], column_strides[kMost];
  const int64_t index_strides[kMost] = {};
  char *first[kMost], *at[kMost];
  std::copy(matrices.begin(), matrices.end(), first);
  std::fill_n(row_strides, count, score_row_);
  std::fill_n(column_strides, count, element_);
  first[count] = mask_ ? rows_of(state, *mask_, w) : nullptr;
  row_strides[count] = mask_ ? row_stride(*mask_) : 0, column_strides[count] = mask_ ? mask_->strides[3] : 0;

  const double scale = 1 / std::sqrt(std::max(static_cast<double>(depth_), 1.0));
  const uint64_t default_scale =
      wide_ ? std::bit_cast<uint64_t>(scale) : std::bit_cast<uint32_t>(static_cast<float>(scale));
  const int64_t outer_index[] = {w.head, w.batch};
  KernelFrame frame{};
  frame.buffers = at;
  frame.row_strides = row_strides, frame.column_strides = column_strides, frame.index_strides = index_strides;
  frame.scalars = given_scalars_ ? state.scalars : &default_scale;
  frame.scratch = scratch;
  frame.outer_index = outer_index;
  frame.context = kernel.context;
  const int64_t needed = visible(w);
  const int64_t step = causal_ ? 1 : w.rows;  // rows that see the same keys
  for (int64_t row = 0; row < w.rows; row += step) {
    for (size_t i = 0; i <= count; ++i) at[i] = first[i] ? first[i] + row * row_strides[i] : nullptr;
    frame.rows = step, frame.columns = visible(w, row);
    frame.row_index = w.row + row;
    kernel.entry(&frame);
    if (causal_) std::memset(at[count - 1] + frame.columns * element_, 0, (needed - frame.columns) * element_);
  }
}

int AttentionRows::threads_for_scores(int64_t operations, int64_t pieces) const {
  const int64_t scores = saturating_product(saturating_product(batch_, heads_), saturating_product(queries_, keys_));
  const int64_t useful = saturating_product(scores, operations) / kProductGrain;
  return static_cast<int>(std::clamp<int64_t>(std::min(useful, pieces), 1, kMostThreads));
}

}  // namespace ingot::runtime
