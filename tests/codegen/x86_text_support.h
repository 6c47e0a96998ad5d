// Kernels written as text that are generated and run on numbers worked out by hand.
#pragma once
#include <algorithm>
#include <regex>

#include "codegen/kernel_analysis.h"
#include "codegen/run_scalar.h"
#include "codegen/x86_harness.h"

namespace ingot::codegen::test {

/// Calls `as` with a value of the C++ type that holds a number of this dtype.
template <class F>
auto with_type(DType d, F as) {
  switch (d) {
    case DType::f32:
      return as(float());
    case DType::f64:
      return as(double());
    case DType::i16:
      return as(int16_t());
    case DType::i32:
      return as(int32_t());
    case DType::i64:
      return as(int64_t());
    case DType::i8:
      return as(int8_t());
    default:
      return as(uint8_t());
  }
}
inline void write(char* at, DType d, double x) {
  if (is_half(d)) {
    const auto narrow = static_cast<float>(x);
    const uint16_t bits = d == DType::f16 ? f16_from_f32(narrow) : bf16_from_f32(narrow);
    std::memcpy(at, &bits, sizeof bits);
  } else {
    with_type(d, [&](auto value) {
      value = static_cast<decltype(value)>(x);
      std::memcpy(at, &value, sizeof value);
    });
  }
}
inline double read(const char* at, DType d) {
  if (is_half(d)) {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return d == DType::f16 ? f32_from_f16(bits) : f32_from_bf16(bits);
  }
  return with_type(d, [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  });
}

/// What a buffer has at a row and column (of the index, where it is a table of rows).
using Numbers = std::function<double(size_t buffer, int64_t row, int64_t column)>;

constexpr int64_t kWidths[] = {1, 15, 16, 17, 31, 63, 64, 65, 100, 257};
constexpr int64_t kRows = 3, kStep = 3;  // elements from column to column of a strided buffer
constexpr double kUntouched = 77;

/// A kernel of form rows, called with numbers and compared with numbers.
struct Written {
  std::string text;
  Numbers given, expected;  // of buffers that are read; that are written
  std::vector<uint64_t> scalars = {};
  int64_t table_rows = 0;  // > 0: buffer 0 is a table of so many numbers, looked up

  int64_t step(const Buffer& b) const {
    return b.access == Access::dense ? 1 : b.access == Access::uniform ? 0 : b.stride ? b.stride : kStep;
  }

  void run(const Kernel& kernel, const Target& target, int64_t columns) const {
    KernelPtr source = generate(kernel, target, "text");
    std::unique_ptr<Code> code = source->code.empty() ? nullptr : std::make_unique<Code>(*source);
    std::vector<std::vector<char>> memory;
    Call call;
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const Buffer& buffer = kernel.buffers[b];
      const int64_t size = size_of(buffer.dtype), table = b == 0 ? table_rows : 0;
      // Rows begin at multiples of 64 bytes, for those that are stored past the caches.
      const int64_t row = table || buffer.same_rows ? 0 : (columns * kStep * size + 63) / 64 * 64;
      memory.emplace_back(static_cast<size_t>((row ? row * kRows : std::max(columns * kStep, table) * size) + 64));
      char* data = memory[b].data();
      data += (64 - reinterpret_cast<uintptr_t>(data) % 64) % 64;
      const int64_t first = step(buffer) < 0 ? (columns - 1) * size : 0;  // where the first column is
      for (int64_t at = 0; at + size <= memory[b].data() + memory[b].size() - data; at += size)
        write(data + at, buffer.dtype, kUntouched);
      for (int64_t r = 0; r < kRows && !table; ++r)
        for (int64_t c = 0; c < columns && !buffer.written; ++c)
          write(data + first + r * row + c * step(buffer) * size, buffer.dtype,
                given(b, buffer.same_rows ? 0 : r, step(buffer) ? c : 0));
      for (int64_t i = 0; i < table; ++i) write(data + i * size, buffer.dtype, given(b, i, 0));
      call.buffers.push_back(data + first);
      call.row_strides.push_back(row);
      call.column_strides.push_back(step(buffer) * size);
      call.index_strides.push_back(size);
    }
    call.scalars = scalars;
    call.rows = kRows;
    call.columns = columns;
    call.context = source->context.get();
    int64_t scratch = source->scratch_bytes;
    for (Type t : kernel.locals) scratch += (columns + 15) / 16 * 16 * codegen::size_of(t);
    call.run(code ? code->entry() : source->interpret, scratch);
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const Buffer& buffer = kernel.buffers[b];
      if (!buffer.written) continue;
      const int64_t size = size_of(buffer.dtype), width = step(buffer) ? columns : 1;
      for (int64_t r = 0; r < kRows; ++r) {
        const char* at = static_cast<const char*>(call.buffers[b]) + r * call.row_strides[b];
        for (int64_t c = 0; c < width; ++c)
          ASSERT_EQ(read(at + c * step(buffer) * size, buffer.dtype), expected(b, r, c))
              << (code ? "generated" : "interpreted") << ": buffer " << b << ", row " << r << " of " << kRows
              << ", column " << c << " of " << columns;
        // Behind a row's end, and between its elements.
        const int64_t end = width * std::max<int64_t>(step(buffer), 1) - std::max<int64_t>(step(buffer) - 1, 0);
        ASSERT_EQ(read(at + end * size, buffer.dtype), kUntouched) << "behind row " << r << " of buffer " << b;
        if (step(buffer) > 1 && width > 1) {
          ASSERT_EQ(read(at + size, buffer.dtype), kUntouched) << "between columns of buffer " << b;
        }
      }
    }
  }

  void check(const Target& target) const {
    const Kernel kernel = parse_kernel(text);
    for (int64_t columns : kWidths) {
      if (kernel.known_columns) columns = kernel.known_columns;
      for (const Target& t : {Target{}, target}) run(kernel, t, columns);
      if (testing::Test::HasFatalFailure()) return;
      if (kernel.known_columns) break;
    }
    if (kernel.streams || table_rows) return;  // random memory has no aligned rows and no right indices
    for (int64_t columns : kWidths) {
      Trial trial{kernel, target, kRows, kernel.known_columns ? kernel.known_columns : columns};
      for (const Buffer& b : kernel.buffers) trial.layouts.push_back({step(b), b.same_rows, 0});
      trial.scalars = scalars;
      trial.run();
      if (testing::Test::HasFailure() || kernel.known_columns) return;
    }
  }
};

inline double small(int64_t row, int64_t column) { return static_cast<double>(row * 10 + column % 7); }

}  // namespace ingot::codegen::test
