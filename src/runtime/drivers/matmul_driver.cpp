// Matrix products: B packed by kernels, per call or once a weight.
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "runtime/drivers/product_driver.h"

namespace ingot::runtime {
namespace {

class MatmulDriver final : public ProductDriver {
 public:
  MatmulDriver(const MatmulStep& step, const BindContext& context)
      : ProductDriver(*step.kernels, step.epilogue, context) {
    product_.set_sizes({context.values_of(step.batch), context.value(step.m), context.value(step.n),
                        context.value(step.k), step.dtype, step.accumulate});
    product_.one_row = step.one_row;
    std::vector<BoundArgument> operands;
    operands.reserve(2 + step.epilogue.arguments.size());
    operands.push_back(context.argument(step.a)), operands.push_back(context.argument(step.b));
    for (const Argument& a : step.epilogue.arguments) operands.push_back(context.argument(a));
    set_operands(std::move(operands), step.epilogue);
    INGOT_CHECK(product_.calls->pack_a || product_.sizes.k <= 1 ||
                    (product_.a_across() ? product_.a_row == product_.element || product_.sizes.m <= 1
                                         : product_.a_column == product_.element),
                "A lies as tiles read it");
    const Ints& b = product_.operands[1].strides;
    product_.b_row = b[b.size() - 2], product_.b_column = b.back();
    if (step.b_is_weight) {
      weight_buffer = step.b.buffer;
      find_weights(step.kernels->packs[0], context.before<MatmulDriver>());
    }
    divide(context, weight_buffer >= 0 ? 0 : 5, true);
  }

  // Packs B if no packing of it is kept.
  void prepare(RunState& state, const InputIdentity& identity, WeightSlot& slot) const override {
    const int64_t weights = static_cast<int64_t>(weights_.size()), panels = product_.panels.count;
    const int64_t bytes = saturating_product(weights, product_.packed_bytes());
    if (bytes == 0) return;
    const char* source = product_.operands[1].at(state);
    state.weights[step_].find(source, identity, format_, bytes, slot, [&](char* packed) {
      parallel(threads_for(bytes, 0), [&](int thread, int threads) {
        Range range = share(weights * panels, thread, threads);
        for (int64_t i = range.begin; i < range.end; ++i) {
          char* to = packed + i / panels * product_.packed_bytes() + product_.panel_offset(i % panels);
          pack_panel(source + weights_[i / panels], i % panels, 0, product_.sizes.k, to);
        }
      });
    });
  }

 protected:
  const char* packed_panels(const RunState& state, int64_t batch) const override {
    const char* packed = weight_buffer >= 0 ? state.weights[step_].data() : nullptr;
    return packed ? packed + weight_of_batch_[batch] * product_.packed_bytes() : nullptr;
  }

  Ahead panel_source(const char* b, int64_t panel, int64_t k_begin, int64_t k_end) const override {
    const char* from = b + k_begin * product_.b_row + product_.panel_column(panel) * product_.b_column;
    if (product_.b_column == product_.element)
      return {from, k_end - k_begin, (product_.panel_columns(panel) * product_.element + 63) / 64, product_.b_row};
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
      pack.entry(&frame);
    }
  }

 private:
  // The matrices of a weight: their offsets in B, in order of batch, equal ones (stride 0) once. They, their sizes and
  // strides, and the panels that these are cut into say what a packing holds.
  void find_weights(const KernelPtr& packer, const MatmulDriver* before) {
    weights_ = {0};
    weight_of_batch_ = {0};
    for (size_t d = 0; d < product_.sizes.batch.size(); ++d) {
      int64_t stride = product_.operands[1].strides[d], size = product_.sizes.batch[d];
      Ints offsets, numbers;
      for (int64_t offset : weights_)
        for (int64_t i = 0; i < (stride ? size : 1); ++i) offsets.push_back(offset + i * stride);
      for (int64_t number : weight_of_batch_)
        for (int64_t i = 0; i < size; ++i) numbers.push_back(stride ? number * size + i : number);
      weights_ = std::move(offsets), weight_of_batch_ = std::move(numbers);
    }
    SmallVector<int64_t, 16> numbers{product_.sizes.k,  product_.sizes.n, product_.b_row,
                                     product_.b_column, product_.element, product_.panels.count};
    for (int64_t offset : weights_) numbers.push_back(offset);
    format_ = before && std::ranges::equal(before->format_->numbers(), numbers)
                  ? before->format_
                  : std::make_shared<const WeightFormat>(packer, std::vector<int64_t>(numbers.begin(), numbers.end()));
  }

  Ints weights_, weight_of_batch_;
  std::shared_ptr<const WeightFormat> format_;
};

}  // namespace

std::shared_ptr<StepDriver> bind(const MatmulStep& step, const Step&, const BindContext& context) {
  return std::make_shared<MatmulDriver>(step, context);
}

}  // namespace ingot::runtime
