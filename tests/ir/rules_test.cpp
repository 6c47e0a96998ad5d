// Type, shape and layout rules: PyTorch's promotion, results by hand, and what is refused.
#include "ir/rules/rules.h"

#include <gtest/gtest.h>

#include "ir/graph.h"

namespace ingot::ir {
namespace {

/// Type of the last node of a graph with these inputs ("f32[2]; i64[]") and this call.
std::string result_of(std::string inputs, const std::string& call, const std::string& declarations = "") {
  std::string text = "ingot.ir 1\n" + declarations;
  int number = 0;
  while (!inputs.empty()) {
    size_t end = inputs.find("; ");
    text += "input %" + std::to_string(number++) + " = " + inputs.substr(0, end) + "\n";
    inputs = end == std::string::npos ? "" : inputs.substr(end + 2);
  }
  const OpInfo* op = find_op(call.substr(0, call.find('(')));
  if (!op) op = find_op(call.substr(0, call.find('_')));
  std::string results;
  for (int i = 0; i < op->outputs; ++i) results += (i ? ", %" : "%") + std::to_string(number + i);
  Graph graph = parse(text + results + " = " + call + "\noutput\n");
  std::string types;
  for (ValueId output : graph.nodes.back().outputs) {
    const TensorType& type = graph.type(output);
    types += (types.empty() ? "" : ", ") + std::string(name_of(type.dtype)) + shape_text(graph.dims, type.shape);
  }
  return types;
}

std::string error_of(const std::string& inputs, const std::string& call, const std::string& declarations = "") {
  try {
    return "no error: " + result_of(inputs, call, declarations);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Types, PromotionIsByTensorsWithDimsThenZeroDimThenScalars) {
  struct Case {
    const char *inputs, *call, *expected;
  };
  const Case cases[] = {
      {"f32[2]; f32[2]", "add(%0, %1)", "f32[2]"},
      {"f16[2]; bf16[2]", "add(%0, %1)", "f32[2]"},
      {"i8[2]; u8[2]", "add(%0, %1)", "i16[2]"},
      {"i64[2]; f16[2]", "add(%0, %1)", "f16[2]"},
      {"bool[2]; u8[2]", "mul(%0, %1)", "u8[2]"},
      {"bool[2]; bool[2]", "add(%0, %1)", "bool[2]"},
      // A zero-dim tensor only raises the category.
      {"f16[2]; f64[]", "add(%0, %1)", "f16[2]"},
      {"i32[2]; i64[]", "add(%0, %1)", "i32[2]"},
      {"i32[2]; f64[]", "add(%0, %1)", "f64[2]"},
      {"i32[2]; f16[]", "add(%0, %1)", "f16[2]"},
      {"bool[2]; u8[]", "add(%0, %1)", "u8[2]"},
      {"i32[]; f64[]", "add(%0, %1)", "f64[]"},
      // So does a scalar, with its category's default dtype.
      {"f16[2]", "add(%0, 1.5)", "f16[2]"},
      {"f64[]", "add(%0, 1.5)", "f64[]"},
      {"i32[2]", "add(%0, 1)", "i32[2]"},
      {"i32[2]", "add(%0, 1.5)", "f32[2]"},
      {"i32[]", "add(%0, 1.5)", "f32[]"},
      {"bool[2]", "add(%0, true)", "bool[2]"},
      {"bool[2]", "add(%0, 1)", "i64[2]"},
      {"u8[2]", "add(1, %0)", "u8[2]"},
      {"f16[2]; f32[]", "add(%0, %1, 2.5)", "f16[2]"},
      // Floating functions and division of integers.
      {"i64[2]", "exp(%0)", "f32[2]"},
      {"bool[2]", "sqrt(%0)", "f32[2]"},
      {"bf16[2]", "tanh(%0)", "bf16[2]"},
      {"i64[2]; f64[2]", "atan2(%0, %1)", "f64[2]"},
      {"i64[2]", "div(%0, 2)", "f32[2]"},
      {"i64[2]", "div(%0, 2, rounding_mode=floor)", "i64[2]"},
      {"i64[2]", "div(%0, 2.0, rounding_mode=trunc)", "f32[2]"},
      {"i8[2]", "float_power(%0, 2)", "f64[2]"},
      {"i64[2]", "pow(%0, 2)", "i64[2]"},
      {"bool[2]", "square(%0)", "i64[2]"},
      // Comparison and logic.
      {"i32[2]; f64[2]", "lt(%0, %1)", "bool[2]"},
      {"f32[2]", "isnan(%0)", "bool[2]"},
      {"f32[2]; i64[2]", "logical_and(%0, %1)", "bool[2]"},
      {"u8[2]; i64[2]", "bitwise_and(%0, %1)", "i64[2]"},
      {"bool[3]; i32[3]", "where(%0, %1, 2.5)", "f32[3]"},
      {"bool[3]", "where(%0, 1, 2)", "i64[3]"},
      {"f16[3]; bool[3]; f64[]", "masked_fill(%0, %1, %2)", "f16[3]"},
      {"i64[3]", "clamp(%0, none, 2.5)", "f32[3]"},
      // Reductions.
      {"bool[2]", "sum(%0)", "i64[]"},
      {"i8[2]", "prod(%0)", "i64[]"},
      {"f16[2]", "sum(%0)", "f16[]"},
      {"i32[2]", "sum(%0, dtype=f64)", "f64[]"},
      {"i32[2]", "mean(%0, dtype=f32)", "f32[]"},
      {"u8[2]", "any(%0)", "u8[]"},
      {"f32[2]", "all(%0)", "bool[]"},
      {"f64[2, 3]", "max(%0, dim=0)", "f64[3], i64[3]"},
      {"i32[2]", "logsumexp(%0, dim=[0])", "f32[]"},
      {"i32[2]", "softmax(%0, dim=0, dtype=f64)", "f64[2]"},
      // Creation.
      {"", "full(1, size=[2])", "i64[2]"},
      {"", "full(true, size=[2])", "bool[2]"},
      {"", "full(1, size=[2], dtype=bf16)", "bf16[2]"},
      {"", "arange(0, 0.5, length=3)", "f32[3]"},
      {"", "eye(n=2)", "f32[2, 2]"},
      // In place keeps self's dtype.
      {"f16[2]; f32[2]", "add_(%0, %1)", "f16[2]"},
      {"i32[2]; i64[2]", "add_(%0, %1)", "i32[2]"},
      {"f32[2]; i64[2]", "copy_(%0, %1)", "f32[2]"},
      {"i32[2]; f32[2]", "copy_(%0, %1)", "i32[2]"},
      {"bf16[2]; f32[2]", "lt_(%0, %1)", "bf16[2]"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.inputs) + " " + c.call);
    EXPECT_EQ(result_of(c.inputs, c.call), c.expected);
  }
}

TEST(Types, TheDtypeInWhichAnOpComputesIsThatOfItsOperandsTogether) {
  auto compute = [](const std::string& inputs, const std::string& call) {
    Graph graph = parse("ingot.ir 1\n" + inputs + "%2 = " + call + "\noutput\n");
    std::vector<TensorType> types;
    DType dtype;
    infer(graph, graph.nodes[0], graph.dims, &types, &dtype);
    return dtype;
  };
  EXPECT_EQ(compute("input %0 = i32[2]\ninput %1 = f64[2]\n", "eq(%0, %1)"), DType::f64);
  EXPECT_EQ(compute("input %0 = i32[2]\ninput %1 = i64[2]\n", "atan2(%0, %1)"), DType::f32);
  EXPECT_EQ(compute("input %0 = f16[2]\ninput %1 = f64[2]\n", "copy(%0, %1)"), DType::f16);
  EXPECT_EQ(compute("input %0 = bool[2]\ninput %1 = f16[2]\n", "where(%0, %1, 1)"), DType::f16);
}

TEST(Shapes, ByHand) {
  struct Case {
    const char *inputs, *call, *expected;
  };
  const Case cases[] = {
      {"f32[4, 1, 3]; f32[5, 1]", "add(%0, %1)", "f32[4, 5, 3]"},
      {"f32[0]; f32[1]", "add(%0, %1)", "f32[0]"},
      {"f32[]; f32[2, 2]", "add(%0, %1)", "f32[2, 2]"},
      {"f32[2, 3, 4]", "sum(%0, dim=[0, 2], keepdim=true)", "f32[1, 3, 1]"},
      {"f32[]", "sum(%0, dim=[0])", "f32[]"},
      {"f32[2, 0]", "sum(%0, dim=[1])", "f32[2]"},
      {"f32[2, 3]", "argmax(%0)", "i64[]"},
      {"f32[2, 3]", "argmax(%0, keepdim=true)", "i64[1, 1]"},
      {"f32[2, 3, 4]", "permute(%0, dims=[2, 0, 1])", "f32[4, 2, 3]"},
      {"f32[2, 3]", "view(%0, size=[3, 1, 2])", "f32[3, 1, 2]"},
      {"f32[0, 3]", "view(%0, size=[3, 0, 7])", "f32[3, 0, 7]"},
      {"f32[]", "view(%0, size=[1, 1])", "f32[1, 1]"},
      {"f32[3, 1]", "expand(%0, size=[2, 3, 0])", "f32[2, 3, 0]"},
      {"f32[7]", "slice(%0, dim=0, start=1, step=3)", "f32[2]"},
      {"f32[7]", "slice(%0, dim=0, start=7, end=7)", "f32[0]"},
      {"f32[3, 4]", "diagonal(%0, offset=2)", "f32[2]"},
      {"f32[3, 4]", "diagonal(%0, offset=-9)", "f32[0]"},
      {"f32[2, 3, 4]", "diagonal(%0, dim1=2, dim2=0)", "f32[3, 2]"},
      {"f32[2, 7]", "unfold(%0, dimension=1, size=3, step=2)", "f32[2, 3, 3]"},
      {"f32[]", "unfold(%0, dimension=0, size=1, step=1)", "f32[1]"},
      {"f32[1, 2, 1]", "squeeze(%0)", "f32[2]"},
      {"f32[1, 2, 1]", "squeeze(%0, dim=[1, 2])", "f32[1, 2]"},
      {"f32[2, 3]; f32[2, 1]", "cat(%0, %1, dim=1)", "f32[2, 4]"},
      {"f32[0]; f32[2, 1]", "cat(%0, %1, dim=1)", "f32[2, 1]"},
      {"f32[2]; i64[2]", "stack(%0, %1, dim=1)", "f32[2, 2]"},
      {"f32[4]; f32[3, 4, 2]", "matmul(%0, %1)", "f32[3, 2]"},
      {"f32[3, 4, 2]; f32[2]", "matmul(%0, %1)", "f32[3, 4]"},
      {"f32[5, 1, 2, 3]; f32[4, 3, 6]", "matmul(%0, %1)", "f32[5, 4, 2, 6]"},
      {"f32[2, 0]; f32[0, 3]", "matmul(%0, %1)", "f32[2, 3]"},
      {"f32[7, 3]; f32[5, 3]; f32[5]", "linear(%0, %1, %2)", "f32[7, 5]"},
      {"f32[1, 3, 9, 9]; f32[8, 3, 3, 3]", "conv2d(%0, %1, none, stride=[2], padding=[1])", "f32[1, 8, 5, 5]"},
      {"f32[3, 9]; f32[8, 3, 3]", "conv1d(%0, %1, none, dilation=[2])", "f32[8, 5]"},
      {"f32[1, 1, 5, 5]", "max_pool2d(%0, kernel_size=[2], ceil_mode=true)", "f32[1, 1, 3, 3]"},
      // The last window would start in the right padding.
      {"f32[1, 1, 4, 4]", "max_pool2d(%0, kernel_size=[2], stride=[3], padding=[1], ceil_mode=true)",
       "f32[1, 1, 2, 2]"},
      {"f32[10, 4]; i64[2, 3]", "embedding(%0, %1)", "f32[2, 3, 4]"},
      {"f32[2, 8, 3, 4]; f32[2, 2, 5, 4]; f32[2, 2, 5, 6]", "scaled_dot_product_attention(%0, %1, %2, enable_gqa=true)",
       "f32[2, 8, 3, 6]"},
      {"f32[4, 3, 2]; i64[4, 2]", "nll_loss(%0, %1, reduction=none)", "f32[4, 2]"},
      {"f32[2, 3]", "constant_pad_nd(%0, pad=[1, 2, 3, 4])", "f32[9, 6]"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.inputs) + " " + c.call);
    EXPECT_EQ(result_of(c.inputs, c.call), c.expected);
  }
}

TEST(Shapes, SymbolsStayAndGuardsAreRecordedWhereTheyDecide) {
  std::string symbols = "symbol s0 = 8\nsymbol s1 = 8\n";
  EXPECT_EQ(result_of("f32[s0, 4]; f32[s0, 1]", "add(%0, %1)", symbols), "f32[s0, 4]");
  EXPECT_EQ(result_of("f32[s0]; f32[3*s0]", "cat(%0, %1, dim=0)", symbols), "f32[(4*s0)]");
  EXPECT_EQ(result_of("f32[s0, 2, 3]", "view(%0, size=[2*s0, 3])", symbols), "f32[(2*s0), 3]");
  EXPECT_EQ(result_of("f32[s0]", "slice(%0, dim=0, start=s0 - 2, end=s0)", symbols), "f32[2]");

  auto guards = [&](const std::string& inputs, const std::string& call) {
    Graph graph = parse("ingot.ir 1\n" + symbols + inputs + "%2 = " + call + "\noutput\n");
    return graph.dims.guards().size();
  };
  EXPECT_EQ(guards("input %0 = f32[s0, 4]\ninput %1 = f32[s0, 1]\n", "add(%0, %1)"), 0u);
  EXPECT_EQ(guards("input %0 = f32[s0, 2]\ninput %1 = f32[4]\n", "view(%0, size=[2*s0])"), 0u);
  EXPECT_EQ(guards("input %0 = f32[s0, 4]\ninput %1 = f32[4, 5]\n", "matmul(%0, %1)"), 0u);
  EXPECT_EQ(guards("input %0 = f32[s0, 4]\ninput %1 = f32[s1, 4]\n", "add(%0, %1)"), 1u);
}

TEST(Rules, RefuseWithOpArgumentGotAndExpected) {
  struct Case {
    const char *inputs, *call, *expected;
  };
  const Case cases[] = {
      {"f32[2, 3]; f32[4]", "add(%0, %1)", "add: other: got shape [4], expected a shape that broadcasts with [2, 3]"},
      {"i64[2]", "add(%0, 1, 2.5)", "add: alpha: got a floating scalar, expected an integer for a i64 result"},
      {"bool[2]; bool[2]", "sub(%0, %1)", "sub: self: got bool"},
      {"f32[2]", "bitwise_not(%0)", "bitwise_not: self: got f32, expected an integer or bool dtype"},
      {"bool[2]", "bitwise_left_shift(%0, true)", "expected an integer dtype"},
      {"i64[2]", "gelu(%0)", "gelu: self: got i64, expected a floating point dtype"},
      {"i64[2]", "mean(%0)", "mean: self: got i64, expected a floating point dtype, or one as `dtype`"},
      {"i64[2]", "softmax(%0, dim=0)", "softmax: self: got i64"},
      {"f32[3]; f32[3]", "where(%0, %1, 1)", "where: condition: got tensor f32[3], expected a bool tensor"},
      {"i64[3]; bool[3]; f32[]", "masked_fill(%0, %1, %2)", "masked_fill: value: got tensor f32[]"},
      {"f32[3]", "fill(%0, %0)", "expected a scalar or a zero-dim tensor"},
      {"f32[3]", "cast(%0, dtype=c64)", "cast: dtype: got c64"},
      {"f32[3]", "exp(1.5)", "exp: self: got a floating scalar, expected a tensor"},
      {"f32[3]", "hardtanh(%0, %0)", "hardtanh: min_val: got tensor f32[3], expected a scalar"},
      // In place.
      {"i64[2]", "add_(%0, 2.5)", "add: self: got tensor i64[2], expected a dtype that can hold a f32 result"},
      {"bool[2]; i64[2]", "add_(%0, %1)", "a dtype that can hold a i64 result"},
      {"f32[1, 3]; f32[2, 3]", "add_(%0, %1)", "add: self: got shape [1, 3], expected shape [2, 3]"},
      {"f32[2]", "add_(1.0, %0)", "a tensor to write to"},
      {"f32[2]; f32[3]", "copy_(%0, %1)", "copy: source: got shape [3]"},
      {"f32[2]; f32[4, 2]", "copy_(%0, %1)",
       "copy: source: got tensor f32[4, 2], expected a shape that broadcasts to [2]"},
      // Dims.
      {"f32[2, 3]", "sum(%0, dim=[2])", "sum: dim: got 2, expected a dim below 2"},
      {"f32[2, 3]", "sum(%0, dim=[0, 0])", "sum: dim: got [0, 0], expected each dim once"},
      {"f32[2, 3]", "softmax(%0, dim=2)", "softmax: dim: got 2"},
      {"f32[2, 3]", "permute(%0, dims=[0])", "permute: dims: got [0], expected 2 dims"},
      {"f32[2, 3]", "permute(%0, dims=[0, 0])", "each dim once"},
      {"f32[2]", "unsqueeze(%0, dim=2)", "unsqueeze: dim: got 2, expected a dim of 0 to 1"},
      {"f32[2]; f32[2]", "stack(%0, %1, dim=2)", "stack: dim: got 2"},
      {"f32[2, 0]", "amax(%0, dim=[1])", "at least one element along dim 1"},
      {"f32[0]", "argmax(%0)", "this reduction has no identity"},
      // Views.
      {"f32[2, 3]", "view(%0, size=[5])", "view: size: got [5], expected as many elements as shape [2, 3]"},
      {"f32[2, 3]", "expand(%0, size=[3])", "expand: size: got [3], expected at least 2 dims"},
      {"f32[2, 3]", "expand(%0, size=[4, 3])", "sizes that shape [2, 3] expands to"},
      {"f32[2, 3]", "select(%0, dim=1, index=3)", "select: index: got 3, expected an index below the size of dim 1, 3"},
      {"f32[]", "select(%0, dim=0, index=0)", "select: self: got a zero-dim tensor"},
      {"f32[5]", "slice(%0, dim=0, start=3, end=2)", "slice: start: got 3, expected at most the end, 2"},
      {"f32[5]", "slice(%0, dim=0, end=6)", "slice: end: got 6, expected at most 5"},
      {"f32[5]", "slice(%0, dim=0, step=0)", "slice: step: got 0"},
      {"f32[5, 5]", "diagonal(%0, dim1=1)", "another dim than dim1"},
      {"f32[5]", "unfold(%0, dimension=0, size=6, step=1)", "unfold: size: got 6"},
      {"f32[5]", "as_strided(%0, size=[2], stride=[1, 1])", "as_strided: stride: got [1, 1]"},
      {"f32[5]; f64[2]", "as_strided_scatter(%0, %1, size=[2], stride=[1])", "src: got tensor f64[2], expected f32"},
      {"f32[5]; f32[2]", "as_strided_scatter(%0, %1, size=[2], stride=[5])", "positions up to 6, expected at most 5"},
      {"f32[4611686018427387904]", "expand(%0, size=[4611686018427387904])", "fewer than 2^59 elements"},
      // Joining and indexing.
      {"f32[2, 3]; f32[3, 3]", "cat(%0, %1, dim=1)",
       "cat: tensors[1]: got shape [3, 3], expected shape [2, 3] but for dim 1"},
      {"f32[]; f32[]", "cat(%0, %1)", "cat: tensors[0]: got a zero-dim tensor"},
      {"", "cat(dim=0)", "cat: tensors: got an empty list"},
      {"f32[2]; f32[3]", "stack(%0, %1)", "stack: tensors[1]: got shape [3]"},
      {"f32[2]; f32[3]", "index_select(%0, %1, dim=0)",
       "index_select: index: got tensor f32[3], expected an i64 or i32"},
      {"f32[2]; i64[1, 1]", "index_select(%0, %1, dim=0)", "at most one dim"},
      {"f32[2, 3]; i64[2, 4]", "gather(%0, %1, dim=0)", "gather: index: got shape [2, 4]"},
      {"f32[2, 3]; i64[2]", "gather(%0, %1, dim=0)", "gather: index: got shape [2]"},
      {"f32[2]; i64[1]", "embedding(%0, %1)", "embedding: weight: got shape [2], expected 2 dims"},
      {"f32[2]", "tril(%0)", "tril: self: got shape [2], expected at least two dims"},
      {"f32[2]", "constant_pad_nd(%0, pad=[1])", "constant_pad_nd: pad: got [1]"},
      // Products.
      {"f32[2, 3]; f32[4, 5]", "matmul(%0, %1)", "matmul: other: got shape [4, 5], expected size 3 at dim 0"},
      {"f32[]; f32[4]", "matmul(%0, %1)", "matmul: self: got a zero-dim tensor"},
      {"f32[2, 3]; f32[3, 5]", "matmul(%0, %1, out_dtype=f64)",
       "matmul: out_dtype: got f64, expected f32, the dtype of self"},
      {"bf16[2, 3]; bf16[3, 5]", "matmul(%0, %1, out_dtype=f16)",
       "matmul: out_dtype: got f16, expected bf16, the dtype of self, or f32"},
      {"f32[2, 3]; f64[3, 5]", "matmul(%0, %1)",
       "matmul: other: got tensor f64[3, 5], expected f32, the dtype of self"},
      {"f32[2, 2, 3]; f32[3, 3, 5]", "matmul(%0, %1)", "broadcasts with [2]"},
      {"f32[3]; f32[3, 5]", "mm(%0, %1)", "mm: self: got shape [3], expected 2 dims"},
      {"f32[2, 2, 3]; f32[1, 3, 5]", "bmm(%0, %1)", "bmm: mat2: got shape [1, 3, 5], expected size 2 at dim 0"},
      {"f32[3]; f32[2, 3]; f32[3, 4]", "addmm(%0, %1, %2)", "addmm: self: got shape [3]"},
      {"f32[2, 3]; f32[5, 4]", "linear(%0, %1)", "linear: input: got shape [2, 3], expected size 4 at dim 1"},
      {"f32[2, 3, 4]; f32[5, 12]", "linear(%0, %1)",
       "expected size 12 at dim 2, the last size of weight; flatten(1) of"},
      {"f64[2, 3]; f32[5, 3]", "linear(%0, %1)",
       "linear: input: got tensor f64[2, 3], expected f32, the dtype of weight"},
      {"f32[2, 3]; f32[5, 3]; f64[5]", "linear(%0, %1, %2)",
       "linear: bias: got tensor f64[5], expected f32, the dtype of input"},
      {"u8[1, 3, 4, 4]; f32[8, 3, 3, 3]", "conv2d(%0, %1)",
       "conv2d: input: got tensor u8[1, 3, 4, 4], expected f32, the dtype of weight"},
      {"f32[3, 4, 4]; f32[3]", "batch_norm(%0, %1, training=true)",
       "batch_norm: input: got shape [3, 4, 4], expected size 3 at dim 1, the channels of running_mean; is the batch "
       "dim"},
      {"f32[2, 3]; f32[5, 3]; f32[4]", "linear(%0, %1, %2)", "linear: bias: got shape [4]"},
      {"f32[2, 3]; f32[1, 3]; f32[4]", "linear(%0, %1, %2)",
       "linear: bias: got tensor f32[4], expected a shape that broadcasts to [2, 1]"},
      {"f32[]; i64[]; f32[0]", "scatter(%0, %1, %2, dim=0)", "scatter: src: got shape [0]"},
      {"bool[2]", "hardtanh(%0)", "hardtanh: self: got bool, expected a numeric dtype"},
      {"bool[2]", "threshold(%0, 1, 2)", "threshold: self: got bool, expected a numeric dtype"},
      // Windows.
      {"f32[1, 3, 4, 4]; f32[8, 2, 3, 3]", "conv2d(%0, %1)", "conv2d: input: got shape [1, 3, 4, 4], expected size 2"},
      {"f32[1, 3, 2, 4]; f32[8, 3, 3, 3]", "conv2d(%0, %1)", "a padded size of 2, expected at least the window's 3"},
      {"", "arange(0, 2, length=5, dtype=bool)", "arange: dtype: got bool"},
      {"f32[]", "topk(%0, k=0, dim=0)", "topk: k: got 0, expected 1 to 1"},
      {"f32[]; i64[4]", "index_select(%0, %1, dim=0)", "index_select: index: got shape [4]"},
      {"f32[2, 3]; i64[3]", "layer_norm(%0, %1, normalized_shape=[3])", "layer_norm: weight: got tensor i64[3]"},
      {"f32[5]; f32[2, 2]", "as_strided_scatter(%0, %1, size=[2, 2], stride=[1, 1])", "stride: got [1, 1]"},
      {"i32[2]; i32[2]", "vecdot(%0, %1)", "vecdot: x: got tensor i32[2]"},
      {"f32[2]; i32[2]", "vecdot(%0, %1)", "vecdot: y: got tensor i32[2]"},
      {"f32[2]; f32[3]", "vecdot(%0, %1)", "vecdot: y: got "},
      {"f32[2, 3]; f32[3]", "vecdot(%0, %1, dim=2)", "vecdot: dim: got 2"},
      {"bool[2]; bool[2]", "pairwise_distance(%0, %1)", "pairwise_distance: x1: got tensor bool[2]"},
      {"f32[2]; i64[2]", "binary_cross_entropy(%0, %1)", "binary_cross_entropy: target: got tensor i64[2]"},
      {"f32[4, 0]; i64[4]", "cross_entropy(%0, %1)", "cross_entropy: input: got shape [4, 0]"},
      {"f32[3, 4]", "diagonal(%0, offset=-9223372036854775807)", "diagonal: offset: got -9223372036854775807"},
      {"f32[2, 3, 8]", "max_pool1d(%0, kernel_size=[9223372036854775807])",
       "max_pool1d: kernel_size: got 9223372036854775807"},
      {"f32[1, 3, 4, 4]; f32[8, 3, 3, 3]", "conv2d(%0, %1, stride=[0])", "stride: got 0, expected 1 to 2147483647"},
      {"f32[1, 3, 4, 4]; f32[8, 3, 3, 3]", "conv2d(%0, %1, stride=[1, 1, 1])", "expected 1 or 2 integers"},
      {"f32[1, 4, 4, 4]; f32[7, 2, 3, 3]", "conv2d(%0, %1, groups=2)", "conv2d: groups: got 2"},
      {"f32[4, 4]; f32[8, 4, 3, 3]", "conv2d(%0, %1)", "2 spatial dims"},
      {"f32[1, 3, 4, 4]", "max_pool2d(%0, kernel_size=[2], padding=[2])", "max_pool2d: padding: got 2"},
      {"f32[3, 4]", "avg_pool2d(%0, kernel_size=[2])", "avg_pool2d: self: got shape [3, 4]"},
      {"f32[2, 3, 4]; f32[3, 2, 3]", "conv_transpose1d(%0, %1, output_padding=[1])",
       "conv_transpose1d: output_padding: got 1, expected less than the stride (1)"},
      {"f32[2, 4, 4]; f32[3, 2, 3]", "conv_transpose1d(%0, %1)",
       "conv_transpose1d: input: got shape [2, 4, 4], expected size 3"},
      {"f32[2, 3, 1]; f32[3, 2, 3]", "conv_transpose1d(%0, %1, padding=[2])", "what leaves a positive size"},
      {"f32[2, 3, 4]; f32[3, 2, 3]", "conv_transpose1d(%0, %1, groups=2)", "conv_transpose1d: groups: got 2"},
      {"f32[2, 3, 4, 4]; f32[3, 2, 3]; f32[2]", "conv_transpose1d(%0, %1, %2)", "1 spatial dims"},
      {"f32[3, 4]", "max_pool3d(%0, kernel_size=[2])", "3 spatial dims"},
      {"f32[2, 3, 0]", "adaptive_avg_pool1d(%0, output_size=[2])", "no empty spatial dim"},
      {"f32[2, 3]", "im2col(%0, kernel_size=[2])", "im2col: input: got shape [2, 3]"},
      {"f32[2, 8, 5]", "col2im(%0, output_size=[4, 4], kernel_size=[2])",
       "col2im: input: got shape [2, 8, 5], expected size 9"},
      {"f32[2, 7, 9]", "col2im(%0, output_size=[4, 4], kernel_size=[2])", "a multiple of 4 at dim 1"},
      {"f32[2, 3, 4]", "upsample(%0, output_size=[4, 4])", "upsample: output_size: got [4, 4], expected 1 sizes"},
      {"f32[2, 3, 4]", "upsample(%0, output_size=[4], mode=cubic)", "upsample: mode: got cubic"},
      {"i64[2, 3, 4]", "upsample(%0, output_size=[4])", "upsample: input: got i64"},
      {"f32[2, 3, 4]", "upsample(%0, output_size=[4], antialias=true)", "upsample: antialias: got true"},
      {"f32[1, 4, 4]", "avg_pool2d(%0, kernel_size=[2], divisor_override=0)", "avg_pool2d: divisor_override: got 0"},
      {"f32[2, 3, 5, 5]; f32[2, 4, 3, 4]", "conv2d_weight_backward(%0, %1, kernel_size=[3])",
       "conv2d_weight_backward: grad_output: got shape [2, 4, 3, 4]"},
      {"f32[2, 3, 5, 5]; f32[1, 4, 3, 3]", "conv2d_weight_backward(%0, %1, kernel_size=[3])", "grad_output: got shape"},
      {"f32[2, 3, 5, 5]; f32[2, 4, 3, 3]", "conv2d_weight_backward(%0, %1, kernel_size=[3], groups=2)",
       "groups: got 2, expected a divisor of the 3 input channels"},
      {"f32[3, 5, 5]; f32[2, 4, 3, 3]", "conv2d_weight_backward(%0, %1, kernel_size=[3])", "input: got"},
      {"f32[2, 3, 5, 5]; f64[2, 4, 3, 3]", "conv2d_weight_backward(%0, %1, kernel_size=[3])", "grad_output: got"},
      {"f32[2, 3, 2, 5]; f32[2, 4, 3, 3]", "conv2d_weight_backward(%0, %1, kernel_size=[3])", "a padded size of 2"},
      // Norms, attention, losses.
      {"f32[2, 3]", "layer_norm(%0, normalized_shape=[2])", "layer_norm: normalized_shape: got [2]"},
      {"f32[2, 3]; f32[2]", "layer_norm(%0, %1, normalized_shape=[3])", "layer_norm: weight: got shape [2]"},
      {"f32[2, 3]", "batch_norm(%0)", "batch_norm: running_mean: got nothing"},
      {"f32[2, 3]", "group_norm(%0, num_groups=2)",
       "group_norm: num_groups: got 2, expected a divisor of the 3 channels"},
      {"f32[2, 4]; f32[5, 3]; f32[5, 4]", "scaled_dot_product_attention(%0, %1, %2)", "key: got shape [5, 3]"},
      {"f32[2, 4]; f32[5, 4]; f32[6, 4]", "scaled_dot_product_attention(%0, %1, %2)", "value: got shape [6, 4]"},
      {"f32[2, 4]; f32[5, 4]; f32[5, 4]", "scaled_dot_product_attention(%0, %1, %2, dropout_p=0.5)",
       "dropout_p: got 0.5"},
      {"f32[2, 4]; f32[5, 4]; f32[5, 4]; f32[3, 5]", "scaled_dot_product_attention(%0, %1, %2, %3)",
       "attn_mask: got shape"},
      {"f32[3, 2, 4]; f32[2, 5, 4]; f32[2, 5, 4]", "scaled_dot_product_attention(%0, %1, %2, enable_gqa=true)",
       "2 heads"},
      {"f32[2, 4]; f32[5, 4]; f32[5, 3]; f32[2, 4]",
       "scaled_dot_product_attention_backward(%0, %1, %2, none, none, %3)",
       "grad_output: got shape [2, 4], expected the shape of the result, [2, 3]"},
      {"f32[2, 4]; f32[5, 4]; f32[5, 3]; f64[2, 3]",
       "scaled_dot_product_attention_backward(%0, %1, %2, none, none, %3)", "grad_output: got"},
      {"f32[2, 2, 4]; f32[1, 5, 4]; f32[2, 5, 3]; f32[2, 2, 3]",
       "scaled_dot_product_attention_backward(%0, %1, %2, none, none, %3)", "key: got shape [1, 5, 4]"},
      {"f32[4, 2, 4]; f32[2, 5, 4]; f32[4, 5, 3]; f32[4, 2, 3]",
       "scaled_dot_product_attention_backward(%0, %1, %2, none, none, %3, enable_gqa=true)",
       "value: got shape [4, 5, 3], expected the dims of query and key, shape [2, 5, 3]"},
      {"f32[0, 2, 3]; f32[0, 2, 3]; f32[0, 2, 3]; f32[3, 3]; f32[0, 2, 3]", "rnn_sequence_backward(%0, %1, %2, %3, %4)",
       "input: got shape [0, 2, 3], expected at least one step at dim 0"},
      {"f32[4, 2, 3]; f32[4, 2, 3]; f32[4, 2, 3]; f32[3, 3]; f32[3, 2, 3]", "rnn_sequence_backward(%0, %1, %2, %3, %4)",
       "grad_hidden: got shape [3, 2, 3]"},
      {"f32[4, 2, 9]; f32[4, 2, 3]; f32[4, 2, 3]; f32[9, 3]; f32[4, 2, 3]", "gru_sequence_backward(%0, %1, %2, %3, %4)",
       "gates: got shape [4, 2, 3]"},
      {"f32[4, 2, 9]; f32[4, 2, 9]; f32[4, 2, 3]; f32[6, 3]; f32[4, 2, 3]", "gru_sequence_backward(%0, %1, %2, %3, %4)",
       "weight: got shape [6, 3]"},
      {"f32[4, 2, 12]; f32[4, 2, 12]; f32[4, 2, 3]; f32[2, 3]; f32[12, 3]; f32[4, 2, 3]",
       "lstm_sequence_backward(%0, %1, %2, %3, %4, %5)", "cell"},
      {"f32[4, 3]; i64[3]", "cross_entropy(%0, %1)", "cross_entropy: target: got shape [3], expected shape [4]"},
      {"f32[4, 3]; f32[4]", "nll_loss(%0, %1)", "nll_loss: target: got tensor f32[4], expected an integer tensor"},
      {"f32[4, 3]; i64[4]; f32[4]", "nll_loss(%0, %1, %2)", "nll_loss: weight: got shape [4]"},
      {"f32[2]; f32[3]", "mse_loss(%0, %1)", "mse_loss: target: got shape [3]"},
      {"f32[2, 3]; i64[2]", "cross_entropy(%0, %1, label_smoothing=1.5)", "label_smoothing: got 1.5"},
      {"f32[2, 3]; i64[2]", "cross_entropy(%0, %1, label_smoothing=-0.1)", "label_smoothing: got -0.1"},
      {"f32[2]; f32[1]", "binary_cross_entropy(%0, %1)", "binary_cross_entropy: target: got shape [1]"},
      {"f32[2]; f32[2]; f32[3]", "binary_cross_entropy(%0, %1, %2)", "binary_cross_entropy: weight: got shape [3]"},
      {"f32[2, 3]", "instance_norm(%0)", "instance_norm: input: got shape [2, 3]"},
      {"f32[2, 3, 4]", "instance_norm(%0, use_input_stats=false)", "instance_norm: running_mean: got nothing"},
      {"f32[2, 3, 4]", "local_response_norm(%0, size=0)", "local_response_norm: size: got 0"},
      {"f32[2, 3]", "glu(%0, dim=1)", "glu: input: got shape [2, 3], expected an even size at dim 1"},
      {"f32[2, 3]; f32[2, 3]", "cosine_similarity(%0, %1, dim=-3)", "cosine_similarity: dim: got -3"},
      {"f32[2]; f64[2]", "isclose(%0, %1)", "isclose: other: got tensor f64[2], expected f32, the dtype of self"},
      {"f32[2]; f32[2]", "gcd(%0, %1)", "gcd: self: got f32, expected an integer"},
      {"bool[2]; bool[2]", "lcm(%0, %1)", "lcm: self: got bool"},
      {"f32[1]", "linspace(%0, 2, steps=3)", "linspace: start: got tensor f32[1]"},
      {"f32[3]; f32[2, 3]; f32[3]", "addr(%0, %1, %2)", "addr: vec1: got shape [2, 3], expected 1 dims"},
      {"f32[3, 3]; f32[2, 3, 4]; f32[3, 4, 3]", "addbmm(%0, %1, %2)", "addbmm: batch2: got shape [3, 4, 3]"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.inputs) + " " + c.call);
    std::string what = error_of(c.inputs, c.call);
    EXPECT_NE(what.find(c.expected), std::string::npos) << what;
  }
}

