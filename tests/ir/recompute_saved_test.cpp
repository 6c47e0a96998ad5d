// Which outputs a graph leaves to recipes, where its backward pass is another program (ir/passes/recompute.cpp).
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/passes/passes.h"

namespace ingot::ir {
namespace {

/// A graph of primitives, and what of the outputs in `saved` is left to recipes.
struct Saved {
  Graph graph;
  std::vector<uint32_t> saved;
  std::vector<Recipe> recipes;
  Saved(const std::string& body, std::vector<uint32_t> outputs, int64_t from = kRecomputedFrom)
      : graph(parse("ingot.ir 1\n" + body)), saved(std::move(outputs)) {
    recipes = recompute_saved(graph, saved, {}, from);
    verify(graph);
    for (const Recipe& recipe : recipes) check(recipe);
  }
  std::vector<OpId> ops(size_t recipe) const {
    std::vector<OpId> ops;
    for (const Node& node : recipes[recipe].nodes) ops.push_back(node.op);
    return ops;
  }
  OpId made_by(uint32_t output) const { return graph.nodes[graph.values[graph.outputs[output]].producer].op; }

 private:
  /// Values before their readers, from saved outputs alone, of the type that the output had.
  void check(const Recipe& recipe) const {
    for (uint32_t output : recipe.from) EXPECT_TRUE(std::ranges::count(saved, output)) << output;
    std::vector<TensorType> types;
    Graph alone;
    alone.scalars = graph.scalars;
    for (uint32_t output : recipe.from) {
      const TensorType& type = graph.type(graph.outputs[output]);
      alone.add_input(type.dtype, type.shape);
    }
    ValueId last = kNoValue;
    for (const Node& node : recipe.nodes) last = alone.add(node.op, node.operands, node.attrs);
    ASSERT_NE(last, kNoValue);
    EXPECT_EQ(alone.type(last).dtype, recipe.type.dtype);
    EXPECT_EQ(alone.type(last).shape, recipe.type.shape);
  }
};

const std::string kProduct = "input %0 = f32[64, 256]\ninput %1 = f32[256, 256]\n%2 = matmul(%0, %1)\n";

TEST(RecomputeSaved, WhatIsCheapToComputeFromAnotherSavedOutput) {
  const Saved r(kProduct + "%3 = gelu(%2)\n%4 = matmul(%3, %1)\noutput %2, %4, %3\n", {0, 2});
  ASSERT_EQ(r.recipes.size(), 1u);
  EXPECT_EQ(r.recipes[0].output, 2u);
  EXPECT_EQ(r.recipes[0].from, std::vector<uint32_t>{0});
  EXPECT_EQ(r.ops(0), std::vector<OpId>{OpId::gelu});
  EXPECT_EQ(r.graph.outputs.size(), 2u);
  EXPECT_EQ(r.saved, std::vector<uint32_t>{0});
}

TEST(RecomputeSaved, WhatOthersSeeIsNoGround) {
  const Saved r(kProduct + "%3 = gelu(%2)\n%4 = matmul(%3, %1)\noutput %2, %4, %3\n", {2});
  EXPECT_TRUE(r.recipes.empty());
  EXPECT_EQ(r.graph.outputs.size(), 3u);
  EXPECT_EQ(r.saved, std::vector<uint32_t>{2});
}

TEST(RecomputeSaved, LargeInputsAreNotCopiedForIt) {
  const Saved r(kProduct + "%3 = relu(%0)\n%4 = matmul(%3, %1)\noutput %3, %4\n", {0});
  EXPECT_TRUE(r.recipes.empty());
}

TEST(RecomputeSaved, MeansAndSmallInputsAreGivenOutForIt) {
  const Saved r(
      "input %0 = f32[64, 256]\ninput %1 = f32[256, 256]\ninput %2 = f32[256]\n%3 = matmul(%0, %1)\n"
      "%4 = sum(%3, dim=[1], keepdim=true)\n%5 = div(%4, 256.0)\n%6 = sub(%3, %5)\n%7 = add(%6, %2)\n"
      "%8 = matmul(%7, %1)\noutput %8, %3, %7\n",
      {1, 2});
  ASSERT_EQ(r.recipes.size(), 1u);
  EXPECT_EQ(r.ops(0), (std::vector<OpId>{OpId::sub, OpId::add}));
  EXPECT_EQ(r.saved, (std::vector<uint32_t>{1, 2, 3}));
  ASSERT_EQ(r.graph.outputs.size(), 4u);
  EXPECT_EQ(r.made_by(2), OpId::div);  // not its sum: the mean is small
  EXPECT_EQ(r.graph.values[r.graph.outputs[3]].producer, kNoValue);
  EXPECT_EQ(r.recipes[0].from, (std::vector<uint32_t>{1, 2, 3}));
}

TEST(RecomputeSaved, AMaskIsKeptInsteadOfItsFactor) {
  const Saved r(kProduct +
                    "%3 = gelu(%2)\n%4 = randint(0, 1, 0, 2, size=[64, 256], dtype=bool)\n"
                    "%5 = where(%4, 2.0, 0.0)\n%6 = mul(%3, %5)\n%7 = matmul(%6, %1)\noutput %7, %2, %6\n",
                {1, 2});
  ASSERT_EQ(r.recipes.size(), 1u);
  EXPECT_EQ(r.recipes[0].output, 2u);
  bool mask = false;
  for (uint32_t output : r.recipes[0].from) mask |= r.graph.type(r.graph.outputs[output]).dtype == DType::bool_;
  EXPECT_TRUE(mask);
}

TEST(RecomputeSaved, OneRecipeMayLeadThroughAnother) {
  const Saved r(kProduct +
                    "%3 = relu(%2)\n%4 = view(%3, size=[2, 32, 256])\n%5 = sin(%4)\n%6 = matmul(%5, %1)\n"
                    "output %2, %3, %5, %6\n",
                {0, 1, 2});
  ASSERT_EQ(r.recipes.size(), 2u);
  EXPECT_EQ(r.ops(0), std::vector<OpId>{OpId::relu});
  EXPECT_EQ(r.ops(1), (std::vector<OpId>{OpId::relu, OpId::view, OpId::sin}));
  for (const Recipe& recipe : r.recipes) EXPECT_EQ(recipe.from, std::vector<uint32_t>{0});
  EXPECT_EQ(r.graph.outputs.size(), 2u);
}

TEST(RecomputeSaved, ALongChainIsCutIntoPieces) {
  std::string body = kProduct, outputs = "output %2";
  std::vector<uint32_t> saved{0};
  constexpr uint32_t kLength = 60;
  for (uint32_t i = 1; i <= kLength; ++i) {
    body += "%" + std::to_string(i + 2) + " = tanh(%" + std::to_string(i + 1) + ")\n";
    outputs += ", %" + std::to_string(i + 2);
    saved.push_back(i);
  }
  const Saved r(body + outputs + "\n", saved);
  EXPECT_GT(r.recipes.size(), 8u);
  size_t nodes = 0;
  for (const Recipe& recipe : r.recipes) {
    EXPECT_LE(recipe.nodes.size(), 13u);
    nodes += recipe.nodes.size();
  }
  EXPECT_LE(nodes, r.graph.nodes.size() + 13u);  // about as many ops as the graph has
}

TEST(RecomputeSaved, ViewsOfMemoryAndWhatIsSmallAreKept) {
  const std::string tail = "%4 = matmul(%3, %1)\noutput %4, %2, %3\n";
  EXPECT_TRUE(
      Saved(kProduct + "%3 = as_strided(%2, size=[64, 256], stride=[256, 1], storage_offset=0)\n" + tail, {1, 2})
          .recipes.empty());
  const std::string small = "input %0 = f32[4, 4]\ninput %1 = f32[4, 4]\n%2 = matmul(%0, %1)\n%3 = relu(%2)\n" + tail;
  EXPECT_TRUE(Saved(small, {1, 2}).recipes.empty());
  EXPECT_EQ(Saved(small, {1, 2}, 1).recipes.size(), 1u);
}

TEST(RecomputeSaved, AnOutputThatIsAlsoSeenIsKept) {
  const Saved r(kProduct + "%3 = relu(%2)\n%4 = matmul(%3, %1)\noutput %2, %3, %3, %4\n", {0, 1});
  EXPECT_TRUE(r.recipes.empty());
  EXPECT_EQ(r.graph.outputs.size(), 4u);
}

}  // namespace
}  // namespace ingot::ir
