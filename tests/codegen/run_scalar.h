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

  void run(const Kernel& kernel) {
    verify(kernel);
    KernelPtr source = scalar::interpret(kernel, "test");
    for (auto* strides : {&row_strides, &column_strides, &index_strides}) strides->resize(buffers.size());
    outer_index.resize(8);
    scratch.resize(static_cast<size_t>((kernel.locals.size() + kernel.reductions.size() * 16) * (columns + 16) * 16));
    std::vector<char*> bases;
    for (void* b : buffers) bases.push_back(static_cast<char*>(b));
    KernelFrame f{bases.data(),
                  row_strides.data(),
                  column_strides.data(),
                  index_strides.data(),
                  scalars.data(),
                  rows,
                  columns,
                  scratch.data(),
                  row_index,
                  column_index,
                  outer_index.data(),
                  source->context.get()};
    source->interpret(&f);
  }
};

}  // namespace ingot::codegen::test
