// The machine's roof, measured: arithmetic peak, bandwidth by footprint, and the cost of a parallel region.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "cli/ceiling_kernels.h"

namespace ingot::cli {

/// Bandwidths in GB/s; `bytes` is what each thread works on (of a copy: source and destination together).
struct Bandwidth {
  int64_t bytes;
  double read, copy, copy_streaming;
};

struct Roof {
  int threads = 1;
  double fma_gflops = 0, bf16_gflops = 0;  // bf16: 0 where there is no such instruction
  double fork_join_us = 0;
  std::vector<Bandwidth> bandwidths;  // by rising footprint

  /// Copy bandwidth, in GB/s, of a working set of this many bytes over all threads.
  double copy_gbps(double bytes) const;
  /// Read bandwidth likewise.
  double read_gbps(double bytes) const;
  /// max(operations / peak, bytes / bandwidth), in microseconds; 0 where the roof was not measured.
  double floor_us(double operations, double bytes) const;
};

/// A call that does nothing but what a ceiling measures, on all threads, and how much of it: operations or bytes. No
/// call where the target has no such loop.
struct Ceiling {
  std::function<void()> call;
  double amount = 0;
};
Ceiling arithmetic_ceiling(int threads, CeilingLoop loop);
/// Over a working set of `bytes` over all threads.
Ceiling memory_ceiling(int threads, double bytes, CeilingLoop loop);

/// Measures for about `seconds`. 16 KB to 256 MB; without `large`, up to 4 MB only.
Roof measure_roof(int threads, double seconds, bool large);

}  // namespace ingot::cli
