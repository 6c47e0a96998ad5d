// The clean-up passes, on IR text: what they change, and what they must leave.
#include "ir/passes/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "ir/decompose.h"
#include "ir/passes/pipeline.h"
#include "ir/reference.h"

namespace ingot::ir {
namespace {

using PassFunction = void (*)(Graph&);

/// The lines after the inputs, after a pass and the removal of what is dead.
std::string after(PassFunction pass, const std::string& body) {
  Graph graph = parse("ingot.ir 1\n" + body);
  pass(graph);
  verify(graph);
  eliminate_dead_code(graph);
  verify(graph);
  std::string text = print(graph), kept;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at) + 1;
    std::string line = text.substr(at, end - at);
    if (!line.starts_with("ingot.ir") && !line.starts_with("input") && !line.starts_with("symbol")) kept += line;
    at = end;
  }
  return kept;
}

TEST(Simplify, NodesThatAreOneOfTheirOperandsGo) {
  struct Case {
    const char *input, *nodes;
  };
  // Each ends in a value that is the input.
  const Case gone[] = {
      {"f32[2, 3]", "%1 = mul(%0, 1)\n"},
      {"f32[2, 3]", "%1 = mul(%0, 1.0)\n"},
      {"f32[2, 3]", "%1 = add(%0, -0.0)\n"},
      {"i64[2, 3]", "%1 = add(%0, 0)\n"},
      {"f32[2, 3]", "%1 = sub(%0, 0)\n"},
      {"f32[2, 3]", "%1 = sub(%0, 0.0)\n"},
      {"f32[2, 3]", "%1 = div(%0, 1)\n"},
      {"f32[2, 3]", "%1 = pow(%0, 1)\n"},
      {"f32[2, 3]", "%1 = neg(%0)\n%2 = neg(%1)\n"},
      {"bool[2, 3]", "%1 = logical_not(%0)\n%2 = logical_not(%1)\n"},
      {"i64[2, 3]", "%1 = bitwise_not(%0)\n%2 = bitwise_not(%1)\n"},
      {"f32[2, 3]", "%1 = clone(%0)\n%2 = positive(%1)\n"},
      {"f32[2, 3]", "%1 = maximum(%0, %0)\n"},
      {"i64[2, 3]", "%1 = bitwise_and(%0, %0)\n"},
      {"f32[2, 3]", "%1 = cast(%0, dtype=f32)\n"},
      {"f16[2, 3]", "%1 = cast(%0, dtype=f32)\n%2 = cast(%1, dtype=f16)\n"},
      {"i32[2, 3]", "%1 = cast(%0, dtype=f64)\n%2 = cast(%1, dtype=i32)\n"},
      {"f32[2, 3]", "%1 = permute(%0, dims=[0, 1])\n"},
      {"f32[2, 3]", "%1 = permute(%0, dims=[1, 0])\n%2 = permute(%1, dims=[1, 0])\n"},
      {"f32[2, 3]", "%1 = view(%0, size=[6])\n%2 = view(%1, size=[2, 3])\n"},
      {"f32[2, 3]", "%1 = unsqueeze(%0, dim=1)\n%2 = squeeze(%1)\n"},
      {"f32[2, 3]", "%1 = expand(%0, size=[2, 3])\n"},
      {"f32[2, 3]", "%1 = slice(%0, dim=1)\n"},
      {"f32[2, 3]", "%1 = as_strided(%0, size=[2, 3], stride=[3, 1])\n"},
      {"f32[1]", "%1 = sum(%0, dim=[0], keepdim=true)\n"},
  };
  for (const Case& c : gone) {
    SCOPED_TRACE(c.nodes);
    std::string nodes = c.nodes;
    std::string last = "%" + std::to_string(std::count(nodes.begin(), nodes.end(), '\n'));
    EXPECT_EQ(after(simplify, "input %0 = " + std::string(c.input) + "\n" + nodes + "output " + last + "\n"),
              "output %0\n");
  }
}

