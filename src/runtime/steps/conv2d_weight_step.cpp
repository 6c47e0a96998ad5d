// The gradient of a convolution's weight as a product over all pixels of the result, image by image from the last to
// the first: k is (n, oh, ow), in blocks of 256 as in any product. Both operands are read where they lie, channels
// innermost: for a tap of the kernel and a block of k, tiles are given the address of each pixel of the gradient and of
// the pixel of the image that the tap meets; where there is none the step of k is left out. What several tiles read is
// packed a block of k at a time, as pixels of many channels lie so far apart that they meet in few sets of a cache;
// those of the gradient are the same for all taps. Where each channel is a group, tiles have a row a tap and multiply
// channels by channels. Of few channels, which would be few rows, those of all taps are put side by side first, a block
// of k at a time. Of bf16 two pixels are multiplied at a time (vdpbf16ps): both operands are packed in pairs of those
// that a tap meets.
#include <emmintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/canonical_order.h"
#include "base/error.h"
#include "base/pieces.h"
#include "runtime/cpu.h"
#include "runtime/drivers/product.h"
#include "runtime/steps/conv2d_geometry.h"
#include "runtime/steps/steps.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kFewChannels = 3, kMostPatch = 1024;  // of all taps: a block of k of them stays in L2
constexpr int64_t kFewestRows = 4;                      // of a tile, where another thread could have the rest
constexpr int64_t kFewestPanels = 4, kFewestTiles = 8;  // that read what is packed
constexpr int64_t kReadAsItLies = 40 << 10;             // bytes of a block of k: near L1
constexpr int64_t kPacked = 1 << 17;                    // bytes of the image: a part of L2 of every processor
constexpr int64_t kPackedGradient = 1 << 21;            // read again for each of the image's panels, and for each tap

/// So many bytes of `count` pixels, every other address, become dense, `step` bytes apart. Those that tiles have most
/// often are known to the compiler.
template <size_t... Known>
void put_channels(const char* const* pixels, int64_t count, int64_t offset, size_t bytes, char* to, int64_t step) {
  auto put = [&](auto size) {
    for (int64_t i = 0; i < count; ++i, to += step) std::memcpy(to, pixels[2 * i] + offset, size);
    return true;
  };
  (void)((bytes == Known && put(std::integral_constant<size_t, Known>())) || ... || put(bytes));
}

/// Two pixels side by side, channel by channel.
void put_pair(const char* first, const char* second, int64_t channels, char* to) {
  auto load = [](const char* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  auto store = [](char* at, __m128i pairs) { _mm_storeu_si128(reinterpret_cast<__m128i*>(at), pairs); };
  for (; channels >= 8; channels -= 8, first += 16, second += 16, to += 32) {
    const __m128i a = load(first), b = load(second);
    store(to, _mm_unpacklo_epi16(a, b));
    store(to + 16, _mm_unpackhi_epi16(a, b));
  }
  if (channels >= 4) {
    auto half = [](const char* from) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)); };
    store(to, _mm_unpacklo_epi16(half(first), half(second)));
    channels -= 4, first += 8, second += 8, to += 16;
  }
  for (; channels > 0; --channels, first += 2, second += 2, to += 4)
    std::memcpy(to, first, 2), std::memcpy(to + 2, second, 2);
}

/// So many pixels, every other address, in pairs `step` bytes apart; beside an odd last one zeros.
void put_pairs(const char* const* pixels, int64_t count, int64_t offset, int64_t channels, const char* zeros, char* to,
               int64_t step) {
  for (; count > 1; count -= 2, pixels += 4, to += step) put_pair(pixels[0] + offset, pixels[2] + offset, channels, to);
  if (count) put_pair(pixels[0] + offset, zeros, channels, to);
}

