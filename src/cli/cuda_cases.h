// The kernels that `ingot bench cuda` measures on a device: what each computes, and on which sizes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace ingot::cli {

/// How the results of an input that repeats itself (rows 0 to r - 1 again and again) follow from those of r rows.
enum class Repeats : uint8_t {
  rows,     // the results repeat themselves likewise
  columns,  // those of each of their rows do
  sums      // each is as many times as large
};

struct CudaCase {
  std::string name;
  std::vector<int64_t> sizes;  // of the first input, and the values of the graph's symbols
  DType dtype = DType::f32;
  Repeats repeats = Repeats::rows;
  double tolerance = 0;  // largest error against the reference, relative to the largest result
  int tiled_inputs = 1;  // the first ones are of these sizes; others have the size of a row
  ir::Graph graph;       // as it is written, one output

  int64_t elements() const;
  /// Of a value of the graph at these sizes.
  int64_t bytes_of(ir::ValueId v) const;
  /// Each input read once, each output written once.
  int64_t floor_bytes() const;
};

/// Each case in f32 and bf16. Larger than the L2 of an H100 (50 MB).
std::vector<CudaCase> cuda_cases();

}  // namespace ingot::cli
