// Functionalization, by what the graphs compute: the interpreter's results against eager's.
#include "trace/build_graph.h"

#include <gtest/gtest.h>

#include <functional>

#include "ingot.h"
#include "trace/recorder.h"

namespace ingot::trace {
namespace {

// Records a function of external tensors and builds the graph of the values that it returns.
BuiltGraph record_whole(const std::function<std::vector<Tensor>()>& body) {
  Recorder recorder(std::make_shared<Function>("test", std::vector<std::string>{}, 8));
  recorder.begin({});
  BuiltGraph built;
  {
    std::vector<Tensor> results = body();
    std::vector<uint32_t> live, written;
    for (const Tensor& t : results) live.push_back(t.impl()->value);
    for (const Node* node : recorder.segment().path())
      if (node->inplace)
        if (int32_t slot = recorder.segment().root_slot(node->operands[0]); slot >= 0)
          written.push_back(static_cast<uint32_t>(slot));
    std::vector<int64_t> sites;
    collect_sites(recorder.segment().path(), sites);
    std::vector<int32_t> symbol_of(sites.size(), -1);
    built = build_graph({recorder.segment().path(), live, {}, {}, written, sites, symbol_of, 0});
    recorder.abandon();
  }
  return built;
}

ir::Graph record(const std::function<std::vector<Tensor>()>& body) { return record_whole(body).graph; }

int count(const ir::Graph& graph, OpId op) {
  int n = 0;
  for (const ir::Node& node : graph.nodes) n += node.op == op;
  return n;
}

TEST(BuildGraph, OpsInOrderWithTheirScalars) {
  Tensor x = ones({2, 3}), y = ones({3});
  ir::Graph graph = record([&] { return std::vector<Tensor>{(x * 2.5 + y).relu()}; });
  ir::verify(graph);
  EXPECT_EQ(graph.inputs.size(), 2u);
  EXPECT_EQ(count(graph, OpId::mul), 1);
  EXPECT_EQ(count(graph, OpId::relu), 1);
  ASSERT_GE(graph.scalars.size(), 1u);
  EXPECT_EQ(graph.scalars[0], Category::floating);
  EXPECT_EQ(graph.outputs.size(), 1u);
}

TEST(BuildGraph, AnInPlaceOpIsAValueOfItsOwn) {
  Tensor x = ones({2, 3});
  ir::Graph graph = record([&] {
    Tensor y = x * 2;
    Tensor before = y + 1;
    y.add_(before);
    return std::vector<Tensor>{y, before};
  });
  ir::verify(graph);
  for (const ir::Node& node : graph.nodes) EXPECT_FALSE(node.inplace);
  EXPECT_EQ(graph.outputs.size(), 2u);
  EXPECT_NE(graph.outputs[0], graph.outputs[1]);
}

TEST(BuildGraph, AWriteThroughAViewChangesItsBaseAndOtherViews) {
  Tensor x = ones({4, 3});
  ir::Graph graph = record([&] {
    Tensor y = x * 2;
    Tensor row = y[1], column = y.select(1, 0);
    row.mul_(10);
    return std::vector<Tensor>{y, column + 0.0};
  });
  ir::verify(graph);
  EXPECT_EQ(count(graph, OpId::as_strided_scatter), 1);
  EXPECT_EQ(count(graph, OpId::select), 3) << "the column is derived again after the write";
}

TEST(BuildGraph, AWrittenTensorFromOutsideIsAnOutput) {
  Tensor x = ones({4, 3});
  ir::Graph graph = record([&] {
    x.add_(1);
    return std::vector<Tensor>{};
  });
  ir::verify(graph);
  EXPECT_EQ(graph.outputs.size(), 1u);
}

// What the target of copy_ and fill_ held does not matter: the program may write there itself.
TEST(BuildGraph, ATargetThatIsOverwrittenIsWrittenDirectly) {
  Tensor x = ones({4, 3}), p = ones({4, 3});
  auto direct = [](const std::function<void()>& body) {
    const BuiltGraph built = record_whole([&] {
      body();
      return std::vector<Tensor>{};
    });
    ir::verify(built.graph);
    EXPECT_EQ(built.binding.outputs.size(), 1u);
    EXPECT_EQ(built.binding.outputs[0].kind, OutputTarget::Kind::write_back);
    return built.binding.outputs[0].donated;
  };
  EXPECT_TRUE(direct([&] { p.copy_(x); }));
  EXPECT_TRUE(direct([&] { p.fill_(2); }));
  EXPECT_TRUE(direct([&] { p.copy_(x * 2).add_(x); }));
  EXPECT_FALSE(direct([&] { p.add_(x); }));
  EXPECT_FALSE(direct([&] { p.copy_(p * 2); }));
  EXPECT_FALSE(direct([&] { p.slice(0, 1).copy_(x.slice(0, 1)); })) << "the first row stays";
}

TEST(BuildGraph, OutputsAreStoragesInTheOrderOfTheirMemory) {
  Tensor x = ones({4, 3});
  ir::Graph graph = record([&] { return std::vector<Tensor>{x.t() * 2}; });
  ir::verify(graph);
  const ir::TensorType& type = graph.type(graph.outputs[0]);
  // A transposed tensor's result keeps its layout, as in eager: its memory is [4, 3].
  Tensor eager = x.t() * 2;
  if (eager.stride(0) == 1)
    EXPECT_EQ(type.shape, (Dims{4, 3}));
  else
    EXPECT_EQ(type.shape, (Dims{3, 4}));
}

TEST(BuildGraph, PositionsThatAreComputedAreKeptInsideAndFlagged) {
  Tensor table = ones({5, 2}), x = ones({3});
  ir::Graph graph = record([&] { return std::vector<Tensor>{table.index_select(0, (x * 2).to(kInt64))}; });
  ir::verify(graph);
  EXPECT_EQ(count(graph, OpId::clamp), 1);
  EXPECT_EQ(graph.outputs.size(), 2u);
  EXPECT_EQ(graph.type(graph.outputs[1]).dtype, DType::bool_);
}

}  // namespace
}  // namespace ingot::trace
