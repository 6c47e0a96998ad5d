// What follows from a kernel before any code is emitted: how often each value is computed, and which need no code.
#pragma once
#include <vector>

#include "codegen/kernel_analysis.h"

namespace ingot::codegen::x86 {

class Analysis {
 public:
  explicit Analysis(const Kernel& kernel);

  const Kernel& kernel() const { return k_; }
  /// Nodes of the kernel.
  Value size() const { return static_cast<Value>(k_.nodes.size()); }
  const Node& node(Value v) const { return k_.nodes[v]; }
  Type type_of(const Reduction& r) const { return node(r.value).type; }
  bool is_leaf(Value v) const { return codegen::is_leaf(node(v).op); }
  /// Call, row or column: a call stays in one plane.
  Level level(Value v) const { return level_[v]; }
  /// Of the rare node that owns a region.
  Level region_level(uint16_t region) const { return region_level_[region]; }
  /// A comparison that only serves as one instruction with its selects.
  bool fused(Value v) const { return fused_[v]; }
  bool picks_by_comparison(const Node& n) const;
  /// True if an i64 surely lies in [0, 2^32).
  bool has_32_bits(Value v, int depth = 0) const;
  /// Whether its number is surely one of the 16-bit float `d`.
  bool is_half(Value v, DType d) const { return halves_[v] == d; }
  /// The index that moves the whole stream of a load at each column, kNone if there is none.
  Value uniform_index(Value load) const;
  /// Whether some load of the buffer has an index.
  bool indexed(uint32_t buffer) const;

 private:
  const Kernel& k_;
  std::vector<Level> level_, region_level_;
  std::vector<bool> fused_;
  std::vector<DType> halves_;
};

}  // namespace ingot::codegen::x86
