// Matrix-product tiles and panels as plain loops.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/canonical_order.h"
#include "codegen/generate.h"
#include "codegen/scalar/executor.h"
#include "codegen/scalar/lanes.h"

namespace ingot::codegen::scalar {
namespace {

template <class T>
T read_as(DType d, const char* p) {
  if (is_half(d)) {
    uint16_t bits;
    std::memcpy(&bits, p, sizeof bits);
    return static_cast<T>(from_half(d, bits));
  }
  if (d == DType::i8) return static_cast<T>(*reinterpret_cast<const int8_t*>(p));
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

// Where element (k, j) of a panel stands; bf16 holds pairs of k.
int64_t panel_index(DType d, int64_t k, int64_t j, int64_t width) {
  return d == DType::bf16 ? (k / 2 * width + j) * 2 + k % 2 : k * width + j;
}

template <class T>
void run_tile(const TileSpec& t, const TileFrame& f) {
  const int64_t a_bytes = ingot::size_of(t.a), b_bytes = ingot::size_of(t.b), width = kLanes * t.vectors;
  std::vector<T> sums(static_cast<size_t>(f.columns));
  for (int64_t i = 0; i < t.rows; ++i) {
    std::fill(sums.begin(), sums.end(), T(0));
    auto add = [&](int64_t k, int64_t j, const char* a) {
      sums[j] = std::fma(read_as<T>(t.a, a), read_as<T>(t.b, f.b + panel_index(t.b, k, j, width) * b_bytes), sums[j]);
    };
    if (t.rows_of_a == RowsOfA::along || t.rows_of_a == RowsOfA::across) {
      const bool across = t.rows_of_a == RowsOfA::across;
      for (int64_t k = 0; k < f.k; ++k)
        for (int64_t j = 0; j < f.columns; ++j)
          add(k, j, f.a + (across ? k : i) * f.a_stride + (across ? i : k) * a_bytes);
    } else if (t.rows_of_a == RowsOfA::with_b) {
      for (int64_t k = 0; k < f.k; ++k) {
        const char* lines[2];
        std::memcpy(lines, f.a + k * 16, sizeof lines);
        const T a = read_as<T>(t.a, lines[0] + f.a_offset + i * a_bytes);
        for (int64_t j = 0; j < f.columns; ++j)
          sums[j] = std::fma(a, read_as<T>(t.b, lines[1] + f.b_offset + j * b_bytes), sums[j]);
      }
    } else if (t.rows_of_a == RowsOfA::channels_with_b) {
      for (int64_t k = 0; k < f.k; ++k) {
        const char *a, *b;
        std::memcpy(&b, f.a + k * f.a_stride, sizeof b);
        std::memcpy(&a, f.a + k * f.a_stride + 8 * (1 + i), sizeof a);
        for (int64_t j = 0; j < f.columns; ++j)
          sums[j] = std::fma(read_as<T>(t.a, a + f.a_offset + j * a_bytes),
                             read_as<T>(t.b, b + f.a_offset + j * b_bytes), sums[j]);
      }
    } else if (t.rows_of_a == RowsOfA::windows) {
      for (int64_t k = 0; k < f.run_count * t.taps; ++k) {
        const int64_t edge = t.taps - 1, pixel = i * t.window_stride + k % t.taps, right = t.window_pixels() - edge;
        auto listed = [&](int64_t entry) {
          int64_t value;
          std::memcpy(&value, f.a + (k / t.taps * 2 * t.taps + entry) * 8, sizeof value);
          return value;
        };
        const int64_t at = pixel < edge     ? listed(2 + pixel)
                           : pixel >= right ? listed(2 + edge + pixel - right)
                                            : listed(1) + (pixel - edge) * listed(0);
        for (int64_t j = 0; j < f.columns; ++j) add(k, j, reinterpret_cast<const char*>(at) + f.a_offset + j * a_bytes);
      }
    } else {
      const bool each = t.rows_of_a == RowsOfA::channels;
      for (int64_t r = 0, k = 0; r < f.run_count; ++r) {
        const char *row, *first;
        std::memcpy(&first, f.a + r * f.a_stride, sizeof first);
        if (!first) {  // of zeros: what they add stands there
          for (int64_t j = 0; j < f.columns; ++j)
            sums[j] += read_as<T>(t.a, f.zeros + (r * width + j) * static_cast<int64_t>(sizeof(T)));
          k += f.runs[r].steps;
          continue;
        }
        std::memcpy(&row, f.a + r * f.a_stride + i * 8, sizeof row);
        row += f.runs[r].offset + f.a_offset;
        for (int64_t step = 0; step < f.runs[r].steps; ++step, ++k)
          for (int64_t j = 0; j < f.columns; ++j) add(k, j, row + (each ? j : step) * a_bytes);
      }
    }
    char* c = f.c + i * f.c_stride;
    for (int64_t j = 0; j < f.columns; ++j) {
      if (f.accumulate) {
        T before;
        std::memcpy(&before, c + j * sizeof(T), sizeof(T));
        sums[j] = before + sums[j];
      }
      std::memcpy(c + j * sizeof(T), &sums[j], sizeof(T));
    }
  }
}

void run_tile_frame(const void* frame) {
  const auto& f = *static_cast<const TileFrame*>(frame);
  const auto& t = *static_cast<const TileSpec*>(f.context);
  auto run = [&](const TileFrame& frame) {
    t.a == DType::f64 ? run_tile<double>(t, frame) : run_tile<float>(t, frame);
  };
  // More than one block of k: a tile that takes all of it.
  if (f.k <= canonical::kProductBlock) return run(f);
  TileFrame block = f;
  for (int64_t k = 0; k < f.k; k += canonical::kProductBlock) {
    block.k = std::min(f.k - k, canonical::kProductBlock);
    run(block);
    block.a += block.k * ingot::size_of(t.a);
    block.b += block.k * kLanes * t.vectors * ingot::size_of(t.b);
    block.accumulate = 1;
  }
}

void run_pack_frame(const void* frame) {
  const auto& f = *static_cast<const PackFrame*>(frame);
  const auto& p = *static_cast<const PackSpec*>(f.context);
  const int64_t bytes = ingot::size_of(p.dtype), width = kLanes * p.vectors;
  const int64_t rows = p.dtype == DType::bf16 ? (f.k + 1) / 2 * 2 : f.k;
  std::memset(f.panel, 0, static_cast<size_t>(rows * width * bytes));
  for (int64_t k = 0; k < f.k; ++k)
    for (int64_t j = 0; j < f.columns; ++j)
      std::memcpy(f.panel + panel_index(p.dtype, k, j, width) * bytes, f.b + k * f.k_stride + j * f.n_stride,
                  static_cast<size_t>(bytes));
}

template <class Spec>
KernelPtr source_of(const Spec& spec, KernelEntry run, std::string text) {
  auto source = std::make_shared<KernelSource>();
  source->text = std::move(text);
  source->key = kernel_key(source->text, {.isa = Isa::none});
  source->name = source->text;
  source->interpret = run;
  source->context = std::make_shared<const Spec>(spec);
  return source;
}

}  // namespace

KernelPtr interpret(const TileSpec& t) { return source_of(t, run_tile_frame, print(t)); }
KernelPtr interpret(const PackSpec& p) { return source_of(p, run_pack_frame, print(p)); }

}  // namespace ingot::codegen::scalar
