// From a step of a program to the call of its kernel: what a device runs, and what tests run on the processor in its
// place.
#pragma once
#include <cstdint>
#include <span>

#include "base/program.h"

namespace ingot::runtime::cuda {

/// What is known of a program once it is bound.
struct BoundValues {
  std::span<const int64_t> sizes;     // DimTable::evaluate
  std::span<char* const> buffers;     // where each lies
  std::span<const uint64_t> scalars;  // of the call, as CallData has them: floating ones bits of f64, others i64
};

struct KernelCall {
  const KernelSource* kernel = nullptr;
  CudaArguments arguments;
  /// The launches of it, in order, and the device memory that they share.
  CudaPlan plan(const CudaDevice& device) const;
};

/// Throws Error for a step that is a library's (a product, convolution or attention) or the host's: it has no kernel.
KernelCall kernel_call(const Program& program, const Step& step, const BoundValues& values);

}  // namespace ingot::runtime::cuda
