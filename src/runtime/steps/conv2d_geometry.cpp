#include "runtime/steps/conv2d_geometry.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/half.h"
#include "base/pieces.h"

namespace ingot::runtime {
namespace {

template <class T>
void copy_strided(char* to, const char* from, int64_t count, int64_t stride) {
  T* out = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) out[i] = *reinterpret_cast<const T*>(from + i * stride);
}

// Rows of small images are too short for the library's copy to pay.
void copy_bytes(char* to, const char* from, int64_t bytes) {
  if (bytes > 128) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (; bytes >= 16; bytes -= 16, to += 16, from += 16) std::memcpy(to, from, 16);
  for (; bytes >= 4; bytes -= 4, to += 4, from += 4) std::memcpy(to, from, 4);
  if (bytes > 0) std::memcpy(to, from, 2);
}

template <class Step>
Geometry sizes_of(const Step& step, const BindContext& context) {
  const auto input = context.values_of(step.input_shape), weight = context.values_of(step.weight_shape);
  Geometry g{};
  g.batch = input[0], g.channels = input[1], g.height = input[2], g.width = input[3];
  g.out_channels = weight[0], g.group_channels = weight[1], g.kernel_h = weight[2], g.kernel_w = weight[3];
  g.stride_h = context.value(step.stride.h), g.stride_w = context.value(step.stride.w);
  g.padding_h = context.value(step.padding.h), g.padding_w = context.value(step.padding.w);
  g.dilation_h = context.value(step.dilation.h), g.dilation_w = context.value(step.dilation.w);
  g.groups = step.groups;
  INGOT_CHECK(g.groups > 0 && g.group_channels * g.groups == g.channels && g.out_channels % g.groups == 0);
  g.group_out = g.out_channels / g.groups;
  g.out_height = (g.height + 2 * g.padding_h - g.dilation_h * (g.kernel_h - 1) - 1) / g.stride_h + 1;
  g.out_width = (g.width + 2 * g.padding_w - g.dilation_w * (g.kernel_w - 1) - 1) / g.stride_w + 1;
  g.input_strides = context.values_of(step.input.strides);
  return g;
}

/// `count` of four numbers.
void store_some(float* to, __m128 x, int64_t count) {
  if (count == 4) return _mm_storeu_ps(to, x);
  if (count >= 2) _mm_storel_pi(reinterpret_cast<__m64*>(to), x);
  if (count == 3) _mm_store_ss(to + 2, _mm_movehl_ps(x, x));
  if (count == 1) _mm_store_ss(to, x);
}

constexpr int64_t kTogether = 8;  // channels: lines of more may meet in one set of the cache

/// Dense lines of f32, as images come in: four pixels of four channels at a time. Returns how many pixels it moved.
int64_t transpose_fours(const char* from, int64_t width, int64_t channels, int64_t channel_step, char* to,
                        int64_t to_step) {
  const int64_t moved = width / 4 * 4;
  auto four_pixels = [&](int64_t x, int64_t first) {
    const int64_t count = std::min<int64_t>(channels - first, 4);
    auto line = [&](int64_t c) {
      return _mm_loadu_ps(reinterpret_cast<const float*>(from + (first + std::min(c, count - 1)) * channel_step) + x);
    };
    __m128 a = line(0), b = line(1), c = line(2), d = line(3);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    char* pixel = to + x * to_step + first * int64_t{sizeof(float)};
    for (const __m128& numbers : {a, b, c, d}) {
      store_some(reinterpret_cast<float*>(pixel), numbers, count);
      pixel += to_step;
    }
  };
  for (int64_t first = 0; first < channels; first += kTogether)
    for (int64_t x = 0; x < moved; x += 4)
      for (int64_t channel = first; channel < std::min(first + kTogether, channels); channel += 4)
        four_pixels(x, channel);
  return moved;
}

template <class T>
void transpose_line(const char* from, int64_t width, int64_t channels, int64_t step, int64_t channel_step, char* to,
                    int64_t to_step) {
  for (int64_t first = 0; first < channels; first += kTogether) {
    const int64_t count = std::min(kTogether, channels - first);
    for (int64_t x = 0; x < width; ++x) {
      T* pixel = reinterpret_cast<T*>(to + x * to_step) + first;
      const char* source = from + first * channel_step + x * step;
      for (int64_t c = 0; c < count; ++c) pixel[c] = *reinterpret_cast<const T*>(source + c * channel_step);
    }
  }
}

/// Dense lines of numbers of 16 bits: eight pixels of eight channels at a time. Returns how many pixels it moved.
int64_t transpose_eights(const char* from, int64_t width, int64_t channels, int64_t channel_step, char* to,
                         int64_t to_step) {
  const int64_t moved = width / 8 * 8, whole = channels / 8 * 8;
  for (int64_t first = 0; first < whole; first += 8)
    for (int64_t x = 0; x < moved; x += 8) {
      __m128i line[8], pairs[8], fours[8];
      for (int c = 0; c < 8; ++c)
        line[c] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + (first + c) * channel_step + 2 * x));
      for (int c = 0; c < 8; c += 2) {
        pairs[c] = _mm_unpacklo_epi16(line[c], line[c + 1]);
        pairs[c + 1] = _mm_unpackhi_epi16(line[c], line[c + 1]);
      }
      for (int c = 0; c < 8; c += 4)
        for (int half = 0; half < 2; ++half) {
          fours[c + 2 * half] = _mm_unpacklo_epi32(pairs[c + half], pairs[c + half + 2]);
          fours[c + 2 * half + 1] = _mm_unpackhi_epi32(pairs[c + half], pairs[c + half + 2]);
        }
      char* pixel = to + x * to_step + 2 * first;
      for (int i = 0; i < 4; ++i, pixel += 2 * to_step) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(pixel), _mm_unpacklo_epi64(fours[i], fours[i + 4]));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(pixel + to_step), _mm_unpackhi_epi64(fours[i], fours[i + 4]));
      }
    }
  transpose_line<uint16_t>(from + whole * channel_step, moved, channels - whole, 2, channel_step, to + 2 * whole,
                           to_step);
  return moved;
}

