// One kernel on random data, run as CUDA text and by the scalar executor: both must give the same bits.
#pragma once
#include "cuda_unit.h"
#include "random_kernel.h"

namespace ingot::codegen::test {

struct CudaTrial {
  const Kernel& kernel;
  const KernelSource& text;
  const CudaUnit& unit;
  int64_t rows = 1, columns = 0;
  std::vector<int64_t> outer{};   // sizes, outermost first
  std::vector<Layout> layouts{};  // of the buffers
  std::vector<uint64_t> scalars{};
  uint64_t seed = 1;
  CudaDevice device{};
  int64_t shift = 0;  // elements by which rows begin after a 64-byte line

  void run() const;

 private:
  /// The memory of one call: a buffer each, with a margin on both sides that must stay as it is.
  struct Memory {
    std::vector<CudaVector<char>> bytes;
    std::vector<CudaOperand> operands;
  };
  Memory make() const;
  void run_scalar(Memory& memory, Memory& results) const;
  Memory make_results() const;
  DType result_type(size_t r) const;
  int64_t planes() const;
};

}  // namespace ingot::codegen::test
