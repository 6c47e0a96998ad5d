// Every op, decomposed: only primitives in their one form are left, and the reference interpreter gives the same
// values.
#include "ir/decompose.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/passes/pipeline.h"
#include "ir/reference.h"
#include "samples.h"
#include "uniform.h"

namespace ingot::ir {
namespace {

/// Inputs of the graph: floats of either sign; integers that are indices in range and divisors.
std::vector<ReferenceTensor> random_inputs(const Graph& graph, std::string_view op, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<ReferenceTensor> inputs;
  for (const InputInfo& input : graph.inputs) {
    const TensorType& type = graph.type(input.value);
    Ints shape;
    for (Dim d : type.shape) shape.push_back(graph.dims.hint(d));
    ReferenceTensor tensor(type.dtype, shape);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      double real = ingot::test::uniform<double>(random, -2, 2);
      // A running variance is positive.
      if (op == "batch_norm" && inputs.size() == 2) real = std::abs(real) + 0.5;
      if (op == "multinomial") real = std::abs(real);
      if (tensor.floating())
        tensor.real[i] = round_to(type.dtype, real);
      else
        tensor.integer[i] = type.dtype == DType::bool_ ? random() % 2 : 1 + random() % 2;
    }
    make_regular(*find_op(op), inputs.size(), &tensor);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

void expect_close(const std::vector<ReferenceTensor>& got, const std::vector<ReferenceTensor>& expected, double bound) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t o = 0; o < got.size(); ++o) {
    ASSERT_EQ(got[o].dtype, expected[o].dtype);
    ASSERT_EQ(got[o].shape, expected[o].shape);
    for (int64_t i = 0; i < got[o].size(); ++i) {
      double a = got[o].at(i), b = expected[o].at(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      EXPECT_LE(std::abs(a - b), bound * (1 + std::abs(b))) << "output " << o << " element " << i;
    }
  }
}

/// A rounding or two of the narrowest dtype in the graph.
double bound_of(const Graph& graph) {
  double bound = 1e-13;
  for (const ValueInfo& value : graph.values) {
    DType d = value.type.dtype;
    bound = std::max(bound, d == DType::bf16 ? 1e-2 : d == DType::f16 ? 2e-3 : d == DType::f32 ? 2e-6 : 0.0);
  }
  return bound;
}

void check_form(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    const OpInfo& op = info(node.op);
    EXPECT_NE(op.kind, OpKind::composite) << op.name;
    bool computes = op.kind != OpKind::elementwise && op.kind != OpKind::view && !op.has(kExact);
    for (const Operand& operand : node.operands)
      if (operand.is_value() && computes)
        EXPECT_FALSE(is_half(graph.type(operand.id).dtype) &&
                     (node.op != OpId::matmul ||
                      graph.type(operand.id).dtype != graph.type(node.operands[0].id).dtype ||
                      graph.type(node.outputs[0]).dtype != DType::f32))
            << op.name;
    if (op.kind == OpKind::reduction) {
      if (op.attribute(0).kind == ArgKind::dims)
        EXPECT_EQ(node.attrs[0].list.size(), 1u) << op.name;
      else
        EXPECT_TRUE(node.attrs[0].present()) << op.name;
      EXPECT_EQ(node.attrs[1].integer, 0) << op.name;
      if (node.attrs.size() > 2) EXPECT_FALSE(node.attrs[2].present()) << op.name;
    }
    if (node.op == OpId::matmul)
      for (const Operand& operand : node.operands) EXPECT_GE(graph.type(operand.id).shape.size(), 2u);
  }
}

TEST(Decompose, EveryOpIsPrimitivesWithTheSameMeaning) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.text);
    Graph graph = parse(sample.text), primitives = graph;
    decompose(primitives);
    SCOPED_TRACE(print(primitives));
    verify(primitives);
    check_form(primitives);
    ASSERT_EQ(graph.outputs.size(), primitives.outputs.size());
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      EXPECT_EQ(graph.type(graph.outputs[i]).dtype, primitives.type(primitives.outputs[i]).dtype);
      EXPECT_EQ(graph.type(graph.outputs[i]).shape, primitives.type(primitives.outputs[i]).shape);
    }
    std::vector<ReferenceTensor> inputs = random_inputs(graph, sample.op->name, 1);
    expect_close(interpret(primitives, inputs), interpret(graph, inputs), bound_of(graph));
  }
}

