// Graphs whose kernels show every form of CUDA text; golden texts, compile tests and runs share them.
#pragma once
#include <functional>
#include <ostream>
#include <vector>

#include "ir/graph.h"

namespace ingot::codegen::test {

struct CudaGraph {
  const char* name;
  std::function<ir::Graph()> make;  // of primitives, ready for lowering
  friend std::ostream& operator<<(std::ostream& out, const CudaGraph& g) { return out << g.name; }
};
const std::vector<CudaGraph>& cuda_graphs();

}  // namespace ingot::codegen::test
