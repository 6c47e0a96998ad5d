// What the columns of the op table say of a row, held against what the op does.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "base/program.h"
#include "eager/call/check_values.h"
#include "eager/op_support.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "ir/samples.h"

namespace ingot {
namespace {

using CheckKind = ir::DataCheck::Kind;

/// The sample's call with inputs of its own.
struct Call {
  explicit Call(const ir::Sample& sample)
      : graph(ir::parse(sample.text)), inputs(eager_tensors(random_inputs(graph, sample.op->name, 21))) {
    for (const ir::Operand& o : node().operands) {
      if (o.is_value())
        operands.emplace_back(inputs[o.id]);
      else if (o.kind == ir::Operand::Kind::constant)
        operands.emplace_back(o.category == Category::floating ? Scalar(o.number) : Scalar(o.integer));
      else
        operands.emplace_back();
    }
  }
  const ir::Node& node() const { return graph.nodes.at(0); }
  eager::OpCall call(bool inplace = false) const { return {node().op, inplace, operands, node().attrs, Location()}; }
  std::vector<Tensor> run(bool inplace = false) const {
    std::vector<Tensor> outputs(node().outputs.size());
    eager::execute(call(inplace), outputs);
    return outputs;
  }

  ir::Graph graph;
  std::vector<Tensor> inputs;
  std::vector<eager::Operand> operands;
};

int64_t wrong_value(const eager::ValueCheck& check) {
  constexpr int64_t kPastIntegers = int64_t{1} << 40;
  switch (check.kind) {
    case CheckKind::positions:
      return 1000;
    case CheckKind::divisor:
      return 0;
    case CheckKind::order:
      return INT64_MIN;
    case CheckKind::held:
      return check.bound == ir::DataCheck::Bound::upper ? -kPastIntegers : kPastIntegers;
    default:
      return -1;
  }
}

TEST(OpColumns, ADataCheckRefusesWhatItStates) {
  std::set<std::pair<OpId, int>> refused;
  for (const ir::Sample& sample : ir::samples()) {
    SCOPED_TRACE(sample.text);
    for (const eager::ValueCheck& check : eager::value_checks(Call(sample).call())) {
      EXPECT_NO_THROW(Call(sample).run());
      Call bad(sample);
      const int64_t wrong = wrong_value(check);
      eager::Operand& operand = bad.operands[check.operand];
      if (operand.kind == eager::Operand::Kind::tensor)
        operand.tensor->fill_(wrong);
      else
        operand = Scalar(wrong);
      const std::string argument =
          std::string(sample.op->name) + ": " + sample.op->operand(static_cast<int>(check.operand)).name + ": got ";
      try {
        bad.run();
        ADD_FAILURE() << wrong << " is taken for " << argument;
      } catch (const Error& e) {
        EXPECT_EQ(std::string(e.what()).find(argument), 0u) << e.what();
      }
      refused.emplace(sample.op->id, static_cast<int>(check.operand));
    }
  }
  for (const ir::OpInfo& op : ir::ops())
    for (const int i : op.checked) EXPECT_TRUE(refused.count({op.id, i})) << op.name << " has no sample that shows it";
}

// 0, 1, 2 ... in the order of the elements.
Tensor numbered(const Tensor& like) { return arange(like.numel()).reshape(like.sizes()); }

TEST(OpColumns, ARenamingViewHasEachElementOnce) {
  for (const ir::Sample& sample : ir::samples()) {
    if (sample.op->kind != ir::OpKind::view) continue;
    SCOPED_TRACE(sample.text);
    Call call(sample);
    Tensor base = numbered(call.inputs[0]);
    call.operands[0] = eager::Operand(base);
    const Tensor view = call.run()[0];
    EXPECT_TRUE(view.shares_storage(base));
    const Tensor flat = view.reshape({-1});
    const bool each_once = flat.numel() == base.numel() && equal(std::get<0>(flat.sort()), base.reshape({-1}));
    EXPECT_EQ(each_once, sample.op->has(ir::kRenames));
    if (sample.op->has(ir::kReshapes)) EXPECT_TRUE(equal(flat, base.reshape({-1})));
  }
}

TEST(OpColumns, WhatReplacesReadsNothingOfItsTarget) {
  int seen = 0;
  for (const ir::Sample& sample : ir::samples()) {
    if (!sample.op->has(ir::kReplaces)) continue;
    SCOPED_TRACE(sample.text);
    const Call one(sample), other(sample);
    if (is_floating(other.inputs[0].dtype()))
      other.inputs[0].fill_(std::numeric_limits<double>::quiet_NaN());
    else
      other.inputs[0].fill_(1);
    EXPECT_EQ(bytes_of(one.run(true)[0]), bytes_of(other.run(true)[0]));
    ++seen;
  }
  EXPECT_GT(seen, 1);
}

TEST(OpColumns, WhatIsUniformOrCountsHasTheseElements) {
  for (const ir::Sample& sample : ir::samples()) {
    if (!sample.op->has(ir::kUniform) && !sample.op->has(ir::kCounts)) continue;
    SCOPED_TRACE(sample.text);
    const Call call(sample);
    const Tensor got = call.run()[0].to(kFloat64).reshape({-1});
    const double first = call.operands[0].number, step = sample.op->has(ir::kUniform) ? 0 : call.operands[1].number;
    for (int64_t i = 0; i < got.numel(); ++i) EXPECT_EQ(got[i].item<double>(), first + static_cast<double>(i) * step);
  }
}

// Of no elements a reduction gives the identity of its combiner, or refuses; of one element what it is alone.
TEST(OpColumns, ReductionsBeginWithTheIdentityOfTheirCombiner) {
  for (const ir::OpInfo& op : ir::ops()) {
    if (op.kind != ir::OpKind::reduction) continue;
    for (const char* type : {"f64", "f32", "bf16", "i64", "u8", "bool"})
      for (int64_t elements : {0, 1, 300}) {
        ir::Graph graph;
        std::vector<ir::Attr> attrs;
        for (const ir::ArgInfo& argument : op.arguments)
          if (!ir::is_operand(argument.kind))
            attrs.push_back(argument.kind == ir::ArgKind::dim    ? ir::Attr::of(int64_t{1})
                            : argument.kind == ir::ArgKind::dims ? ir::Attr::of(Dims{1})
                                                                 : ir::default_attribute(argument));
        SCOPED_TRACE(std::string(op.name) + " of " + std::to_string(elements) + " " + type);
        DType dtype = DType::f32;
        for (int d = 0; d < kDTypeCount; ++d)
          if (name_of(static_cast<DType>(d)) == type) dtype = static_cast<DType>(d);
        const ir::ValueId x = graph.add_input(dtype, {3, elements});
        std::vector<ReferenceTensor> inputs;
        try {
          graph.outputs.push_back(graph.add(op.id, {ir::Operand::value(x)}, attrs));
        } catch (const Error&) {
          const bool none = *op.combiner == Combiner::max || *op.combiner == Combiner::min ||
                            *op.combiner == Combiner::argmax || *op.combiner == Combiner::argmin;
          EXPECT_TRUE(none && (elements == 0 || dtype == DType::bool_));
          continue;
        }
        inputs = random_inputs(graph, op.name, 5);
        expect_close(inputs, run(graph, eager_tensors(inputs)), ir::interpret(graph, inputs));
      }
  }
}

}  // namespace
}  // namespace ingot
