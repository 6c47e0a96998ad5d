// Convolution of 3x3 taps by tiles of 4x4 results (Winograd's F(4x4, 3x3): codegen/lower/winograd.cpp has the
// transforms). The 6x6 pixels under a tile are transformed along both dims, channels side by side; each of the 36
// numbers is a row of one of 36 products with transformed weights; what they give is transformed back and goes through
// the epilogue. A band of lines of tiles goes through the three phases at a time, so that all of it stays in the
// caches. A tile's bits depend on nothing but its pixels.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "runtime/cpu.h"
#include "runtime/drivers/product_ahead.h"
#include "runtime/drivers/product_result.h"
#include "runtime/steps/conv2d_winograd.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kResults = 4, kWindow = 6, kTaps = 3, kPoints = kWindow * kWindow;  // a tile: results, pixels, taps
constexpr int64_t kElement = 4;
constexpr int64_t kChannels = 64;  // that are transformed together
constexpr int64_t kPhases = 3;     // of a band
static_assert(kChannels * kElement <= kZeroBytes);

/// Calls a transform: its buffers are set one after the other.
class Transform {
 public:
  Transform(const KernelCall& call, int64_t rows, int64_t channels) : call_(call) {
    frame_.buffers = at_.data(), frame_.row_strides = strides_.data(), frame_.column_strides = columns_.data();
    frame_.rows = rows, frame_.columns = channels;
    frame_.context = call.context;
    columns_.fill(kElement);
  }
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;
  void add(const char* at, int64_t row_stride) { at_[count_] = const_cast<char*>(at), strides_[count_++] = row_stride; }
  /// So many, `apart` bytes from one to the next.
  void add(int64_t count, const char* at, int64_t apart, int64_t row_stride) {
    for (int64_t i = 0; i < count; ++i) add(at + i * apart, row_stride);
  }
  void run() {
    call_.entry(&frame_);
    count_ = 0;
  }

 private:
  const KernelCall& call_;
  KernelFrame frame_{};
  std::array<char*, 2 * kWindow> at_{};
  std::array<int64_t, 2 * kWindow> strides_{}, columns_{};
  size_t count_ = 0;
};

/// Rows of channels begin at differing sets of the cache.
int64_t row_bytes(int64_t channels) { return (round_up(channels * kElement, 64) / 64 | 1) * 64; }

class WinogradDriver final : public StepDriver {
 public:
  WinogradDriver(const Conv2dStep& step, const ConvolutionCalls::Winograd& calls, const Geometry& geometry,
                 const BindContext& context)
      : g_(geometry),
        calls_(calls),
        product_(*step.winograd->products, calls.products),
        tiles_x_(ceil_div(g_.out_width, kResults)),
        tiles_y_(ceil_div(g_.out_height, kResults)),
        lines_(g_.batch * tiles_y_),
        pixels_row_(row_bytes(g_.channels)),
        results_row_(row_bytes(g_.out_channels)) {
    weight_ = weight_of(step, context), input_ = context.argument(step.input);
    product_.set_sizes({context.list({g_.batch}), g_.pixels(), g_.out_channels, g_.channels, step.dtype, step.dtype});
    const std::vector<Argument>& rest = step.epilogue.arguments;
    BoundArguments operands(2 + rest.size(), 3, context);
    operands.set(0, input_, {g_.input_strides[0], g_.input_strides[3], kElement});
    operands.set(1, {weight_.buffer, 0, {}, 0}, {0, 0, kElement});
    for (size_t i = 0; i < rest.size(); ++i) {
      const BoundArgument a = context.argument(rest[i]);  // over [N, pixels, Cout]
      operands.set(2 + i, a, {a.strides[0], a.strides[1], a.strides[2]});
    }
    product_.set_operands(operands);
    result_ = ProductResult(product_, {});

    const int64_t line_bytes = kPoints * tiles_x_ * (pixels_row_ + results_row_);
    band_ = std::clamp<int64_t>(kBandOfL2 * context.threads * cache_sizes().l2 / line_bytes, 1, lines_);
    band_ = ceil_div(lines_, ceil_div(lines_, band_));
    if (step.weight_is_constant) {
      weight_buffer = weight_.buffer;
      std::vector<int64_t> numbers{g_.out_channels, g_.channels, product_.panels.count};
      numbers.insert(numbers.end(), g_.weight_strides.begin(), g_.weight_strides.end());
      source_bytes_ = dense_bytes({g_.out_channels, g_.channels, kTaps, kTaps}, g_.weight_strides, kElement);
      format_ = std::make_shared<const WeightFormat>(step.winograd->taps, std::move(numbers));
    }
    shared_bytes = weight_bytes() + band_ * line_bytes;
    phases = static_cast<int>(1 + kPhases * ceil_div(lines_, band_));
    const int64_t operations =
        saturating_product(2 * kPoints * band_ * tiles_x_, saturating_product(g_.channels, g_.out_channels));
    useful_threads = static_cast<int>(
        std::clamp<int64_t>(std::min(operations / kProductGrain, kPoints * product_.panels.count), 1, kMostThreads));
  }

