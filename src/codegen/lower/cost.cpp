#include "codegen/lower/cost.h"

#include <atomic>
#include <span>
#include <vector>

#include "codegen/elementwise.h"
#include "ir/graph.h"

namespace ingot::codegen::lowering {
namespace {

/// Nodes of the op's definition, `given` these operands; a division or root weighs as four.
int measure(OpId op, DType working, std::span<const ir::Operand> given = {}) {
  const ir::OpInfo& info = ir::info(op);
  Kernel kernel;
  Builder builder(kernel);
  std::vector<Expr> operands;
  for (int i = 0; i < info.operand_count; ++i) {
    kernel.buffers.push_back({info.operand(i).mask ? DType::bool_ : working, Access::dense, false});
    operands.push_back(builder.load(static_cast<uint32_t>(i)));
  }
  std::vector<ir::Attr> attributes;
  for (size_t i = info.operand_count; i < info.arguments.size(); ++i) {
    const ir::ArgInfo& argument = info.attribute(static_cast<int>(i) - info.operand_count);
    attributes.push_back(argument.kind == ir::ArgKind::dtype ? ir::Attr::of(working) : ir::default_attribute(argument));
  }
  size_t before = kernel.nodes.size();
  define_elementwise(op, {builder, operands, attributes, working, working, false, given});
  int cost = 0;
  for (size_t n = before; n < kernel.nodes.size(); ++n) {
    Op kind = kernel.nodes[n].op;
    if (kernel.nodes[n].region == 0 && kind != Op::constant) cost += kind == Op::div || kind == Op::sqrt ? 4 : 1;
  }
  return cost;
}

}  // namespace

int op_cost(OpId op, DType working) {
  static std::atomic<int> known[ingot::kOpCount][kDTypeCount];  // one more than the cost; 0: not measured yet
  std::atomic<int>& slot = known[static_cast<int>(op)][static_cast<int>(working)];
  int cost = slot.load(std::memory_order_relaxed);
  if (!cost) slot.store(cost = measure(op, working) + 1, std::memory_order_relaxed);
  return cost - 1;
}

int op_cost(const ir::Node& node, DType working) {
  const ir::OpInfo& info = ir::info(node.op);
  for (size_t i = 0; i < node.operands.size(); ++i)
    if (node.operands[i].kind == ir::Operand::Kind::constant && !info.operand(static_cast<int>(i)).special.empty())
      return measure(node.op, working, node.operands);
  return op_cost(node.op, working);
}

FusionAnswer weigh(const FusionQuestion& q) {
  bool expensive = q.cost >= kExpensive;
  bool repeats_much = (q.times - 1) * q.chain_cost >= kExpensive || q.maps > kMostMaps;
  if (q.consumers == 0) return {FusionChoice::alone, "read from memory only", 0};
  if (q.lacks_coordinates) return {FusionChoice::alone, "needs coordinates, which an epilogue does not have", 0};
  if (q.reader_is_full) return {FusionChoice::alone, "its reader's kernel computes as much as one may", 0};
  if (!q.must_store) {
    if (q.no_operands) return {FusionChoice::inside, "made from coordinates: no memory traffic", 2 * q.bytes};
    if (q.consumers == 1) {
      if (q.ends_row) return {FusionChoice::alone, "ends a kernel over other rows than its reader's", 0};
      if (q.ends_product) return {FusionChoice::alone, "belongs to the epilogue of its matrix product", 0};
      if (q.larger_space && q.chain_cost >= kExpensive)
        return {FusionChoice::alone, "its reader would repeat expensive work", 0};
      if (repeats_much) return {FusionChoice::alone, "its reader needs it at several places: expensive work once", 0};
      return {FusionChoice::inside, "one reader", 2 * q.bytes};
    }
    if (q.reads_memory && !expensive && !q.larger_space)
      return {FusionChoice::inside, "cheaper to compute again in each reader than to store", 2 * q.bytes};
  }
  if (q.can_store_there && !repeats_much) return {FusionChoice::stored, "computed and stored by a reader", q.bytes};
  return {
      FusionChoice::alone,
      q.ends_product ? "belongs to the epilogue of its matrix product" : "several readers that cannot be one kernel",
      0};
}

}  // namespace ingot::codegen::lowering