class Conv2dWeightDriver final : public StepDriver {
 public:
  Conv2dWeightDriver(const Conv2dWeightStep& step, const ProductCalls& calls, const BindContext& context)
      : g_(geometry_of(step, context)),
        pairs_(step.dtype == DType::bf16),
        element_(size_of(step.dtype)),
        sum_(pairs_ ? int64_t{sizeof(float)} : element_),
        max_vectors_(step.kernels->max_vectors),
        depthwise_(step.kernels->rows_of_a == RowsOfA::channels_with_b),
        side_by_side_(!depthwise_ && g_.group_channels <= kFewChannels && g_.taps() * g_.group_channels <= kMostPatch),
        tiles_(calls.tiles),
        input_(context.argument(step.input)),
        gradient_(context.argument(step.gradient)),
        out_(context.argument(step.out)),
        raw_(context.argument(step.raw)) {
    if (step.input_inside) input_inside_ = context.argument(*step.input_inside);
    if (step.gradient_inside) gradient_inside_ = context.argument(*step.gradient_inside);
    INGOT_CHECK(!pairs_ || !depthwise_, "channels by channels there are no pairs");
    // Vectors run along the channels that fill them better, or else along more of them: a vector takes a whole line of
    // a pixel, the rows of a tile a piece of one.
    auto filled = [](int64_t n) {
      const int64_t all = round_up(std::max<int64_t>(n, 1), Product::kVector);
      return std::pair(static_cast<double>(n) / static_cast<double>(all), n);
    };
    along_input_ = !side_by_side_ && filled(g_.group_channels) >= filled(g_.group_out);
    const int64_t patch = g_.taps() * g_.group_channels;
    const int64_t rows = depthwise_      ? g_.taps()
                         : side_by_side_ ? patch
                         : along_input_  ? g_.group_out
                                         : g_.group_channels;
    columns_ = depthwise_ ? g_.channels : along_input_ ? g_.group_channels : g_.group_out;
    panels_ = Pieces(ceil_div(columns_, Product::kVector), max_vectors_);
    const int64_t shared = side_by_side_ ? std::clamp<int64_t>(rows / kFewestRows, 1, context.threads) : 1;
    row_tiles_ = Pieces(rows, step.kernels->max_rows, shared);
    // Results of a group: [Cout, (kh, kw, c)] or [(kh, kw, c), Cout].
    raw_out_ = (along_input_ ? patch : 1) * sum_, raw_in_ = (along_input_ ? 1 : g_.group_out) * sum_;
    raw_group_ = depthwise_ ? sum_ : g_.group_out * patch * sum_;  // depthwise: [(kh, kw), C]
    raw_tap_ = depthwise_ ? g_.channels * sum_ : g_.group_channels * raw_in_;
    k_ = saturating_product(g_.batch, g_.pixels());
    units_ = saturating_product(panels_.count, row_tiles_.count);
    if (!depthwise_) units_ = saturating_product(units_, saturating_product(g_.groups, side_by_side_ ? 1 : g_.taps()));
    const int64_t operations = saturating_product(saturating_product(2 * k_, patch), g_.out_channels);
    useful_threads = static_cast<int>(std::clamp<int64_t>(
        std::min(operations / (depthwise_ ? kChannelGrain : kProductGrain), units_), 1, kMostThreads));
    if (g_.dilation_w == 1 && image().strides[3] == g_.group_channels * element_) run_taps_ = g_.kernel_w;
    zeros_ = g_.channels * element_ > kZeroBytes;
    if (zeros_) shared_bytes = g_.channels * element_;
    phases = 3;
  }

  void run(const StepState& state, int phase, int share, int shares) const override {
    if (phase == 0) {
      if (zeros_ && share == 0) std::fill_n(shared(state), shared_bytes, 0);
      if (input_inside_)
        move_inside(state, input_, *input_inside_, g_.channels, g_.height, g_.width,
                    runtime::share(g_.batch * g_.height, share, shares));
      if (gradient_inside_)
        move_inside(state, gradient_, *gradient_inside_, g_.out_channels, g_.out_height, g_.out_width,
                    runtime::share(g_.batch * g_.out_height, share, shares));
    } else if (phase == 1) {
      const Range units = runtime::share(units_, share, shares);
      depthwise_      ? multiply_channels(state, units)
      : side_by_side_ ? multiply_patches(state, units)
                      : multiply(state, units);
    } else {
      order(state, runtime::share(g_.out_channels, share, shares));
    }
  }
  int64_t scratch_bytes(const StepState&) const override {
    if (depthwise_) return Product::kBlock * (1 + most_rows()) * 8;
    return kListBytes + (side_by_side_ ? patches_bytes() : packed_bytes());
  }
  bool idle(const StepState&, int phase) const override {
    return phase == 0 && !zeros_ && !input_inside_ && !gradient_inside_;
  }

