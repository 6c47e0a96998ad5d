// From a recorded path to a functional graph: no in-place op, no write through a view.
#pragma once
#include <span>
#include <vector>

#include "ir/graph.h"
#include "trace/flush_point.h"

namespace ingot::trace {

struct BuildRequest {
  std::span<Node* const> path;
  std::span<const uint32_t> live;     // numbers of the values to compute
  std::span<const uint32_t> unseen;   // Variant::unseen
  std::span<const uint32_t> aliases;  // Variant::aliases
  std::span<const uint32_t> written_slots;
  std::span<const int64_t> sites;      // sizes of the record, in order
  std::span<const int32_t> symbol_of;  // of each site
  int symbol_count = 0;
};

struct BuiltGraph {
  ir::Graph graph;
  SegmentBinding binding;
  std::vector<Dim> symbols;
};

/// Each write makes a new value of the storage that it touches: of the whole storage where it covers it, else by
/// as_strided_scatter; views are derived again from the storage's value where they are read after a write. The run-time
/// scalars of the graph are those of the record, all of them, in order. Outputs are storages in the order of their
/// memory; unseen ones may lie in any.
BuiltGraph build_graph(const BuildRequest& request);

}  // namespace ingot::trace
