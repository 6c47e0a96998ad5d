// The gradient of a convolution's weight as a product over all pixels of the result, image by image from the last to
// the first: k is (n, oh, ow), in blocks of 512 as in any product. First the images are copied with their border of
// zeros, channels innermost, so that a pixel's patch is a few runs of memory, one a row of the kernel; patches are
// packed into panels as they are used.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "runtime/drivers/product_driver.h"
#include "runtime/steps/conv2d_geometry.h"

namespace ingot::runtime {
namespace {

// Rows that a power of two apart would meet in few sets of the cache.
int64_t spread_row(int64_t bytes) { return (ceil_div(bytes, 64) | 1) * 64; }

class Conv2dWeightDriver final : public ProductDriver {
 public:
  Conv2dWeightDriver(const Conv2dWeightStep& step, const ProductCalls& calls, const BindContext& context)
      : ProductDriver(*step.kernels, calls, context), g_(geometry_of(step, context)) {
    input_ = context.argument(step.input), gradient_ = context.argument(step.gradient);
    out_ = context.argument(step.out), images_ = context.argument(step.images), rows_ = context.argument(step.rows);
    const int64_t element = size_of(step.dtype), k = saturating_product(g_.batch, g_.pixels());
    product_.set_sizes(
        {context.list({g_.groups}), g_.group_out, g_.taps() * g_.group_channels, k, step.dtype, step.dtype});
    row_bytes_ = spread_row(k * element);
    INGOT_CHECK(row_bytes_ <= k * element + Conv2dWeightStep::kRowRoom);
    pixel_bytes_ = g_.channels * element;
    line_bytes_ = (g_.width + 2 * g_.padding_w) * pixel_bytes_;
    if (step.raw) raw_ = context.argument(*step.raw);
    const int64_t row = product_.sizes.n * element;
    BoundArguments operands(3, 3, context);
    operands.set(0, rows_, {g_.group_out * row_bytes_, row_bytes_, element});
    operands.set(1, images_, {g_.group_channels * element, 0, 0});
    operands.set(2, raw_ ? *raw_ : out_, {g_.group_out * row, row, element});
    set_operands(operands);
    divide(context, 8, true);
    product_phases_ = phases;
    phases += raw_ ? 2 : 1;
  }

  void run(RunState& state, int phase, int share, int shares) const override {
    if (phase == 0) {
      copy_images(state, runtime::share(g_.batch * lines(), share, shares));
      copy_rows(state, runtime::share(g_.batch * g_.out_channels, share, shares));
    } else if (phase <= product_phases_) {
      ProductDriver::run(state, phase - 1, share, shares);
    } else {
      order(state, runtime::share(g_.out_channels, share, shares));
    }
  }

 protected:
  void pack_panel(const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to) const override {
    const int64_t row_bytes = product_.panel_width(panel) * product_.element;
    const int64_t first = product_.panel_column(panel), columns = product_.panel_columns(panel);
    Run runs[kMostRuns];
    const int count = runs_of(first, first + columns, runs);
    const int64_t missing = row_bytes - columns * product_.element;
    auto pack = [&](auto copy_row) {
      for (int64_t k = k_begin; k < k_end;) {
        const int64_t image = k / g_.pixels(), y = k % g_.pixels() / g_.out_width, x = k % g_.out_width;
        const int64_t pixels = std::min(g_.out_width - x, k_end - k);
        const char* from = b + (image * lines() + y * g_.stride_h) * line_bytes_ + x * g_.stride_w * pixel_bytes_;
        for (int64_t i = 0; i < pixels; ++i, to += row_bytes, from += g_.stride_w * pixel_bytes_) {
          copy_row(to, from);
          if (missing) std::memset(to + row_bytes - missing, 0, missing);
        }
        k += pixels;
      }
    };
    // Whole vectors are copied without a loop.
    auto whole = [&](auto bytes) {
      if (count != 1 || runs[0].bytes != bytes) return false;
      pack([bytes, at = runs[0].from](char* to_row, const char* from) { std::memcpy(to_row, from + at, bytes); });
      return true;
    };
    if (whole(Fixed<64>()) || whole(Fixed<128>()) || whole(Fixed<192>()) || whole(Fixed<256>())) return;
    pack([&](char* to_row, const char* from) {
      for (int i = 0; i < count; ++i)
        runtime::copy_elements(to_row + runs[i].at, from + runs[i].from, runs[i].bytes / product_.element,
                               product_.element, product_.element);
    });
  }

 private:
  template <int64_t bytes>
  using Fixed = std::integral_constant<int64_t, bytes>;
  struct Run {
    int64_t at, from, bytes;  // in a row of the panel, from a pixel on
  };
  static constexpr int kMostRuns = 128;  // a panel of single columns

