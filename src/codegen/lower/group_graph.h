// The groups of ops that become kernels, and which of them run before which. A group that another took in goes on under
// the other's number.
#pragma once
#include <span>
#include <vector>

#include "codegen/lower/plan.h"

namespace ingot::codegen::lowering {

class GroupGraph {
 public:
  static constexpr size_t kMostOutputs = 16;  // of a group: pointers are registers or loads

  uint32_t add(Group group);
  size_t size() const { return groups_.size(); }
  Group& operator[](uint32_t group) { return groups_[group]; }
  const Group& operator[](uint32_t group) const { return groups_[group]; }

  /// The number under which a group goes on.
  uint32_t find(uint32_t group);
  /// True if one kernel could run both: loops over the same rows, or an epilogue and what is pointwise.
  static bool can_unite(const Group& a, const Group& b);
  void unite(uint32_t into, uint32_t from);

  void add_edge(uint32_t from, uint32_t to) { groups_[from].successors.push_back(to); }
  /// True if `to` must run after `from`.
  bool has_path(uint32_t from, uint32_t to);

  /// As many groups as sizes, the first in the place of `group`, cut along a dim of its space; who comes before it
  /// comes before all. Maps are still those of the whole.
  std::vector<uint32_t> divide(uint32_t group, uint32_t dim, std::span<const Dim> sizes);

  /// A group follows all whose results it reads; else in order of the graph. Edges are those between living groups
  /// then.
  std::vector<uint32_t> schedule();
  std::vector<Group> take() { return std::move(groups_); }

 private:
  std::vector<Group> groups_;
  std::vector<uint32_t> parents_;  // of groups that were united
};

}  // namespace ingot::codegen::lowering
