#include "ir/op.h"

#include <gtest/gtest.h>

#include <limits>
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
      if (!argument.special.empty()) EXPECT_TRUE(argument.kind == ArgKind::operand || argument.kind == ArgKind::value);
    }
    EXPECT_LE(special, 1);
  }
}

TEST(OpTable, ColumnsStandWhereTheirKindIs) {
  for (const OpInfo& op : ops()) {
    SCOPED_TRACE(std::string(op.name));
    EXPECT_NE(op.decompose, nullptr);
    EXPECT_EQ(op.form != Form::step, op.kind == OpKind::structured);
    EXPECT_EQ(op.combiner.has_value(), op.kind == OpKind::reduction);
    if (op.has(kRenames) || op.has(kReshapes) || op.has(kOfMemory)) EXPECT_EQ(op.kind, OpKind::view);
    if (op.has(kReshapes)) EXPECT_TRUE(op.has(kRenames));
    if (op.has(kUniform)) EXPECT_EQ(op.kind, OpKind::coordinate);
    if (op.has(kReplaces)) EXPECT_TRUE(op.has(kInplace));
    if (op.has(kSkipsEmpty)) EXPECT_TRUE(op.list_first);
    for (size_t i = 1; i < op.checked.size(); ++i) EXPECT_EQ(op.checked[i], op.checked[i - 1] + 1);
    for (const ArgInfo& argument : op.arguments) {
      SCOPED_TRACE(argument.name);
      if (!is_operand(argument.kind)) EXPECT_EQ(argument.check.kind, DataCheck::Kind::none);
      if (argument.check.kind == DataCheck::Kind::positions) EXPECT_EQ(argument.kind, ArgKind::tensor);
      if (argument.check.kind == DataCheck::Kind::order) EXPECT_EQ(argument.kind, ArgKind::value);
      if (argument.settling == Settling::none) continue;
      EXPECT_TRUE(argument.kind == ArgKind::size || argument.kind == ArgKind::sizes);
      EXPECT_EQ(op.operand(0).kind, ArgKind::tensor);
      const bool of_dim = argument.settling == Settling::wrapped || argument.settling == Settling::clamped;
      if (of_dim) EXPECT_LT(attribute_position(op, "dim"), attribute_position(op, argument.name));
      if (of_dim) EXPECT_GE(attribute_position(op, "dim"), 0);
      if (argument.settling == Settling::cyclic) EXPECT_GE(attribute_position(op, "dims"), 0);
    }
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

  using Kind = DataCheck::Kind;
  const DataCheck& loss_target = find_op("nll_loss")->operand(1).check;
  EXPECT_EQ(loss_target.kind, Kind::positions);
  EXPECT_EQ(loss_target.of, DataCheck::Of::channel);
  EXPECT_EQ(loss_target.ignored, 0);
  const DataCheck& along = find_op("take_along_dim")->operand(1).check;
  EXPECT_EQ(along.of, DataCheck::Of::attribute);
  EXPECT_TRUE(along.wraps);
  EXPECT_EQ(find_op("searchsorted")->operand(2).check.dim, -1);
  EXPECT_TRUE(find_op("searchsorted")->operand(2).optional);
  EXPECT_EQ(find_op("div")->operand(1).check.with, 0);
  const OpInfo& bernoulli = *find_op("bernoulli");
  EXPECT_EQ(bernoulli.checked, (std::vector<int>{0, 1}));
  EXPECT_EQ(bernoulli.operand(0).check.without, 1);
  EXPECT_EQ(bernoulli.operand(1).check.high, 1);
  const ArgInfo& rtol = find_op("isclose")->operand(2);
  EXPECT_EQ(rtol.check.kind, Kind::interval);
  EXPECT_EQ(rtol.check.low, 0);
  EXPECT_EQ(rtol.check.high, std::numeric_limits<double>::infinity());
  EXPECT_EQ(rtol.default_number, 1e-5);
  EXPECT_FALSE(find_op("uniform")->operand(2).check.strict);
  EXPECT_TRUE(find_op("randint")->operand(1).check.strict);
  EXPECT_EQ(find_op("slice")->attribute(2).settling, Settling::clamped);
  EXPECT_TRUE(find_op("slice")->attribute(2).optional);
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
