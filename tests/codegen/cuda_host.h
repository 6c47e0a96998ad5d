// CUDA text run on the processor: the unit is compiled as C++ by the compiler that built the tests, against a few lines
// that stand in for the device, and its blocks run one after the other, their threads as fibers that
// change at shuffles and barriers. It proves what the text computes, to the bit; not what NVRTC makes of it, nor that
// memory is ordered where two threads meet without a barrier.
#pragma once
#include "cuda_unit.h"

namespace ingot::codegen::test {

class HostUnit : public CudaUnit {
 public:
  /// Compiles and loads the unit of these kernels.
  explicit HostUnit(const std::vector<KernelPtr>& kernels);
  HostUnit(const HostUnit&) = delete;
  ~HostUnit() override;

  /// Runs all launches of a kernel; shared memory and scratch are filled with rubbish before each call.
  void run(const KernelSource& kernel, const CudaArguments& arguments, const CudaDevice& device) const override;

 private:
  void* library_ = nullptr;
};

}  // namespace ingot::codegen::test
