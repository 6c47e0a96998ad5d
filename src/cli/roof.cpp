#include "cli/roof.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "compile/compare.h"
#include "runtime/code/executable_memory.h"
#include "runtime/cpu.h"
#include "runtime/memory/allocator.h"
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

double best_rate(double seconds, const Ceiling& ceiling) {
  return ceiling.call ? ceiling.amount / best_us(seconds, ceiling.call) / 1e3 : 0;
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

Ceiling arithmetic_ceiling(int threads, CeilingLoop which) {
  constexpr int64_t kRepeats = 20000;
  auto loop = std::make_shared<const Loop>(which);
  if (!loop->exists()) return {};
  const auto operations = static_cast<double>(fma_operations(runtime::host_target())) * kRepeats * threads;
  return {[=] { runtime::parallel(threads, [&](int, int) {
                  loop->run({nullptr, nullptr, 0, kRepeats});
                }); },
          which == CeilingLoop::dot_bf16 ? 2 * operations : operations};
}

Ceiling memory_ceiling(int threads, double bytes, CeilingLoop which) {
  auto loop = std::make_shared<const Loop>(which);
  if (!loop->exists()) return {};
  // A multiple of 8192: then a copy's destination stands half a page off its source (a store just ahead of a load costs
  // a stall).
  const int64_t each = std::max<int64_t>(1, static_cast<int64_t>(bytes / threads / 8192)) * 8192;
  const int64_t repeats = std::max<int64_t>(1, (8 << 20) / each);
  auto blocks = std::make_shared<Blocks>(threads, each + 4096);
  if (which == CeilingLoop::copy_lines) {
    const auto row = static_cast<int64_t>(std::sqrt(static_cast<double>(each / 2 / 4))) / 16 * 64;  // of a square
    if (row == 0) return {};
    return {[=] {
              runtime::parallel(threads, [&](int t, int) {
                char* block = (*blocks)[t];
                loop->run({block, block + each / 2 + 2048, row, repeats});
              });
            },
            static_cast<double>(2 * row * (row / 4) * repeats) * threads};
  }
  const bool reads = which == CeilingLoop::read;
  return {[=] {
            runtime::parallel(threads, [&](int t, int) {
              char* block = (*blocks)[t];
              loop->run({block, reads ? block : block + each / 2 + 2048, reads ? each : each / 2, repeats});
            });
          },
          static_cast<double>(each * repeats) * threads};
}

Roof measure_roof(int threads, double seconds, bool large) {
  int before = num_threads();
  set_num_threads(threads);
  Roof roof;
  roof.threads = threads;
  if (runtime::host_target().isa != Isa::none) {
    size_t footprints = large ? std::size(kFootprints) : kSmallFootprints;
    double each = seconds / static_cast<double>(3 * footprints + 5);
    // Early and late: at first the system may keep two threads on one core.
    auto arithmetic = [&] {
      roof.fma_gflops = std::max(roof.fma_gflops, best_rate(each, arithmetic_ceiling(threads, CeilingLoop::fma_f32)));
      roof.bf16_gflops =
          std::max(roof.bf16_gflops, best_rate(each, arithmetic_ceiling(threads, CeilingLoop::dot_bf16)));
    };
    arithmetic();
    roof.fork_join_us = best_us(each,
                                [&] {
                                  for (int i = 0; i < 1000; ++i) runtime::parallel(threads, [](int, int) {});
                                }) /
                        1000;
    for (size_t f = 0; f < footprints; ++f) {
      auto rate = [&](CeilingLoop loop) {
        return best_rate(each, memory_ceiling(threads, static_cast<double>(kFootprints[f] * threads), loop));
      };
      roof.bandwidths.push_back(
          {kFootprints[f], rate(CeilingLoop::read), rate(CeilingLoop::copy), rate(CeilingLoop::copy_streaming)});
    }
    arithmetic();
  }
  set_num_threads(before);
  return roof;
}

}  // namespace ingot::cli
