#include "cuda_host.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "codegen/cuda/cuda.h"
#include "runtime/cuda/step_arguments.h"

namespace ingot::codegen::test {
namespace {

// What the text takes from CUDA, for one block at a time. Each thread is a fiber. A shuffle has two stops: all threads
// of the warp write, then all read; fibers of a warp reach them in step, because every round runs each fiber that is
// not at a barrier up to its next stop.
constexpr const char* kDevice = R"(
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <ucontext.h>
#define __device__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
struct Index { unsigned x, y, z; };
static Index gridDim, blockDim, blockIdx, threadIdx;
struct alignas(16) uint4 { unsigned x, y, z, w; };
alignas(16) uint4 shared_memory[16 * 1024];
static inline float __int_as_float(int x) { float f; memcpy(&f, &x, 4); return f; }
static inline int __float_as_int(float x) { int i; memcpy(&i, &x, 4); return i; }
static inline double __longlong_as_double(long long x) { double f; memcpy(&f, &x, 8); return f; }
static inline long long __double_as_longlong(double x) { long long i; memcpy(&i, &x, 8); return i; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline double __dsqrt_rn(double x) { return sqrt(x); }

enum State { kReady, kAtBarrier, kDone };
static const int kMaxThreads = 512, kStack = 64 * 1024;
static ucontext_t first_entry;
static jmp_buf scheduler, fibers[kMaxThreads];  // after the first entry: no system call
static bool entered[kMaxThreads];
static State states[kMaxThreads];
static unsigned long long exchanged[kMaxThreads];
static char stacks[kMaxThreads][kStack];
static int current;
static void (*body)(const void*);
static const void* body_arguments;

static void stop(State state) {
  states[current] = state;
  if (_setjmp(fibers[current]) == 0) _longjmp(scheduler, 1);
}
static inline void __syncthreads() { stop(kAtBarrier); }
template <class T> T __shfl_xor_sync(unsigned, T x, int distance) {
  int me = current;
  memcpy(&exchanged[me], &x, sizeof x);
  stop(kReady);
  T y;
  memcpy(&y, &exchanged[(me & ~31) | ((me & 31) ^ distance)], sizeof y);
  stop(kReady);
  return y;
}
static void fiber() {
  body(body_arguments);
  states[current] = kDone;
  _longjmp(scheduler, 1);
}
static void resume(int t) {
  current = t;
  threadIdx = {t % blockDim.x, t / blockDim.x, 0};
  if (_setjmp(scheduler)) return;
  if (entered[t]) _longjmp(fibers[t], 1);
  entered[t] = true;
  ucontext_t fresh;
  getcontext(&fresh);
  fresh.uc_stack.ss_sp = stacks[t];
  fresh.uc_stack.ss_size = kStack;
  fresh.uc_link = nullptr;
  makecontext(&fresh, fiber, 0);
  swapcontext(&first_entry, &fresh);
}
extern "C" void run_block(void (*kernel)(const void*), const void* arguments, const unsigned* grid, const unsigned* block, const unsigned* at) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  blockIdx = {at[0], at[1], at[2]};
  body = kernel;
  body_arguments = arguments;
  memset(shared_memory, 0x7b, sizeof shared_memory);
  int threads = int(block[0] * block[1]);
  for (int t = 0; t < threads; ++t) {
    entered[t] = false;
    states[t] = kReady;
  }
  for (;;) {
    int ran = 0, waiting = 0;
    for (int t = 0; t < threads; ++t) {
      waiting += states[t] == kAtBarrier;
      if (states[t] != kReady) continue;
      ++ran;
      resume(t);
    }
    if (ran) continue;
    if (!waiting) break;
    for (int t = 0; t < threads; ++t)
      if (states[t] == kAtBarrier) states[t] = kReady;
  }
}
)";

}  // namespace

HostUnit::HostUnit(const std::vector<KernelPtr>& kernels) {
  static int number = 0;
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("ingot_cuda_{}_{}", ::getpid(), number++);
  std::filesystem::create_directories(folder);
  std::ofstream out(folder / "unit.cpp");
  out << kDevice << cuda::translation_unit(kernels);
  // Entries by a plain pointer: a by-value struct has no common signature.
  for (const KernelPtr& k : kernels)
    out << fmt::format("extern \"C\" void call_{0}(const void* a) {{ {0}(*(const {0}_arguments*)a); }}\n",
                       k->cuda->entry);
  out.close();
  std::string command = fmt::format(
      "{} -x c++ -std=c++17 -O0 -w -U_FORTIFY_SOURCE -ffp-contract=off -shared -fPIC -o {}/unit.so {}/unit.cpp -lm 2> "
      "{}/log",
      INGOT_CXX_COMPILER, folder.string(), folder.string(), folder.string());
  if (std::system(command.c_str()) != 0) {
    std::ifstream log(folder / "log");
    std::string text((std::istreambuf_iterator<char>(log)), {});
    ADD_FAILURE() << "the host's compiler refuses the text:\n" << text.substr(0, 4000);
  } else {
    library_ = dlopen((folder / "unit.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) ADD_FAILURE() << dlerror();
  }
  std::filesystem::remove_all(folder);
}

HostUnit::~HostUnit() {
  if (library_) dlclose(library_);
}

void HostUnit::run(const KernelSource& kernel, const CudaArguments& arguments, const CudaDevice& device) const {
  ASSERT_TRUE(library_);
  using Body = void (*)(const void*);
  auto body = reinterpret_cast<Body>(dlsym(library_, ("call_" + kernel.cuda->entry).c_str()));
  auto run_block = reinterpret_cast<void (*)(Body, const void*, const unsigned*, const unsigned*, const unsigned*)>(
      dlsym(library_, "run_block"));
  ASSERT_TRUE(body && run_block) << kernel.cuda->entry;
  CudaPlan plan = runtime::cuda::KernelCall{&kernel, arguments}.plan(device);
  std::vector<uint64_t> scratch(static_cast<size_t>(plan.scratch_bytes) / 8 + 2, 0x7b7b7b7b7b7b7b7bull);
  char* memory = reinterpret_cast<char*>(scratch.data());
  memory += -reinterpret_cast<intptr_t>(memory) & 15;
  for (const CudaLaunch& launch : plan.launches) {
    ASSERT_LE(launch.shared_bytes, device.shared_bytes);
    ASSERT_LE(launch.block[0] * launch.block[1] * launch.block[2], 512u);
    std::vector<uint64_t> words = arguments.words(launch, memory);
    unsigned at[3];
    for (at[2] = 0; at[2] < launch.grid[2]; ++at[2])
      for (at[1] = 0; at[1] < launch.grid[1]; ++at[1])
        for (at[0] = 0; at[0] < launch.grid[0]; ++at[0]) run_block(body, words.data(), launch.grid, launch.block, at);
  }
}

}  // namespace ingot::codegen::test