  void prepare(const StepState& state, const InputIdentity& identity, WeightSlot& slot) const override {
    const char* source = weight_.at(state);
    state.weights.find(source, source_bytes_, identity, format_, weight_bytes(), slot, [&](char* packed) {
      parallel(threads_for(weight_bytes(), 0), [&](int thread, int threads) {
        transform_taps(source, packed, share(product_.panels.count, thread, threads));
      });
    });
  }

  void run(const StepState& state, int phase, int share, int shares) const override {
    if (phase == 0)
      return transform_taps(weight_.at(state), shared(state), runtime::share(product_.panels.count, share, shares));
    const int64_t first = (phase - 1) / kPhases * band_;
    const Band band{first, std::min(first + band_, lines_)};
    switch ((phase - 1) % kPhases) {
      case 0:
        return transform_pixels(state, band, share, shares);
      case 1:
        return multiply(state, band, share, shares);
      default:
        return transform_results(state, band, share, shares);
    }
  }
  bool idle(const StepState& state, int phase) const override { return phase == 0 && kept(state); }
  int64_t scratch_bytes(const StepState& state) const override {
    const int64_t widest = Product::kVector * product_.max_vectors;
    return std::max({kept(state) ? 0 : taps_bytes(widest), pixels_bytes(std::min(kChannels, g_.channels)),
                     ProductRun::scratch_bytes(product_, rooms_of(widest))});
  }

 private:
  static constexpr int64_t kBandOfL2 = 2;  // caches of this level that a band takes, a thread
  using Band = Range;                      // of lines of tiles
  // Of a band in memory: transformed pixels [36][tiles][channels], then products [36][tiles][Cout].
  int64_t tiles_of(Band band) const { return (band.end - band.begin) * tiles_x_; }
  int64_t pixels_point(Band band) const { return tiles_of(band) * pixels_row_; }
  int64_t results_point(Band band) const { return tiles_of(band) * results_row_; }
  char* pixels_of(const StepState& state) const { return shared(state) + weight_bytes(); }
  char* results_of(const StepState& state, Band band) const { return pixels_of(state) + kPoints * pixels_point(band); }

  const char* kept(const StepState& state) const { return weight_buffer >= 0 ? state.weights.data() : nullptr; }
  /// Of transformed weights: [36] times packed panels.
  int64_t weight_bytes() const { return round_up(saturating_product(kPoints, product_.packed_bytes()), 64); }

  /// Of scratch: the taps of a panel so wide, and half transformed; lines of so many channels; a line's results.
  int64_t taps_bytes(int64_t width) const { return kTaps * (kTaps + kWindow) * g_.channels * width * kElement; }
  int64_t line_width() const { return kResults * tiles_x_ + kWindow - kResults; }
  int64_t pixels_bytes(int64_t channels) const { return kWindow * (line_width() + g_.width) * channels * kElement; }
  ProductRooms rooms_of(int64_t width) const {
    const int64_t line = tiles_x_ * width * kElement;
    return {.panels = kResults * kWindow * line, .c = kResults * kResults * line};
  }

