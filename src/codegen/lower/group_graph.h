// The groups of ops that become kernels, and which of them run before which. A group that another took in goes on under
// the other's number.
//
// All groups stand in one order that agrees with the edges, and a new edge moves only those between its ends (Pearce
// and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006). So who asks for a path looks at
// no group that stands behind the end of it.
#pragma once
#include <cstdint>
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
  /// All that go on under this number, with itself.
  std::vector<uint32_t> all_of(uint32_t group) const;
  /// True if one kernel could run both: loops over the same rows, sums over the same columns, or an epilogue and what
  /// is pointwise.
  static bool can_unite(const Group& a, const Group& b);
  void unite(uint32_t into, uint32_t from);

  /// `to` runs after `from`. Throws InternalError if `from` must run after `to`.
  void add_edge(uint32_t from, uint32_t to);
  /// True if `to` must run after `from`.
  bool has_path(uint32_t from, uint32_t to);
  /// Of each of these groups, all of them apart, whether it must run after another of them.
  std::vector<bool> follow_others(std::span<const uint32_t> groups);

  /// As many groups as sizes, the first in the place of `group`, cut along a dim of its space; who comes before it
  /// comes before all. Maps are still those of the whole.
  std::vector<uint32_t> divide(uint32_t group, uint32_t dim, std::span<const Dim> sizes);

  /// A group follows all whose results it reads; else in order of the graph. Edges are those between living groups
  /// then.
  std::vector<uint32_t> schedule();
  std::vector<Group> take() { return std::move(groups_); }

 private:
  enum class Way : uint8_t { forward, backward };
  struct Node {
    uint32_t parent;                          // what it was united with; itself if it lives
    int64_t place;                            // in the order; no two living groups have the same
    uint64_t met = 0;                         // the latest walk that came by
    std::vector<uint32_t> predecessors = {};  // as Group::successors
    std::vector<uint32_t> taken_in = {};      // what goes on under its number
  };
  static constexpr uint32_t kNobody = ~0u;

  void begin_walk();
  /// Goes along edges from `start` to all whose place is not past `limit` and whom the walk has not met: they are added
  /// to met_, `start` first. True, at once, if it comes to `until`.
  bool walk(uint32_t start, int64_t limit, Way way, uint32_t until = kNobody);
  /// `from` is to lie before `to`: what must follow `to` and what must precede `from` exchange places as far as needed.
  void put_before(uint32_t from, uint32_t to);

  std::vector<Group> groups_;
  std::vector<Node> nodes_;  // of each group
  std::vector<uint32_t> met_;
  uint64_t walks_ = 0;
};

}  // namespace ingot::codegen::lowering
