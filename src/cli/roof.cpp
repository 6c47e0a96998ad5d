#include "cli/roof.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "cli/ceiling_kernels.h"
#include "compile/compare.h"
#include "runtime/allocator.h"
#include "runtime/cpu.h"
#include "runtime/executable_memory.h"
#include "runtime/thread_pool.h"

namespace ingot::cli {
namespace {

constexpr int64_t kFootprints[] = {16 << 10, 128 << 10, 1 << 20, 4 << 20, 32 << 20, 256 << 20};
constexpr int64_t kSmallFootprints = 4;

// A block of memory per thread, filled so that no page is untouched.
class Blocks {
 public:
  Blocks(int threads, int64_t bytes) : bytes_(bytes) {
    for (int t = 0; t < threads; ++t) {
      blocks_.push_back(static_cast<char*>(runtime::allocate(bytes)));
      std::memset(blocks_.back(), t + 1, bytes);
    }
  }
  ~Blocks() {
    for (char* block : blocks_) runtime::deallocate(block, bytes_);
  }
  char* operator[](int thread) { return blocks_[thread]; }

 private:
  int64_t bytes_;
  std::vector<char*> blocks_;
};

class Loop {
 public:
  Loop(CeilingLoop loop) : source_(ceiling_kernel(loop, runtime::host_target())) {
    if (source_) block_ = runtime::ExecutableBlock(source_->code, source_->name);
  }
  bool exists() const { return source_ != nullptr; }
  void run(const CeilingFrame& frame) const {
    reinterpret_cast<KernelEntry>(const_cast<void*>(block_.address()))(&frame);
  }

 private:
  KernelPtr source_;
  runtime::ExecutableBlock block_;
};

// The best rate of several samples: a roof is what the machine can do.
double best_us(double seconds, const std::function<void()>& call) {
  call();
  double best = 1e18, end = now_us() + seconds * 1e6;
  do {
    double start = now_us();
    call();
    best = std::min(best, now_us() - start);
  } while (now_us() < end);
  return best;
}

double arithmetic_gflops(CeilingLoop which, int64_t operations, double seconds) {
  Loop loop(which);
  if (!loop.exists()) return 0;
  constexpr int64_t kRepeats = 20000;
  CeilingFrame frame{nullptr, nullptr, 0, kRepeats};
  double us = best_us(seconds, [&] { runtime::parallel(num_threads(), [&](int, int) { loop.run(frame); }); });
  return static_cast<double>(operations) * kRepeats * num_threads() / us / 1e3;
}

// `bytes`: what each thread works on, a multiple of 8192: then the destination stands half a page off the source (a
// store just ahead of a load costs a stall).
Bandwidth bandwidth_of(int threads, int64_t bytes, double seconds) {
  Blocks blocks(threads, bytes + 4096);
  auto rate = [&](CeilingLoop which, bool halves) {
    const Loop loop(which);
    const int64_t repeats = std::max<int64_t>(1, (8 << 20) / bytes);
    const double us = best_us(seconds / 3, [&] {
      runtime::parallel(threads, [&](int t, int) {
        loop.run({blocks[t], blocks[t] + (halves ? bytes / 2 + 2048 : 0), halves ? bytes / 2 : bytes, repeats});
      });
    });
    return static_cast<double>(bytes) * static_cast<double>(repeats) * threads / us / 1e3;
  };
  return {bytes, rate(CeilingLoop::read, false), rate(CeilingLoop::copy, true),
          rate(CeilingLoop::copy_streaming, true)};
}

}  // namespace

double Roof::copy_gbps(double bytes) const {
  double each = bytes / threads;
  for (const Bandwidth& b : bandwidths)
    if (each <= static_cast<double>(b.bytes)) return b.copy;
  return bandwidths.empty() ? 0 : std::max(bandwidths.back().copy, bandwidths.back().copy_streaming);
}

double Roof::read_gbps(double bytes) const {
  double each = bytes / threads;
  for (const Bandwidth& b : bandwidths)
    if (each <= static_cast<double>(b.bytes)) return b.read;
  return bandwidths.empty() ? 0 : bandwidths.back().read;
}

double Roof::floor_us(double operations, double bytes) const {
  if (fma_gflops <= 0) return 0;
  return std::max(operations / fma_gflops, bytes / copy_gbps(bytes)) / 1e3;
}

Bandwidth measure_bandwidth(int threads, double bytes, double seconds) {
  if (runtime::host_target().isa == Isa::none) return {};
  const int64_t each = std::max<int64_t>(1, static_cast<int64_t>(bytes / threads / 8192)) * 8192;
  return bandwidth_of(threads, each, seconds);
}

Roof measure_roof(int threads, double seconds, bool large) {
  int before = num_threads();
  set_num_threads(threads);
  Roof roof;
  roof.threads = threads;
  if (runtime::host_target().isa != Isa::none) {
    size_t footprints = large ? std::size(kFootprints) : kSmallFootprints;
    double each = seconds / static_cast<double>(3 * footprints + 3);
    int64_t operations = fma_operations(runtime::host_target());
    roof.fma_gflops = arithmetic_gflops(CeilingLoop::fma_f32, operations, each);
    roof.bf16_gflops = arithmetic_gflops(CeilingLoop::dot_bf16, 2 * operations, each);
    roof.fork_join_us = best_us(each,
                                [&] {
                                  for (int i = 0; i < 1000; ++i) runtime::parallel(threads, [](int, int) {});
                                }) /
                        1000;
    for (size_t f = 0; f < footprints; ++f) roof.bandwidths.push_back(bandwidth_of(threads, kFootprints[f], 3 * each));
  }
  set_num_threads(before);
  return roof;
}

}  // namespace ingot::cli
