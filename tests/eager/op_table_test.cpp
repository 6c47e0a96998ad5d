// Every op of the table, executed eagerly: against the reference interpreter, and on other layouts to the bit.
#include <gtest/gtest.h>

#include "eager/call/call.h"
#include "eager/data.h"
#include "eager/execute/execute.h"
#include "eager/execute/numerics.h"
#include "eager/op_support.h"
#include "eager/ops/functions.h"
#include "ir/samples.h"
#include "runtime/cpu.h"
#include "runtime/thread_pool.h"

namespace ingot {
namespace {

TEST(OpTable, EveryOpAgreesWithTheReference) {
  for (const ir::Sample& sample : ir::samples()) {
    SCOPED_TRACE(sample.text);
    ir::Graph graph = ir::parse(sample.text);
    std::vector<ReferenceTensor> inputs = random_inputs(graph, sample.op->name, 1);
    std::vector<ReferenceTensor> expected = ir::interpret(graph, inputs);
    std::vector<Tensor> tensors, got;
    for (const ReferenceTensor& r : inputs) tensors.push_back(eager_tensor(r));
    ASSERT_NO_THROW(got = run(graph, tensors));
    expect_close(inputs, got, expected);
  }
}

TEST(OpTable, LayoutChangesNoBit) {
  for (const ir::Sample& sample : ir::samples()) {
    if (sample.op->kind == ir::OpKind::view) continue;  // whether there is a view depends on the layout
    SCOPED_TRACE(sample.text);
    ir::Graph graph = ir::parse(sample.text);
    std::vector<Tensor> dense, other;
    for (const ReferenceTensor& r : random_inputs(graph, sample.op->name, 3)) {
      dense.push_back(eager_tensor(r));
      other.push_back(scattered(dense.back()));
    }
    std::vector<Tensor> expected, got;
    ASSERT_NO_THROW(expected = run(graph, dense));
    ASSERT_NO_THROW(got = run(graph, other));
    for (size_t o = 0; o < got.size(); ++o) {
      EXPECT_TRUE(got[o].is_contiguous());
      EXPECT_EQ(bytes_of(got[o]), bytes_of(expected[o])) << got[o] << "\n" << expected[o];
    }
  }
}

TEST(OpTable, InstructionSetsAndThreadsChangeNoBit) {
  std::vector<std::optional<Target>> targets;
  for (Isa isa : {Isa::none, Isa::avx2, Isa::avx512})
    if (isa <= runtime::detected_target().isa) targets.push_back(runtime::target_of(isa));
  int64_t fallbacks = eager::eager_statistics().fallbacks;
  int threads = num_threads();
  const Numerics level = numerics();
  set_numerics(Numerics::strict);  // the default lets a processor with bf16 products use them
  for (const ir::Sample& sample : ir::samples()) {
    SCOPED_TRACE(sample.text);
    ir::Graph graph = ir::parse(sample.text);
    std::vector<Tensor> inputs;
    for (const ReferenceTensor& r : random_inputs(graph, sample.op->name, 4)) inputs.push_back(eager_tensor(r));
    std::vector<std::string> expected;
    for (size_t t = 0; t < targets.size(); ++t) {
      runtime::set_host_target(targets[t]);
      set_num_threads(static_cast<int>(t) * 2 + 1);
      std::vector<Tensor> got;
      EXPECT_NO_THROW(got = run(graph, inputs));
      for (size_t o = 0; o < got.size(); ++o) {
        if (t == 0)
          expected.push_back(bytes_of(got[o]));
        else
          EXPECT_EQ(bytes_of(got[o]), expected[o]) << targets[t]->str();
      }
    }
  }
  runtime::set_host_target(std::nullopt);
  set_num_threads(threads);
  set_numerics(level);
  EXPECT_EQ(eager::eager_statistics().fallbacks, fallbacks);
}

TEST(OpTable, InplaceFormsGiveWhatTheOthersGive) {
  for (const ir::Sample& sample : ir::samples()) {
    if (!sample.op->has(ir::kInplace)) continue;
    SCOPED_TRACE(sample.text);
    ir::Graph graph = ir::parse(sample.text);
    const ir::Operand& self = graph.nodes[0].operands[0];
    if (!self.is_value()) continue;
    std::vector<Tensor> inputs;
    for (const ReferenceTensor& r : random_inputs(graph, sample.op->name, 5)) inputs.push_back(eager_tensor(r));
    Tensor expected = run(graph, inputs)[0], target = scattered(inputs[self.id]);
    bool fits = expected.sizes() == target.sizes() && category_of(expected.dtype()) <= category_of(target.dtype());
    std::vector<eager::Operand> operands;
    for (const ir::Operand& o : graph.nodes[0].operands) {
      if (o.is_value())
        operands.emplace_back(o.id == self.id ? target : inputs[o.id]);
      else if (o.kind == ir::Operand::Kind::constant)
        operands.emplace_back(o.category == Category::floating ? Scalar(o.number) : Scalar(o.integer));
      else
        operands.emplace_back();
    }
    Tensor out;
    eager::OpCall call{sample.op->id, true, operands, graph.nodes[0].attrs, Location()};
    if (!fits) {
      EXPECT_THROW(eager::execute(call, {&out, 1}), Error);
      continue;
    }
    ASSERT_NO_THROW(eager::execute(call, {&out, 1}));
    EXPECT_TRUE(out.is_same(target));
    EXPECT_EQ(bytes_of(target), bytes_of(expected.to(target.dtype()))) << target << "\n" << expected;
  }
}

}  // namespace
}  // namespace ingot