  void transform_taps(const char* from, char* to, Range panels) const {
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t width = product_.panel_width(panel), row = width * kElement, plane = g_.channels * row;
      char* taps = thread_scratch(taps_bytes(width));
      char* half = taps + kTaps * kTaps * plane;  // [ky][point along x]
      pack_taps(g_, g_.channels, from, {product_.panel_column(panel), product_.panel_columns(panel), width}, kElement,
                false, taps);
      Transform transform(calls_.taps, g_.channels, width);
      for (int64_t y = 0; y < kTaps; ++y) {
        transform.add(kTaps, taps + y * kTaps * plane, plane, row);
        transform.add(kWindow, half + y * kWindow * plane, plane, row);
        transform.run();
      }
      char* panel_of_first = to + product_.panel_offset(panel);
      for (int64_t x = 0; x < kWindow; ++x) {
        transform.add(kTaps, half + x * plane, kWindow * plane, row);
        transform.add(kWindow, panel_of_first + x * product_.packed_bytes(), kWindow * product_.packed_bytes(), row);
        transform.run();
      }
    }
  }

  // Down the lines of each column of pixels, then along each of the six lines that this gives.
  void transform_pixels(const StepState& state, Band band, int share, int shares) const {
    const std::span<const int64_t> s = g_.input_strides;
    const int64_t pieces = ceil_div(g_.channels, kChannels), width = line_width();
    const int64_t after = width - g_.padding_w - g_.width;  // zeros behind a line
    const Range items = runtime::share((band.end - band.begin) * pieces, share, shares);
    for (int64_t item = items.begin; item < items.end; ++item) {
      const int64_t line = band.begin + item / pieces, channel = item % pieces * kChannels;
      const int64_t channels = std::min(kChannels, g_.channels - channel), pixel = channels * kElement;
      const int64_t top = line % tiles_y_ * kResults - g_.padding_h;
      const char* image = input_.at(state) + line / tiles_y_ * s[0] + channel * s[1];
      char* half = thread_scratch(pixels_bytes(channels));
      char* copies = half + kWindow * width * pixel;  // of lines whose channels are apart
      Transform down(calls_.pixels, g_.width, channels);
      for (int64_t y = top; y < top + kWindow; ++y) {
        if (y < 0 || y >= g_.height) {
          down.add(zero_bytes(), 0);
        } else if (s[1] == kElement) {
          down.add(image + y * s[2], s[3]);
        } else {
          copy_channels_inside(image + y * s[2], g_.width, channels, s[3], s[1], kElement, copies, pixel);
          down.add(copies, pixel);
          copies += g_.width * pixel;
        }
      }
      down.add(kWindow, half + g_.padding_w * pixel, width * pixel, pixel);
      down.run();
      Transform along(calls_.pixels, tiles_x_, channels);
      char* to = pixels_of(state) + (line - band.begin) * tiles_x_ * pixels_row_ + channel * kElement;
      for (int64_t y = 0; y < kWindow; ++y) {
        char* from = half + y * width * pixel;
        std::memset(from, 0, g_.padding_w * pixel);
        std::memset(from + (width - after) * pixel, 0, after * pixel);
        along.add(kWindow, from, pixel, kResults * pixel);
        along.add(kWindow, to + y * kWindow * pixels_point(band), pixels_point(band), pixels_row_);
        along.run();
      }
    }
  }

  void multiply(const StepState& state, Band band, int share, int shares) const {
    const char* kept_weights = kept(state);
    const char* weights = kept_weights ? kept_weights : shared(state);
    const Pieces rows(tiles_of(band), product_.max_rows);
    const int64_t panels = product_.panels.count;
    const Range items = runtime::share(kPoints * panels, share, shares);
    for (int64_t item = items.begin; item < items.end; ++item) {
      const int64_t point = item / panels, panel = item % panels, width = product_.panel_width(panel);
      const char* b = weights + point * product_.packed_bytes() + product_.panel_offset(panel);
      const char* end = weights + kPoints * product_.packed_bytes();
      const char* a = pixels_of(state) + point * pixels_point(band);
      char* c = results_of(state, band) + point * results_point(band) + product_.panel_column(panel) * kElement;
      for (int64_t k = 0; k < g_.channels; k += Product::kBlock) {
        TileFrame frame;
        frame.k = std::min(Product::kBlock, g_.channels - k);
        frame.b = b + k * width * kElement;
        frame.a_stride = pixels_row_, frame.c_stride = frame.results_stride = results_row_;
        frame.accumulate = k > 0;
        frame.columns = product_.panel_columns(panel);
        const int64_t bytes = frame.k * width * kElement;
        const Ahead next = frame.b + 2 * bytes <= end ? Ahead::lines(frame.b + bytes, bytes) : Ahead();
        const AheadShares ahead(next, rows.count, lines_fetched(frame.k, width * kElement));
        for (int64_t i = 0; i < rows.count; ++i) {
          const KernelCall& call = product_.tile(calls_.products.tiles, rows.size(i), product_.panels.size(panel));
          frame.a = a + rows.begin(i) * pixels_row_ + k * kElement;
          frame.c = c + rows.begin(i) * results_row_, frame.results = frame.c;
          frame.context = call.context;
          ahead.give(i, frame);
          call.entry(&frame);
        }
      }
    }
  }

  // Down the six products of each column of a tile, then along each of the four lines that this gives.
  void transform_results(const StepState& state, Band band, int share, int shares) const {
    const int64_t panels = product_.panels.count;
    const Range items = runtime::share((band.end - band.begin) * panels, share, shares);
    for (int64_t item = items.begin; item < items.end; ++item) {
      const int64_t line = band.begin + item / panels, panel = item % panels;
      const int64_t width = product_.panel_width(panel), columns = product_.panel_columns(panel);
      const int64_t pixel = width * kElement, out_line = kResults * tiles_x_ * pixel;
      const int64_t top = line % tiles_y_ * kResults, lines = std::min(kResults, g_.out_height - top);
      const ProductRun run(product_, state, line / tiles_y_, rooms_of(width));
      char* half = run.scratch.panels;  // [line][tile][point along x]
      char* raw = run.scratch.c;        // [line][pixel]
      const char* from = results_of(state, band) + (line - band.begin) * tiles_x_ * results_row_ +
                         product_.panel_column(panel) * kElement;
      Transform transform(calls_.results, tiles_x_, columns);
      const int64_t point = results_point(band), half_line = tiles_x_ * kWindow * pixel;
      for (int64_t x = 0; x < kWindow; ++x) {
        transform.add(kWindow, from + x * point, kWindow * point, results_row_);
        transform.add(kResults, half + x * pixel, half_line, kWindow * pixel);
        transform.run();
      }
      for (int64_t y = 0; y < lines; ++y) {
        transform.add(kWindow, half + y * half_line, pixel, kWindow * pixel);
        transform.add(kResults, raw + y * out_line, pixel, kResults * pixel);
        transform.run();
      }
      store(run, {panel, top * g_.out_width, 0, raw, pixel}, lines, out_line);
    }
  }

  // Lines of results, `out_line` bytes apart, from where the piece begins.
  void store(const ProductRun& run, RawPiece piece, int64_t lines, int64_t out_line) const {
    const bool joined = kResults * tiles_x_ == g_.out_width;
    piece.rows = joined ? lines * g_.out_width : g_.out_width;
    const int64_t column = product_.panel_column(piece.panel), bytes = product_.panel_columns(piece.panel) * kElement;
    for (int64_t y = 0; y < (joined ? 1 : lines); ++y, piece.row += piece.rows, piece.at += out_line) {
      if (product_.has_epilogue()) {
        result_.finish(run, piece);
        continue;
      }
      char* to = run.scratch.at[2] + piece.row * product_.c_row + column * kElement;
      for (int64_t i = 0; i < piece.rows; ++i) std::memcpy(to + i * product_.c_row, piece.at + i * piece.stride, bytes);
    }
  }

  const Geometry g_;
  const ConvolutionCalls::Winograd& calls_;
  Product product_;  // of pixels and taps: where results go, and the panels of weights
  ProductResult result_;
  BoundArgument weight_, input_;
  std::shared_ptr<const WeightFormat> format_;
  int64_t source_bytes_ = 0;
  const int64_t tiles_x_, tiles_y_, lines_;  // lines: of tiles, in all images
  const int64_t pixels_row_, results_row_;   // bytes of a tile's channels
  int64_t band_ = 1;                         // lines that are computed together
};

}  // namespace

// Four times the weights are read: from memory that takes as long as multiplying them directly with some hundred pixels
// (at 4 to 8 operations a byte of it). And results are to fill half of their tiles. Batches do not count: an image's
// bits are its own.
bool winograd_pays(const Geometry& g) {
  constexpr int64_t kFewestPixels = 96;
  const int64_t tiles = ceil_div(g.out_width, kResults) * ceil_div(g.out_height, kResults);
  return g.batch > 0 && g.pixels() >= kFewestPixels && tiles * kResults * kResults <= 2 * g.pixels();
}

StepDriver* bind_winograd(const Conv2dStep& step, const ConvolutionCalls::Winograd& calls, const Geometry& geometry,
                          const BindContext& context) {
  return context.make<WinogradDriver>(step, calls, geometry, context);
}

}  // namespace ingot::runtime
