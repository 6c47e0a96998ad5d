// One group as a kernel: its values at their coordinates, the phases of a row, kernel IR, and arguments over the space.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "codegen/builder.h"
#include "codegen/lower/plan.h"
#include "codegen/lower/primitives.h"

namespace ingot::codegen::lowering {

/// A buffer of a kernel as its space sees it. Elements.
struct KernelArgument {
  uint32_t buffer;
  DType dtype;
  bool written;
  Dims strides;  // over the dims of the space
  Dim offset;
  Dim index_stride;  // of a load with a position
  friend bool operator==(const KernelArgument&, const KernelArgument&) = default;
};

class KernelWriter {
 public:
  KernelWriter(const ir::Graph& graph, Layouts& layouts, const Plan& plan, uint32_t group);
  /// Fills the kernel, arguments and scalars from the group's outputs.
  void write();
  /// The raw tile of a contraction as argument 0, read where the product is; before write().
  void use_product(ir::ValueId product);
  /// What is added to each element of the product before anything else reads it (the bias of a convolution).
  void add_to_product(KernelArgument addend);

  Kernel kernel;
  std::vector<KernelArgument> arguments;
  std::vector<ScalarSource> scalars;
  std::vector<ir::ValueId> reduced;  // by reduction of the kernel
  std::vector<uint32_t> index_dims;  // dims of the space that an index node needs; their nodes' imm is the dim
  int64_t work = 0;                  // operations at each point for the roof model: a node takes a multiply-add's slot

 private:
  enum class Kind : uint8_t { load, product, op, reduction };
  /// A value at some coordinates of the space.
  struct Item {
    Kind kind;
    ir::ValueId value;
    IndexMap map;
    const ir::Node* node = nullptr;
    std::vector<uint32_t> operands;   // items, in the order of operand_reads; those of positions follow for loads
    std::vector<uint32_t> positions;  // items of the positions that `map` uses, by coordinate
    uint32_t argument = 0;            // load
    uint32_t reduction = 0;           // reduction: its number
    int level = 0;                    // phase from which on it is known
    bool per_column = true;           // it moves along the reduced dim
    int local = -1;                   // local row buffer that keeps it
    int kept_from = 0;                // phase that writes it there
    Expr result;                      // reduction: once its phase is written
    int64_t cost = 0;                 // of computing it from loads, reductions and locals
    std::vector<std::pair<std::vector<Value>, Expr>> emitted;  // by operands: each phase finds what it shares
  };

  uint32_t item(ir::ValueId v, const IndexMap& map);
  uint32_t add_item(OperandRead read);
  void expand(uint32_t i);
  bool is_home(ir::ValueId v) const;
  bool joins_here(ir::ValueId v) const;
  OperandRead part_of_cat(const ir::Node& node, IndexMap map);
  uint32_t argument(KernelArgument a);
  void collect();
  void order_items();
  void choose_locals();
  void emit_phases();
  Expr emit(uint32_t i, int phase, const std::vector<Expr>& done);
  Expr emit_load(const Item& i, const std::vector<Expr>& done);
  Expr emit_op(const Item& i, const std::vector<Expr>& operands, const std::vector<Expr>& done);
  Expr scalar_operand(const ir::Operand& o, Type type);
  Expr size_value(Dim d, Type type);
  Expr position_value(const Item& i, size_t coordinate, const std::vector<Expr>& done);
  Expr coordinate_value(const Item& i, size_t coordinate, const std::vector<Expr>& done);
  uint32_t scalar_slot(ScalarSource source);

  const ir::Graph& graph_;
  Layouts& layouts_;
  DimTable& dims_;
  const Plan& plan_;
  const Group& group_;
  uint32_t group_number_;
  ir::ValueId product_ = ir::kNoValue;
  uint32_t addend_ = kNoIndex;  // argument
  Builder builder_;
  std::vector<Item> items_;
  std::vector<uint32_t> order_;                         // items, operands first
  std::map<ir::ValueId, std::vector<uint32_t>> known_;  // items by value
  std::vector<uint32_t> stored_items_;                  // one an output
  std::vector<bool> in_columns_;                        // of each output: it is stored in each column, not once a row
  int phases_ = 1;
};

}  // namespace ingot::codegen::lowering
