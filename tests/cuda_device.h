// The CUDA device of tests: whether they run kernels on it, and memory that it reaches.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "runtime/cuda/driver.h"

namespace ingot::test {

/// Whether kernels of CUDA text run on the device: INGOT_CUDA_DEVICE=1. Where there is none, the tests fail then.
inline bool on_device() {
  const char* wish = std::getenv("INGOT_CUDA_DEVICE");
  return wish && std::string_view(wish) == "1";
}

/// Tests that need a device: skipped where there is none and none is asked for.
class NeedsDevice : public testing::Test {
 protected:
  void SetUp() override {
    const std::string& missing = runtime::cuda::driver_missing();
    if (missing.empty()) return;
    if (on_device()) FAIL() << missing;
    GTEST_SKIP() << missing;
  }
};

/// Page-locked memory where kernels run on the device, plain memory where they run on the processor.
template <class T>
struct CudaAllocator {
  using value_type = T;
  CudaAllocator() = default;
  template <class U>
  CudaAllocator(const CudaAllocator<U>&) {}
  T* allocate(size_t n) {
    if (!on_device()) return std::allocator<T>().allocate(n);
    return static_cast<T*>(runtime::cuda::allocate_pinned(static_cast<int64_t>(n * sizeof(T))));
  }
  void deallocate(T* data, size_t n) {
    on_device() ? runtime::cuda::free_pinned(data) : std::allocator<T>().deallocate(data, n);
  }
  template <class U>
  bool operator==(const CudaAllocator<U>&) const {
    return true;
  }
};
template <class T>
using CudaVector = std::vector<T, CudaAllocator<T>>;

}  // namespace ingot::test