  // The last image comes first in the sums. Either end would do; with this one the CNN that is held to its run in
  // double (tests/data/training.json) does not come upon a kink at another side.
  int64_t place_of(int64_t image) const { return g_.batch - 1 - image; }
  int64_t lines() const { return g_.height + 2 * g_.padding_h; }

  // Columns [first, last) of a patch as runs of memory.
  int runs_of(int64_t first, int64_t last, Run* runs) const {
    INGOT_CHECK(last - first <= kMostRuns);
    int count = 0;
    for (int64_t column = first, end; column < last; column = end) {
      const int64_t tap = column / g_.group_channels, channel = column % g_.group_channels;
      end = std::min(last, column - channel + g_.group_channels);
      const Run run{(column - first) * product_.element,
                    tap / g_.kernel_w * g_.dilation_h * line_bytes_ + tap % g_.kernel_w * g_.dilation_w * pixel_bytes_ +
                        channel * product_.element,
                    (end - column) * product_.element};
      if (count && runs[count - 1].from + runs[count - 1].bytes == run.from)
        runs[count - 1].bytes += run.bytes;
      else
        runs[count++] = run;
    }
    return count;
  }

  void copy_images(const RunState& state, Range lines_of_all) const {
    for (int64_t line = lines_of_all.begin; line < lines_of_all.end; ++line) {
      char* to = images_.at(state) + line * line_bytes_;
      const int64_t y = line % lines() - g_.padding_h, border = g_.padding_w * pixel_bytes_;
      if (y < 0 || y >= g_.height) {
        std::memset(to, 0, line_bytes_);
        continue;
      }
      std::memset(to, 0, border);
      std::memset(to + line_bytes_ - border, 0, border);
      const char* from = input_.at(state) + place_of(line / lines()) * input_.strides[0] + y * input_.strides[2];
      product_.element == 8 ? transpose<double>(to + border, from) : transpose<float>(to + border, from);
    }
  }

  // Channels of a line become innermost, a few at a time: their lines may meet in one set of the cache.
  template <class T>
  void transpose(char* to, const char* from) const {
    constexpr int64_t kTogether = 8;
    const int64_t channel_step = input_.strides[1], step = input_.strides[3];
    for (int64_t first = 0; first < g_.channels; first += kTogether) {
      const int64_t count = std::min(kTogether, g_.channels - first);
      for (int64_t x = 0; x < g_.width; ++x) {
        T* pixel = reinterpret_cast<T*>(to + x * pixel_bytes_) + first;
        const char* source = from + first * channel_step + x * step;
        for (int64_t c = 0; c < count; ++c) pixel[c] = *reinterpret_cast<const T*>(source + c * channel_step);
      }
    }
  }

  // Each image's pixels of an output channel behind those of the image before.
  void copy_rows(const RunState& state, Range planes) const {
    const std::span<const int64_t> s = gradient_.strides;
    const int64_t element = product_.element, line = g_.out_width * element;
    const bool dense = s[3] == element && s[2] == line;
    for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
      const int64_t image = plane / g_.out_channels, channel = plane % g_.out_channels;
      char* to = rows_.at(state) + channel * row_bytes_ + place_of(image) * g_.pixels() * element;
      const char* from = gradient_.at(state) + image * s[0] + channel * s[1];
      if (dense)
        runtime::copy_elements(to, from, g_.pixels(), element, element);
      else
        for (int64_t y = 0; y < g_.out_height; ++y)
          runtime::copy_elements(to + y * line, from + y * s[2], g_.out_width, s[3], element);
    }
  }

  // [Cout, (kh, kw, c)] becomes [Cout, c, kh, kw].
  void order(const RunState& state, Range channels) const {
    const int64_t element = product_.element, row = product_.sizes.n * element;
    for (int64_t channel = channels.begin; channel < channels.end; ++channel)
      for (int64_t c = 0; c < g_.group_channels; ++c)
        runtime::copy_elements(out_.at(state) + channel * row + c * g_.taps() * element,
                               raw_->at(state) + channel * row + c * element, g_.taps(), g_.group_channels * element,
                               element);
  }

  const Geometry g_;
  BoundArgument input_, gradient_, out_, images_, rows_;
  std::optional<BoundArgument> raw_;
  int64_t row_bytes_ = 0, pixel_bytes_ = 0, line_bytes_ = 0;
  int product_phases_ = 1;
};

}  // namespace

StepDriver* bind(const Conv2dWeightStep& step, const Step&, const BindContext& context) {
  return context.make<Conv2dWeightDriver>(
      step, context.constants([&] { return ProductCalls(*step.kernels, Epilogue(), context); }), context);
}

}  // namespace ingot::runtime
