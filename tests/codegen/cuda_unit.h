// A unit of CUDA kernels that tests run: on the processor, or with INGOT_CUDA_DEVICE=1 on the device.
#pragma once
#include <memory>
#include <vector>

#include "base/program.h"
#include "cuda_device.h"

namespace ingot::codegen::test {

using ingot::test::CudaVector;
using ingot::test::on_device;

class CudaUnit {
 public:
  virtual ~CudaUnit() = default;
  /// Runs all launches of a kernel to their end; scratch is filled with rubbish before. `device` shapes the launches.
  /// What the arguments point to stands in a CudaVector.
  virtual void run(const KernelSource& kernel, const CudaArguments& arguments, const CudaDevice& device = {}) const = 0;
};

/// Compiles and loads the unit of these kernels.
std::unique_ptr<CudaUnit> cuda_unit(const std::vector<KernelPtr>& kernels);

}  // namespace ingot::codegen::test
