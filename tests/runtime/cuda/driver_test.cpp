#include "runtime/cuda/driver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "cuda_device.h"

namespace ingot::runtime::cuda {
namespace {

template <class Failure = Error>
std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// On a machine without a device: everything says why, nothing crashes.
TEST(CudaDriverMissing, IsAnErrorThatSaysWhy) {
  if (driver_missing().empty()) GTEST_SKIP() << "there is a device";
  const std::string& why = driver_missing();
  EXPECT_NE(why.find("CUDA driver"), std::string::npos) << why;
  EXPECT_EQ(failure_of([] { (void)device(); }), why);
  EXPECT_EQ(failure_of([] { DeviceMemory memory(16); }), why);
  EXPECT_EQ(failure_of([] { (void)allocate_pinned(16); }), why);
  EXPECT_EQ(failure_of([] { Event event; }), why);
  EXPECT_EQ(failure_of([] { (void)Stream::make(); }), why);
  EXPECT_EQ(failure_of([] { synchronize(); }), why);
  EXPECT_EQ(failure_of([] { Module module(Cubin{{'x'}, {}, {}, 0}); }), why);
  const DeviceMemory nothing(0);
  EXPECT_EQ(nothing.data(), nullptr);
}

constexpr const char* kKernels = R"(
struct Words { long long count; float* to; const float* from; };
extern "C" __global__ void doubled(const __grid_constant__ Words a) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < a.count; i += gridDim.x * blockDim.x)
    a.to[i] = a.from[i] * 2.0f;
}
extern __shared__ float shared[];
extern "C" __global__ void turned(const __grid_constant__ Words a) {
  for (long long i = threadIdx.x; i < a.count; i += blockDim.x) shared[i] = a.from[i];
  __syncthreads();
  for (long long i = threadIdx.x; i < a.count; i += blockDim.x) a.to[i] = shared[a.count - 1 - i];
}
)";

class CudaDriver : public ingot::test::NeedsDevice {
 protected:
  void SetUp() override {
    NeedsDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(nvrtc_missing(), "");
    module = std::make_unique<Module>(compile(kKernels, device().arch));
  }
  static uint64_t word(const void* at) { return reinterpret_cast<uint64_t>(at); }
  static CudaLaunch shape(uint32_t grid, uint32_t block, int64_t shared = 0) {
    CudaLaunch l;
    l.grid[0] = grid;
    l.block[0] = block;
    l.shared_bytes = shared;
    return l;
  }
  std::unique_ptr<Module> module;
};

std::vector<float> numbers(size_t count) {
  std::vector<float> x(count);
  std::iota(x.begin(), x.end(), 1.0f);
  return x;
}

TEST_F(CudaDriver, DescribesTheDevice) {
  const Device& d = device();
  EXPECT_FALSE(d.name.empty());
  EXPECT_GE(d.arch, 70);
  EXPECT_GT(d.multiprocessors, 0);
  EXPECT_GE(d.shared_bytes, 48 * 1024);
  EXPECT_GT(d.l2_bytes, 0);
  EXPECT_GT(d.memory_bytes, int64_t{1} << 30);
  EXPECT_GE(d.driver_version, 12000);
  std::printf("  %s, sm_%d, %d multiprocessors, %lld bytes of shared memory a block, CUDA %d\n", d.name.c_str(), d.arch,
              d.multiprocessors, static_cast<long long>(d.shared_bytes), d.driver_version);
}

TEST_F(CudaDriver, CopiesThereAndBack) {
  const std::vector<float> x = numbers(3'000'001);
  const auto bytes = static_cast<int64_t>(x.size() * sizeof(float));
  DeviceMemory first(bytes), second(bytes);
  copy_to_device(first.data(), x.data(), bytes);
  copy_on_device(second.data(), first.data(), bytes);
  std::vector<float> y(x.size());
  copy_to_host(y.data(), second.data(), bytes);
  EXPECT_EQ(x, y);
  fill(second.data(), 0x7b, bytes);
  copy_to_host(y.data(), second.data(), bytes);
  uint32_t bits = 0;
  std::memcpy(&bits, &y.back(), sizeof bits);
  EXPECT_EQ(bits, 0x7b7b7b7bu);
  DeviceMemory moved = std::move(second);
  EXPECT_EQ(second.data(), nullptr);
  EXPECT_EQ(moved.bytes(), bytes);
}