TEST(Rules, MessagesNameTheCallersLine) {
  Graph graph;
  Operand a = Operand::value(graph.add_input(DType::f32, {2})), b = Operand::value(graph.add_input(DType::f32, {3}));
  try {
    graph.add(OpId::mul, {a, b}, {}, Location("model.cpp", 42));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "mul: other: got shape [3], expected a shape that broadcasts with [2] (model.cpp:42)");
  }
}

TEST(Layouts, StridesAndOffsets) {
  DimTable dims;
  auto strides = [&](Dims sizes, Dims given, Dims wanted) -> std::string {
    std::optional<Dims> found = view_strides(dims, {sizes, given, 0}, wanted);
    return found ? shape_text(dims, *found) : "none";
  };
  EXPECT_EQ(strides({4, 6}, {6, 1}, {2, 2, 6}), "[12, 6, 1]");
  EXPECT_EQ(strides({4, 6}, {12, 2}, {24}), "[2]");
  EXPECT_EQ(strides({4, 6}, {1, 4}, {24}), "none");
  EXPECT_EQ(strides({4, 6}, {1, 4}, {2, 2, 3, 2}), "[2, 1, 8, 4]");
  EXPECT_EQ(strides({4, 6}, {8, 1}, {2, 2, 6}), "[16, 8, 1]");
  EXPECT_EQ(strides({4, 6}, {8, 1}, {24}), "none");
  EXPECT_EQ(strides({4, 1, 6}, {6, 99, 1}, {24}), "[1]");
  EXPECT_EQ(strides({3}, {0}, {3, 1}), "[0, 0]");
  EXPECT_EQ(strides({}, {}, {1, 1}), "[1, 1]");
  EXPECT_EQ(strides({2, 0}, {1, 1}, {0, 3}), "[3, 1]");
}