TEST(Simplify, RewritesKeepTypeAndMeaning) {
  struct Case {
    std::string input, nodes, after;
  };
  std::vector<Case> cases = {
      {"f32[4]", "%1 = div(%0, 8)\n", "%1 = mul(%0, 0.125) : f32[4]\noutput %1\n"},
      {"f32[4]", "%1 = div(%0, -0.25)\n", "%1 = mul(%0, -4.0) : f32[4]\noutput %1\n"},
      {"f32[4]", "%1 = relu(%0)\n%2 = relu(%1)\n", "%1 = relu(%0) : f32[4]\noutput %1\n"},
      // Of what is written over only the type counts.
      {"f32[2, 3]", "%1 = exp(%0)\n%2 = copy(%1, %0)\n%3 = neg(%2)\n", "%1 = neg(%0) : f32[2, 3]\noutput %1\n"},
      {"f32[2, 3]", "%1 = cast(%0, dtype=i64)\n%2 = copy(%1, %0)\n",
       "%1 = cast(%0, dtype=i64) : i64[2, 3]\noutput %1\n"},
      {"f32[3]", "%1 = full(0.5, size=[2, 3])\n%2 = copy(%1, %0)\n",
       "%1 = expand(%0, size=[2, 3]) : f32[2, 3]\noutput %1\n"},
      {"f32[2, 3]", "%1 = fill(%0, 7)\n", "%1 = full(7, size=[2, 3], dtype=f32) : f32[2, 3]\noutput %1\n"},
      {"bf16[4]", "%1 = cast(%0, dtype=f32)\n%2 = cast(%1, dtype=f64)\n",
       "%1 = cast(%0, dtype=f64) : f64[4]\noutput %1\n"},
      {"f32[2, 3, 4]", "%1 = permute(%0, dims=[2, 0, 1])\n%2 = permute(%1, dims=[0, 2, 1])\n",
       "%1 = permute(%0, dims=[2, 1, 0]) : f32[4, 3, 2]\noutput %1\n"},
      {"f32[2, 3, 4]", "%1 = view(%0, size=[6, 4])\n%2 = unsqueeze(%1, dim=0)\n%3 = view(%2, size=[24])\n",
       "%1 = view(%0, size=[24]) : f32[24]\noutput %1\n"},
      {"f32[3, 1]", "%1 = expand(%0, size=[3, 4])\n%2 = expand(%1, size=[2, 3, 4])\n",
       "%1 = expand(%0, size=[2, 3, 4]) : f32[2, 3, 4]\noutput %1\n"},
      {"f32[4]", "%1 = full(2.5, size=[1])\n%2 = expand(%1, size=[4])\n%3 = add(%0, %2)\n",
       "%1 = full(2.5, size=[4], dtype=f32) : f32[4]\n%2 = add(%0, %1, 1) : f32[4]\noutput %2\n"},
      // Gradients of parts, beside the identity of addition.
      {"f32[2, 3]",
       "%1 = full(-0.0, size=[2, 6])\n%2 = full(-0.0, size=[2, 3])\n%3 = exp(%0)\n%4 = neg(%0)\n"
       "%5 = cat(%1, %0, dim=1)\n%6 = cat(%2, %3, %2, dim=1)\n%7 = cat(%4, %1, dim=1)\n"
       "%8 = add(%5, %6)\n%9 = add(%8, %7)\n",
       "%1 = exp(%0) : f32[2, 3]\n%2 = neg(%0) : f32[2, 3]\n%3 = cat(%2, %1, %0, dim=1) : f32[2, 9]\noutput %3\n"},
      {"f32[2, 1, 3]", "%1 = amax(%0, dim=[1])\n", "%1 = view(%0, size=[2, 3]) : f32[2, 3]\noutput %1\n"},
      {"f32[2]", "%1 = full(true, size=[2])\n%2 = exp(%0)\n%3 = where(%1, %0, %2)\n", "output %0\n"},
      {"f32[2]", "%1 = full(false, size=[])\n%2 = exp(%0)\n%3 = where(%1, %0, %2)\n",
       "%1 = exp(%0) : f32[2]\noutput %1\n"},
  };
  EXPECT_EQ(after(simplify,
                  "symbol s0 = 6\ninput %0 = f32[s0, 2]\n%1 = full(-0.0, size=[s0, 2])\n%2 = cat(%0, %1, dim=0)\n"
                  "%3 = cat(%1, %0, dim=0)\n%4 = add(%2, %3)\noutput %4\n"),
            "%1 = cat(%0, %0, dim=0) : f32[(2*s0), 2]\noutput %1\n");
  // Every dtype holds a bool.
  for (const char* between : {"u8", "i8", "f16", "i64"})
    cases.push_back({"bool[4]", std::string("%1 = cast(%0, dtype=") + between + ")\n%2 = cast(%1, dtype=f32)\n",
                     "%1 = cast(%0, dtype=f32) : f32[4]\noutput %1\n"});
  for (const auto& [input, nodes, expected] : cases) {
    const std::string last = "%" + std::to_string(std::count(nodes.begin(), nodes.end(), '\n'));
    EXPECT_EQ(after(simplify, "input %0 = " + input + "\n" + nodes + "output " + last + "\n"), expected);
  }
}

