// Printer, parser and verifier.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "samples.h"

namespace ingot::ir {
namespace {

constexpr const char* kGraph = R"(ingot.ir 1
symbol s0 = 8
symbol s1 = 3
scalar $0 = floating
scalar $1 = integer
input %0 = f32[s0, 2*s1 + 1]
input %1 = f32[2*s1 + 1, 10] strides [1, 2*s1 + 1] constant
%2 = add(%0, $0, 1) : f32[s0, (2*s1 + 1)] at "model.cpp":12 in "h.3.\"mlp\""
)";

TEST(Text, SymbolsStridesConstantsAndLocationsRoundTrip) {
  std::string text = R"(ingot.ir 1
symbol s0 = 8
symbol s1 = 3
scalar $0 = floating
scalar $1 = integer
input %0 = f32[s0, (2*s1 + 1)]
input %1 = f32[(2*s1 + 1), 10] strides [1, (2*s1 + 1)] constant
input %2 = bool[floor_div(s0, 2), max(4, s1), (s0*s1 - s0)]
%3 = add_(%0, $0, 1) : f32[s0, (2*s1 + 1)] at "a \"b\"\\c.cpp":12 in "h.3.mlp_up"
%4 = matmul(%3, %1) : f32[s0, 10]
%5 = mul(%4, 0.1) : f32[s0, 10]
%6 = mul(%5, -1e-300) : f32[s0, 10]
%7 = mul(%6, nan) : f32[s0, 10]
%8 = mul(%7, -inf) : f32[s0, 10]
%9 = add(%8, -0.0, $1) : f32[s0, 10]
%10 = div(%9, size((s0 + s1)), rounding_mode=floor) : f32[s0, 10]
%11 = where(%2, true, 3) : i64[floor_div(s0, 2), max(4, s1), (s0*s1 - s0)]
%12, %13 = max(%10, dim=1, keepdim=false) : f32[s0], i64[s0]
%14 = slice(%10, dim=0, start=(s0 - 1), end=s0, step=1) : f32[1, 10]
%15 = norm(%14, p=2.0, dim=[], keepdim=false) : f32[]
output %4, %12, %13, %15
)";
  Graph graph = parse(text);
  EXPECT_EQ(print(graph), text);
  verify(graph, false);
  EXPECT_THROW(verify(graph), InternalError);
  EXPECT_EQ(graph.nodes[0].location.line, 12);
  EXPECT_STREQ(graph.nodes[0].location.file, "a \"b\"\\c.cpp");
  EXPECT_EQ(graph.nodes[0].module, "h.3.mlp_up");
  EXPECT_TRUE(graph.inputs[1].constant);
}

TEST(Text, DefaultsAreFilledIn) {
  Graph graph =
      parse("ingot.ir 1\ninput %0 = f32[2]\n%1 = gelu(%0)\n%2 = layer_norm(%1, normalized_shape=[2])\noutput %2\n");
  EXPECT_EQ(print(graph),
            "ingot.ir 1\ninput %0 = f32[2]\n%1 = gelu(%0, approximate=none) : f32[2]\n"
            "%2 = layer_norm(%1, none, none, 1e-05, normalized_shape=[2]) : f32[2]\noutput %2\n");
}

TEST(Text, EveryOpRoundTripsAndVerifies) {
  std::set<std::string_view> seen;
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.text);
    Graph graph = parse(sample.text);
    verify(graph);
    std::string printed = print(graph);
    EXPECT_EQ(print(parse(printed)), printed);
    seen.insert(sample.op->name);
  }
  for (const OpInfo& op : ops()) EXPECT_TRUE(seen.count(op.name)) << "no sample of " << op.name;
}

TEST(Text, ADeepGraphNeedsNoStack) {
  Graph graph;
  ValueId value = graph.add_input(DType::f32, {4});
  for (int i = 0; i < 100000; ++i) value = graph.add(OpId::neg, {Operand::value(value)});
  graph.outputs.push_back(value);
  std::string text = print(graph);
  Graph again = parse(text);
  verify(again);
  EXPECT_EQ(print(again), text);
}

struct Fault {
  const char* line;    // stands after two inputs, %0 f32[2, 3] and %1 i64[3]
  const char* column;  // line:column of the error
  const char* expected;
};

