// The figures of a compiled function.
#pragma once
#include <cstdint>

namespace ingot {

struct Statistics {
  int64_t compilations = 0;  // programs that it needed; one that the process had compiled for another function counts
  int64_t cache_entries = 0;
  int64_t calls = 0;
  int64_t hits = 0;         // calls that recorded and compiled nothing
  int64_t eager_calls = 0;  // that ran eagerly from their start; no hits
  int64_t graph_breaks = 0;
  int64_t fallbacks = 0;
  int64_t recompile_limit_hits = 0;
  int64_t ops_traced = 0;  // of all programs
  int64_t kernels = 0;
  int64_t host_steps = 0;   // done in plain C++, without a kernel (sorting, scans)
  int64_t trace_nodes = 0;  // recorded ops and flushes that are kept
  double compile_ms = 0;
  // Frozen mode.
  int64_t frozen_calls = 0;  // that were answered without the callable, at known sizes or others; hits, too
  int64_t frozen_entries = 0, frozen_bytes = 0;
  int64_t frozen_evictions = 0;
};

}  // namespace ingot
