// Which graphs the attention pass takes for attention, and what it makes of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/passes/passes.h"

namespace ingot::ir {
namespace {

/// Query, transposed key, value, a mask of bools, one of numbers: %0 to %4; and a number that is given at run time.
std::string graph_of(const std::string& nodes, const std::string& dtype = "f32") {
  return "ingot.ir 1\nscalar $0 = floating\ninput %0 = " + dtype + "[2, 3, 4]\ninput %1 = " + dtype +
         "[2, 4, 5]\ninput %2 = " + dtype + "[2, 5, 6]\ninput %3 = bool[3, 5]\ninput %4 = " + dtype + "[3, 5]\n" +
         nodes;
}

/// The call of the op that attention became, without its first three operands; empty if it did not.
std::string recognized(const std::string& nodes, const std::string& dtype = "f32") {
  Graph graph = parse(graph_of(nodes, dtype));
  recognize_attention(graph);
  verify(graph);
  const std::string text = print(graph), op = "composed_attention(", after = ", dropout_p";
  const size_t at = text.find(op);
  EXPECT_EQ(at == std::string::npos, text.find("softmax") != std::string::npos) << text;
  if (at == std::string::npos) return {};
  std::string call = text.substr(at + op.size(), text.find(" :", at) - at - op.size());
  for (int i = 0; i < 3; ++i) call = call.substr(call.find(", ") + 2);
  return call;
}

const std::string kEnd = ", dropout_p=0.0, is_causal=false, enable_gqa=false, divided=";

TEST(AttentionPass, TakesWhatIsWrittenOut) {
  struct Case {
    std::string scores, call;
  };
  // The last value is what softmax is taken of.
  const Case cases[] = {
      {"%5 = matmul(%0, %1)\n", "none, 1.0, -inf" + kEnd + "false)"},
      {"%5 = bmm(%0, %1)\n", "none, 1.0, -inf" + kEnd + "false)"},
      {"%5 = matmul(%0, %1)\n%6 = mul(%5, 0.3)\n", "none, 0.3, -inf" + kEnd + "false)"},
      {"%5 = matmul(%0, %1)\n%6 = mul($0, %5)\n", "none, $0, -inf" + kEnd + "false)"},
      {"%5 = matmul(%0, %1)\n%6 = div(%5, $0)\n", "none, $0, -inf" + kEnd + "true)"},
      {"%5 = matmul(%0, %1)\n%6 = clone(%5)\n%7 = add(%6, %4)\n", "%4, 1.0, -inf" + kEnd + "false)"},
      {"%5 = matmul(%0, %1)\n%6 = div(%5, 2)\n%7 = add(%4, %6)\n", "%4, 2, -inf" + kEnd + "true)"},
      {"%5 = matmul(%0, %1)\n%6 = where(%3, %5, -1e9)\n", "%3, 1.0, -1e+09" + kEnd + "false)"},
      {"%5 = matmul(%0, %1)\n%6 = mul(%5, 0.3)\n%7 = where(%3, %6, $0)\n", "%3, 0.3, $0" + kEnd + "false)"},
  };
  for (const Case& c : cases)
    for (const char* product : {"matmul", "bmm"}) {
      SCOPED_TRACE(c.scores);
      const auto last = 4 + std::count(c.scores.begin(), c.scores.end(), '\n');
      auto value = [&](int64_t n) { return "%" + std::to_string(last + n); };
      const std::string nodes = c.scores + value(1) + " = softmax(" + value(0) + ", dim=2)\n" + value(2) + " = " +
                                product + "(" + value(1) + ", %2)\n" + value(3) + " = relu(" + value(2) + ")\noutput " +
                                value(3) + ", " + value(2) + "\n";
      EXPECT_EQ(recognized(nodes), c.call);
      EXPECT_EQ(recognized(nodes, "f64"), c.call);
      EXPECT_EQ(recognized(nodes, "bf16"), "");
    }
}

TEST(AttentionPass, AMaskOfWhatIsHiddenIsNegated) {
  for (const char* scores : {"%6 = masked_fill(%5, %3, -inf)", "%6 = where(%3, -inf, %5)"}) {
    Graph graph = parse(graph_of("%5 = matmul(%0, %1)\n" + std::string(scores) +
                                 "\n%7 = softmax(%6, dim=2)\n%8 = matmul(%7, %2)\noutput %8\n"));
    recognize_attention(graph);
    verify(graph);
    const std::string text = print(graph);
    EXPECT_EQ(text.substr(text.find("%5")),
              "%5 = permute(%1, dims=[0, 2, 1]) : f32[2, 5, 4]\n%6 = logical_not(%3) : bool[3, 5]\n"
              "%7 = composed_attention(%0, %5, %2, %6, 1.0, -inf" +
                  kEnd + "false) : f32[2, 3, 6]\noutput %7\n");
  }
}

TEST(AttentionPass, LeavesWhatHasOtherReadersOrAnotherForm) {
  const std::string kept[] = {
      // Somebody else reads the probabilities, the scores, the product.
      "%5 = matmul(%0, %1)\n%6 = softmax(%5, dim=2)\n%7 = matmul(%6, %2)\noutput %7, %6\n",
      "%5 = matmul(%0, %1)\n%6 = mul(%5, 0.3)\n%7 = softmax(%6, dim=2)\n%8 = matmul(%7, %2)\noutput %8, %6\n",
      "%5 = matmul(%0, %1)\n%6 = softmax(%5, dim=2)\n%7 = matmul(%6, %2)\n%8 = sum(%5)\noutput %7, %8\n",
      "%5 = matmul(%0, %1)\n%6 = lt(%5, 0)\n%7 = masked_fill(%5, %6, -inf)\n%8 = softmax(%7, dim=2)\n"
      "%9 = matmul(%8, %2)\noutput %9\n",
      // Along another dim; of another type; between the ops; twice; by a tensor.
      "%5 = matmul(%0, %1)\n%6 = softmax(%5, dim=1)\n%7 = matmul(%6, %2)\noutput %7\n",
      "%5 = matmul(%0, %1)\n%6 = softmax(%5, dim=2, dtype=f64)\n%7 = cast(%6, dtype=f32)\n%8 = matmul(%7, %2)\n"
      "output %8\n",
      "%5 = matmul(%0, %1)\n%6 = softmax(%5, dim=2)\n%7 = mul(%6, 2)\n%8 = matmul(%7, %2)\noutput %8\n",
      "%5 = matmul(%0, %1)\n%6 = mul(%5, 0.3)\n%7 = mul(%6, 0.3)\n%8 = softmax(%7, dim=2)\n%9 = matmul(%8, %2)\n"
      "output %9\n",
      "%5 = matmul(%0, %1)\n%6 = mul(%5, %4)\n%7 = softmax(%6, dim=2)\n%8 = matmul(%7, %2)\noutput %8\n",
      "%5 = matmul(%0, %1)\n%6 = add(%5, %4, 2)\n%7 = softmax(%6, dim=2)\n%8 = matmul(%7, %2)\noutput %8\n",
      "%5 = matmul(%0, %1)\n%6 = div(%5, 2, rounding_mode=floor)\n%7 = softmax(%6, dim=2)\n%8 = matmul(%7, %2)\n"
      "output %8\n",
      // The mask first, then the scale.
      "%5 = matmul(%0, %1)\n%6 = add(%5, %4)\n%7 = mul(%6, 0.3)\n%8 = softmax(%7, dim=2)\n%9 = matmul(%8, %2)\n"
      "output %9\n",
      // The probabilities on the right.
      "%5 = matmul(%0, %1)\n%6 = permute(%2, dims=[0, 2, 1])\n%7 = softmax(%5, dim=2)\n"
      "%8 = permute(%7, dims=[0, 2, 1])\n%9 = matmul(%6, %8)\noutput %9\n",
      // One query.
      "%5 = slice(%0, dim=1, start=2, end=3, step=1)\n%6 = matmul(%5, %1)\n%7 = softmax(%6, dim=2)\n"
      "%8 = matmul(%7, %2)\noutput %8\n",
      // One key for all of a stack.
      "%5 = select(%1, dim=0, index=0)\n%6 = matmul(%0, %5)\n%7 = softmax(%6, dim=2)\n%8 = matmul(%7, %2)\noutput %8\n",
  };
  for (const std::string& nodes : kept) {
    SCOPED_TRACE(nodes);
    Graph graph = parse(graph_of(nodes));
    const std::string before = print(graph);
    recognize_attention(graph);
    EXPECT_EQ(print(graph), before);
  }
}

TEST(AttentionPass, SeveralInOneGraph) {
  std::string nodes, outputs;
  int at = 5;
  for (int i = 0; i < 3; ++i) {
    const std::string q = i ? "%" + std::to_string(at - 1) : "%0";
    auto name = [&](int n) { return "%" + std::to_string(at + n); };
    nodes += name(0) + " = matmul(" + q + ", %1)\n" + name(1) + " = softmax(" + name(0) + ", dim=2)\n" + name(2) +
             " = matmul(" + name(1) + ", %2)\n" + name(3) + " = slice(" + name(2) +
             ", dim=2, start=0, end=4, step=1)\n";
    at += 4;
  }
  Graph graph = parse(graph_of(nodes + "output %" + std::to_string(at - 1) + "\n"));
  recognize_attention(graph);
  verify(graph);
  const std::string text = print(graph);
  EXPECT_EQ(text.find("softmax"), std::string::npos) << text;
  EXPECT_EQ(graph.nodes.size(), 9u) << text;
}

}  // namespace
}  // namespace ingot::ir