// A few channels of a few columns at a time, all taps of them: each line of the weights comes into L1 once, and columns
// whose distance is a multiple of many lines do not drive one another out. From one column on. `kPair` channels lie
// side by side in each column; where the last ones are not that many, zeros follow.
template <class T, int64_t kPair = 1, class Source = T>
void pack_columns(const Geometry& g, int64_t channels, const char* weight, const PanelColumns& columns,
                  int64_t from_column, char* to) {
  constexpr int64_t kChannels = 16, kColumns = 8;
  const std::span<const int64_t> s = g.weight_strides;
  const int64_t taps = g.taps(), existing_channels = std::min(channels, g.group_channels);
  T* const rows = reinterpret_cast<T*>(to);
  const int64_t together = std::abs(s[0]) > std::abs(s[1]) ? kColumns : columns.width;
  auto pack = [&](int64_t tap, int64_t channel, int64_t first) {
    const char* from =
        weight + (columns.first + first) * s[0] + channel * s[1] + tap / g.kernel_w * s[2] + tap % g.kernel_w * s[3];
    T* row = rows + (tap * channels + channel) / kPair * kPair * columns.width + (tap * channels + channel) % kPair;
    const int64_t last = std::min(first + together, columns.width),
                  existing = channel < existing_channels ? std::min(last, columns.count) : first;
    for (int64_t j = first; j < existing; ++j, from += s[0]) {
      const Source number = *reinterpret_cast<const Source*>(from);
      if constexpr (std::is_same_v<T, Source>)
        row[j * kPair] = number;
      else
        row[j * kPair] = bf16_from_f32(number);
    }
    for (int64_t j = std::max(first, existing); j < last; ++j) row[j * kPair] = T(0);
  };
  const bool channels_inside = std::abs(s[1]) < std::abs(s[3]);
  for (int64_t begin = 0; begin < channels; begin += kChannels) {
    const int64_t end = std::min(begin + kChannels, channels);
    for (int64_t first = from_column; first < columns.width; first += together)
      if (channels_inside) {
        for (int64_t tap = 0; tap < taps; ++tap)
          for (int64_t channel = begin; channel < end; ++channel) pack(tap, channel, first);
      } else {
        for (int64_t channel = begin; channel < end; ++channel)
          for (int64_t tap = 0; tap < taps; ++tap) pack(tap, channel, first);
      }
  }
}

