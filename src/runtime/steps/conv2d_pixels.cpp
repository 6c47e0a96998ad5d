// Convolution of images whose channels are innermost, as a product of pixels [pixels, (kh, kw, c)] and packed weights
// [(kh, kw, c), Cout / groups]. The pixels are read where they lie: tiles are told where the rows of A are for each tap
// (Dukhan, "The Indirect Convolution Algorithm", 2019), and taps beyond the image point to zeros; one tap alone meets
// the pixels as rows of a matrix. Other images are first copied, channels innermost and with their border; then the
// taps of a row of the kernel are one run.
//
// A tile all of whose pixels lie beyond the image for some tap passes it over, at the price of one step: what zeros
// times these weights would add is known (sum_zeros). So that many do, a tile has pixels of one line where lines divide
// evenly, or the same pixel of several images.
//
// Where each channel is a group, the tap is all there is to sum over: tiles multiply channels by channels.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "runtime/cpu.h"
#include "runtime/drivers/product_driver.h"
#include "runtime/steps/conv2d_pixels.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kShortRun = 32;  // bytes of channels: what finding their rows takes shows
constexpr int64_t kItem = 60'000;  // operations that take as long as to begin with another pixel

/// What zeros add to sums when they are multiplied by some rows of a panel: nothing but a zero's sign, or NaN where a
/// weight is not finite. [width], of bits that have this sign, infinity and NaN.
template <class Bits>
void sum_zeros(const char* panel, int64_t rows, int64_t width, Bits sign, Bits infinite, Bits nan, char* to) {
  constexpr int64_t kMost = 128;
  INGOT_CHECK(width <= kMost);
  Bits negative[kMost], wrong[kMost];
  std::fill_n(negative, width, sign), std::fill_n(wrong, width, Bits(0));
  const Bits* row = reinterpret_cast<const Bits*>(panel);
  for (int64_t k = 0; k < rows; ++k, row += width)
    for (int64_t j = 0; j < width; ++j) {
      negative[j] &= row[j];
      wrong[j] |= (row[j] & infinite) == infinite ? ~Bits(0) : Bits(0);
    }
  Bits* out = reinterpret_cast<Bits*>(to);
  for (int64_t j = 0; j < width; ++j) out[j] = wrong[j] ? nan : negative[j];
}
void sum_zeros(const char* panel, int64_t rows, int64_t width, int64_t element, char* to) {
  auto of = [&]<class Bits, class T>(Bits, T) {
    sum_zeros(panel, rows, width, std::bit_cast<Bits>(T(-0.0)), std::bit_cast<Bits>(std::numeric_limits<T>::infinity()),
              std::bit_cast<Bits>(std::numeric_limits<T>::quiet_NaN()), to);
  };
  if (element == 8) return of(uint64_t(), double());
  if (element == 4) return of(uint32_t(), float());
  // The two of a pair side by side.
  sum_zeros<uint16_t>(panel, rows / 2, 2 * width, 0x8000, 0x7f80, 0x7fc0, to);
}