TEST(Pipeline, EveryOpKeepsItsMeaningThroughAllPasses) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.text);
    Graph graph = parse(sample.text), after = graph;
    run_pipeline(after, {.disabled = {}, .evaluate = {}, .verify = true});
    SCOPED_TRACE(print(after));
    check_form(after);
    std::vector<ReferenceTensor> inputs = random_inputs(graph, sample.op->name, 2);
    expect_close(interpret(after, inputs), interpret(graph, inputs), bound_of(graph));
  }
}

std::string decomposed(const std::string& body) {
  Graph graph = parse("ingot.ir 1\n" + body);
  decompose(graph);
  return print(graph);
}

TEST(Decompose, ReducedDimsThatAreNeighboursAreOneAndOthersNestFromTheInside) {
  EXPECT_EQ(decomposed("input %0 = f32[2, 3, 4, 5]\n%1 = sum(%0, dim=[2, 0, 3], keepdim=true)\noutput %1\n"),
            "ingot.ir 1\n"
            "input %0 = f32[2, 3, 4, 5]\n"
            "%1 = view(%0, size=[2, 3, 20]) : f32[2, 3, 20]\n"
            "%2 = sum(%1, dim=[2], keepdim=false) : f32[2, 3]\n"
            "%3 = sum(%2, dim=[0], keepdim=false) : f32[3]\n"
            "%4 = view(%3, size=[1, 3, 1, 1]) : f32[1, 3, 1, 1]\n"
            "output %4\n");
}

TEST(Decompose, SixteenBitFloatsAreWidenedOnceAndRoundedOnce) {
  EXPECT_EQ(decomposed("input %0 = bf16[4, 8]\n%1 = mean(%0, dim=[1])\noutput %1\n"),
            "ingot.ir 1\n"
            "input %0 = bf16[4, 8]\n"
            "%1 = cast(%0, dtype=f32) : f32[4, 8]\n"
            "%2 = sum(%1, dim=[1], keepdim=false) : f32[4]\n"
            "%3 = div(%2, 8.0, rounding_mode=none) : f32[4]\n"
            "%4 = cast(%3, dtype=bf16) : bf16[4]\n"
            "output %4\n");
}

TEST(Decompose, SizesStaySymbols) {
  EXPECT_EQ(decomposed("symbol s0 = 6\ninput %0 = f32[s0, 2, 4]\ninput %1 = f32[5, 4]\n%2 = linear(%0, %1)\n"
                       "%3 = mean(%2, dim=[0])\noutput %3\n"),
            "ingot.ir 1\n"
            "symbol s0 = 6\n"
            "input %0 = f32[s0, 2, 4]\n"
            "input %1 = f32[5, 4]\n"
            "%2 = permute(%1, dims=[1, 0]) : f32[4, 5]\n"
            "%3 = view(%0, size=[(2*s0), 4]) : f32[(2*s0), 4]\n"
            "%4 = matmul(%3, %2) : f32[(2*s0), 5]\n"
            "%5 = view(%4, size=[s0, 2, 5]) : f32[s0, 2, 5]\n"
            "%6 = sum(%5, dim=[0], keepdim=false) : f32[2, 5]\n"
            "%7 = div(%6, size(s0), rounding_mode=none) : f32[2, 5]\n"
            "output %7\n");
}

