// The state of fusion: requests for values travel from outputs to inputs; each node is placed once all who read it are.
#pragma once
#include "codegen/lower/cost.h"
#include "codegen/lower/plan.h"
#include "codegen/lower/primitives.h"

namespace ingot::codegen::lowering {

class Fuser {
 public:
  Fuser(const ir::Graph& graph, Layouts& layouts, const LowerOptions& options, Explanation& explanation);
  Plan run();

 private:
  static constexpr size_t kMaxOutputs = 16;  // of a merged group: pointers are registers or loads
  /// A group reads a value: at `map` of its space, where it could be computed in place, or from memory.
  struct Request {
    uint32_t group;
    bool from_memory;
    IndexMap map;
  };

  struct ReaderMaps {
    uint32_t group;
    std::vector<IndexMap> maps;
  };

  void bind_buffers();
  void find_product_tails();
  void find_costs();
  void finish();

  void place(ir::NodeId n);
  void place_view(const ir::Node& node);
  void place_inlined(ir::NodeId n);
  void place_reduction(ir::NodeId n);
  void place_matmul(ir::NodeId n);
  void place_conv(ir::NodeId n);
  void place_attention(ir::NodeId n);
  void place_host(ir::NodeId n);
  void place_cat(ir::NodeId n);
  void place_scatter(ir::NodeId n);
  bool split_at_cat(ir::NodeId n);
  IndexMap shifted(const IndexMap& map, uint32_t dim, Dim start);
  std::vector<uint32_t> split(uint32_t group, uint32_t dim, std::span<const Dim> sizes);

  bool reduce_into(ir::NodeId n, uint32_t group);
  uint32_t contract_into(ir::NodeId n, Group::Kind kind);
  const char* refuses_product(ir::ValueId v, uint32_t group, Group::Kind kind);
  bool product_reads(const StoredOperand& right);
  void store_raw(ir::ValueId v, DType raw);
  bool prefers_columns(const ir::Node& node);
  bool leads_to_reduction(ir::ValueId v, Dim size);
  bool ends_row(ir::ValueId v, uint32_t group);
  bool repeats(ir::ValueId v, const IndexMap& map, uint32_t group);
  bool can_store_in(ir::ValueId v, uint32_t group);
  void store_in(ir::ValueId v, uint32_t group, IndexMap map);
  void enter(ir::NodeId n, uint32_t group);
  StoredOperand memory_operand(ir::ValueId v, uint32_t group, DType dtype, bool as_it_lies);
  void integer_matmul(ir::NodeId n);

  uint32_t arena_buffer(DType dtype, Dim elements);
  uint32_t buffer_of(ir::ValueId v);
  uint32_t new_group(Group::Kind kind, Dims space);
  uint32_t copy_group(ir::ValueId v, uint32_t buffer, DType dtype, Dims strides, Dim offset);
  uint32_t find(uint32_t group);
  void unite(uint32_t into, uint32_t from);
  bool path(uint32_t from, uint32_t to);
  static bool can_unite(const Group& a, const Group& b);
  void merge_siblings(ir::ValueId v);
  bool covers_all(ir::ValueId v, const IndexMap& map, const Group& group);

  void request(ir::ValueId v, uint32_t group, IndexMap map);
  void request_memory(ir::ValueId v, uint32_t group);
  void request_operands(const ir::Node& node, uint32_t group);
  std::vector<IndexMap> maps_in(ir::ValueId v, uint32_t group);
  std::vector<ReaderMaps> reader_maps(ir::ValueId v);
  std::vector<uint32_t> readers(ir::ValueId v, bool inlined_only);
  bool must_store(ir::ValueId v);
  bool read_from_memory(ir::ValueId v);
  bool needed_before(ir::ValueId v, uint32_t group);
  void add_edges(ir::ValueId v, uint32_t home);
  void decide(ir::ValueId v, uint32_t group, bool fused, const char* reason, int64_t bytes);

  const ir::Graph& graph_;
  Layouts& layouts_;
  DimTable& dims_;
  const LowerOptions& options_;
  Explanation& explanation_;
  Plan plan_;
  std::vector<std::vector<Request>> requests_;  // by value
  std::vector<uint32_t> parents_;               // groups that were united
  std::vector<int> cost_;                       // by node: of an op alone
  std::vector<int> chain_cost_;                 // by value: of computing an element from memory or reductions
  std::vector<bool> product_tail_;  // by value: elementwise work on one matrix product, read once on the way
  uint32_t current_ = 0;            // number of the node being placed
};

}  // namespace ingot::codegen::lowering