TEST(Simplify, LeavesWhatWouldChangeABitOrAType) {
  struct Case {
    const char *inputs, *node;
  };
  const Case kept[] = {
      {"f32[2, 3]", "%1 = add(%0, 0.0) : f32[2, 3]"},  // -0 + 0 is +0
      {"f32[2, 3]", "%1 = add(%0, 0) : f32[2, 3]"},
      {"f32[2, 3]", "%1 = sub(%0, -0.0) : f32[2, 3]"},
      {"f32[2, 3]", "%1 = mul(%0, 0) : f32[2, 3]"},  // NaN, infinity, -0
      {"i64[2, 3]", "%1 = mul(%0, 1.0) : f32[2, 3]"},
      {"i64[2, 3]", "%1 = div(%0, 1) : f32[2, 3]"},
      {"i64[2, 3]", "%1 = div(%0, 2, rounding_mode=floor) : i64[2, 3]"},
      {"f32[2, 3]", "%1 = div(%0, 3.0) : f32[2, 3]"},
      {"f32[2, 3]", "%1 = div(%0, 0.0) : f32[2, 3]"},
      {"f32[2, 3]", "%1 = sub(%0, %0) : f32[2, 3]"},
      {"f32[2, 3]", "%1 = logical_and(%0, %0) : bool[2, 3]"},
      {"f32[2, 3]", "%1 = permute(%0, dims=[1, 0]) : f32[3, 2]"},
      {"f32[2, 3]", "%1 = slice(%0, dim=1, start=1, end=3) : f32[2, 2]"},
      {"bf16[1]", "%1 = sum(%0, dim=[0], dtype=f32) : f32[]"},
  };
  for (const Case& c : kept) {
    SCOPED_TRACE(c.node);
    std::string body = "input %0 = " + std::string(c.inputs) + "\n" + c.node + "\noutput %1\n";
    Graph graph = parse("ingot.ir 1\n" + body);
    std::string before = print(graph);
    simplify(graph);
    EXPECT_EQ(print(graph), before);
  }
  // +0, another dim, an alpha, pieces that end elsewhere, and numbers under numbers: no joining.
  for (const char* nodes : {
           "%1 = full(0.0, size=[2, 3], dtype=f32) : f32[2, 3]\n%2 = cat(%0, %1, dim=1) : f32[2, 6]\n"
           "%3 = cat(%1, %0, dim=1) : f32[2, 6]\n%4 = add(%2, %3, 1) : f32[2, 6]\n",
           "%1 = full(-0.0, size=[2, 3], dtype=f32) : f32[2, 3]\n%2 = cat(%0, %1, dim=1) : f32[2, 6]\n"
           "%3 = cat(%1, %0, dim=1) : f32[2, 6]\n%4 = add(%2, %3, 2) : f32[2, 6]\n",
           "%1 = full(-0.0, size=[2, 2], dtype=f32) : f32[2, 2]\n%2 = cat(%0, %1, dim=1) : f32[2, 5]\n"
           "%3 = cat(%1, %0, dim=1) : f32[2, 5]\n%4 = add(%2, %3, 1) : f32[2, 5]\n",
           "%1 = exp(%0) : f32[2, 3]\n%2 = cat(%0, %1, dim=1) : f32[2, 6]\n"
           "%3 = cat(%1, %0, dim=1) : f32[2, 6]\n%4 = add(%2, %3, 1) : f32[2, 6]\n",
           "%1 = full(-0.0, size=[2, 3], dtype=f64) : f64[2, 3]\n%2 = cat(%0, %1, dim=1) : f64[2, 6]\n"
           "%3 = cat(%1, %0, dim=1) : f64[2, 6]\n%4 = add(%2, %3, 1) : f64[2, 6]\n",
       }) {
    const std::string body = std::string(nodes) + "output %4\n";
    EXPECT_EQ(after(simplify, "input %0 = f32[2, 3]\n" + body), body);
  }
  EXPECT_EQ(after(simplify,
                  "input %0 = f32[2, 3]\ninput %1 = f32[0]\n%2 = full(-0.0, size=[2, 3], dtype=f32) : f32[2, 3]\n"
                  "%3 = cat(%1, %0, %2, dim=1) : f32[2, 6]\n%4 = cat(%2, %0, %1, dim=1) : f32[2, 6]\n"
                  "%5 = add(%3, %4, 1) : f32[2, 6]\noutput %5\n"),
            "%2 = full(-0.0, size=[2, 3], dtype=f32) : f32[2, 3]\n%3 = cat(%1, %0, %2, dim=1) : f32[2, 6]\n"
            "%4 = cat(%2, %0, %1, dim=1) : f32[2, 6]\n%5 = add(%3, %4, 1) : f32[2, 6]\noutput %5\n");
  // A narrower cast in between rounds.
  EXPECT_EQ(after(simplify, "input %0 = f32[2]\n%1 = cast(%0, dtype=bf16)\n%2 = cast(%1, dtype=f32)\noutput %2\n"),
            "%1 = cast(%0, dtype=bf16) : bf16[2]\n%2 = cast(%1, dtype=f32) : f32[2]\noutput %2\n");
  EXPECT_EQ(after(simplify, "input %0 = i64[2]\n%1 = cast(%0, dtype=f64)\n%2 = cast(%1, dtype=i64)\noutput %2\n"),
            "%1 = cast(%0, dtype=f64) : f64[2]\n%2 = cast(%1, dtype=i64) : i64[2]\noutput %2\n");
}

