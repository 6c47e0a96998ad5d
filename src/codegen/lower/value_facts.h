// What is known of values before anything is fused: it follows from the graph and its layouts alone.
#pragma once
#include <vector>

#include "codegen/lower/layout.h"

namespace ingot::codegen::lowering {

class ValueFacts {
 public:
  /// `side_by_side`: columns are not preferred where a dim has few elements (see few_columns.h).
  ValueFacts(const ir::Graph& graph, Layouts& layouts, bool side_by_side);

  /// Of an op alone.
  int cost(ir::NodeId n) const { return cost_[n]; }
  /// Of computing an element from memory or reductions.
  int chain_cost(ir::ValueId v) const { return chain_cost_[v]; }
  /// Only elementwise work, each value read once, separates it from a matrix product: it belongs to the epilogue.
  bool is_product_tail(ir::ValueId v) const { return product_tail_[v]; }
  /// True if what is reduced lies dense along another dim than the reduced one: then columns are reduced side by side.
  /// The canonical order is the same in both forms.
  bool prefers_columns(const ir::Node& reduction) const;
  /// True if v is computed from a reduction over a dim of this size, by work on reduced values only.
  bool follows_reduction_of(ir::ValueId v, Dim size) const;
  /// True if v has one element for each row that a reduction before it works on.
  bool is_row_value(ir::ValueId v) const;

 private:
  template <class Found>
  bool any_before(ir::ValueId v, size_t far, Found found) const;

  void find_product_tails();
  void find_costs();

  const ir::Graph& graph_;
  Layouts& layouts_;
  DimTable& dims_;
  const bool side_by_side_;
  std::vector<int> cost_;        // by node
  std::vector<int> chain_cost_;  // by value
  std::vector<bool> product_tail_;
};

}  // namespace ingot::codegen::lowering
