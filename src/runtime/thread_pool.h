// The threads of the process: regions in which each thread does its fixed share of the work.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/export.h"

namespace ingot {

inline constexpr int kMostThreads = 1024;

/// Number of threads that compiled and eager code may use: INGOT_NUM_THREADS, else the processors that affinity and the
/// control group leave us.
INGOT_API int num_threads();
/// Throws Error unless 1 <= n <= kMostThreads.
INGOT_API void set_num_threads(int n);

namespace runtime {

using RegionFunction = void (*)(void* context, int thread, int threads);
void run_region(int threads, RegionFunction function, void* context);

/// From now on the regions of this thread are its own: the pool is left to others.
void leave_pool();

/// Calls fn(thread, threads) once for each thread 0 .. threads-1 and returns when all have ended; the caller is thread
/// 0. threads is at most n, and 1 inside another region or while another caller has the pool. The exception of the
/// first thread that threw goes on to the caller.
template <class F>
void parallel(int n, F&& fn) {
  using Function = std::remove_reference_t<F>;
  if (n <= 1) return static_cast<void>(fn(0, 1));
  run_region(
      n, [](void* context, int thread, int threads) { (*static_cast<Function*>(context))(thread, threads); },
      const_cast<std::remove_const_t<Function>*>(std::addressof(fn)));
}

/// The share of [0, n) of one thread, in multiples of `grain` (the last share may be ragged).
struct Range {
  int64_t begin, end;
};
inline Range share(int64_t n, int thread, int threads, int64_t grain = 1) {
  int64_t units = (n + grain - 1) / grain, each = units / threads, extra = units % threads;
  int64_t begin = (each * thread + (thread < extra ? thread : extra)) * grain;
  int64_t end = begin + (each + (thread < extra)) * grain;
  return {begin < n ? begin : n, end < n ? end : n};
}

/// Inside a region: returns when `value` is `target`. If another thread of the region threw instead, this throws too.
void await(const std::atomic<int>& value, int target);

}  // namespace runtime
}  // namespace ingot
