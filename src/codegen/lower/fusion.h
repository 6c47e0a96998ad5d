// The state of fusion, and what fusing a node of any kind is made of.
#pragma once
#include "codegen/lower/buffers.h"
#include "codegen/lower/group_graph.h"
#include "codegen/lower/requests.h"
#include "codegen/lower/value_facts.h"

namespace ingot::codegen::lowering {

struct Fusion {
  Fusion(const ir::Graph& graph, const Target& target, Layouts& layouts, const LowerOptions& options,
         Explanation& explanation);

  uint32_t new_group(Group::Kind kind, Dims space);
  /// A group that writes v to a buffer.
  uint32_t copy_group(ir::ValueId v, uint32_t buffer, DType dtype, Dims strides, Dim offset);
  /// The group computes the node at these maps of its result, from operands that it requests.
  void enter(ir::NodeId n, uint32_t group, std::span<const IndexMap> maps);
  /// The group has to do with the node.
  void join(ir::NodeId n, uint32_t group);
  /// Why v is computed in the group.
  void decide(ir::ValueId v, uint32_t group, bool fused, const char* reason, int64_t bytes_saved);
  /// True if a loop over this space that reduces this dim, or none (-1), may compute so much for an element.
  bool may_compute(int64_t work, const Dims& space, int reduced) const;
  /// True if two sums over columns are as fast in one kernel: places of extremes need one lane, which sums have sixteen
  /// of, and are joined slowly.
  bool share_lanes(const Group& a, const Group& b) const;
  /// Groups over one space that read the same elements of v become one, where neither waits for the other.
  void merge_siblings(ir::ValueId v);

  void request_memory(ir::ValueId v, uint32_t group) { requests.add_from_memory(layouts.of(v).root, group); }
  /// v as the group reads it from memory; a copy of it unless it may be read as it lies.
  StoredOperand memory_operand(ir::ValueId v, uint32_t group, DType dtype, bool as_it_lies);
  bool must_store(ir::ValueId v) const { return buffers.is_stored(v) || requests.from_memory(v); }
  /// True if the map runs once through all elements of v as the group's space is run through.
  bool covers_all(ir::ValueId v, const IndexMap& map, const Group& group) const;
  /// Who computes with v without reading it from memory, and whether v must be there before.
  std::vector<ReaderMaps> readers_of(ir::ValueId v) const;
  /// True if a reader of v can store it: it computes every element once, and no other reader must run before it.
  bool can_store_in(ir::ValueId v, const ReaderMaps& reader) const;
  void store_in(ir::ValueId v, uint32_t group, IndexMap map);
  /// v is stored in another type than its own: its readers convert, and so does a copy where it is an output.
  void store_raw(ir::ValueId v, DType raw);
  /// The value is stored by `home`: all other readers follow it.
  void add_edges(ir::ValueId v, uint32_t home);

  const ir::Graph& graph;
  const Target& target;
  Layouts& layouts;
  DimTable& dims;
  const LowerOptions& options;
  Explanation& explanation;
  const ValueFacts facts;
  GroupGraph groups;
  Requests requests;
  Buffers buffers;
  std::vector<std::vector<uint32_t>> homes;  // by node: groups in which it is computed
  ir::NodeId current = 0;                    // the node that is decided on
};

/// Decides all groups and buffers. Decisions and notes go to the explanation.
void fuse(Fusion& f);
/// The groups in order of execution; nothing is left in the fusion.
Plan schedule(Fusion& f);

// Which group computes a node. All who read it were fused before.
void fuse_view(Fusion& f, ir::NodeId n);
/// Elementwise, coordinates, lookups: computed inside of its readers, stored by one of them, or in a group of its own.
void fuse_pointwise(Fusion& f, ir::NodeId n);
void fuse_reduction(Fusion& f, ir::NodeId n);
void fuse_matmul(Fusion& f, ir::NodeId n);
void fuse_conv(Fusion& f, ir::NodeId n);
void fuse_conv_weight(Fusion& f, ir::NodeId n);
void fuse_attention(Fusion& f, ir::NodeId n);
void fuse_recurrence(Fusion& f, ir::NodeId n);
void fuse_cat(Fusion& f, ir::NodeId n);
void fuse_scatter(Fusion& f, ir::NodeId n);
void fuse_host(Fusion& f, ir::NodeId n);
/// Splits the only reader of a cat, if it is pointwise and reads the cat as it is; false where it does not.
bool split_at_cat(Fusion& f, ir::NodeId n);

}  // namespace ingot::codegen::lowering
