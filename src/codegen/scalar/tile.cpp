// Matrix-product tiles and panels as plain loops.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "codegen/scalar/executor.h"
#include "codegen/scalar/lanes.h"

namespace ingot::codegen::scalar {
namespace {

template <class T>
T read(DType d, const char* p) {
  if (is_half(d)) {
    uint16_t bits;
    std::memcpy(&bits, p, sizeof bits);
    return static_cast<T>(from_half(d, bits));
  }
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

template <class T>
void run_tile(const TileSpec& t, const TileFrame& f) {
  const int64_t bytes = ingot::size_of(t.a);
  const int width = kLanes * t.vectors;
  std::vector<T> sums(static_cast<size_t>(width)), b(static_cast<size_t>(f.k * width));
  for (int64_t i = 0; i < f.k * width; ++i) b[static_cast<size_t>(i)] = read<T>(t.a, f.b + i * bytes);
  for (int i = 0; i < t.rows; ++i) {
    std::fill(sums.begin(), sums.end(), T(0));
    for (int64_t k = 0; k < f.k; ++k) {
      T a = read<T>(t.a, f.a + i * f.a_stride + k * bytes);
      for (int j = 0; j < width; ++j) sums[j] = std::fma(a, b[static_cast<size_t>(k * width + j)], sums[j]);
    }
    char* c = f.c + i * f.c_stride;
    int64_t stored = width - kLanes + (f.columns - 1) % kLanes + 1;
    for (int64_t j = 0; j < stored; ++j) {
      T sum = sums[j];
      if (f.accumulate) sum = read<T>(DType::f32, c + j * sizeof(T)) + sum;
      std::memcpy(c + j * sizeof(T), &sum, sizeof(T));
    }
  }
}

void run_tile_frame(const void* frame) {
  const auto& f = *static_cast<const TileFrame*>(frame);
  const auto& t = *static_cast<const TileSpec*>(f.context);
  t.a == DType::f64 ? run_tile<double>(t, f) : run_tile<float>(t, f);
}

void run_pack_frame(const void* frame) {
  const auto& f = *static_cast<const PackFrame*>(frame);
  const auto& p = *static_cast<const PackSpec*>(f.context);
  const int64_t bytes = ingot::size_of(p.dtype), width = kLanes * p.vectors;
  for (int64_t k = 0; k < f.k; ++k) {
    char* to = f.panel + k * width * bytes;
    for (int64_t j = 0; j < f.columns; ++j)
      std::memcpy(to + j * bytes, f.b + k * f.k_stride + j * f.n_stride, static_cast<size_t>(bytes));
    std::memset(to + f.columns * bytes, 0, static_cast<size_t>((width - f.columns) * bytes));
  }
}

template <class Spec>
KernelPtr source_of(const Spec& spec, KernelEntry run, std::string text) {
  auto source = std::make_shared<KernelSource>();
  source->text = std::move(text);
  source->key = "interpreted\n" + source->text;
  source->name = source->text;
  source->interpret = run;
  source->context = std::make_shared<const Spec>(spec);
  return source;
}

}  // namespace

KernelPtr interpret(const TileSpec& t) { return source_of(t, run_tile_frame, print(t)); }
KernelPtr interpret(const PackSpec& p) { return source_of(p, run_pack_frame, print(p)); }

}  // namespace ingot::codegen::scalar