TEST_F(CudaDriver, LaunchesOnStreamsAndFromOtherThreads) {
  const std::vector<float> x = numbers(100'003);
  const auto bytes = static_cast<int64_t>(x.size() * sizeof(float));
  DeviceMemory from(bytes), to(bytes);
  copy_to_device(from.data(), x.data(), bytes);
  const Function doubled = module->function("doubled");
  EXPECT_TRUE(doubled.parameter_bytes == 24 || doubled.parameter_bytes == -1) << doubled.parameter_bytes;
  std::thread([&] {
    const Stream stream = Stream::make();
    launch(doubled, shape(64, 256), std::vector<uint64_t>{x.size(), word(to.data()), word(from.data())}, stream);
    launch(doubled, shape(1, 32), std::vector<uint64_t>{10, word(to.data()), word(to.data())}, stream);
    synchronize(stream);
  }).join();
  std::vector<float> y(x.size());
  copy_to_host(y.data(), to.data(), bytes);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x[i] * (i < 10 ? 4.0f : 2.0f)) << i;
}

TEST_F(CudaDriver, LockedMemoryHasOneAddressOnBothSides) {
  constexpr size_t kCount = 5000;
  auto* x = static_cast<float*>(allocate_pinned(2 * kCount * sizeof(float)));
  for (size_t i = 0; i < kCount; ++i) x[i] = static_cast<float>(i);
  launch(module->function("doubled"), shape(4, 128), std::vector<uint64_t>{kCount, word(x + kCount), word(x)});
  synchronize();
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(x[kCount + i], 2.0f * x[i]) << i;
  free_pinned(x);
}

TEST_F(CudaDriver, GivesABlockAllSharedMemoryThatItMayHave) {
  const int64_t shared = device().shared_bytes;
  const std::vector<float> x = numbers(static_cast<size_t>(shared) / sizeof(float));
  const auto bytes = static_cast<int64_t>(x.size() * sizeof(float));
  DeviceMemory from(bytes), to(bytes);
  copy_to_device(from.data(), x.data(), bytes);
  launch(module->function("turned"), shape(1, 512, shared),
         std::vector<uint64_t>{x.size(), word(to.data()), word(from.data())});
  std::vector<float> y(x.size());
  copy_to_host(y.data(), to.data(), bytes);
  EXPECT_EQ(std::vector<float>(y.rbegin(), y.rend()), x);
}

TEST_F(CudaDriver, WhatIsRefusedIsAnError) {
  EXPECT_NE(failure_of([&] { (void)module->function("tripled"); }).find("tripled"), std::string::npos);
  const Function doubled = module->function("doubled");
  const std::vector<uint64_t> nothing{0, 0, 0};
  std::string text = failure_of([&] { launch(doubled, shape(1, 4096), nothing); });
  EXPECT_NE(text.find("launch doubled"), std::string::npos) << text;
  EXPECT_NE(text.find("block 4096"), std::string::npos) << text;
  EXPECT_NE(text.find("CUDA_ERROR"), std::string::npos) << text;
  (void)failure_of([&] { launch(doubled, shape(1, 32, device().shared_bytes + 1024), nothing); });
  (void)failure_of([&] { Module module(Cubin{std::vector<char>(4096, 'x'), {}, {}, 0}); });
  text = failure_of<OutOfMemory>([] { DeviceMemory memory(int64_t{1} << 50); });
  EXPECT_NE(text.find("1125899906842624 bytes"), std::string::npos) << text;
  if (doubled.parameter_bytes >= 0)
    (void)failure_of<InternalError>([&] { launch(doubled, shape(1, 32), std::vector<uint64_t>{0, 0}); });
  // None of it is left behind.
  launch(doubled, shape(1, 32), nothing);
  synchronize();
}

TEST_F(CudaDriver, EventsTellTheTime) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  DeviceMemory from(kBytes), to(kBytes);
  Event before, between, after;
  copy_on_device(to.data(), from.data(), kBytes);
  before.record();
  copy_on_device(to.data(), from.data(), kBytes);
  between.record();
  for (int i = 0; i < 8; ++i) copy_on_device(to.data(), from.data(), kBytes);
  after.record();
  const double one = between.milliseconds_since(before), eight = after.milliseconds_since(between);
  EXPECT_GT(one, 0.01);  // 50 TB/s
  EXPECT_GT(eight, 3 * one);
}

}  // namespace
}  // namespace ingot::runtime::cuda
