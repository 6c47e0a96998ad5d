#include "cuda_unit.h"

#include <algorithm>

#include "codegen/cuda/cuda.h"
#include "cuda_host.h"
#include "runtime/cuda/device_program.h"

namespace ingot::codegen::test {
namespace {

namespace cuda = runtime::cuda;

/// What NVRTC makes of the text for the device, and its launches as a program has them.
class DeviceUnit : public CudaUnit {
 public:
  explicit DeviceUnit(const std::vector<KernelPtr>& kernels) : unit_(codegen::cuda::translation_unit(kernels)) {}
  void run(const KernelSource& kernel, const CudaArguments& arguments, const CudaDevice& device) const override {
    const CudaDevice limits{device.multiprocessors, std::min(device.shared_bytes, cuda::device().shared_bytes),
                            device.blocks};
    const cuda::KernelCall call{&kernel, arguments};
    const CudaPlan plan = call.plan(limits);
    const cuda::DeviceMemory scratch(plan.scratch_bytes);
    cuda::fill(scratch.data(), 0x7b, scratch.bytes());
    std::vector<cuda::Launch> launches;
    cuda::add_launches(launches, unit_, call, plan, scratch.data());
    cuda::run(launches);
    cuda::synchronize();
  }

 private:
  cuda::LoadedUnit unit_;
};

}  // namespace

std::unique_ptr<CudaUnit> cuda_unit(const std::vector<KernelPtr>& kernels) {
  if (on_device()) return std::make_unique<DeviceUnit>(kernels);
  return std::make_unique<HostUnit>(kernels);
}

}  // namespace ingot::codegen::test