class PixelDriver final : public ProductDriver {
 public:
  PixelDriver(const Conv2dStep& step, const ProductCalls& calls, const Geometry& geometry, const BindContext& context)
      : ProductDriver(*step.kernels, calls),
        g_(geometry),
        channels_(channels_of(step, geometry)),
        products_(step.form == ConvolutionForm::depthwise ? 1 : g_.groups),
        rounds_(step.rounds_weight) {
    weight_ = weight_of(step, context), input_ = context.argument(step.input);
    const int64_t element = size_of(step.dtype), pixels = g_.pixels();
    // And what else an epilogue reads, over [N, pixels, Cout].
    const auto results = context.array<BoundArgument>(step.epilogue.arguments.size());
    for (size_t i = 0; i < results.size(); ++i) results[i] = context.argument(step.epilogue.arguments[i]);
    place_image(element, context);
    // The pixels of all images are rows of one product, where they lie evenly.
    const bool together = (!in_rows() || image_step_ == pixels * pixel_step()) &&
                          std::all_of(results.begin(), results.end(),
                                      [&](const auto& a) { return a.strides[0] == pixels * a.strides[1]; });
    const int64_t columns = g_.out_channels / products_;
    skips_ = !in_rows() && !copies_ && step.form == ConvolutionForm::pixels && g_.padding_h + g_.padding_w > 0;
    across_images_ = skips_ && gains_across_images(element, columns);
    const int64_t images = together ? g_.batch : 1, outer = g_.batch / std::max<int64_t>(images, 1);
    product_.set_sizes({context.list({across_images_ ? pixels : outer, products_}),
                        across_images_ ? g_.batch : images * pixels, columns, g_.taps() * channels_, step.dtype,
                        product_.pairs ? DType::f32 : step.dtype});
    const int64_t lines = std::max<int64_t>(images * g_.out_height, 1);
    if (slides() || (skips_ && !across_images_ && lines_divide()))
      product_.rows = Pieces(product_.sizes.m, product_.max_rows, lines);
    BoundArguments operands(2 + results.size(), 4, context);
    operands.set(
        0, input_,
        {across_images_ ? 0 : image_step_, channels_ * element, across_images_ ? image_step_ : pixel_step(), element});
    operands.set(1, {weight_.buffer, 0, {}, 0}, {0, 0, 0, element});
    for (size_t i = 0; i < results.size(); ++i) {
      const std::span<const int64_t> s = results[i].strides;
      operands.set(2 + i, results[i],
                   {across_images_ ? s[1] : s[0], columns * s[2], across_images_ ? s[0] : s[1], s[2]});
    }
    set_operands(operands);
    if (!in_rows()) list_runs(context);
    divide(context, 0);
    if (step.weight_is_constant) {
      weight_buffer = weight_.buffer;
      const int64_t source = rounds_ ? int64_t{sizeof(float)} : element;
      std::vector<int64_t> numbers{element,   g_.out_channels,       channels_,
                                   products_, g_.kernel_h,           g_.kernel_w,
                                   source,    product_.panels.count, skips_ ? run_count_ : 0};
      numbers.insert(numbers.end(), g_.weight_strides.begin(), g_.weight_strides.end());
      source_bytes_ =
          dense_bytes({g_.out_channels, g_.group_channels, g_.kernel_h, g_.kernel_w}, g_.weight_strides, source);
      format_ = std::make_shared<const WeightFormat>(nullptr, std::move(numbers));
    }
    shared_bytes = weight_bytes() + (copies_ ? saturating_product(g_.batch, image_step_) : 0);
    phases = 2;
  }

  void prepare(const StepState& state, const InputIdentity& identity, WeightSlot& slot) const override {
    if (weight_bytes() == 0) return;
    const char* source = weight_.at(state);
    state.weights.find(source, source_bytes_, identity, format_, weight_bytes(), slot, [&](char* packed) {
      parallel(threads_for(weight_bytes(), 0), [&](int thread, int threads) {
        pack_weight(source, packed, share(products_ * product_.panels.count, thread, threads));
      });
    });
  }

  void run(const StepState& state, int phase, int share, int shares) const override {
    if (phase == 1) return ProductDriver::run(state, phase, share, shares);
    if (copies_) {
      const Range lines = runtime::share(g_.batch * height_, share, shares);
      for (int64_t line = lines.begin; line < lines.end; ++line)
        copy_line(g_, input_.at(state) + line / height_ * g_.input_strides[0], line % height_ - g_.padding_h, channels_,
                  product_.element, shared(state) + weight_bytes() + line * row_step_);
    }
    if (!kept(state))
      pack_weight(weight_.at(state), shared(state), runtime::share(products_ * product_.panels.count, share, shares));
  }
  bool idle(const StepState& state, int phase) const override { return phase == 0 && kept(state) && !copies_; }

 protected:
  const char* a_matrix(const StepState& state, int64_t batch, const char* argument) const override {
    if (!copies_) return argument;
    return shared(state) + weight_bytes() + batch / products_ * image_step_ +
           batch % products_ * channels_ * product_.element;
  }

  const char* packed_panels(const StepState& state, int64_t batch) const override {
    const char* packed = kept(state);
    return (packed ? packed : shared(state)) + batch % products_ * product_.packed_bytes();
  }

  // [n, c, kh, kw] in any strides becomes [(kh, kw, c)][columns]: whole panels, before any of them is used.
  void pack_panel(const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to) const override {
    INGOT_CHECK(k_begin == 0 && k_end == product_.sizes.k);
    pack_taps(g_, channels_, b,
              {product_.panel_column(panel), product_.panel_columns(panel), product_.panel_width(panel)},
              product_.element, rounds_, to);
  }

