// Matrix products: B packed by kernels, per call or once a weight.
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "runtime/drivers/drivers.h"
#include "runtime/drivers/product_driver.h"
#include "runtime/drivers/product_row.h"

namespace ingot::runtime {
namespace {

struct MatmulConstants {
  std::vector<Dim> sizes;  // batch..., m, n, k
  ArgumentTable operands;
  DType dtype, accumulate;
  OneRow one_row;
  bool rounds_b;
  bool same_weight;            // k, n and B's strides are the same at all sizes
  int64_t weight_buffer = -1;  // B, where it is a weight
  const bool stays;
  const ProductKernels& kernels;
  ProductCalls calls;

  MatmulConstants(const MatmulStep& step, const BindContext& context)
      : sizes(step.batch.begin(), step.batch.end()),
        operands({&step.a, &step.b}, step.epilogue.arguments, step.batch.size() + 2),
        dtype(step.dtype),
        accumulate(step.accumulate),
        one_row(step.one_row),
        rounds_b(step.rounds_b),
        same_weight(step.k.is_constant() && step.n.is_constant() &&
                    std::all_of(step.b.strides.begin(), step.b.strides.end(), [](Dim d) { return d.is_constant(); })),
        stays(step.b_stays),
        kernels(*step.kernels),
        calls(kernels, step.epilogue, step.prologue, context) {
    sizes.insert(sizes.end(), {step.m, step.n, step.k});
    if (step.b_is_weight) weight_buffer = step.b.buffer;
  }
};

class MatmulDriver final : public ProductDriver {
 public:
  MatmulDriver(const MatmulStep& step, const MatmulConstants& constants, const BindContext& context)
      : ProductDriver(constants.kernels, constants.calls) {
    const std::span<const int64_t> sizes = context.values_of(constants.sizes);
    const size_t batch = sizes.size() - 3;
    product_.set_sizes(
        {sizes.first(batch), sizes[batch], sizes[batch + 1], sizes[batch + 2], constants.dtype, constants.accumulate});
    product_.one_row = constants.one_row;
    const BoundArguments operands(constants.operands, context);
    set_operands(operands);
    INGOT_CHECK(product_.calls->pack_a || product_.sizes.k <= 1 ||
                    (product_.a_across() ? product_.a_row == product_.a_element || product_.sizes.m <= 1
                                         : product_.a_column == product_.a_element),
                "A lies as tiles read it");
    product_.b_row = operands.row_strides()[1], product_.b_column = operands.column_strides()[1];
    rounds_b_ = constants.rounds_b;
    weight_buffer = constants.weight_buffer;
    if (weight_buffer >= 0) find_weights(step, constants, context);
    stays_ = constants.stays && !reads_b_as_it_lies(product_);
    if (stays_) find_weights(step, constants, context);
    divide(context, weight_buffer >= 0 || stays_ ? 0 : 5, !stays_);
    if (!stays_) return;
    shared_bytes = packed_bytes();
    phases = 2;
  }

  // What stays is packed by the first slice.
  void run(const StepState& state, int phase, int share, int shares) const override {
    if (!stays_) return ProductDriver::run(state, phase, share, shares);
    if (phase == 1) return ProductDriver::run(state, 0, share, shares);
    pack(product_.operands.at(state, 1), shared(state), share, shares);
  }
  bool idle(const StepState& state, int phase) const override { return stays_ && phase == 0 && state.again; }

  // Packs B if no packing of it is kept.
  void prepare(const StepState& state, const InputIdentity& identity, WeightSlot& slot) const override {
    const int64_t bytes = packed_bytes();
    if (bytes == 0) return;
    const char* source = product_.operands.at(state, 1);
    state.weights.find(source, source_bytes_, identity, *format_, bytes, slot, [&](char* packed) {
      parallel(threads_for(bytes, 0), [&](int thread, int threads) { pack(source, packed, thread, threads); });
    });
  }

 protected:
  const char* packed_panels(const StepState& state, int64_t batch) const override {
    const char* packed = stays_ ? shared(state) : weight_buffer >= 0 ? state.weights.data() : nullptr;
    return packed ? packed + weight_of_batch_[static_cast<size_t>(batch)] * product_.packed_bytes() : nullptr;
  }

  Ahead panel_source(const char* b, int64_t panel, int64_t k_begin, int64_t k_end) const override {
    const char* from = b + k_begin * product_.b_row + product_.panel_column(panel) * product_.b_column;
    auto rows = [&](int64_t count, int64_t length, int64_t stride) {
      return Ahead{from, count, ceil_div(length * product_.element, Ahead::kLine), stride};
    };
    const int64_t k = k_end - k_begin, columns = product_.panel_columns(panel);
    if (product_.b_column == product_.element) return rows(k, columns, product_.b_row);
    if (product_.b_row == product_.element) return rows(columns, k, product_.b_column);
    return {};
  }

