// Depthwise convolution: each output channel sees one input channel, so a product would have a single row. Instead
// sixteen pixels at a time go through the taps in order.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "runtime/drivers/product_calls.h"
#include "runtime/steps/conv2d_geometry.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kPixels = 16;

// out[x] = sum over taps of weight * row[x * stride], from +0.
template <class T, bool dense>
void sum_taps(const T* const* rows, const T* weights, int64_t taps, int64_t stride, T* out, int64_t count) {
  for (int64_t x = 0; x < count; x += kPixels) {
    T sum[kPixels] = {};
    const int64_t n = std::min(kPixels, count - x);
    for (int64_t t = 0; t < taps; ++t) {
      const T* in = rows[t] + x * stride;
      const T w = weights[t];
      if (dense && n == kPixels)
        for (int64_t i = 0; i < kPixels; ++i) sum[i] += w * in[i];
      else
        for (int64_t i = 0; i < n; ++i) sum[i] += w * in[i * stride];
    }
    std::copy(sum, sum + n, out + x);
  }
}

class DepthwiseDriver final : public StepDriver {
 public:
  DepthwiseDriver(const Conv2dStep& step, const Geometry& geometry, const BindContext& context)
      : g_(geometry), first_scalar_(context.first_scalar), element_(size_of(step.dtype)) {
    const bool epilogue = !step.epilogue.kernels.empty();
    if (epilogue) {
      epilogue_ = call_of(step.epilogue.kernels[0], context);
      epilogue_bytes_ = step.epilogue.kernels[0]->scratch_bytes;
    }
    arguments_.push_back(context.argument(step.input)), arguments_.push_back(context.argument(step.weight));
    for (const Argument& a : step.epilogue.arguments) arguments_.push_back(context.argument(a));
    row_strides_ = {0}, column_strides_ = {element_}, index_strides_ = {0};
    for (size_t i = 2; i < arguments_.size(); ++i) {
      row_strides_.push_back(arguments_[i].strides[1]);
      column_strides_.push_back(arguments_[i].strides[2]);
      index_strides_.push_back(arguments_[i].index_stride);
    }
    INGOT_CHECK(epilogue || column_strides_[1] == element_ || g_.pixels() <= 1, "pixels are contiguous");
    int64_t outputs = saturating_product(saturating_product(g_.batch, g_.out_channels), g_.pixels());
    int64_t useful = threads_for(saturating_product(outputs, 2 * element_), saturating_product(outputs, g_.taps()));
    useful_threads = static_cast<int>(std::clamp<int64_t>(g_.batch * g_.channels, 1, useful));
  }

  void run(RunState& state, int, int share, int shares) const override {
    Range range = runtime::share(g_.batch * g_.channels, share, shares);
    for (int64_t item = range.begin; item < range.end; ++item) {
      if (element_ == 4)
        convolve<float>(state, item / g_.channels, item % g_.channels);
      else
        convolve<double>(state, item / g_.channels, item % g_.channels);
    }
  }

 private:
  template <class T>
  void convolve(RunState& state, int64_t image, int64_t channel) const {
    const int64_t width = g_.width + 2 * g_.padding_w, plane = (g_.height + 2 * g_.padding_h) * width;
    auto padded = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
    const int64_t sizes[] = {padded(plane * element_), padded(g_.pixels() * element_), padded(g_.taps() * element_),
                             padded(g_.taps() * 8), padded(static_cast<int64_t>(arguments_.size()) * 8)};
    char* memory = thread_scratch(sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4] + epilogue_bytes_);
    T* in = reinterpret_cast<T*>(memory);
    T* raw = reinterpret_cast<T*>(memory += sizes[0]);
    T* weights = reinterpret_cast<T*>(memory += sizes[1]);
    const T** rows = reinterpret_cast<const T**>(memory += sizes[2]);
    char** at = reinterpret_cast<char**>(memory += sizes[3]);
    char* scratch = memory + sizes[4];
    const std::span<const int64_t> is = g_.input_strides;
    copy_padded(g_, arguments_[0].at(state) + image * is[0] + channel * is[1], 1, element_,
                reinterpret_cast<char*>(in));

    for (int64_t member = 0; member < g_.group_out; ++member) {
      const int64_t out_channel = channel * g_.group_out + member;
      const std::span<const int64_t> ws = g_.weight_strides;
      const char* weight = arguments_[1].at(state) + out_channel * ws[0];
      for (int64_t u = 0; u < g_.kernel_h; ++u)
        copy_elements(reinterpret_cast<char*>(weights + u * g_.kernel_w), weight + u * ws[2], g_.kernel_w, ws[3],
                      element_);
      auto address = [&](size_t i) {
        return arguments_[i].at(state) + image * arguments_[i].strides[0] + out_channel * arguments_[i].strides[1];
      };
      T* result = epilogue_ ? raw : reinterpret_cast<T*>(address(2));
      for (int64_t y = 0; y < g_.out_height; ++y) {
        for (int64_t t = 0; t < g_.taps(); ++t)
          rows[t] = in + (y * g_.stride_h + t / g_.kernel_w * g_.dilation_h) * width + t % g_.kernel_w * g_.dilation_w;
        auto* sum = g_.stride_w == 1 ? sum_taps<T, true> : sum_taps<T, false>;
        sum(rows, weights, g_.taps(), g_.stride_w, result + y * g_.out_width, g_.out_width);
      }
      if (!epilogue_) continue;
      at[0] = reinterpret_cast<char*>(raw);
      for (size_t i = 2; i < arguments_.size(); ++i) at[i - 1] = address(i);
      const int64_t outer_index[] = {channel, image};
      KernelFrame frame;
      frame.buffers = at;
      frame.row_strides = row_strides_.data(), frame.column_strides = column_strides_.data();
      frame.index_strides = index_strides_.data();
      frame.scalars = state.scalars.data() + first_scalar_;
      frame.rows = 1, frame.columns = g_.pixels();
      frame.scratch = scratch;
      frame.row_index = member, frame.column_index = 0;
      frame.outer_index = outer_index;
      frame.context = epilogue_.context;
      epilogue_.entry(&frame);
    }
  }

  const Geometry g_;
  const uint32_t first_scalar_;
  const int64_t element_;
  KernelCall epilogue_;
  int64_t epilogue_bytes_ = 0;
  std::vector<BoundArgument> arguments_;
  std::vector<int64_t> row_strides_, column_strides_, index_strides_;  // of the epilogue's buffers
};

}  // namespace

StepDriver* bind_depthwise(const Conv2dStep& step, const Geometry& geometry, const BindContext& context) {
  return context.make<DepthwiseDriver>(step, geometry, context);
}

}  // namespace ingot::runtime