 private:
  struct Addresses {
    const char *a, *b;
  };
  /// What of the gradient is packed, of a block of k: its pixels are the same for all taps, or those that this tap
  /// meets.
  struct PackedGradient {
    static constexpr int64_t kAll = -1;
    int64_t group = -1, tap = kAll;
    Range pieces{0, 0};
    /// False if it is these already.
    bool become(Range wanted, int64_t of_tap) {
      if (wanted.begin == pieces.begin && wanted.end == pieces.end && of_tap == tap) return false;
      pieces = wanted, tap = of_tap;
      return true;
    }
  };
  static constexpr int64_t kListBytes = Product::kBlock * static_cast<int64_t>(sizeof(Addresses));
  int64_t most_rows() const { return row_tiles_.each + (row_tiles_.extra ? 1 : 0); }  // of a tile
  // Of a block of k; with a line between, or all would begin in the same set of L1.
  int64_t tile_bytes() const { return round_up(Product::kBlock * most_rows() * element_, kCacheLine) + kCacheLine; }
  int64_t panel_bytes() const { return Product::kBlock * most_columns() * element_ + kCacheLine; }
  int64_t most_columns() const { return (panels_.each + (panels_.extra ? 1 : 0)) * Product::kVector; }  // of a panel
  int64_t columns_of(int64_t panel) const {
    return std::min(columns_ - panels_.begin(panel) * Product::kVector, panels_.size(panel) * Product::kVector);
  }
  // Tiles' and panels' rows that are packed at a time.
  int64_t packed_tiles() const { return packed_pieces(row_tiles_.count, tile_bytes(), along_input_); }
  int64_t packed_panels() const { return packed_pieces(panels_.count, panel_bytes(), !along_input_); }
  static int64_t packed_pieces(int64_t count, int64_t bytes, bool of_gradient) {
    const int64_t most = (of_gradient ? kPackedGradient : kPacked) / std::max<int64_t>(bytes, 1);
    return std::clamp<int64_t>(most, 1, std::max<int64_t>(count, 1));
  }
  int64_t patches_bytes() const {
    return row_tiles_.count * tile_bytes() + (pairs_ ? panels_.count * panel_bytes() : 0);
  }
  int64_t packed_bytes() const { return kListBytes + packed_tiles() * tile_bytes() + packed_panels() * panel_bytes(); }

  void move_inside(const StepState& state, const BoundArgument& from, const BoundArgument& to, int64_t channels,
                   int64_t height, int64_t width, Range lines) const {
    for (int64_t line = lines.begin; line < lines.end; ++line)
      copy_channels_inside(from.at(state) + line / height * from.strides[0] + line % height * from.strides[2], width,
                           channels, from.strides[3], from.strides[1], element_,
                           to.at(state) + line / height * to.strides[0] + line % height * to.strides[2], to.strides[3]);
  }

  // Units: [groups][taps][panels][tiles of rows]. Pixels are listed once for all units of a tap. All taps take a block
  // of k before the next one: it is in the caches then, and what it gives to each is little beside what it reads.
  void multiply(const StepState& state, Range units) const {
    auto* list = reinterpret_cast<Addresses*>(thread_scratch(kListBytes + packed_bytes()));
    const int64_t of_tap = panels_.count * row_tiles_.count;
    for (int64_t k = 0; k == 0 || k < k_; k += Product::kBlock) {
      PackedGradient packed;
      for (int64_t unit = units.begin; unit < units.end;) {
        const int64_t tap = unit / of_tap, end = std::min(units.end, (tap + 1) * of_tap);  // of all groups
        if (tap / g_.taps() != packed.group) packed = {.group = tap / g_.taps()};
        list_pixels(state, packed.group, tap % g_.taps(), k, std::min(Product::kBlock, k_ - k), list);
        multiply_block(state, tap, {unit - tap * of_tap, end - tap * of_tap}, k, list, packed);
        unit = end;
      }
    }
  }

