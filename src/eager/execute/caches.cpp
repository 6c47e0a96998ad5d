#include "eager/execute/caches.h"

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>

#include "compiler/program_cache.h"
#include "eager/call/call.h"
#include "eager/execute/execute.h"
#include "runtime/code/kernel_cache.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/weight_cache.h"

namespace ingot {
namespace {
std::atomic<void (*)()> clear_functions{nullptr};
}

void eager::set_clear_functions(void (*clear)()) { clear_functions = clear; }

std::vector<CacheFigures> cache_figures() {
  const auto kernels = runtime::KernelCache::instance().figures();
  const auto weights = runtime::WeightCache::instance().statistics();
  const auto programs = compiler::ProgramCache::instance().figures();
  const auto eager_programs = eager::eager_program_figures();
  const auto memory = runtime::allocator_statistics();
  return {
      {"kernels", kernels.kernels, -1, kernels.code_bytes, -1, kernels.evictions},
      {"packed weights", weights.entries, static_cast<int64_t>(runtime::WeightCache::kMostEntries), weights.bytes,
       weights.limit_bytes, weights.evictions},
      {"programs", programs.programs, static_cast<int64_t>(compiler::ProgramCache::kMostEntries), programs.bytes,
       compiler::ProgramCache::kMostBytes, programs.evictions},
      {"eager programs", eager_programs.programs, static_cast<int64_t>(eager::kMostEagerPrograms), -1, -1,
       eager_programs.evictions},
      {"eager kernels", eager::eager_statistics().pointwise_kernels, static_cast<int64_t>(eager::kMostPointwiseKernels),
       -1, -1, 0},
      {"free blocks", -1, -1, memory.cached_bytes, memory.cached_limit, -1},
  };
}

namespace {
int64_t resident_bytes() {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen("/proc/self/statm", "re"));
  long pages = 0;
  if (!file || std::fscanf(file.get(), "%*d %ld", &pages) != 1) return 0;
  return pages * sysconf(_SC_PAGESIZE);
}
}  // namespace

MemoryStats memory_stats() {
  const auto memory = runtime::allocator_statistics();
  return {memory.live_bytes,
          memory.peak_bytes,
          runtime::WeightCache::instance().statistics().bytes,
          memory.scratch_bytes,
          memory.peak_beyond_scratch,
          memory.cached_bytes,
          memory.cached_limit,
          runtime::KernelCache::instance().figures().code_bytes,
          resident_bytes(),
          runtime::Storage::given_back_bytes()};
}

void reset_peak_memory_stats() { runtime::reset_allocator_peak(); }

void trim_memory() {
  runtime::trim_allocator();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void set_cached_memory_limit(int64_t bytes, Location location) {
  if (bytes < 0)
    eager::fail("set_cached_memory_limit", "bytes", std::to_string(bytes), "a number of bytes, 0 or more", location);
  runtime::set_allocator_limit(bytes);
}

void clear_caches() {
  if (auto* clear = clear_functions.load()) clear();
  eager::clear_eager_programs();
  compiler::ProgramCache::instance().clear();
  runtime::WeightCache::instance().clear();
  runtime::KernelCache::instance().clear();
  trim_memory();
}

}  // namespace ingot
