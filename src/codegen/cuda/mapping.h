// From kernel IR to blocks and threads: at which level each value is computed, what is loaded in pieces, what a row
// keeps. Printing (print.cpp) writes down what this decides; the kernel IR knows of neither.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "base/cuda_launch.h"
#include "codegen/kernel_analysis.h"

namespace ingot::codegen::cuda {

inline constexpr int kThreadElements = 8;  // at once; of rows and columns, lanes of a thread in the canonical order

/// Where a value is computed: once a thread; once a line (a row, or a plane in form columns); at each element.
enum class Scope : uint8_t { thread, line, element };

/// What one phase does, in numbers of nodes, stores and reductions of the kernel.
struct PhaseMapping {
  std::vector<Value> before;    // line level: what the elements need and no earlier phase made
  std::vector<Value> staged;    // loads whose index, if any, is the same in a line: read before any element is computed
  std::vector<Value> locals;    // reads of local row buffers, likewise
  std::vector<Value> elements;  // element level, in order
  std::vector<Value> after;     // line level: what the row stores need
  int unroll = 1;               // form columns: rows whose loads are in flight together, in each part
  // Forms rows and columns: parts of a chunk that are loaded before either is computed; 0: there is no text for whole
  // ones
  int parts = 1;
  bool again = false;  // reads of local row buffers are what was written to them, computed once more
};

struct Mapping {
  CudaMapping launch;
  std::vector<Scope> scopes;  // of each node; constants are literals
  std::vector<Value> call;    // nodes computed once a thread
  std::vector<PhaseMapping> phases;
  // Of phases that read local row buffers: the same without them, for rows that shared memory has no room for; else
  // empty.
  std::vector<PhaseMapping> again;
  std::vector<Value> kept;  // loads of several phases, in the order of their place in a row's memory
  std::vector<std::pair<Value, uint32_t>> overwritten;  // kept loads whose place a local row buffer takes over
  struct Tile {
    Value value;
    int64_t at;  // bytes into shared memory
  };
  std::vector<Tile> tiles;  // form loop: loads that go through shared memory where their buffers lie turned

  /// True if elements of the buffer are read or written side by side, by a phase or by any.
  bool moves(const Kernel& kernel, size_t phase, size_t buffer) const;
  bool moves(const Kernel& kernel, size_t buffer) const;
  /// What is written to a local row buffer.
  static Value stored_in(const Kernel& kernel, uint64_t local);
  std::optional<uint32_t> overwritten_by(Value kept_load) const {
    for (auto [v, local] : overwritten)
      if (v == kept_load) return local;
    return std::nullopt;
  }
};

Mapping map_kernel(const Kernel& kernel, int outer);

/// Bytes of a partial accumulator as a thread holds it: a value, with its index for argmax and argmin.
int64_t accumulator_bytes(const Kernel& kernel, const Reduction& reduction);
bool is_index(Combiner combiner);

}  // namespace ingot::codegen::cuda