  // These units of a tap for a block of k, whose pixels are listed.
  void multiply_block(const StepState& state, int64_t tap, Range units, int64_t k, Addresses* list,
                      PackedGradient& gradient) const {
    const int64_t rows = row_tiles_.count, row_step = along_input_ ? raw_out_ : raw_in_;
    const Range all_panels{units.begin / rows, ceil_div(units.end, rows)};
    // What L1 holds as it lies is read so.
    const int64_t input_bytes = Product::kBlock * g_.channels * element_,
                  gradient_bytes = Product::kBlock * g_.out_channels * element_;
    const bool packs_rows = pairs_ || (all_panels.end - all_panels.begin >= kFewestPanels &&
                                       (along_input_ ? gradient_bytes : input_bytes) > kReadAsItLies);
    const bool packs_columns = pairs_ || (std::min(rows, units.end - units.begin) >= kFewestTiles &&
                                          (along_input_ ? input_bytes : gradient_bytes) > kReadAsItLies);
    Addresses* packed = list + Product::kBlock;
    char *packed_rows = reinterpret_cast<char*>(packed + Product::kBlock),
         *packed_columns = packed_rows + packed_tiles() * tile_bytes();
    TileFrame frame{};
    frame.c_stride = row_step;
    frame.accumulate = k > 0;
    // Pixels beyond the image are no terms of the sum.
    int64_t count = std::min(Product::kBlock, k_ - k), of_tap = PackedGradient::kAll;
    const char* const zeros = zeros_of(state);
    auto beyond = [&](const Addresses& pixel) { return (along_input_ ? pixel.b : pixel.a) == zeros; };
    if (pairs_) {
      const int64_t met = std::remove_if(list, list + count, beyond) - list;
      if (met < count) of_tap = tap, count = met;
      frame.k = round_up(count, 2), frame.a_stride = 2 * most_rows() * element_;
    } else {
      frame.a = reinterpret_cast<const char*>(packed);
      for (int64_t i = 0; i < count; ++i) {
        packed[frame.k] = {packs_rows ? packed_rows + i * most_rows() * element_ : list[i].a,
                           packs_columns ? packed_columns + i * most_columns() * element_ : list[i].b};
        frame.k += !beyond(list[i]);
      }
    }
    char* c = raw_.at(state) + tap / g_.taps() * raw_group_ + tap % g_.taps() * raw_tap_;
    const int64_t panels_each = packs_columns ? packed_panels() : panels_.count,
                  tiles_each = packs_rows ? packed_tiles() : rows;
    for (Range panels{all_panels.begin, 0}; panels.begin < all_panels.end; panels.begin = panels.end) {
      panels.end = std::min(panels.begin + panels_each, all_panels.end);
      if (packs_columns && (along_input_ || gradient.become(panels, of_tap)))
        pack(state, &list->b, count, panels, packed_columns, panel_bytes(), [&](int64_t panel) {
          return Piece{panels_.begin(panel) * Product::kVector, columns_of(panel), panel_row(panel)};
        });
      for (Range tiles{0, 0}; tiles.begin < rows; tiles.begin = tiles.end) {
        tiles.end = std::min(tiles.begin + tiles_each, rows);
        if (packs_rows && (!along_input_ || gradient.become(tiles, of_tap)))
          pack(state, &list->a, count, tiles, packed_rows, tile_bytes(), [&](int64_t tile) {
            return Piece{row_tiles_.begin(tile), row_tiles_.size(tile), most_rows()};
          });
        for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
          const int64_t column = panels_.begin(panel) * Product::kVector, first = units.begin - panel * rows;
          frame.columns = columns_of(panel);
          const int64_t b = packs_columns ? (panel - panels.begin) * panel_bytes() : column * element_;
          pairs_ ? void(frame.b = packed_columns + b) : void(frame.b_offset = b);
          for (int64_t tile = std::max(tiles.begin, first); tile < std::min(tiles.end, units.end - panel * rows);
               ++tile) {
            const KernelCall& call = tiles_[(row_tiles_.size(tile) - 1) * max_vectors_ + panels_.size(panel) - 1];
            const int64_t a = packs_rows ? (tile - tiles.begin) * tile_bytes() : row_tiles_.begin(tile) * element_;
            pairs_ ? void(frame.a = packed_rows + a) : void(frame.a_offset = a);
            frame.c = c + row_tiles_.begin(tile) * row_step + column * sum_;
            // The sums of all taps have no room in L1, or in L2: they come while the tile adds up.
            for (int64_t row = 0; row < row_tiles_.size(tile); ++row) __builtin_prefetch(frame.c + row * row_step, 1);
            if (pairs_) fetch_with(frame);
            frame.context = call.context;
            call.entry(&frame);
          }
        }
      }
    }
  }

  /// Channels of a tile or panel, and for how many there is room.
  struct Piece {
    int64_t begin, count, room;
  };
  /// What a tile reads of B at once has the width of the panel where it comes in pairs.
  int64_t panel_row(int64_t panel) const { return pairs_ ? panels_.size(panel) * Product::kVector : most_columns(); }

  // The channels of each piece become dense for themselves, some pixels at a time, as all of a pixel lie side by side.
  template <class F>
  void pack(const StepState& state, const char* const* pixels, int64_t count, Range pieces, char* to,
            int64_t piece_bytes, F piece_of) const {
    constexpr int64_t kAtOnce = 8;
    for (int64_t i = 0; i < count; i += kAtOnce)
      for (int64_t number = pieces.begin; number < pieces.end; ++number) {
        const Piece piece = piece_of(number);
        const int64_t step = piece.room * element_, n = std::min(kAtOnce, count - i), first = piece.begin * element_;
        const char* const* from = pixels + 2 * i;
        char* at = to + (number - pieces.begin) * piece_bytes + i * step;
        if (pairs_)
          put_pairs(from, n, first, piece.count, zeros_of(state), at, 2 * step);
        else
          put_channels<16, 20, 24, 48, 52, 56, 64, 128>(from, n, first, static_cast<size_t>(piece.count * element_), at,
                                                        step);
      }
  }

  /// Tiles of an A across fetch what they are told: their own results, and nothing else.
  static void fetch_with(TileFrame& frame) {
    frame.ahead = frame.results = frame.c;
    frame.results_stride = frame.c_stride;
  }

  // Units: [groups][tiles of rows][panels].
  void multiply_patches(const StepState& state, Range units) const {
    const int64_t of_group = row_tiles_.count * panels_.count;
    auto* list = reinterpret_cast<Addresses*>(thread_scratch(kListBytes + patches_bytes()));
    char *patches = reinterpret_cast<char*>(list + Product::kBlock),
         *panels = patches + row_tiles_.count * tile_bytes();
    for (int64_t unit = units.begin; unit < units.end;) {
      const int64_t group = unit / of_group, end = std::min(units.end, (group + 1) * of_group);
      const Range tiles{unit % of_group / panels_.count, (end - 1) % of_group / panels_.count + 1};
      char* c = raw_.at(state) + group * raw_group_;
      TileFrame frame{};
      frame.a = reinterpret_cast<const char*>(list);
      frame.c_stride = raw_in_;
      frame.a_stride = 2 * row_tiles_.n * element_;
      for (int64_t k = 0; k == 0 || k < k_; k += Product::kBlock) {
        const int64_t count = std::min(Product::kBlock, k_ - k);
        frame.k = pairs_ ? round_up(count, 2) : count, frame.accumulate = k > 0;
        walk_pixels(state, group, 0, k, count, [&, i = 0](const char* slope, const char*) mutable {
          list[i] = {patches + i * most_rows() * element_, slope}, ++i;
        });
        if (pairs_) {
          pack(state, &list->b, count, {0, panels_.count}, panels, panel_bytes(), [&](int64_t panel) {
            return Piece{panels_.begin(panel) * Product::kVector, columns_of(panel), panel_row(panel)};
          });
          put_patches(state, group, k, count, {row_tiles_.begin(tiles.begin), row_tiles_.begin(tiles.end)}, patches);
        } else {
          element_ == 4 ? put_rows<float>(state, group, k, count, tiles, patches)
                        : put_rows<double>(state, group, k, count, tiles, patches);
        }
        for (int64_t i = unit; i < end; ++i) {
          const int64_t tile = i % of_group / panels_.count, panel = i % panels_.count,
                        column = panels_.begin(panel) * Product::kVector;
          const KernelCall& call = tiles_[(row_tiles_.size(tile) - 1) * max_vectors_ + panels_.size(panel) - 1];
          frame.columns = columns_of(panel);
          frame.c = c + row_tiles_.begin(tile) * raw_in_ + column * sum_;
          if (pairs_) {
            frame.a = patches + 2 * row_tiles_.begin(tile) * element_, frame.b = panels + panel * panel_bytes();
            fetch_with(frame);
          } else {
            frame.a_offset = tile * tile_bytes(), frame.b_offset = column * element_;
          }
          frame.context = call.context;
          call.entry(&frame);
        }
      }
      unit = end;
    }
  }

  // What some rows of the patches, at least, have for these k, in pairs: [k / 2][taps][channels][2]. Taps side by side
  // whose channels are so, too, are one run. (Rows apart, as below, take twice as long here, and half as long there.)
  void put_patches(const StepState& state, int64_t group, int64_t k, int64_t count, Range rows, char* to) const {
    struct Pixel {
      const char* image;
      int64_t top, left;
    } pixels[Product::kBlock];
    const std::span<const int64_t> s = image().strides;
    walk_lines(k, count, [&, i = 0](int64_t place, int64_t y, int64_t x, int64_t end) mutable {
      const char* from = image().at(state) + group * g_.group_channels * element_ + place * s[0];
      for (; x < end; ++x) pixels[i++] = {from, y * g_.stride_h - g_.padding_h, x * g_.stride_w - g_.padding_w};
    });
    const int64_t channels = g_.group_channels * element_, run = run_taps_ * g_.group_channels;
    char edges[2][kMostPatch * sizeof(uint16_t)];
    const char* const zeros = zero_bytes();
    auto run_of = [&](int64_t number, int64_t tap, char* edge) -> const char* {
      if (number >= count) return zeros;
      const Pixel& pixel = pixels[number];
      const int64_t y = pixel.top + tap / g_.kernel_w * g_.dilation_h,
                    x = pixel.left + tap % g_.kernel_w * g_.dilation_w;
      if (y < 0 || y >= g_.height) return zeros;
      const char* line = pixel.image + y * s[2];
      if (x >= 0 && x + run_taps_ <= g_.width) return line + x * s[3];
      const int64_t first = std::clamp<int64_t>(-x, 0, run_taps_), last = std::clamp(g_.width - x, first, run_taps_);
      if (first == last) return zeros;
      std::memset(edge, 0, static_cast<size_t>(run * element_));
      std::memcpy(edge + first * channels, line + (x + first) * s[3], static_cast<size_t>((last - first) * channels));
      return edge;
    };
    for (int64_t i = 0; i < count; i += 2, to += 2 * row_tiles_.n * element_)
      for (int64_t tap = 0; tap < g_.taps(); tap += run_taps_) {
        const int64_t row = tap * g_.group_channels;
        if (row < rows.end && row + run > rows.begin)
          put_pair(run_of(i, tap, edges[0]), run_of(i + 1, tap, edges[1]), run, to + 2 * row * element_);
      }
  }

  // What these tiles have of the patches for these k: [tile][k][rows of it].
  template <class T>
  void put_rows(const StepState& state, int64_t group, int64_t k, int64_t count, Range tiles, char* patches) const {
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile)
      for (int64_t row = 0; row < row_tiles_.size(tile); ++row)
        put_row<T>(state, group, row_tiles_.begin(tile) + row, k, count, patches + tile * tile_bytes() + row * element_,
                   most_rows());
  }

  // What one row of the patches, a tap's channel, has for these k, `step` elements apart.
  template <class T>
  void put_row(const StepState& state, int64_t group, int64_t row, int64_t k, int64_t count, char* to,
               int64_t step) const {
    const int64_t tap = row / g_.group_channels, channel = row % g_.group_channels;
    const int64_t down = down_of(tap), right = right_of(tap), stride = g_.stride_w;
    const std::span<const int64_t> s = image().strides;
    const char* images = image().at(state) + (group * g_.group_channels + channel) * element_;
    T* at = reinterpret_cast<T*>(to);
    const Range inside = inside_of(right);
    walk_lines(k, count, [&](int64_t place, int64_t y, int64_t x, int64_t end) {
      const int64_t at_y = y * g_.stride_h + down;
      const bool in_rows = at_y >= 0 && at_y < g_.height;
      const int64_t from = in_rows ? std::clamp(inside.begin, x, end) : end, until = std::clamp(inside.end, from, end);
      for (; x < from; ++x, at += step) *at = 0;
      const char* pixel = images + place * s[0] + at_y * s[2] + (x * stride + right) * s[3];
      for (; x < until; ++x, at += step, pixel += stride * s[3]) *at = *reinterpret_cast<const T*>(pixel);
      for (; x < end; ++x, at += step) *at = 0;
    });
  }

  // Units: [panels][tiles of taps]. All tiles of a thread's channels take a block of k before the next one.
  void multiply_channels(const StepState& state, Range units) const {
    const int64_t tiles = row_tiles_.count;
    auto* list = reinterpret_cast<const char**>(thread_scratch(Product::kBlock * (1 + most_rows()) * 8));
    TileFrame frame{};
    frame.a = reinterpret_cast<const char*>(list);
    frame.c_stride = raw_tap_;
    for (int64_t k = 0; k == 0 || k < k_; k += Product::kBlock) {
      frame.k = std::min(Product::kBlock, k_ - k), frame.accumulate = k > 0;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t first = row_tiles_.begin(tile), taps = row_tiles_.size(tile), entry = 1 + taps;
        const Range panels{ceil_div(units.begin - tile, tiles), ceil_div(units.end - tile, tiles)};
        if (panels.begin >= panels.end) continue;
        for (int64_t i = 0; i < taps; ++i)
          walk_pixels(state, 0, first + i, k, frame.k, [&, to = list](const char* slope, const char* from) mutable {
            if (i == 0) to[0] = slope;
            to[1 + i] = from, to += entry;
          });
        frame.a_stride = entry * 8;
        for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
          const int64_t column = panels_.begin(panel) * Product::kVector;
          const KernelCall& call = tiles_[(taps - 1) * max_vectors_ + panels_.size(panel) - 1];
          frame.columns = columns_of(panel);
          frame.a_offset = column * element_;
          frame.c = raw_.at(state) + first * raw_tap_ + column * element_;
          frame.context = call.context;
          call.entry(&frame);
        }
      }
    }
  }

  void list_pixels(const StepState& state, int64_t group, int64_t tap, int64_t k, int64_t count,
                   Addresses* list) const {
    walk_pixels(state, group, tap, k, count, [&](const char* slope, const char* from) {
      *list++ = along_input_ ? Addresses{slope, from} : Addresses{from, slope};
    });
  }

  /// What is told in place of a pixel beyond the image.
  const char* zeros_of(const StepState& state) const { return zeros_ ? shared(state) : zero_bytes(); }
  const BoundArgument& image() const { return input_inside_ ? *input_inside_ : input_; }
  const BoundArgument& slope() const { return gradient_inside_ ? *gradient_inside_ : gradient_; }
  /// From a pixel of the gradient, strided, to that of the image which a tap meets.
  int64_t down_of(int64_t tap) const { return tap / g_.kernel_w * g_.dilation_h - g_.padding_h; }
  int64_t right_of(int64_t tap) const { return tap % g_.kernel_w * g_.dilation_w - g_.padding_w; }
  /// Those x of the gradient whose pixel, so far to the right, lies in the image.
  Range inside_of(int64_t right) const {
    const int64_t begin = right < 0 ? ceil_div(-right, g_.stride_w) : 0;
    return {begin, g_.width > right ? ceil_div(g_.width - right, g_.stride_w) : 0};
  }

  // Tells the pixels of the gradient that these k are, by lines: the image, y, and x from and to.
  template <class F>
  void walk_lines(int64_t k, int64_t count, F tell) const {
    int64_t image = k / g_.pixels(), y = k % g_.pixels() / g_.out_width, x = k % g_.out_width;
    while (count > 0) {
      // The last image comes first in the sums. Either end would do; with this one the CNN that is held to its run in
      // double (tests/data/training.json) does not come upon a kink at another side.
      const int64_t end = std::min(g_.out_width, x + count);
      tell(g_.batch - 1 - image, y, x, end);
      count -= end - x;
      x = 0;
      if (++y == g_.out_height) y = 0, ++image;
    }
  }

  // Tells for each k where the gradient's pixel is, and the one of the image that the tap meets.
  template <class F>
  void walk_pixels(const StepState& state, int64_t group, int64_t tap, int64_t k, int64_t count, F tell) const {
    const std::span<const int64_t> s = image().strides, t = slope().strides;
    const char *images = image().at(state) + group * g_.group_channels * element_,
               *slopes = slope().at(state) + group * g_.group_out * element_, *zeros = zeros_of(state);
    const int64_t down = down_of(tap), right = right_of(tap);
    const Range inside = inside_of(right);
    walk_lines(k, count, [&](int64_t place, int64_t y, int64_t x, int64_t end) {
      const int64_t at_y = y * g_.stride_h + down;
      const char *slope = slopes + place * t[0] + y * t[2] + x * t[3], *line = images + place * s[0] + at_y * s[2];
      const bool in_rows = at_y >= 0 && at_y < g_.height;
      const int64_t from = in_rows ? std::clamp(inside.begin, x, end) : end, until = std::clamp(inside.end, from, end);
      for (; x < from; ++x, slope += t[3]) tell(slope, zeros);
      const char* pixel = line + (x * g_.stride_w + right) * s[3];
      for (; x < until; ++x, slope += t[3], pixel += g_.stride_w * s[3]) tell(slope, pixel);
      for (; x < end; ++x, slope += t[3]) tell(slope, zeros);
    });
  }

  // To [Cout, c, kh, kw].
  void order(const StepState& state, Range channels) const {
    sum_ == 4 ? order_as<float>(state, channels) : order_as<double>(state, channels);
  }
  // Tap by tap, of which the channels lie side by side.
  template <class T>
  void order_as(const StepState& state, Range channels) const {
    const int64_t taps = g_.taps(), group_channels = g_.group_channels;
    for (int64_t channel = channels.begin; channel < channels.end; ++channel) {
      const char* from = raw_.at(state) + channel / g_.group_out * raw_group_ + channel % g_.group_out * raw_out_;
      T* to = reinterpret_cast<T*>(out_.at(state)) + channel * taps * group_channels;
      for (int64_t tap = 0; tap < taps; ++tap, from += raw_tap_)
        for (int64_t c = 0; c < group_channels; ++c)
          to[c * taps + tap] = *reinterpret_cast<const T*>(from + c * raw_in_);
    }
  }

  const Geometry g_;
  const bool pairs_;             // of bf16
  const int64_t element_, sum_;  // bytes of an operand's element and of a sum
  const int64_t max_vectors_;
  const bool depthwise_;     // each channel is a group
  const bool side_by_side_;  // few channels
  const std::vector<KernelCall>& tiles_;
  BoundArgument input_, gradient_, out_, raw_;
  std::optional<BoundArgument> input_inside_, gradient_inside_;
  bool along_input_ = false;  // columns of tiles are channels of the input, else of the result
  int64_t columns_ = 0, k_ = 0, units_ = 0;
  Pieces row_tiles_, panels_;  // of one tap of one group
  // Bytes in raw_: between channels of the result and of the input in a group, between groups and between taps.
  int64_t raw_out_ = 0, raw_in_ = 0, raw_group_ = 0, raw_tap_ = 0;
  int64_t run_taps_ = 1;  // whose channels lie side by side in the image
  bool zeros_ = false;    // in shared memory
};

}  // namespace

StepDriver* bind(const Conv2dWeightStep& step, const Step&, const BindContext& context) {
  return context.make<Conv2dWeightDriver>(
      step, context.constants([&] { return ProductCalls(*step.kernels, Epilogue(), {}, context); }), context);
}

}  // namespace ingot::runtime