// Windows of every kind, and those that hang over an end: nothing is put around an image of known size.
TEST(Decompose, MaxPoolingNeedsNoBorder) {
  std::mt19937 random(3);
  auto any = [&](int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); };
  int tried = 0, bordered = 0;
  for (int round = 0; round < 4000; ++round) {
    const int64_t kernel = any(1, 5), wide = any(1, 4);
    std::string text = "ingot.ir 1\ninput %0 = f32[2, " + std::to_string(any(1, 9)) + ", " + std::to_string(any(1, 9)) +
                       "]\n%1 = max_pool2d(%0, kernel_size=[" + std::to_string(kernel) + ", " + std::to_string(wide) +
                       "], stride=[" + std::to_string(any(1, 4)) + ", " + std::to_string(any(1, 3)) + "], padding=[" +
                       std::to_string(any(0, kernel / 2)) + ", " + std::to_string(any(0, wide / 2)) + "], dilation=[" +
                       std::to_string(any(1, 3)) + ", " + std::to_string(any(1, 2)) +
                       "], ceil_mode=" + (any(0, 1) ? "true" : "false") + ")\noutput %1\n";
    SCOPED_TRACE(text);
    Graph graph;
    try {
      graph = parse(text);
    } catch (const Error&) {
      continue;  // no window fits
    }
    ++tried;
    Ints shape;
    for (Dim d : graph.type(graph.inputs[0].value).shape) shape.push_back(d.code);
    ReferenceTensor image(DType::f32, shape);
    for (double& x : image.real) {
      const int64_t kind = any(0, 9);
      x = kind == 0 ? std::nan("") : static_cast<double>(any(-3, 3)) / 2;
    }
    Graph primitives = graph;
    decompose(primitives);
    verify(primitives);
    bordered += print(primitives).find("full(") != std::string::npos;
    const std::vector<ReferenceTensor> inputs{image};
    const ReferenceTensor got = interpret(primitives, inputs)[0], expected = interpret(graph, inputs)[0];
    ASSERT_EQ(got.shape, expected.shape);
    for (int64_t i = 0; i < got.size(); ++i) {
      const double a = got.at(i), b = expected.at(i);
      ASSERT_TRUE(std::isnan(a) ? std::isnan(b) : a == b) << i << ": " << a << ", expected " << b;
    }
  }
  EXPECT_GT(tried, 2000);
  EXPECT_LT(bordered, tried / 4) << "of windows without an element, or of many kinds";
  EXPECT_EQ(decomposed("input %0 = f32[1, 64, 112, 112]\n%1 = max_pool2d(%0, kernel_size=[3], stride=[2], "
                       "padding=[1])\noutput %1\n")
                .find("full("),
            std::string::npos);
}

// Where tiles are to read bf16: not where each channel is a group, nor what a graph itself has cast; taps that are
// turned, and views, are those of the narrow weight.
TEST(Decompose, ConvolutionsReadBf16WhereAskedTo) {
  auto of = [](const std::string& lines, bool narrow) {
    Graph graph = parse("ingot.ir 1\n" + lines);
    decompose(graph, narrow);
    verify(graph);
    eliminate_dead_code(graph);
    return print(graph);
  };
  const std::string inputs = "input %0 = bf16[2, 4, 5, 5]\ninput %1 = bf16[6, 4, 3, 3]\ninput %2 = bf16[6]\n";
  const std::string plain = inputs + "%3 = conv2d(%0, %1, %2)\noutput %3\n";
  EXPECT_NE(of(plain, true).find("conv2d(%0, %1, %2, stride=[1], padding=[0], dilation=[1], groups=1, out_dtype=f32)"),
            std::string::npos)
      << of(plain, true);
  EXPECT_EQ(of(plain, false).find("out_dtype"), std::string::npos);
  const std::string f32 = inputs + "%3 = conv2d(%0, %1, %2, out_dtype=f32)\noutput %3\n";
  EXPECT_EQ(of(f32, true).find("cast"), std::string::npos) << of(f32, true);
  EXPECT_EQ(of(f32, false).find("out_dtype"), std::string::npos);
  const std::string by_hand = inputs +
                              "%3 = cast(%0, dtype=f32)\n%4 = cast(%1, dtype=f32)\n"
                              "%5 = conv2d(%3, %4)\noutput %5\n";
  EXPECT_EQ(of(by_hand, true).find("out_dtype"), std::string::npos) << of(by_hand, true);
  const std::string depthwise =
      "input %0 = bf16[2, 4, 5, 5]\ninput %1 = bf16[4, 1, 3, 3]\n"
      "%2 = conv2d(%0, %1, groups=4)\noutput %2\n";
  EXPECT_EQ(of(depthwise, true).find("out_dtype"), std::string::npos) << of(depthwise, true);
  const std::string transposed =
      "input %0 = bf16[2, 4, 5, 5]\ninput %1 = bf16[4, 6, 3, 3]\n"
      "%2 = conv_transpose2d(%0, %1)\noutput %2\n";
  EXPECT_NE(of(transposed, true).find("out_dtype=f32"), std::string::npos) << of(transposed, true);
}

TEST(Decompose, LocationsAndModulesStay) {
  Graph graph =
      parse("ingot.ir 1\ninput %0 = f32[2, 3]\n%1 = softmax(%0, dim=1) at \"net.cpp\":7 in \"head\"\noutput %1\n");
  decompose(graph);
  ASSERT_GT(graph.nodes.size(), 3u);
  for (const Node& node : graph.nodes) {
    EXPECT_EQ(node.location.line, 7);
    EXPECT_EQ(node.module, "head");
  }
}

}  // namespace
}  // namespace ingot::ir
