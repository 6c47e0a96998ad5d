// Who reads each value, and where: requests travel from outputs to inputs.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "codegen/lower/group_graph.h"

namespace ingot::codegen::lowering {

/// A group reads a value: at `map` of its space, where it could be computed in place, or from memory.
struct Request {
  uint32_t group;
  bool from_memory;
  IndexMap map;
};

struct ReaderMaps {
  uint32_t group;
  std::vector<IndexMap> maps;
  bool waits = false;  // see find_waiting
};

class Requests {
 public:
  Requests(GroupGraph& groups, size_t values) : groups_(groups), requests_(values) {}

  void add(ir::ValueId v, uint32_t group, IndexMap map);
  void add_from_memory(ir::ValueId root, uint32_t group) { push(root, {group, true, {}}); }
  /// parts[1] and up request what parts[0] does, where `shifted` finds it for them.
  void divide(std::span<const uint32_t> parts, const std::function<IndexMap(const IndexMap&, size_t part)>& shifted);

  const std::vector<Request>& of(ir::ValueId v) const { return requests_[v]; }
  bool from_memory(ir::ValueId v) const;
  /// Who computes with v without reading it from memory, and where each does.
  std::vector<ReaderMaps> reader_maps(ir::ValueId v) const;
  std::vector<IndexMap> maps_in(ir::ValueId v, uint32_t group) const;
  /// Groups that could compute v in place; with those that read it from memory.
  std::vector<uint32_t> inlining_readers(ir::ValueId v) const { return readers(v, true); }
  std::vector<uint32_t> all_readers(ir::ValueId v) const { return readers(v, false); }
  /// Of these readers of v, for whom it must be ready before they run: they read it from memory as well, or another
  /// reader of it comes before.
  void find_waiting(ir::ValueId v, std::vector<ReaderMaps>& readers) const;

 private:
  std::vector<uint32_t> readers(ir::ValueId v, bool inlining_only) const;
  void push(ir::ValueId v, Request request);

  GroupGraph& groups_;
  std::vector<std::vector<Request>> requests_;       // by value
  std::vector<std::vector<ir::ValueId>> requested_;  // by group, under the number that it had
};

}  // namespace ingot::codegen::lowering
