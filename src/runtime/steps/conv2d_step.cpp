// Convolution of form patches, an implicit matrix product: weights [Cout / groups, (kh, kw, c)] times patches [(kh, kw,
// c), pixels], the patches packed into panels as they are used. Where there is padding, the image is first copied with
// its border of zeros: then a panel's pixels lie alike for every tap and channel.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/drivers/product_driver.h"
#include "runtime/steps/conv2d_pixels.h"
#include "runtime/steps/conv2d_winograd.h"
#include "runtime/steps/steps.h"

namespace ingot::runtime {
namespace {

class Conv2dDriver final : public ProductDriver {
 public:
  Conv2dDriver(const Conv2dStep& step, const ProductCalls& calls, const Geometry& geometry, const BindContext& context)
      : ProductDriver(*step.kernels, calls), g_(geometry) {
    images_ = step.epilogue.kernels.empty() ? 1 : images_together();
    product_.set_sizes({context.list({g_.batch / images_, g_.groups}), g_.group_out, images_ * g_.pixels(),
                        g_.taps() * g_.group_channels, step.dtype, step.dtype});
    weight_ = weight_of(step, context);
    const BoundArgument input = context.argument(step.input);
    const std::vector<Argument>& rest = step.epilogue.arguments;
    BoundArguments operands(2 + rest.size(), 4, context);
    // A is the packed weight: a row an output channel, groups one after the other.
    operands.set(0, {weight_.buffer, 0, {}, 0}, {0, 0, product_.sizes.k * product_.element, product_.element});
    operands.set(1, input, {images_ * g_.input_strides[0], g_.group_channels * g_.input_strides[1], 0, 0});
    image_step_ = g_.input_strides[0];
    const auto image_strides = context.array<int64_t>(2 + rest.size());
    for (size_t i = 0; i < rest.size(); ++i) {
      const BoundArgument a = context.argument(rest[i]);  // over [N, Cout, pixels]
      INGOT_CHECK(a.strides.size() == 3);
      image_strides[2 + i] = a.strides[0];
      operands.set(2 + i, a, {images_ * a.strides[0], g_.group_out * a.strides[1], a.strides[1], a.strides[2]});
    }
    ProductSegments segments;
    if (images_ > 1) segments = {g_.pixels(), image_strides};
    set_operands(operands, segments);
    INGOT_CHECK(kVector * product_.max_vectors <= kMostStretches);
    channel_step_ = g_.input_strides[1], row_step_ = g_.input_strides[2], column_step_ = g_.input_strides[3];
    if (padded()) {
      column_step_ = product_.element;
      row_step_ = (g_.width + 2 * g_.padding_w) * product_.element;
      channel_step_ = (g_.height + 2 * g_.padding_h) * row_step_;
      image_step_ = saturating_product(g_.group_channels, channel_step_);
      product_.b_room = saturating_product(images_, image_step_);
    }
    divide(context, 8);
    if (step.weight_is_constant) {
      weight_buffer = weight_.buffer;
      std::vector<int64_t> numbers{g_.out_channels, g_.group_channels, g_.kernel_h, g_.kernel_w, product_.element};
      numbers.insert(numbers.end(), g_.weight_strides.begin(), g_.weight_strides.end());
      source_bytes_ = dense_bytes({g_.out_channels, g_.group_channels, g_.kernel_h, g_.kernel_w}, g_.weight_strides,
                                  product_.element);
      format_ = std::make_shared<const WeightFormat>(nullptr, std::move(numbers));
    }
    shared_bytes = weight_bytes();
    phases = 2;
  }

  void prepare(const StepState& state, const InputIdentity& identity, WeightSlot& slot) const override {
    if (weight_bytes() == 0) return;
    const char* source = weight_.at(state);
    state.weights.find(source, source_bytes_, identity, format_, weight_bytes(), slot,
                       [&](char* packed) { pack_weight(source, packed, 0, g_.out_channels); });
  }

  void run(const StepState& state, int phase, int share, int shares) const override {
    if (phase == 1) return ProductDriver::run(state, phase, share, shares);
    Range channels = runtime::share(g_.out_channels, share, shares);
    pack_weight(weight_.at(state), shared(state), channels.begin, channels.end);
  }
  bool idle(const StepState& state, int phase) const override { return phase == 0 && kept(state); }

 protected:
  const char* a_matrix(const StepState& state, int64_t batch, const char*) const override {
    const char* packed = kept(state);
    return (packed ? packed : shared(state)) + batch % g_.groups * g_.group_out * product_.sizes.k * product_.element;
  }

  const char* b_matrix(const char* argument, char* room) const override {
    if (!padded()) return argument;
    for (int64_t i = 0; i < images_; ++i)
      copy_padded(g_, argument + i * g_.input_strides[0], g_.group_channels, product_.element, room + i * image_step_);
    return room;
  }

