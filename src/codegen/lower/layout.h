// Where every value of a graph would lie in memory, and how views and ops read their operands.
#pragma once
#include <optional>
#include <vector>

#include "codegen/lower/index_map.h"
#include "ir/graph.h"

namespace ingot::codegen::lowering {

/// A value as a view of a root: an input, or a value that some step stores. Elements.
struct RootView {
  ir::ValueId root;
  Dims strides;
  Dim offset;
};

/// An element of an index tensor, used as a coordinate.
struct Position {
  ir::ValueId value;
  IndexMap map;
  friend bool operator==(const Position&, const Position&) = default;
};

/// What an op reads of one operand for one element of its result.
struct OperandRead {
  ir::ValueId value;
  IndexMap map;
};

/// Dims from the largest stride to the smallest (at the sizes of the trace); dims of one element come last.
SmallVector<int, 8> memory_order(const DimTable& dims, std::span<const Dim> shape, std::span<const Dim> strides);

/// Of dense images [.., channels, height, width] whose channels are innermost.
Dims channels_last_strides(DimTable& dims, std::span<const Dim> shape);

class Layouts {
 public:
  /// Keeps references to both. A computed value is dense: row-major, or, if it is elementwise, in the order of the
  /// memory that it is computed from; an output of the graph is row-major, unless it is among `free_outputs`.
  /// `channels_last`: what a convolution gives, and images that are joined of such, have their channels innermost.
  Layouts(const ir::Graph& graph, DimTable& dims, bool channels_last, std::span<const uint32_t> free_outputs = {});

  const RootView& of(ir::ValueId v) const { return views_[v]; }
  /// Dims of an output from the outermost in memory: row-major, but of a free one those of the value, if it is dense.
  SmallVector<int64_t, 6> output_order(uint32_t number) const;
  /// Coordinates in a view's base of each element of the view; null where they are not affine, and for what is no view.
  const IndexMap* view_map(ir::ValueId v) const { return view_maps_[v] ? &*view_maps_[v] : nullptr; }
  bool is_view(ir::ValueId v) const { return producer_kind(v) == Producer::view; }
  const ir::Node* producer(ir::ValueId v) const;

  /// The operand of an elementwise or triangular op, aligned from the right.
  IndexMap broadcast_map(std::span<const Dim> operand, std::span<const Dim> result, const IndexMap& map) const;
  /// Follows views down to a value that is computed or stored; nothing changes where the way is not affine.
  OperandRead resolve(OperandRead read) const;
  /// Strides over the space, and offset, of reading a stored value through a map (positions not counted).
  struct Strided {
    Dims strides;
    Dim offset;
  };
  Strided strided(const RootView& view, const IndexMap& map, size_t space_rank) const;

  uint32_t position(Position p);
  const Position& position(uint32_t number) const { return positions_[number]; }
  DimTable& dims() const { return dims_; }
  Dim elements(ir::ValueId v) const { return dims_.product(graph_.type(v).shape); }
  int64_t bytes_hint(ir::ValueId v) const;
  /// An input that is the same at every call.
  bool is_constant(ir::ValueId v) const;

 private:
  enum class Producer { input, view, computed };
  Producer producer_kind(ir::ValueId v) const;
  Dims computed_strides(const ir::Node& node, ir::ValueId v);
  void find_view(const ir::Node& node, ir::ValueId v);
  void find_reshape(const ir::Node& node, ir::ValueId v);

  const ir::Graph& graph_;
  DimTable& dims_;
  const bool channels_last_;
  std::vector<bool> free_;       // by output
  std::vector<bool> row_major_;  // by value: an output that is not free
  std::vector<RootView> views_;
  std::vector<std::optional<IndexMap>> view_maps_;
  std::vector<Position> positions_;
};

}  // namespace ingot::codegen::lowering
