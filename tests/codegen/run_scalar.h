// Calls interpreted kernels on memory that a test owns.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/scalar/executor.h"

namespace ingot::codegen::test {

/// One call of a kernel; every buffer needs a base and, where it is not one row, a row stride.
struct Call {
  std::vector<void*> buffers;
  std::vector<int64_t> row_strides, column_strides, index_strides;
  std::vector<uint64_t> scalars;
  std::vector<int64_t> outer_index;
  int64_t rows = 1, columns = 0, row_index = 0, column_index = 0;
  std::vector<char> scratch;
  int64_t lanes = 16;

  void run(const Kernel& kernel) {
    verify(kernel);
    KernelPtr source = scalar::interpret(kernel, "test");
    context = source->context.get();
    run(source->interpret,
        static_cast<int64_t>((kernel.locals.size() + kernel.reductions.size() * 16) * 16) * (columns + 16));
  }

  void run(KernelEntry entry, int64_t scratch_bytes) {
    for (auto* strides : {&row_strides, &column_strides, &index_strides}) strides->resize(buffers.size());
    outer_index.resize(8);
    scratch.resize(static_cast<size_t>(scratch_bytes) + 64);
    std::vector<char*> bases;
    for (void* b : buffers) bases.push_back(static_cast<char*>(b));
    KernelFrame f{};
    f.buffers = bases.data();
    f.row_strides = row_strides.data();
    f.column_strides = column_strides.data();
    f.index_strides = index_strides.data();
    f.scalars = scalars.data();
    f.rows = rows;
    f.columns = columns;
    f.scratch = aligned_scratch();
    f.row_index = row_index;
    f.column_index = column_index;
    f.outer_index = outer_index.data();
    f.context = context;
    f.lanes = lanes;
    entry(&f);
  }

  char* aligned_scratch() { return scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64; }
  const void* context = nullptr;
};

}  // namespace ingot::codegen::test
