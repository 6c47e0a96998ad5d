#include "eager/caches.h"

#include <atomic>

#include "eager/execute.h"
#include "runtime/allocator.h"
#include "runtime/kernel_cache.h"
#include "runtime/weight_cache.h"

namespace ingot {
namespace {
std::atomic<void (*)()> clear_functions{nullptr};
}

void eager::set_clear_functions(void (*clear)()) { clear_functions = clear; }

std::vector<CacheFigures> cache_figures() {
  const auto kernels = runtime::KernelCache::instance().figures();
  const auto weights = runtime::WeightCache::instance().statistics();
  const auto programs = eager::eager_program_figures();
  const auto memory = runtime::allocator_statistics();
  return {
      {"kernels", kernels.kernels, -1, kernels.code_bytes, -1, kernels.evictions},
      {"packed weights", weights.entries, static_cast<int64_t>(runtime::WeightCache::kMostEntries), weights.bytes,
       weights.limit_bytes, weights.evictions},
      {"eager programs", programs.programs, static_cast<int64_t>(eager::kMostEagerPrograms), -1, -1,
       programs.evictions},
      {"eager kernels", eager::eager_statistics().pointwise_kernels, static_cast<int64_t>(eager::kMostPointwiseKernels),
       -1, -1, 0},
      {"free blocks", -1, -1, memory.cached_bytes, memory.cached_limit, -1},
  };
}

void clear_caches() {
  if (auto* clear = clear_functions.load()) clear();
  eager::clear_eager_programs();
  runtime::WeightCache::instance().clear();
  runtime::KernelCache::instance().clear();
  runtime::trim_allocator();
}

}  // namespace ingot