TEST(Text, FaultsAreNamedWithLineAndColumn) {
  const Fault faults[] = {
      {"%2 = nothing(%0)", "4:6", "the name of an op"},
      {"%2 = exp(%0", "4:12", "`)`"},
      {"%2 = exp(%5)", "4:11", "defined before"},
      {"%2 = exp(%2)", "4:11", "defined before"},
      {"%3 = exp(%0)", "4:13", "the next value"},
      {"%2 = exp(%0) extra", "4:14", "the end of the line"},
      {"%2 = exp(%0) : f32[2, 4]", "4:25", "expected f32[2, 3]"},
      {"%2 = exp(%0) : f32[2, 3], f32[1]", "4:33", "number of types"},
      {"%2 = exp(%0, %0)", "4:16", "too many operands"},
      {"%2 = exp()", "4:11", "self: got nothing"},
      {"%2 = exp_(%0) at \"x", "4:20", "`\"`"},
      {"%2 = isnan_(%0)", "4:12", "no in-place form"},
      {"%2 = add(%0, $0)", "4:15", "a scalar that was declared"},
      {"%2 = gelu(%0, approximate=maybe)", "4:27", "a mode of `approximate`"},
      {"%2 = gelu(%0, nothing=1)", "4:15", "an attribute of gelu"},
      {"%2 = gelu(approximate=none, %0)", "4:29", "operands before attributes"},
      {"%2 = gelu(%0, approximate=none, approximate=tanh)", "4:45", "twice"},
      {"%2 = sum(%0, dim=[2])", "4:22", "a dim below 2"},
      {"%2 = sum(%0, dim=[-1])", "4:19", "not negative"},
      {"%2 = softmax(%0, dim=-1)", "4:22", "a dim"},
      {"%2 = sum(%0, dim=[1, 1])", "4:25", "each dim once"},
      {"%2 = view(%0, size=[s0])", "4:21", "a symbol that was declared"},
      {"%2 = view(%0, size=[3 - 4])", "4:26", "below zero"},
      {"%2 = view(%0, size=[floor_div(6, 0)])", "4:36", "positive divisor"},
      {"%2 = view(%0, size=[9223372036854775807*2])", "4:42", "2^63"},
      {"%2 = view(%0, size=[99999999999999999999])", "4:21", "a size"},
      {"%2 = expand(%0, size=[4611686018427387904, 2, 3])", "4:50", "2^59"},
      {"%2 = cast(%0, dtype=f99)", "4:21", "a dtype"},
      {"%2 = cast(%0)", "4:14", "dtype: got nothing"},
      {"%2 = add(%0, 1e9999)", "4:14", "a number"},
      {"%2 = add(%0, 99999999999999999999)", "4:14", "64 bits"},
      {"%2 = cat(%0, 1, dim=0)", "4:15", "a scalar in a list"},
      {"%2, %3 = exp(%0)", "4:13", "2 results, expected 1"},
      {"%2 = max(%0, dim=1)", "4:9", "1 results, expected 2"},
      {"input %2 = c64[2]", "4:18", "complex"},
      {"input %2 = f32[2] strides [1, 2]", "4:33", "a stride for each dim"},
      {"input %2 = f32[9223372036854775807, 3]", "4:39", "2^63"},
      {"scalar $1 = floating", "4:8", "`$0`"},
      {"scalar $0 = complex", "4:13", "boolean, integer or floating"},
      {"symbol s1 = 3", "4:8", "`s0`"},
      {"symbol s0 = -3", "4:13", "a size"},
      {"output %9", "4:9", "defined before"},
      {"output %0\n%2 = exp(%0)", "5:1", "nothing after"},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.line);
    std::string text =
        "ingot.ir 1\ninput %0 = f32[2, 3]\ninput %1 = i64[3]\n" + std::string(fault.line) + "\noutput %0\n";
    try {
      parse(text);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      std::string what = error.what();
      EXPECT_NE(what.find(std::string("IR text: ") + fault.column + ": "), std::string::npos) << what;
      EXPECT_NE(what.find(fault.expected), std::string::npos) << what;
    }
  }
  EXPECT_THROW(parse(""), Error);
  EXPECT_THROW(parse("ingot.ir 2\noutput\n"), Error);
  EXPECT_THROW(parse("ingot.ir 1\n"), Error);
  EXPECT_THROW(parse("ingot.ir 1\ninput %0 = f32[" + std::string(100000, '(') + "\n"), Error);
}