TEST(Simplify, WritesThroughViews) {
  const std::string where = "size=[2, 2], stride=[4, 1], storage_offset=1";
  EXPECT_EQ(after(simplify, "input %0 = f32[3, 4]\ninput %1 = f32[2, 2]\n%2 = as_strided_scatter(%0, %1, " + where +
                                ")\n%3 = as_strided(%2, " + where + ")\noutput %3\n"),
            "output %1\n");
  EXPECT_EQ(after(simplify,
                  "input %0 = f32[3, 4]\ninput %1 = f32[2, 2]\ninput %2 = f32[2, 2]\n%3 = as_strided_scatter(%0, %1, " +
                      where + ")\n%4 = as_strided_scatter(%3, %2, " + where + ")\noutput %4\n"),
            "%3 = as_strided_scatter(%0, %2, " + where + ") : f32[3, 4]\noutput %3\n");
  EXPECT_EQ(after(simplify,
                  "input %0 = f32[3, 4]\ninput %1 = f32[3, 4]\n"
                  "%2 = as_strided_scatter(%0, %1, size=[3, 4], stride=[4, 1])\noutput %2\n"),
            "output %1\n");
  // Through a view of other sizes.
  EXPECT_EQ(after(simplify,
                  "input %0 = f32[3, 4]\ninput %1 = f32[12]\n"
                  "%2 = as_strided_scatter(%0, %1, size=[12], stride=[1])\noutput %2\n"),
            "%2 = view(%1, size=[3, 4]) : f32[3, 4]\noutput %2\n");
}

TEST(Simplify, AViewOfAConstantIsAConstant) {
  EXPECT_EQ(after(simplify,
                  "input %0 = f32[2]\n%1 = full(1, size=[3, 2], dtype=f32)\n%2 = permute(%1, dims=[1, 0])\n"
                  "%3 = select(%2, dim=1, index=2)\n%4 = add(%0, %3)\noutput %4\n"),
            "%1 = full(1, size=[2], dtype=f32) : f32[2]\n%2 = add(%0, %1, 1) : f32[2]\noutput %2\n");
}

/// Evaluates as the reference does, and counts.
Evaluate counting(int* calls) {
  return [calls](const Graph& graph) -> std::optional<Operand> {
    ++*calls;
    EXPECT_TRUE(graph.inputs.empty());
    ReferenceTensor value = interpret(graph, {})[0];
    EXPECT_TRUE(value.shape.empty());
    if (value.floating()) return Operand::constant(value.real[0]);
    return value.dtype == DType::bool_ ? Operand::constant(value.integer[0] != 0) : Operand::constant(value.integer[0]);
  };
}

