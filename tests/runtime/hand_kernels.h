// Kernels written by hand in C++, so that drivers are tested without a generator; and programs made of them.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/canonical_order.h"
#include "base/program.h"
#include "runtime/program_runner.h"
#include "runtime/thread_pool.h"
#include "uniform.h"

namespace ingot::runtime::testing_kernels {

inline std::atomic<int> kernel_count{0};

template <class Frame>
KernelPtr kernel_of(std::function<void(const Frame&)> body) {
  auto source = std::make_shared<KernelSource>();
  source->key = "hand " + std::to_string(++kernel_count);
  source->name = source->key;
  source->interpret = [](const void* frame) {
    const Frame& f = *static_cast<const Frame*>(frame);
    (*static_cast<const std::function<void(const Frame&)>*>(f.context))(f);
  };
  source->context = std::make_shared<const std::function<void(const Frame&)>>(std::move(body));
  return source;
}
inline KernelPtr loop_kernel(std::function<void(const KernelFrame&)> body) {
  return kernel_of<KernelFrame>(std::move(body));
}

/// Element of a buffer at (row, column) of a frame.
template <class T>
T& element(const KernelFrame& f, int buffer, int64_t row, int64_t column) {
  return *reinterpret_cast<T*>(f.buffers[buffer] + row * f.row_strides[buffer] + column * f.column_strides[buffer]);
}
inline float scalar_f32(const KernelFrame& f, int number) {
  float value;
  std::memcpy(&value, &f.scalars[number], 4);
  return value;
}

constexpr int kMaxRows = 4, kMaxVectors = 2;

inline KernelPtr tile_kernel(int rows, int vectors, RowsOfA rows_of_a) {
  return kernel_of<TileFrame>([rows, vectors, rows_of_a](const TileFrame& f) {
    const int64_t width = 16 * vectors;
    EXPECT_TRUE(f.k >= 1 && f.k <= canonical::kProductBlock);
    const bool listed = rows_of_a == RowsOfA::listed || rows_of_a == RowsOfA::channels;
    const TileRun whole{0, f.k};
    const std::span<const TileRun> runs(listed ? f.runs : &whole, listed ? f.run_count : 1);
    for (int i = 0; i < rows; ++i) {
      float* c = reinterpret_cast<float*>(f.c + i * f.c_stride);
      for (int64_t j = 0; j < f.columns; ++j) {
        float sum = 0;
        const float* b = reinterpret_cast<const float*>(f.b) + j;
        for (size_t r = 0; r < runs.size(); ++r) {
          const char* row = f.a + i * f.a_stride;
          const auto* rows_of_run = reinterpret_cast<const char* const*>(f.a + static_cast<int64_t>(r) * f.a_stride);
          if (listed && !*rows_of_run) {
            sum += reinterpret_cast<const float*>(f.zeros)[static_cast<int64_t>(r) * width + j];
            b += runs[r].steps * width;
            continue;
          }
          if (listed) row = rows_of_run[i];
          const float* a = reinterpret_cast<const float*>(row + runs[r].offset + f.a_offset);
          for (int64_t k = 0; k < runs[r].steps; ++k, b += width)
            sum = std::fma(a[rows_of_a == RowsOfA::channels ? j : k], *b, sum);
        }
        c[j] = f.accumulate ? c[j] + sum : sum;
      }
    }
  });
}

inline KernelPtr pack_kernel(int vectors, std::atomic<int64_t>* packed) {
  return kernel_of<PackFrame>([vectors, packed](const PackFrame& f) {
    EXPECT_TRUE(f.columns > 16 * (vectors - 1) && f.columns <= 16 * vectors);
    float* panel = reinterpret_cast<float*>(f.panel);
    for (int64_t k = 0; k < f.k; ++k)
      for (int64_t j = 0; j < 16 * vectors; ++j)
        *panel++ = j < f.columns ? *reinterpret_cast<const float*>(f.b + k * f.k_stride + j * f.n_stride) : 0.0f;
    if (packed) *packed += f.k * f.columns;
  });
}

/// Every tile, as ProductKernels orders them; and the packs.
inline std::vector<KernelPtr> tile_kernels(RowsOfA rows_of_a = RowsOfA::along) {
  std::vector<KernelPtr> kernels;
  for (int rows = 1; rows <= kMaxRows; ++rows)
    for (int vectors = 1; vectors <= kMaxVectors; ++vectors) kernels.push_back(tile_kernel(rows, vectors, rows_of_a));
  return kernels;
}
inline std::vector<KernelPtr> pack_kernels(std::atomic<int64_t>* packed = nullptr) {
  std::vector<KernelPtr> kernels;
  for (int vectors = 1; vectors <= kMaxVectors; ++vectors) kernels.push_back(pack_kernel(vectors, packed));
  return kernels;
}

inline std::vector<float> random_floats(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(n);
  for (float& v : values) v = ingot::test::uniform<float>(generator, -2, 2);
  return values;
}

inline ProductKernels product_kernels(std::atomic<int64_t>* packed = nullptr, RowsOfA rows_of_a = RowsOfA::along) {
  ProductKernels kernels;
  kernels.rows_of_a = rows_of_a;
  kernels.max_rows = kMaxRows, kernels.max_vectors = kMaxVectors;
  kernels.tiles = tile_kernels(rows_of_a), kernels.packs = pack_kernels(packed);
  return kernels;
}

/// A step that all threads will want to share.
template <class Work>
Step costly_step(std::string name, Work work = {}) {
  return {std::move(name), int64_t{1} << 40, int64_t{1} << 40, std::move(work)};
}
inline ProgramBuffer input(uint32_t number) { return {Place::input, number, 0, 0, 0}; }
inline ProgramBuffer output(uint32_t number) { return {Place::output, number, 0, 0, 0}; }

inline void run(const LoadedProgram& program, std::vector<int64_t> symbols, std::vector<void*> inputs,
                std::vector<void*> outputs, std::vector<uint64_t> scalars = {},
                std::vector<InputIdentity> identities = {}) {
  program.run(*program.bind(symbols), {inputs, identities, outputs, scalars});
}

/// A storage over these floats, for their identity.
inline StoragePtr storage_of(std::vector<float>& values) {
  return Storage::adopt(values.data(), static_cast<int64_t>(values.size() * sizeof(float)));
}

constexpr int kThreadCounts[] = {1, 2, 3, 7};

/// Restores the number of threads.
struct Threads {
  int before = num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};

}  // namespace ingot::runtime::testing_kernels
