// What eager checks of the data of a call before it computes, in a graph that makes the data itself.
#pragma once
#include <span>
#include <vector>

#include "eager/call/check_values.h"
#include "ir/graph.h"

namespace ingot::trace {

class GraphChecks {
 public:
  explicit GraphChecks(ir::Graph& graph) : graph_(graph) {}

  /// Of a call that is to be added to the graph.
  eager::ValueChecks of(OpId op, std::span<const ir::Operand> operands, std::span<const ir::Attr> attrs) const;
  /// Has the graph check an operand of that call. Positions are replaced by some that lie inside, so that no kernel
  /// reads elsewhere.
  void add(const eager::ValueCheck& check, std::span<ir::Operand> operands, Location location);
  /// One bool for each check, true where it failed: nothing else that the graph computes means anything then.
  const std::vector<ir::ValueId>& failed() const { return failed_; }

 private:
  ir::Graph& graph_;
  std::vector<ir::ValueId> failed_;
};

}  // namespace ingot::trace