TEST(Fold, ConstantsAreEvaluatedOnce) {
  int calls = 0;
  auto run = [&](Graph& graph) { fold(graph, counting(&calls)); };
  Graph graph = parse(
      "ingot.ir 1\nscalar $0 = floating\ninput %0 = f32[2]\n%1 = full(2, size=[2], dtype=f32)\n%2 = exp2(%1)\n"
      "%3 = add(%2, 0.5)\n%4 = cast(%3, dtype=i64)\n%5 = lt(%3, 5)\n%6 = add(%0, %3)\n%7 = mul(%3, $0)\n"
      "%8 = full($0, size=[2], dtype=f32)\n%9 = neg(%8)\noutput %4, %5, %6, %7, %9\n");
  run(graph);
  verify(graph);
  eliminate_dead_code(graph);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(print(graph),
            "ingot.ir 1\nscalar $0 = floating\ninput %0 = f32[2]\n%1 = full(4.5, size=[2], dtype=f32) : f32[2]\n"
            "%2 = full(4, size=[2], dtype=i64) : i64[2]\n%3 = full(true, size=[2], dtype=bool) : bool[2]\n"
            "%4 = add(%0, %1, 1) : f32[2]\n%5 = mul(%1, $0) : f32[2]\n%6 = full($0, size=[2], dtype=f32) : f32[2]\n"
            "%7 = neg(%6) : f32[2]\noutput %2, %3, %4, %5, %7\n");
}

TEST(Fold, ATypeThatDependsOnDimsIsLeftAlone) {
  // A zero-dim f64 does not widen an f32 with dims, but two zero-dim tensors meet in f64.
  int calls = 0;
  Graph graph = parse(
      "ingot.ir 1\n%0 = full(2, size=[2], dtype=f32)\n%1 = full(2, size=[], dtype=f64)\n%2 = add(%0, %1)\noutput %2\n");
  fold(graph, counting(&calls));
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(graph.nodes.size(), 3u);
}

TEST(Cse, EqualNodesBecomeOne) {
  EXPECT_EQ(
      after(eliminate_common_subexpressions,
            "input %0 = f32[2]\ninput %1 = f32[2]\n%2 = exp(%0)\n%3 = exp(%0)\n%4 = mul(%2, %1)\n%5 = mul(%1, %3)\n"
            "%6 = sub(%4, %5)\noutput %6\n"),
      "%2 = exp(%0) : f32[2]\n%3 = mul(%2, %1) : f32[2]\n%4 = sub(%3, %3, 1) : f32[2]\noutput %4\n");
}

TEST(Cse, KeepsApartWhatDiffers) {
  const std::string body =
      "input %0 = f32[2, 2]\ninput %1 = f32[2, 2]\n%2 = sub(%0, %1)\n%3 = sub(%1, %0)\n%4 = add(%0, %1, 2)\n"
      "%5 = add(%1, %0, 2)\n%6 = mul(%0, 0.0)\n%7 = mul(%0, -0.0)\n%8 = mul(%0, 0)\n%9 = softmax(%0, dim=0)\n"
      "%10 = softmax(%0, dim=1)\n%11 = cast(%0, dtype=f64)\n%12 = cast(%0, dtype=f16)\n"
      "output %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12\n";
  Graph graph = parse("ingot.ir 1\n" + body);
  std::string before = print(graph);
  eliminate_common_subexpressions(graph);
  EXPECT_EQ(print(graph), before);
}

TEST(Dce, DeadNodesGoAndInputsStay) {
  Graph graph = parse(
      "ingot.ir 1\ninput %0 = f32[2]\ninput %1 = f32[2]\n%2 = exp(%0)\n%3 = log(%2)\n%4 = neg(%0)\n%5, %6 = max(%0, "
      "dim=0)\n"
      "output %4, %6\n");
  eliminate_dead_code(graph);
  verify(graph);
  EXPECT_EQ(print(graph),
            "ingot.ir 1\ninput %0 = f32[2]\ninput %1 = f32[2]\n%2 = neg(%0) : f32[2]\n"
            "%3, %4 = max(%0, dim=0, keepdim=false) : f32[], i64[]\noutput %2, %4\n");
}