// Few bytes never make much of themselves: each text is parsed, or refused as too large, without its sizes being
// multiplied out.
TEST(Text, SizesThatMultiplyOutAreRefused) {
  auto joined = [](int count, const char* between, auto&& part) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i ? between : "") + part(i);
    return text;
  };
  auto symbol = [](int i) { return "s" + std::to_string(i); };
  std::string symbols = "ingot.ir 1\n";
  for (int i = 0; i < 32; ++i) symbols += "symbol " + symbol(i) + " = " + std::to_string(i % 2) + "\n";
  const std::string all = "(" + joined(32, "+", symbol) + ")", two = "(s0+s1)";
  const std::string sizes[] = {
      joined(8, "*", [&](int) { return all; }),
      joined(60, "*", [&](int) { return two; }),
      joined(60, "*", [&](int i) { return "(" + symbol(i % 32) + "+" + symbol(i * 7 % 32) + "+1)"; }),
      joined(40, "*", [&](int i) { return "(max(" + symbol(i % 32) + ", 2)+floor_div(s1, 2))"; }),
  };
  for (const std::string& size : sizes) {
    ASSERT_LT(size.size(), 1500u);
    for (const std::string& line :
         {"input %0 = f32[" + size + "]\noutput %0\n", "input %0 = f32[2] strides [" + size + "]\noutput %0\n",
          "input %0 = f32[1]\n%1 = expand(%0, size=[" + size + "])\noutput %1\n",
          "input %0 = f32[1]\n%1 = add(%0, size(" + size + "))\noutput %1\n"}) {
      try {
        parse(symbols + line);
        ADD_FAILURE() << "accepted: " << line;
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("sizes: got an expression of"), std::string::npos) << e.what();
      }
    }
  }
  // Sums of many symbols, made by ops, are what real graphs have.
  std::string ops = symbols, values;
  for (int i = 0; i < 32; ++i) {
    ops += "input %" + std::to_string(i) + " = f32[" + symbol(i) + ", 3]\n";
    values += "%" + std::to_string(i) + ", ";
  }
  ops += "%32 = cat(" + values + "dim=0) : f32[" + all + ", 3]\n%33 = view(%32, size=[3*" + all + "])\noutput %33\n";
  const std::string printed = print(parse(ops));
  EXPECT_EQ(print(parse(printed)), printed);
}

// What is printed can be read again, at the very bounds.
TEST(Text, TheDeepestSizesRoundTrip) {
  Graph graph;
  Dim n = graph.dims.symbol(int64_t{1} << 50);
  std::vector<Dim> sizes;
  try {
    while (true) {
      sizes.push_back(n);
      n = graph.dims.floor_div(graph.dims.add(n, 1), 2);
    }
  } catch (const SizeOverflow&) {
  }
  EXPECT_GT(sizes.size(), 60u);
  graph.outputs.push_back(graph.add_input(DType::f32, {sizes.back()}));
  const std::string text = print(graph);
  EXPECT_EQ(print(parse(text)), text);
}

TEST(Text, DamagedTextIsAnErrorOrAGraph) {
  std::vector<Sample> all = samples();
  std::mt19937 random(1);
  auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::string_view pieces = "%$[](),=:;\"-0123456789sfi .\n\\x_";
  int graphs = 0, errors = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 8 ? all[pick(all.size())].text : std::string(kGraph) + "output %2\n";
    for (size_t edits = 1 + pick(3); edits > 0; --edits) {
      size_t at = pick(text.size());
      switch (pick(4)) {
        case 0:
          text.erase(at, 1 + pick(4));
          break;
        case 1:
          text.insert(at, 1, pieces[pick(pieces.size())]);
          break;
        case 2:
          text[at] = pieces[pick(pieces.size())];
          break;
        default:
          text.insert(at, text.substr(pick(text.size()), pick(12)));
          break;
      }
      if (text.empty()) text = "\n";
    }
    try {
      Graph graph = parse(text);
      std::string printed = print(graph);
      ASSERT_EQ(print(parse(printed)), printed) << text;
      verify(graph, false);
      ++graphs;
    } catch (const Error& error) {
      ASSERT_TRUE(std::string_view(error.what()).starts_with("IR text: ")) << error.what();
      ++errors;
    }
  }
  EXPECT_GT(graphs, 100);
  EXPECT_GT(errors, 1000);
}

TEST(Verify, NamesTheBrokenInvariant) {
  auto broken = [](auto damage) {
    Graph graph = parse("ingot.ir 1\ninput %0 = f32[2, 3]\n%1 = exp(%0)\n%2 = add(%1, %0)\noutput %2\n");
    damage(graph);
    try {
      verify(graph);
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(broken([](Graph&) {}), "");
  EXPECT_NE(broken([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }).find("definition before use"),
            std::string::npos);
  EXPECT_NE(broken([](Graph& g) { g.values[2].type.dtype = DType::f64; }).find("of type f32[2, 3]"), std::string::npos);
  EXPECT_NE(broken([](Graph& g) { g.nodes[1].inplace = true; }).find("no in-place"), std::string::npos);
  EXPECT_NE(broken([](Graph& g) { g.outputs[0] = 7; }).find("value 7"), std::string::npos);
  EXPECT_NE(
      broken([](Graph& g) { g.nodes[1].operands[1] = Operand::scalar(0, Category::floating); }).find("a scalar of"),
      std::string::npos);
  EXPECT_NE(broken([](Graph& g) { g.nodes[1].outputs[0] = 1; }).find("one definition"), std::string::npos);
  EXPECT_NE(broken([](Graph& g) { g.values[2].producer = 0; }).find("producer"), std::string::npos);
}

}  // namespace
}  // namespace ingot::ir