  const char* zero_runs(const StepState& state, int64_t batch, int64_t panel, int64_t block) const override {
    if (!skips_) return nullptr;
    const int64_t first = product_.listed[static_cast<size_t>(block)].runs.data() - product_.listed[0].runs.data();
    const char* packed = kept(state);
    return (packed ? packed : shared(state)) + zero_offset(batch % products_, product_.panel_column(panel)) +
           first * product_.panel_width(panel) * zero_bytes_each();
  }

  // The lines at the end of their windows, of windows that move down.
  Ahead rows_source(const char* a, Range tiles) const override {
    if (!slides()) return {};
    const int64_t first = product_.rows.begin(tiles.begin), last = product_.rows.begin(tiles.end) - 1;
    auto line = [&](int64_t pixel, int64_t kh) {
      const int64_t y = pixel / g_.out_width % g_.out_height * g_.stride_h - border_h_ + kh * g_.dilation_h;
      return a + pixel / g_.pixels() * image_step_ + std::clamp<int64_t>(y, 0, height_) * row_step_;
    };
    const char* const from = line(first, std::max<int64_t>(g_.kernel_h - g_.stride_h, 0));
    return Ahead::lines(from, std::max<int64_t>(line(last, g_.kernel_h) - from, 0));
  }

  void list_rows(int64_t batch, const char* a, Range tiles, const char** to) const override {
    if (slides()) return list_windows(a, tiles, to);
    if (across_images_) return list_images(batch / products_, a, tiles, to);
    int64_t pixel = product_.rows.begin(tiles.begin);
    int64_t x = pixel % g_.out_width, y = pixel / g_.out_width % g_.out_height;
    const char* image = a + pixel / g_.pixels() * image_step_;
    PieceWalk walk = product_.walk_rows(tiles);
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, walk.next(), to += product_.addresses) {
      const int64_t count = walk.size();
      bool at_border = false;
      for (int64_t i = 0, n; i < count; i += n) {
        // Pixels of one line, all with their whole windows in the image, or not.
        n = std::min(count - i, g_.out_width - x);
        const bool inside = x >= whole_.left && x + n <= whole_.right && y >= whole_.top && y < whole_.bottom;
        inside ? list_inside(image, y, x, n, to + i) : list_at_border(image, y, x, n, to + i);
        at_border |= !inside;
        if ((x += n) < g_.out_width) continue;
        x = 0;
        if (++y < g_.out_height) continue;
        y = 0, image += image_step_;
      }
      if (at_border && skips_) pass_over(to, count);
    }
  }

 private:
  /// That a product sums over: pairs of them, where the last one has a zero beside it.
  static int64_t channels_of(const Conv2dStep& step, const Geometry& g) {
    if (step.form == ConvolutionForm::depthwise) return 1;
    const bool listed = step.kernels->rows_of_a == RowsOfA::listed;
    return step.dtype == DType::bf16 && listed ? round_up(g.group_channels, 2) : g.group_channels;
  }
  /// Runs of nothing but zeros.
  void pass_over(const char** list, int64_t rows) const {
    const char* const zeros = zero_bytes();
    for (size_t run = 0; run < tap_offsets_.size(); ++run, list += product_.max_rows)
      if (std::all_of(list, list + rows, [&](const char* at) { return at == zeros; })) *list = nullptr;
  }
  /// One pixel of some images.
  void list_images(int64_t pixel, const char* a, Range tiles, const char** to) const {
    const int64_t top = pixel / g_.out_width * g_.stride_h - border_h_,
                  left = pixel % g_.out_width * g_.stride_w - border_w_;
    PieceWalk walk = product_.walk_rows(tiles);
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, walk.next()) {
      const char* const first = a + walk.begin() * image_step_;
      for (int64_t kh = 0, y = top; kh < g_.kernel_h; ++kh, y += g_.dilation_h)
        for (int64_t kw = 0, x = left; kw < g_.kernel_w; ++kw, x += g_.dilation_w, to += product_.max_rows) {
          const bool inside = y >= 0 && y < height_ && x >= 0 && x < width_;
          const char* at = first + y * row_step_ + x * column_step_;
          for (int64_t i = 0; i < walk.size(); ++i, at += image_step_) to[i] = inside ? at : nullptr;
        }
    }
  }
  /// Of all taps of all outputs, those beyond the image; or of those whose whole line is.
  double share_beyond(bool lines_alone) const {
    auto inside = [](int64_t outputs, int64_t size, int64_t border, int64_t taps, int64_t stride, int64_t dilation) {
      int64_t count = 0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t from = tap * dilation - border;
        const int64_t begin = from < 0 ? ceil_div(-from, stride) : 0,
                      end = size > from ? ceil_div(size - from, stride) : 0;
        count += std::max<int64_t>(std::min(end, outputs) - begin, 0);
      }
      return static_cast<double>(count) / static_cast<double>(std::max<int64_t>(outputs * taps, 1));
    };
    const double rows = inside(g_.out_height, height_, border_h_, g_.kernel_h, g_.stride_h, g_.dilation_h);
    return 1 - (lines_alone ? rows
                            : rows * inside(g_.out_width, width_, border_w_, g_.kernel_w, g_.stride_w, g_.dilation_w));
  }
  /// Whether so many rows are cut into tiles that are nearly full.
  bool fills_tiles(int64_t rows) const {
    return rows * 8 >= ceil_div(rows, product_.max_rows) * product_.max_rows * 7 && rows > 0;
  }
  bool lines_divide() const {
    return fills_tiles(g_.out_width) && g_.out_width % ceil_div(g_.out_width, product_.max_rows) == 0;
  }
  /// Weights are then read for each pixel, from L2 if they fit, and a pixel is begun for each.
  bool gains_across_images(int64_t element, int64_t columns) const {
    const int64_t k = g_.taps() * channels_, item = 2 * g_.batch * columns * k;
    if (!fills_tiles(g_.batch) || saturating_product(k, columns) * element > cache_sizes().l2 / 2) return false;
    const double gain = share_beyond(false) - (lines_divide() ? share_beyond(true) : 0);
    return gain * static_cast<double>(item) > static_cast<double>(kItem);
  }
  /// Behind all panels of all products: what zeros add, of those before this column of a product.
  int64_t zero_offset(int64_t product, int64_t column) const {
    return panels_bytes() + (product * kVector * product_.panels.n + column) * run_count_ * zero_bytes_each();
  }
  const char* kept(const StepState& state) const { return weight_buffer >= 0 ? state.weights.data() : nullptr; }
  void list_inside(const char* image, int64_t y, int64_t x, int64_t pixels, const char** to) const {
    const int64_t step = g_.stride_w * column_step_;
    const char* from = image + (y * g_.stride_h - border_h_) * row_step_ + x * step - border_w_ * column_step_;
    for (int64_t offset : tap_offsets_) {
      const char* at = from + offset;
      for (int64_t i = 0; i < pixels; ++i) to[i] = at + i * step;
      to += product_.max_rows;
    }
  }
  void list_at_border(const char* image, int64_t y, int64_t x, int64_t pixels, const char** to) const {
    const int64_t step = g_.stride_w * column_step_, tile = product_.max_rows;
    const char* const zeros = zero_bytes();
    int64_t at_y = y * g_.stride_h - border_h_;
    for (int64_t kh = 0; kh < g_.kernel_h; ++kh, at_y += g_.dilation_h) {
      const bool in_rows = at_y >= 0 && at_y < height_;
      const char* line = image + at_y * row_step_;
      for (int64_t kw = 0; kw < g_.kernel_w; ++kw, to += tile) {
        // Those outputs whose pixel lies inside.
        const Range inside = in_rows ? inside_[static_cast<size_t>(kw)] : Range{x, x};
        const int64_t first = std::clamp(inside.begin - x, int64_t{0}, pixels),
                      last = std::clamp(inside.end - x, first, pixels);
        const char* from = line + ((x + first) * g_.stride_w + kw * g_.dilation_w - border_w_) * column_step_;
        int64_t i = 0;
        for (; i < first; ++i) to[i] = zeros;
        for (; i < last; ++i, from += step) to[i] = from;
        for (; i < pixels; ++i) to[i] = zeros;
      }
    }
  }

  // A tile has a line's neighbouring pixels (see TileSpec).
  void list_windows(const char* a, Range tiles, const char** to) const {
    const int64_t taps = g_.kernel_w, edge = taps - 1, step = column_step_;
    const char* const zeros = zero_bytes();
    int64_t pixel = product_.rows.begin(tiles.begin);
    int64_t x = pixel % g_.out_width, y = pixel / g_.out_width % g_.out_height;
    const char* image = a + pixel / g_.pixels() * image_step_;
    PieceWalk walk = product_.walk_rows(tiles);
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, walk.next()) {
      const int64_t count = walk.size();
      const int64_t left = x * g_.stride_w - border_w_, right = left + (count - 1) * g_.stride_w + 1;
      const bool whole = left >= 0 && right + edge <= width_;
      int64_t at_y = y * g_.stride_h - border_h_;
      for (int64_t kh = 0; kh < g_.kernel_h; ++kh, at_y += g_.dilation_h, to += 2 * taps) {
        const bool inside = at_y >= 0 && at_y < height_;
        const char* const line = image + at_y * row_step_;
        auto at = [&](int64_t column) {
          const bool there = whole || (column >= 0 && column < width_);
          return inside && there ? line + column * step : zeros;
        };
        to[0] = reinterpret_cast<const char*>(inside ? step : 0), to[1] = at(left + edge);
        for (int64_t i = 0; i < edge; ++i) to[2 + i] = at(left + i), to[2 + edge + i] = at(right + i);
      }
      if ((x += count) < g_.out_width) continue;
      x = 0;
      if (++y < g_.out_height) continue;
      y = 0, image += image_step_;
    }
  }

  /// Tiles slide along lines.
  bool slides() const { return product_.rows_of_a == RowsOfA::windows; }
  /// Pixels are rows of a matrix, so far apart; else their addresses are listed.
  bool in_rows() const { return product_.rows_of_a == RowsOfA::along; }
  int64_t pixel_step() const { return g_.width > 1 ? column_step_ : row_step_; }
  int64_t zero_bytes_each() const { return product_.element * (product_.pairs ? 2 : 1); }
  int64_t panels_bytes() const { return round_up(saturating_product(products_, product_.packed_bytes()), 64); }
  int64_t weight_bytes() const { return skips_ ? round_up(zero_offset(products_, 0), 64) : panels_bytes(); }

  // Where pixels are read: where the image lies, or in a copy with its border.
  void place_image(int64_t element, const BindContext& context) {
    const std::span<const int64_t> s = g_.input_strides;
    const bool dense = s[1] == element || g_.channels <= 1, evenly = g_.dilation_w == 1 && products_ == g_.groups;
    const bool in_lines = g_.width <= 1 || g_.height <= 1 || s[2] == g_.width * s[3];
    copies_ = !dense || channels_ * g_.groups > g_.channels ||
              (in_rows() ? !in_lines : g_.channels * element > kZeroBytes) ||
              (evenly && g_.groups == 1 && g_.kernel_w > 1 && channels_ * element < kShortRun);
    // Taps side by side are one run.
    joined_ = slides() || (copies_ && evenly && g_.groups == 1) ? g_.kernel_w : 1;
    border_h_ = copies_ ? 0 : g_.padding_h, border_w_ = copies_ ? 0 : g_.padding_w;
    height_ = g_.height + (copies_ ? 2 * g_.padding_h : 0), width_ = g_.width + (copies_ ? 2 * g_.padding_w : 0);
    // Of size outputs: those from which on no tap is before the image, and from which on one is behind it.
    auto whole = [](int64_t outputs, int64_t size, int64_t border, int64_t reach, int64_t stride) {
      const int64_t begin = std::min(ceil_div(border, stride), outputs), room = size - 1 - reach + border;
      const int64_t end = room < 0 ? 0 : std::min(room / stride + 1, outputs);
      return Range{begin, std::max(begin, end)};
    };
    const Range rows = whole(g_.out_height, height_, border_h_, (g_.kernel_h - 1) * g_.dilation_h, g_.stride_h),
                columns = whole(g_.out_width, width_, border_w_, (g_.kernel_w - 1) * g_.dilation_w, g_.stride_w);
    whole_ = {rows.begin, rows.end, columns.begin, columns.end};
    inside_ = context.array<Range>(static_cast<size_t>(g_.kernel_w));
    for (int64_t kw = 0; kw < g_.kernel_w; ++kw) {
      const int64_t right = kw * g_.dilation_w - border_w_;
      const int64_t begin = right < 0 ? ceil_div(-right, g_.stride_w) : 0;
      inside_[static_cast<size_t>(kw)] = {begin, width_ > right ? ceil_div(width_ - right, g_.stride_w) : 0};
    }
    column_step_ = copies_ ? g_.groups * channels_ * element : s[3];
    row_step_ = copies_ ? saturating_product(width_, column_step_) : s[2];
    image_step_ = copies_ ? saturating_product(height_, row_step_) : s[0];
  }

  void list_runs(const BindContext& context) {
    const int64_t element = product_.element, run = joined_ * channels_, k = product_.sizes.k;
    tap_offsets_ = context.array<int64_t>(static_cast<size_t>(g_.taps() / joined_));
    for (int64_t& offset : tap_offsets_) {
      const int64_t tap = (&offset - tap_offsets_.data()) * joined_;
      offset = tap / g_.kernel_w * g_.dilation_h * row_step_ + tap % g_.kernel_w * g_.dilation_w * column_step_;
    }
    product_.addresses = static_cast<int64_t>(tap_offsets_.size()) * (slides() ? 2 * g_.kernel_w : product_.max_rows);
    // Neighbouring pixels share what their taps have in common.
    const bool apart = g_.stride_h >= g_.kernel_h && g_.stride_w >= g_.kernel_w;
    if (!apart && !across_images_) product_.a_bytes = g_.stride_h * g_.stride_w * column_step_;
    product_.a_bytes += product_.addresses * 8 / product_.max_rows;
    // A run may end with its block of k, and go on in the next.
    const auto blocks = context.array<ListedRuns>(static_cast<size_t>(ceil_div(k, kBlock)));
    const auto runs = context.array<TileRun>(tap_offsets_.size() + blocks.size());
    size_t count = 0;
    for (int64_t begin = 0; begin < k; begin += kBlock) {
      const size_t first = count;
      for (int64_t at = begin; at < std::min(begin + kBlock, k); at += runs[count++].steps) {
        const int64_t behind = at % run;
        runs[count] = {behind * element, std::min({run - behind, begin + kBlock - at, k - at})};
      }
      blocks[static_cast<size_t>(begin / kBlock)] = {begin / run, runs.subspan(first, count - first)};
    }
    product_.listed = blocks;
    run_count_ = static_cast<int64_t>(count);
  }

  void pack_weight(const char* from, char* to, Range panels) const {
    const int64_t each = product_.panels.count, columns = product_.sizes.n;
    for (int64_t i = panels.begin; i < panels.end; ++i) {
      char* const panel = to + i / each * product_.packed_bytes() + product_.panel_offset(i % each);
      pack_panel(from + i / each * columns * g_.weight_strides[0], i % each, 0, product_.sizes.k, panel);
      if (skips_)
        sum_zeros_of_runs(panel, product_.panel_width(i % each),
                          to + zero_offset(i / each, product_.panel_column(i % each)));
    }
  }
  void sum_zeros_of_runs(const char* panel, int64_t width, char* to) const {
    for (const ListedRuns& block : product_.listed)
      for (const TileRun& run : block.runs) {
        sum_zeros(panel, run.steps, width, product_.element, to);
        panel += run.steps * width * product_.element, to += width * zero_bytes_each();
      }
  }
  const Geometry g_;
  const int64_t channels_, products_;  // of a product: input channels that it sums over; how many there are
  const bool rounds_;                  // the weight, from f32
  BoundArgument weight_, input_;
  std::shared_ptr<const WeightFormat> format_;
  int64_t source_bytes_ = 0;
  bool copies_ = false;
  bool skips_ = false, across_images_ = false;  // taps beyond the image; rows of a tile are one pixel of several images
  int64_t run_count_ = 0;
  int64_t joined_ = 1;                                            // taps to a run
  int64_t height_ = 0, width_ = 0, border_h_ = 0, border_w_ = 0;  // of what is read; what lies beyond it
  struct {
    int64_t top = 0, bottom = 0, left = 0, right = 0;
  } whole_;                  // outputs whose windows lie in what is read
  std::span<Range> inside_;  // of a line: the outputs whose pixel does, for each column of the kernel
  int64_t image_step_ = 0, row_step_ = 0, column_step_ = 0;
  std::span<int64_t> tap_offsets_;
};

}  // namespace

StepDriver* bind_pixels(const Conv2dStep& step, const ProductCalls& calls, const Geometry& geometry,
                        const BindContext& context) {
  return context.make<PixelDriver>(step, calls, geometry, context);
}

}  // namespace ingot::runtime