/// The first of these columns whose taps lie side by side, up or down, as those of a weight do that was never moved:
/// four columns and four taps are transposed at a time. Returns how many columns it packed.
int64_t pack_side_by_side(const Geometry& g, int64_t channels, const char* weight, const PanelColumns& columns,
                          char* to) {
  const std::span<const int64_t> s = g.weight_strides;
  const int64_t taps = g.taps(), step = s[3];
  if (taps < 4 || std::abs(step) != int64_t{sizeof(float)} || s[2] != g.kernel_w * step) return 0;
  const int64_t packed = std::min(columns.count, columns.width) / 4 * 4;
  // In the order of memory.
  const char* const from = weight + columns.first * s[0] + (step < 0 ? (taps - 1) * step : 0);
  float* const rows = reinterpret_cast<float*>(to);
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t first = 0; first < taps; first += 4) {
      auto row = [&](int64_t i) {
        const int64_t tap = step < 0 ? taps - 1 - first - i : first + i;
        return rows + (tap * channels + channel) * columns.width;
      };
      auto at = [&](int64_t column) {
        return reinterpret_cast<const float*>(from + column * s[0] + channel * s[1]) + first;
      };
      if (first + 4 > taps) {
        for (int64_t i = 0; i < taps - first; ++i)
          for (int64_t j = 0; j < packed; ++j) row(i)[j] = at(j)[i];
        continue;
      }
      float* const to_rows[] = {row(0), row(1), row(2), row(3)};
      for (int64_t j = 0; j < packed; j += 4) {
        __m128 a = _mm_loadu_ps(at(j)), b = _mm_loadu_ps(at(j + 1)), c = _mm_loadu_ps(at(j + 2)),
               d = _mm_loadu_ps(at(j + 3));
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps(to_rows[0] + j, a), _mm_storeu_ps(to_rows[1] + j, b);
        _mm_storeu_ps(to_rows[2] + j, c), _mm_storeu_ps(to_rows[3] + j, d);
      }
    }
  return packed;
}

}  // namespace

ConvolutionCalls::ConvolutionCalls(const Conv2dStep& step, const BindContext& context)
    : direct(*step.kernels, step.epilogue, step.prologue, context) {
  if (step.winograd)
    winograd.emplace(Winograd{ProductCalls(*step.winograd->products, step.epilogue, {}, context),
                              call_of(step.winograd->pixels, context), call_of(step.winograd->taps, context),
                              call_of(step.winograd->results, context)});
}

Geometry geometry_of(const Conv2dStep& step, const BindContext& context) {
  Geometry g = sizes_of(step, context);
  const std::span<int64_t> strides = context.values_of(step.weight.strides);
  if (step.turned_h) strides[2] = -strides[2];
  if (step.turned_w) strides[3] = -strides[3];
  g.weight_strides = strides;
  return g;
}

BoundArgument weight_of(const Conv2dStep& step, const BindContext& context) {
  BoundArgument weight = context.argument(step.weight);
  if (step.turned_h) weight.offset += (context.value(step.weight_shape[2]) - 1) * weight.strides[2];
  if (step.turned_w) weight.offset += (context.value(step.weight_shape[3]) - 1) * weight.strides[3];
  return weight;
}

Geometry geometry_of(const Conv2dWeightStep& step, const BindContext& context) { return sizes_of(step, context); }

const char* zero_bytes() {
  alignas(64) static char zeros[kZeroBytes];
  return zeros;
}