  void pack_panel(const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to) const override {
    const int64_t row_bytes = product_.panel_width(panel) * product_.element;
    const int64_t first = product_.panel_column(panel), last = first + product_.panel_columns(panel);
    // Pixels of one output row lie evenly: a stretch.
    Stretch stretches[kMostStretches];
    stretches[0] = {};
    int count = 0;
    for (int64_t pixel = first, end; pixel < last; pixel = end, ++count) {
      const int64_t image = pixel / g_.pixels(), y = pixel % g_.pixels() / g_.out_width, x = pixel % g_.out_width;
      end = std::min(last, pixel - x + g_.out_width);
      stretches[count] = {(pixel - first) * product_.element,
                          image * image_step_ + y * g_.stride_h * row_step_ + x * g_.stride_w * column_step_,
                          end - pixel};
    }
    const int64_t step = g_.stride_w * column_step_;
    const bool even =
        std::all_of(stretches, stretches + count, [&](const Stretch& r) { return r.pixels == stretches[0].pixels; });
    const int64_t stretch_bytes = stretches[0].pixels * product_.element;
    const int64_t missing = row_bytes - (last - first) * product_.element;
    auto pack = [&](auto copy_row) {
      for (int64_t k = k_begin; k < k_end;) {
        const int64_t tap = k / g_.group_channels, channel = k % g_.group_channels;
        const char* from = b + tap / g_.kernel_w * g_.dilation_h * row_step_ +
                           tap % g_.kernel_w * g_.dilation_w * column_step_ + channel * channel_step_;
        const int64_t channels = std::min(g_.group_channels - channel, k_end - k);
        for (int64_t c = 0; c < channels; ++c, to += row_bytes, from += channel_step_) {
          copy_row(to, from);
          if (missing) std::memset(to + row_bytes - missing, 0, missing);
        }
        k += channels;
      }
    };
    // Short stretches of one length, as small images have, are copied without a loop.
    auto unrolled = [&]<size_t... i>(auto bytes, std::index_sequence<i...>) {
      if (step != product_.element || !even || stretch_bytes != bytes || count != sizeof...(i)) return false;
      pack([bytes, at = std::array{stretches[i].from...}](char* to_row, const char* from) {
        (std::memcpy(to_row + i * bytes, from + at[i], bytes), ...);
      });
      return true;
    };
    const Fixed<16> four;
    const Fixed<32> eight;
    if (unrolled(four, Stretches<4>()) || unrolled(four, Stretches<8>()) || unrolled(four, Stretches<12>()) ||
        unrolled(eight, Stretches<2>()) || unrolled(eight, Stretches<4>()) || unrolled(eight, Stretches<6>()))
      return;
    pack([&](char* to_row, const char* from) {
      for (int i = 0; i < count; ++i)
        copy_elements(to_row + stretches[i].at, from + stretches[i].from, stretches[i].pixels, step);
    });
  }

 private:
  const char* kept(const StepState& state) const { return weight_buffer >= 0 ? state.weights.data() : nullptr; }
  int64_t weight_bytes() const { return saturating_product(g_.out_channels, product_.sizes.k * product_.element); }

  /// Small images of few pixels are taken together, as many as divide the batch, so that tiles are wide.
  int64_t images_together() const {
    constexpr int64_t kWide = 192;
    int64_t images = 1;
    for (int64_t i = 2; i <= g_.batch && i * g_.pixels() <= kWide; ++i)
      if (g_.batch % i == 0) images = i;
    return images;
  }

  bool padded() const { return g_.padding_h > 0 || g_.padding_w > 0; }

  void copy_elements(char* to, const char* from, int64_t count, int64_t stride) const {
    runtime::copy_elements(to, from, count, stride, product_.element);
  }

  // [Cout, c, kh, kw] in any strides becomes [Cout, (kh, kw, c)].
  void pack_weight(const char* from, char* to, int64_t begin, int64_t end) const {
    const std::span<const int64_t> s = g_.weight_strides;
    for (int64_t channel = begin; channel < end; ++channel)
      for (int64_t tap = 0; tap < g_.taps(); ++tap) {
        const char* source = from + channel * s[0] + tap / g_.kernel_w * s[2] + tap % g_.kernel_w * s[3];
        copy_elements(to + (channel * g_.taps() + tap) * g_.group_channels * product_.element, source,
                      g_.group_channels, s[1]);
      }
  }

  template <int64_t bytes>
  using Fixed = std::integral_constant<int64_t, bytes>;
  template <size_t number>
  using Stretches = std::make_index_sequence<number>;
  struct Stretch {
    int64_t at, from, pixels;  // bytes in the panel's row and in a channel
  };
  static constexpr int kMostStretches = 128;  // a panel of single pixels

  const Geometry g_;
  BoundArgument weight_;
  std::shared_ptr<const WeightFormat> format_;
  int64_t source_bytes_ = 0;
  int64_t images_ = 1;  // that one product works on
  // Bytes in the images that patches are taken from.
  int64_t image_step_ = 0, channel_step_ = 0, row_step_ = 0, column_step_ = 0;
};

}  // namespace

StepDriver* bind(const Conv2dStep& step, const Step&, const BindContext& context) {
  const Geometry geometry = geometry_of(step, context);
  const ConvolutionCalls& calls = context.constants([&] { return ConvolutionCalls(step, context); });
  if (calls.winograd && winograd_pays(geometry)) return bind_winograd(step, *calls.winograd, geometry, context);
  if (step.form != ConvolutionForm::patches) return bind_pixels(step, calls.direct, geometry, context);
  return context.make<Conv2dDriver>(step, calls.direct, geometry, context);
}

}  // namespace ingot::runtime