/// A graph with its backward pass, and the same with `recompute`.
struct Recomputed {
  Graph before, after;
  explicit Recomputed(const std::string& body) : before(parse("ingot.ir 1\n" + body)) {
    decompose(before);
    eliminate_common_subexpressions(before);
    eliminate_dead_code(before);
    after = before;
    recompute(after, {});
    verify(after);
  }
  /// How many nodes of this op compute again.
  int again(OpId op) const {
    return static_cast<int>(std::count_if(after.nodes.begin(), after.nodes.end(),
                                          [&](const Node& n) { return n.recomputed && n.op == op; }));
  }
  bool changed() const { return print(before) != print(after); }
};

TEST(Recompute, WhatIsCheapIsComputedAgainInFrontOfItsReader) {
  const Recomputed r(
      "input %0 = f32[64, 256]\ninput %1 = f32[256, 256]\ninput %2 = f32[64, 256]\n%3 = matmul(%0, %1)\n"
      "%4 = sin(%3)\n%5 = view(%4, size=[2, 32, 256])\n%6 = matmul(%5, %1)\n"
      "%7 = view(%2, size=[2, 32, 256])\n%8, %9 = vjp[11] matmul(%5, %1, none, %7)\n%10 = vjp[1] sin(%3, none, %2)\n"
      "output %6, %8, %9, %10\n");
  EXPECT_EQ(r.again(OpId::sin), 1);
  // What the backward pass reads of the forward pass is the product alone.
  auto maker = [&](ValueId v) -> const Node* {
    const NodeId n = r.after.values[v].producer;
    return n == kNoValue ? nullptr : &r.after.nodes[n];
  };
  for (const Node& node : r.after.nodes)
    for (const Operand& o : node.operands) {
      if (!node.backward || !o.is_value()) continue;
      const Node* made = maker(o.id);
      while (made && made->op == OpId::view) made = maker(made->operands[0].id);
      if (made) EXPECT_TRUE(made->backward || made->op == OpId::matmul) << info(made->op).name;
    }
  std::vector<ReferenceTensor> inputs;
  for (const InputInfo& input : r.before.inputs) {
    Ints shape;
    for (Dim d : r.before.type(input.value).shape) shape.push_back(d.code);
    ReferenceTensor& t = inputs.emplace_back(DType::f32, shape);
    for (size_t i = 0; i < t.real.size(); ++i) t.real[i] = (static_cast<double>(i * 7 % 13) - 6) / 64;
  }
  const auto expected = interpret(r.before, inputs), got = interpret(r.after, inputs);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(expected[i].real, got[i].real) << i;
}

TEST(Recompute, KeepsWhatIsSmallOrDearOrKeptAnyway) {
  auto changed = [](const std::string& size, const std::string& op, const std::string& outputs) {
    return Recomputed("input %0 = f32[" + size + "]\ninput %1 = f32[" + size + "]\n%2 = matmul(%0, %1)\n%3 = " + op +
                      "\n%4 = matmul(%3, %1)\n%5 = vjp[01] matmul(%3, %1, none, %0)\noutput %4, %5" + outputs + "\n")
        .changed();
  };
  EXPECT_FALSE(changed("256, 256", "exp(%2)", ""));  // the product would be kept for it
  const std::string kept = "\n%6 = vjp[1] tanh(%2, none, %0)\noutput %4, %5, %6";
  EXPECT_TRUE(changed("256, 256", "exp(%0)", ""));       // of an input
  EXPECT_FALSE(changed("64, 64", "exp(%0)", ""));        // small
  EXPECT_FALSE(changed("256, 256", "exp(%0)", ", %3"));  // an output
  EXPECT_FALSE(changed("256, 256", "cumsum(%0, dim=0)", ""));
  EXPECT_FALSE(Recomputed("input %0 = f32[256, 256]\n%1 = exp(%0)\n%2 = exp(%1)\noutput %1, %2\n").changed());
}