void copy_elements(char* to, const char* from, int64_t count, int64_t stride, int64_t element) {
  if (stride == element)
    copy_bytes(to, from, count * element);
  else if (element == 4)
    copy_strided<float>(to, from, count, stride);
  else
    copy_strided<double>(to, from, count, stride);
}

void copy_padded(const Geometry& g, const char* image, int64_t channels, int64_t element, char* to) {
  const std::span<const int64_t> s = g.input_strides;
  const int64_t row_step = (g.width + 2 * g.padding_w) * element,
                channel_step = (g.height + 2 * g.padding_h) * row_step;
  std::memset(to, 0, channels * channel_step);
  auto copy = [&](auto copy_row) {
    for (int64_t c = 0; c < channels; ++c) {
      char* row = to + c * channel_step + g.padding_h * row_step + g.padding_w * element;
      const char* from = image + c * s[1];
      for (int64_t y = 0; y < g.height; ++y, row += row_step, from += s[2]) copy_row(row, from);
    }
  };
  const int64_t row_bytes = s[3] == element ? g.width * element : 0;
  if (row_bytes == 16)
    copy([](char* row, const char* from) { std::memcpy(row, from, 16); });
  else if (row_bytes == 32)
    copy([](char* row, const char* from) { std::memcpy(row, from, 32); });
  else
    copy([&](char* row, const char* from) { copy_elements(row, from, g.width, s[3], element); });
}

void pack_taps(const Geometry& g, int64_t channels, const char* weight, const PanelColumns& columns, int64_t element,
               bool rounds, char* to) {
  if (rounds) return pack_columns<uint16_t, 2, float>(g, round_up(channels, 2), weight, columns, 0, to);
  if (element == 2) return pack_columns<uint16_t, 2>(g, round_up(channels, 2), weight, columns, 0, to);
  if (element == 8) return pack_columns<double>(g, channels, weight, columns, 0, to);
  const int64_t packed = pack_side_by_side(g, channels, weight, columns, to);
  if (packed < columns.width) pack_columns<float>(g, channels, weight, columns, packed, to);
}

void copy_channels_inside(const char* from, int64_t width, int64_t channels, int64_t step, int64_t channel_step,
                          int64_t element, char* to, int64_t to_step) {
  const int64_t pixel = channels * element;
  if ((channel_step == element || channels == 1) && step == pixel && to_step == pixel)
    copy_bytes(to, from, width * pixel);
  else if (channel_step == element)
    for (int64_t x = 0; x < width; ++x) copy_bytes(to + x * to_step, from + x * step, pixel);
  else if (element == 8)
    transpose_line<double>(from, width, channels, step, channel_step, to, to_step);
  else {
    const bool narrow = element == 2;
    const int64_t moved = step != element ? 0
                          : narrow        ? transpose_eights(from, width, channels, channel_step, to, to_step)
                                          : transpose_fours(from, width, channels, channel_step, to, to_step);
    (narrow ? transpose_line<uint16_t> : transpose_line<float>)(from + moved * step, width - moved, channels, step,
                                                                channel_step, to + moved * to_step, to_step);
  }
}

void copy_line(const Geometry& g, const char* image, int64_t y, int64_t channels, int64_t element, char* to) {
  const int64_t pixel = g.groups * channels * element, border = g.padding_w * pixel, inside = g.width * pixel;
  if (inside + 2 * border == 0) return;  // a line of nothing has no memory
  if (y < 0 || y >= g.height) {
    std::memset(to, 0, inside + 2 * border);
    return;
  }
  const std::span<const int64_t> s = g.input_strides;
  if (channels == g.group_channels) {
    std::memset(to, 0, border);
    std::memset(to + border + inside, 0, border);
    copy_channels_inside(image + y * s[2], g.width, g.channels, s[3], s[1], element, to + border, pixel);
    return;
  }
  std::memset(to, 0, inside + 2 * border);
  for (int64_t group = 0; group < g.groups; ++group)
    copy_channels_inside(image + y * s[2] + group * g.group_channels * s[1], g.width, g.group_channels, s[3], s[1],
                         element, to + border + group * channels * element, pixel);
}

}  // namespace ingot::runtime