  void pack_panel(const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to) const override {
    const KernelCall& pack = product_.calls->packs[product_.panels.size(panel) - 1];
    for (int64_t k = k_begin; k < k_end; k += kBlock) {
      PackFrame frame;
      frame.b = b + k * product_.b_row + product_.panel_column(panel) * product_.b_column;
      frame.panel = to + (k - k_begin) * product_.panel_width(panel) * product_.element;
      frame.k = std::min(kBlock, k_end - k);
      frame.columns = product_.panel_columns(panel);
      frame.k_stride = product_.b_row, frame.n_stride = product_.b_column;
      frame.context = pack.context;
      rounds_b_ ? pack_rounded(pack, frame) : pack.entry(&frame);
    }
  }

 private:
  /// A block of B in f32 is packed as bf16: by way of a copy that lies as it does.
  void pack_rounded(const KernelCall& pack, PackFrame& frame) const {
    uint16_t rounded[kBlock * kMostColumns];
    INGOT_CHECK(frame.columns <= kMostColumns);
    const bool rows = product_.b_column == int64_t{sizeof(float)};
    const int64_t k_step = rows ? frame.columns : 1, n_step = rows ? 1 : frame.k;
    for (int64_t k = 0; k < frame.k; ++k)
      for (int64_t n = 0; n < frame.columns; ++n)
        rounded[k * k_step + n * n_step] =
            bf16_from_f32(*reinterpret_cast<const float*>(frame.b + k * frame.k_stride + n * frame.n_stride));
    frame.b = reinterpret_cast<const char*>(rounded);
    frame.k_stride = k_step * product_.element, frame.n_stride = n_step * product_.element;
    pack.entry(&frame);
  }
  int64_t packed_bytes() const {
    return saturating_product(static_cast<int64_t>(weights_.size()), product_.packed_bytes());
  }
  void pack(const char* source, char* packed, int part, int parts) const {
    const int64_t panels = product_.panels.count;
    const Range range = share(static_cast<int64_t>(weights_.size()) * panels, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) {
      char* to = packed + i / panels * product_.packed_bytes() + product_.panel_offset(i % panels);
      pack_panel(source + weights_[i / panels], i % panels, 0, product_.sizes.k, to);
    }
  }

  // The matrices of a weight: their offsets in B, in order of batch, equal ones (stride 0) once. They, their sizes and
  // strides, and the panels that these are cut into say what a packing holds.
  void find_weights(const MatmulStep& step, const MatmulConstants& constants, const BindContext& context) {
    bool same_format = constants.same_weight;
    const std::span<const int64_t> batch = product_.sizes.batch;
    size_t weights = 1, batches = 1;
    for (size_t d = 0; d < batch.size(); ++d) {
      const bool moves = product_.operands.stride(1, d) != 0;
      weights *= moves ? static_cast<size_t>(batch[d]) : 1, batches *= static_cast<size_t>(batch[d]);
      same_format = same_format && (!moves || constants.sizes[d].is_constant());
    }
    const auto offsets = context.array<int64_t>(weights), numbers = context.array<int64_t>(batches);
    for (size_t i = 0; i < batches; ++i) {
      int64_t offset = 0, number = 0, before = 1, rest = static_cast<int64_t>(i);
      for (size_t d = batch.size(); d-- > 0; rest /= batch[d]) {
        const int64_t stride = product_.operands.stride(1, d), index = rest % batch[d];
        if (stride == 0) continue;
        offset += index * stride, number += index * before, before *= batch[d];
      }
      numbers[i] = number, offsets[static_cast<size_t>(number)] = offset;
    }
    weights_ = offsets, weight_of_batch_ = numbers;
    const int64_t strides[] = {product_.b_row, product_.b_column};
    const int64_t element = rounds_b_ ? int64_t{sizeof(float)} : product_.element;
    source_bytes_ = dense_bytes({product_.sizes.k, product_.sizes.n}, strides, element);
    for (size_t i = 0; i < weights; ++i)
      if (weights_[i] != static_cast<int64_t>(i) * source_bytes_) source_bytes_ = 0;
    source_bytes_ *= static_cast<int64_t>(weights);
    auto format = [&] {
      std::vector<int64_t> facts{product_.sizes.k,  product_.sizes.n, product_.b_row,
                                 product_.b_column, element,          product_.panels.count};
      facts.insert(facts.end(), weights_.begin(), weights_.end());
      return std::make_shared<const WeightFormat>(step.kernels->packs[0], std::move(facts));
    };
    format_ =
        same_format ? &context.weight_format(format) : context.make<std::shared_ptr<const WeightFormat>>(format());
  }

  static constexpr int64_t kMostColumns = 64;
  bool stays_ = false, rounds_b_ = false;
  std::span<const int64_t> weights_, weight_of_batch_;
  int64_t source_bytes_ = 0;
  const std::shared_ptr<const WeightFormat>* format_ = nullptr;
};

}  // namespace

StepDriver* bind(const MatmulStep& step, const Step&, const BindContext& context) {
  const MatmulConstants& constants = context.constants([&] { return MatmulConstants(step, context); });
  return context.make<MatmulDriver>(step, constants, context);
}

}  // namespace ingot::runtime