TEST(Recompute, OfAFactorAMaskIsKept) {
  // What the factor is made from is not kept and large; the mask between them is an eighth.
  const Recomputed r(
      "input %0 = f64[256, 256]\ninput %1 = f64[256, 256]\n%2 = matmul(%0, %1)\n%3 = gt(%2, 0.5)\n"
      "%4 = where(%3, 2.0, 0.0)\n%5 = mul(%0, %4)\n%6 = vjp[10] mul(%0, %4, none, %1)\noutput %5, %6\n");
  EXPECT_EQ(r.again(OpId::where), 1);
  EXPECT_EQ(r.again(OpId::gt), 0);
}

// So no kernel needs one value at several places, which would have it stored.
TEST(Recompute, PartsOfAValueAreComputedApart) {
  const std::string pool = "kernel_size=[2, 2], stride=[2, 2], padding=[0], dilation=[1], ceil_mode=false)\n";
  const Recomputed r(
      "input %0 = f32[4, 16, 32, 32]\ninput %1 = f32[32, 32]\ninput %2 = f32[4, 16, 16, 16]\n"
      "%3 = matmul(%0, %1)\n%4 = relu(%3)\n%5 = max_pool2d(%4, " +
      pool + "%6 = vjp[1] max_pool2d(%4, none, %2, " + pool + "%7 = vjp[1] sin(%3, none, %6)\n" + "output %5, %7\n");
  int again = 0;
  for (const Node& node : r.after.nodes) {
    if (!node.recomputed || node.op != OpId::relu) continue;
    ++again;
    int readers = 0;
    for (const Node& reader : r.after.nodes)
      for (const Operand& o : reader.operands) readers += o.is_value() && o.id == node.outputs[0];
    EXPECT_EQ(readers, 1);
  }
  EXPECT_GE(again, 4);
}

TEST(Recompute, ALongChainIsCutIntoPieces) {
  // Each tanh is needed by its own derivative: from one that is kept to the next, several are computed again.
  std::string body = "input %0 = f32[256, 256]\n";
  constexpr int kLength = 60;
  for (int i = 1; i <= kLength; ++i) body += "%" + std::to_string(i) + " = tanh(%" + std::to_string(i - 1) + ")\n";
  std::string gradient = "%0";
  for (int i = kLength; i > 0; --i) {
    const std::string next = "%" + std::to_string(2 * kLength + 1 - i);
    body += next + " = vjp[1] tanh(%" + std::to_string(i - 1) + ", %" + std::to_string(i) + ", " + gradient + ")\n";
    gradient = next;
  }
  const Recomputed r(body + "output " + gradient + "\n");
  EXPECT_TRUE(r.changed());
  EXPECT_LE(r.after.nodes.size(), 3 * r.before.nodes.size());
  int kept = 0;
  for (const Node& node : r.after.nodes) {
    const bool forward = !node.backward;
    if (!forward) continue;
    for (const Node& reader : r.after.nodes)
      if (reader.backward && std::any_of(reader.operands.begin(), reader.operands.end(),
                                         [&](const Operand& o) { return o.is_value() && o.id == node.outputs[0]; })) {
        ++kept;
        break;
      }
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, kLength / 2);
}

TEST(Passes, ADeepGraphNeedsNoStack) {
  Graph graph;
  ValueId value = graph.add_input(DType::f32, {4});
  for (int i = 0; i < 50000; ++i) value = graph.add(i % 2 ? OpId::exp : OpId::tanh, {Operand::value(value)});
  graph.outputs.push_back(value);
  run_pipeline(graph, {.disabled = {}, .evaluate = {}, .verify = true});
  EXPECT_EQ(graph.nodes.size(), 50000u);
}

TEST(Pipeline, PassesAreDisabledByName) {
  const std::string text = "ingot.ir 1\ninput %0 = f32[2]\n%1 = neg(%0)\n%2 = neg(%1)\n%3 = exp(%0)\noutput %2\n";
  auto nodes = [&](std::vector<std::string> disabled) {
    Graph graph = parse(text);
    std::vector<PassTime> times = run_pipeline(graph, {.disabled = disabled, .evaluate = {}, .verify = true});
    EXPECT_EQ(times.size(), passes().size() - disabled.size());
    return graph.nodes.size();
  };
  EXPECT_EQ(nodes({}), 0u);
  EXPECT_EQ(nodes({"simplify"}), 2u);
  EXPECT_EQ(nodes({"simplify", "dce"}), 3u);
}

}  // namespace
}  // namespace ingot::ir