TEST(Layouts, AViewRuleWorksOnAnyBase) {
  DimTable dims;
  std::vector<TensorType> outputs(1);
  Dims sizes{4, 6};
  OperandType self;
  self.kind = OperandType::Kind::tensor;
  self.shape = &sizes;
  auto layout = [&](OpId op, std::vector<Attr> attrs) {
    RuleContext context{op, {&self, 1}, attrs, dims, Location::none(), outputs};
    Layout view = info(op).layout(context, {sizes, {1, 4}, 100});
    return shape_text(dims, view.sizes) + shape_text(dims, view.strides) + dims.str(view.offset);
  };
  EXPECT_EQ(layout(OpId::permute, {Attr::of(Dims{1, 0})}), "[6, 4][4, 1]100");
  EXPECT_EQ(layout(OpId::select, {Attr::of(int64_t{1}), Attr::of(Dims{2})}), "[4][1]108");
  EXPECT_EQ(layout(OpId::slice, {Attr::of(int64_t{0}), Attr::of(Dims{1}), Attr::of(Dims{4}), Attr::of(int64_t{2})}),
            "[2, 6][2, 4]101");
  EXPECT_EQ(layout(OpId::diagonal, {Attr::of(int64_t{1}), Attr::of(int64_t{0}), Attr::of(int64_t{1})}), "[4][5]104");
  EXPECT_EQ(layout(OpId::expand, {Attr::of(Dims{3, 4, 6})}), "[3, 4, 6][0, 1, 4]100");
  EXPECT_EQ(layout(OpId::unsqueeze, {Attr::of(int64_t{1})}), "[4, 1, 6][1, 24, 4]100");
  EXPECT_EQ(layout(OpId::unfold, {Attr::of(int64_t{1}), Attr::of(Dims{2}), Attr::of(int64_t{3})}),
            "[4, 2, 2][1, 12, 4]100");
  EXPECT_EQ(layout(OpId::as_strided, {Attr::of(Dims{2}), Attr::of(Dims{5}), Attr::of(Dims{7})}), "[2][5]7");
}

}  // namespace
}  // namespace ingot::ir
