#include "ir/op.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

TEST(OpTable, EveryRowHasItsPartsAndIsFoundByName) {
  ASSERT_EQ(ops().size(), static_cast<size_t>(kOpCount));
  for (const OpInfo& op : ops()) {
    SCOPED_TRACE(std::string(op.name));
    EXPECT_EQ(find_op(op.name), &op);
    EXPECT_EQ(&info(op.id), &op);
    EXPECT_NE(op.types, nullptr);
    EXPECT_NE(op.shapes, nullptr);
    EXPECT_EQ(op.layout != nullptr, op.kind == OpKind::view);
    EXPECT_GE(op.outputs, 1);
    EXPECT_FALSE(op.arguments.empty());
    std::set<std::string> names;
    int operands = 0;
    for (const ArgInfo& argument : op.arguments) {
      EXPECT_TRUE(names.insert(argument.name).second) << argument.name;
      operands += is_operand(argument.kind);
      if (argument.kind == ArgKind::mode) EXPECT_GE(argument.modes.size(), 2u);
      if (argument.kind == ArgKind::dtype || argument.mask) EXPECT_FALSE(argument.has_default);
    }
    EXPECT_EQ(operands, op.operand_count);
    if (op.has(kInplace)) EXPECT_EQ(op.operand(0).name, "self");
    if (op.has(kCommutative)) EXPECT_GE(op.operand_count, 2);
    if (op.has(kRandom)) {
      EXPECT_EQ(op.operand(op.operand_count - 2).name, "seed");
      EXPECT_EQ(op.operand(op.operand_count - 1).name, "offset");
      EXPECT_EQ(op.arguments.back().name, "offset");
    }
    // Eager's key of a call has room for one, of at most 15 values.
    int special = 0;
    for (const ArgInfo& argument : op.arguments) {
      special += !argument.special.empty();
      EXPECT_LE(argument.special.size(), 15u);
      if (!argument.special.empty()) EXPECT_EQ(argument.kind, ArgKind::operand);
    }
    EXPECT_LE(special, 1);
  }
}

TEST(OpTable, SignaturesReadAsWritten) {
  const OpInfo& gelu = *find_op("gelu");
  EXPECT_EQ(gelu.attribute(0).kind, ArgKind::mode);
  EXPECT_EQ(gelu.attribute(0).modes, (std::vector<std::string>{"none", "tanh"}));
  EXPECT_EQ(gelu.attribute(0).default_mode, 0);
  const OpInfo& loss = *find_op("mse_loss");
  EXPECT_EQ(loss.attribute(0).default_mode, 1);
  const OpInfo& add = *find_op("add");
  EXPECT_EQ(add.operand(2).kind, ArgKind::value);
  EXPECT_TRUE(add.operand(2).has_default);
  EXPECT_TRUE(add.operand(2).default_integer);
  EXPECT_EQ(add.operand(2).default_number, 1);
  EXPECT_TRUE(add.has(kCommutative));
  const OpInfo& norm = *find_op("layer_norm");
  EXPECT_TRUE(norm.operand(1).optional);
  EXPECT_FALSE(norm.operand(3).default_integer);
  EXPECT_EQ(norm.operand(3).default_number, 1e-5);
  EXPECT_EQ(find_op("max")->outputs, 2);
  EXPECT_TRUE(find_op("cat")->list_first);
  EXPECT_EQ(find_op("cat")->operand(5).name, "tensors");
  EXPECT_TRUE(find_op("where")->operand(0).mask);
  EXPECT_EQ(find_op("pow")->operand(1).special, (std::vector<double>{-2, -1, -0.5, 0, 0.5, 1, 2, 3}));
  EXPECT_EQ(find_op("nll_loss")->attribute(0).default_number, -100);
}

TEST(OpTable, AliasesResolve) {
  EXPECT_EQ(find_op("nn.functional.gelu"), find_op("gelu"));
  EXPECT_EQ(find_op("divide"), find_op("div"));
  EXPECT_EQ(find_op("true_divide"), find_op("div"));
  EXPECT_EQ(find_op("absolute"), find_op("abs"));
  EXPECT_EQ(find_op("linalg.vector_norm"), find_op("vector_norm"));
  EXPECT_EQ(find_op("nn.functional.add"), nullptr);
  EXPECT_EQ(find_op(""), nullptr);
}

}  // namespace
}  // namespace ingot::ir
