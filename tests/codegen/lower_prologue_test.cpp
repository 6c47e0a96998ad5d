// Loops that become the prologue of a product: which do and which do not, and the same bits at any sizes and threads.
#include <gtest/gtest.h>

#include <map>

#include "codegen/lower_support.h"
#include "ir/passes/pipeline.h"
#include "runtime/cpu.h"
#include "runtime/hand_kernels.h"

namespace ingot::codegen {
namespace {

using namespace test;

int prologues(const Program& program) {
  int count = 0;
  for (const Step& step : program.steps) {
    if (step.is<MatmulStep>()) count += step.as<MatmulStep>().prologue.has_value();
    if (step.is<Conv2dStep>()) count += step.as<Conv2dStep>().prologue.has_value();
  }
  return count;
}

/// Of text whose values have any numbers: the order of its lines decides.
Graph parsed(const std::string& text) {
  std::map<std::string, size_t> number;
  std::string result = "ingot.ir 1\n";
  bool line_begins = true;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      line_begins = text[i] == '\n' || (line_begins && text[i] != '=');
      result += text[i];
      continue;
    }
    const size_t end = text.find_first_not_of("0123456789", i + 1);
    const std::string name = text.substr(i, end - i);
    if (line_begins && text.find(" =", i) == end) number.emplace(name, number.size());
    result += "%" + std::to_string(number.at(name));
    i = end - 1;
  }
  return ir::parse(result);
}

LowerOptions from_rows(int64_t rows, bool joined = true) {
  LowerOptions options;
  options.prologue_rows = rows, options.prologue = joined;
  return options;
}

using Sizes = std::vector<std::vector<int64_t>>;
using Scalars = std::vector<ir::ReferenceScalar>;

/// As the reference says, and with the bits of the steps apart, interpreted and generated, with 1, 2 and 5 threads.
void expect_joined(const std::string& text, int expected, const Sizes& sizes = {{}}, const Scalars& scalars = {},
                   LowerOptions joined = from_rows(1)) {
  SCOPED_TRACE(text);
  const Graph graph = parsed(text);
  const LowerResult r = check_compiled(graph, 1e-5, joined, sizes[0], scalars);
  EXPECT_EQ(prologues(r.program), expected) << str(r.program);
  LowerOptions apart = joined;
  apart.prologue = false;
  Graph lowered = graph;
  ir::run_pipeline(lowered);
  for (const Target& target : {Target{}, runtime::detected_target()})
    for (const auto& values : sizes) {
      std::vector<ir::ReferenceTensor> inputs;
      for (size_t i = 0; i < lowered.inputs.size(); ++i)
        inputs.push_back(random_tensor(lowered, lowered.inputs[i].value, static_cast<uint32_t>(i + 5), 3, values));
      const auto expected_values = run_program(lowered, lower(lowered, target, apart).program, inputs, scalars, values);
      for (int threads : {1, 2, 5}) {
        runtime::testing_kernels::Threads use(threads);
        const auto got = run_program(lowered, lower(lowered, target, joined).program, inputs, scalars, values);
        for (size_t o = 0; o < got.size(); ++o)
          for (int64_t i = 0; i < got[o].size(); ++i)
            ASSERT_TRUE(got[o].at(i) == expected_values[o].at(i) ||
                        (std::isnan(got[o].at(i)) && std::isnan(expected_values[o].at(i))))
                << "output " << o << ", " << i << ", " << threads << " threads";
      }
    }
}

const std::string kWeight = "input %1 = f32[20, 33] constant\n";

TEST(LowerPrologue, ElementwiseWorkInFrontOfALinearLayer) {
  for (const char* of : {"%3 = mul(%0, %2)\n", "%3 = exp(%0)\n", "%3 = where(%2, %0, 0.5)\n"})
    for (int64_t rows : {2, 5, 6, 37, 300}) {
      const std::string mask = std::string(of).find("where") != std::string::npos ? "bool" : "f32";
      expect_joined("input %0 = f32[" + std::to_string(rows) + ", 20]\n" + kWeight + "input %2 = " + mask + "[20]\n" +
                        of + "%4 = matmul(%3, %1)\noutput %4\n",
                    // Without an operand that is the same in each row, the space is one line of elements.
                    std::string(of).find("exp") == std::string::npos);
    }
}

TEST(LowerPrologue, RowsThatAreNormalized) {
  for (const char* of : {"%3 = softmax(%0, dim=1)\n", "%3 = layer_norm(%0, normalized_shape=[20])\n"})
    expect_joined("input %0 = f32[70, 20]\n" + kWeight + of + "%4 = matmul(%3, %1)\n%5 = relu(%4)\noutput %5\n", 1);
  // Longer than a block of k, in which all of a row is made at once.
  expect_joined(
      "input %0 = f32[40, 600]\ninput %1 = f32[600, 50] constant\n%2 = softmax(%0, dim=1)\n%3 = matmul(%2, %1)\n"
      "output %3\n",
      1);
}

// Narrow weights are widened in registers, or for many rows a block at a time.
TEST(LowerPrologue, InFrontOfNarrowWeights) {
  for (const char* type : {"bf16", "f16", "i8"})
    for (int64_t rows : {2, 4, 70})
      expect_joined("input %0 = f32[" + std::to_string(rows) + ", 20]\ninput %1 = " + type +
                        "[20, 33] constant\ninput %2 = f32[20]\n%3 = mul(%0, %2)\n%4 = cast(%1, dtype=f32)\n"
                        "%5 = matmul(%3, %4)\noutput %5\n",
                    1);
  for (const char* type : {"f64", "bf16"})
    expect_joined("input %0 = " + std::string(type) + "[70, 20]\ninput %1 = " + type +
                      "[20, 33] constant\ninput %2 = " + type +
                      "[20]\n%3 = mul(%0, %2)\n%4 = matmul(%3, %1)\noutput %4\n",
                  // Without a product of bf16, A is widened first.
                  std::string(type) == "f64");
}

TEST(LowerPrologue, SqueezeAndExcitation) {
  auto text = [](const std::string& images) {
    return "input %0 = f32[" + images + ", 24, 5, 7] strides [840, 1, 168, 24]\ninput %1 = f32[" + images +
           ", 24, 1, 1]\ninput %2 = f32[40, 24, 1, 1] constant\ninput %3 = f32[40] constant\n%4 = sigmoid(%1)\n"
           "%5 = mul(%0, %4)\n%6 = conv2d(%5, %2, %3, stride=[1], padding=[0], dilation=[1], groups=1)\n%7 = relu(%6)\n"
           "%8 = conv2d(%7, %9, none, stride=[1], padding=[0], dilation=[1], groups=1)\noutput %8\n";
  };
  for (const char* images : {"1", "3"}) {
    std::string t = text(images);
    t.insert(t.find("%4 = sig"), "input %9 = f32[4, 40, 3, 3] constant\n");
    expect_joined(t, 1);
  }
  std::string t = "symbol s0 = 3\n" + text("s0");
  t.insert(t.find("%4 = sig"), "input %9 = f32[4, 40, 3, 3] constant\n");
  expect_joined(t, 1, {{3}, {0}, {1}, {2}, {9}});
}

// The pixels of all images are then no rows of one product.
TEST(LowerPrologue, OfImagesApart) {
  expect_joined(
      "symbol s0 = 3\ninput %0 = f32[s0, 24, 5, 7] strides [840, 1, 168, 24]\ninput %1 = f32[s0, 24, 1, 1]\n"
      "input %2 = f32[40, 24, 1, 1] constant\ninput %3 = f32[1, 40, 5, 7] strides [1400, 1, 280, 40]\n"
      "input %4 = f32[4, 40, 3, 3] constant\n%5 = mul(%0, %1)\n"
      "%6 = conv2d(%5, %2, none, stride=[1], padding=[0], dilation=[1], groups=1)\n%7 = add(%6, %3, 1)\n"
      "%8 = conv2d(%7, %4, none, stride=[1], padding=[0], dilation=[1], groups=1)\noutput %8\n",
      1, {{3}, {1}, {2}, {0}});
}

TEST(LowerPrologue, AnyNumberOfRowsAndScalarsOnBothSides) {
  const std::string text =
      "symbol s0 = 40\nscalar $0 = floating\nscalar $1 = floating\nscalar $2 = floating\ninput %0 = f32[s0, 20]\n"
      "input %1 = f32[20, 300] constant\ninput %2 = f32[20]\n%3 = add(%0, %2, $1)\n%4 = mul(%3, $0)\n"
      "%5 = matmul(%4, %1)\n%6 = mul(%5, $2)\noutput %6\n";
  expect_joined(text, 1, {{40}, {0}, {1}, {2}, {3}, {7}, {200}}, {{1.5}, {-0.75}, {3.0}});
}

TEST(LowerPrologue, NotOfFewRowsNorWhereOthersReadThem) {
  const std::string x = "input %0 = f32[130, 20]\ninput %2 = f32[20]\n", mul = "%3 = mul(%0, %2)\n",
                    product = "%4 = matmul(%3, %1)\n";
  const LowerOptions usual;
  expect_joined(x + kWeight + mul + product + "output %4\n", 1, {{}}, {}, usual);
  expect_joined("input %0 = f32[127, 20]\ninput %2 = f32[20]\n" + kWeight + mul + product + "output %4\n", 0, {{}}, {},
                usual);
  const std::pair<const char*, std::string> kNot[] = {
      {"an output", x + kWeight + mul + product + "output %4, %3\n"},
      {"another reader", x + kWeight + mul + product + "%5 = cumsum(%3, dim=0)\noutput %4, %5\n"},
      {"two products",
       x + kWeight + "input %6 = f32[20, 4] constant\n" + mul + product + "%5 = matmul(%3, %6)\noutput %4, %5\n"},
      {"B is no weight", x + "input %1 = f32[20, 33]\n" + mul + product + "output %4\n"},
      {"it is B", "input %0 = f32[20, 33]\ninput %2 = f32[33]\ninput %1 = f32[40, 20] constant\n" + mul +
                      "%4 = matmul(%1, %3)\noutput %4\n"},
      {"a part of it", x + "input %1 = f32[10, 33] constant\n" + mul +
                           "%5 = slice(%3, dim=1, start=5, end=15, step=1)\n%4 = matmul(%5, %1)\noutput %4\n"},
      {"rows of other lengths", x + "input %1 = f32[40, 33] constant\n" + mul +
                                    "%5 = view(%3, size=[65, 40])\n%4 = matmul(%5, %1)\noutput %4\n"},
      {"its columns are the rows", x + "input %1 = f32[130, 33] constant\n" + mul +
                                       "%5 = permute(%3, dims=[1, 0])\n%4 = matmul(%5, %1)\noutput %4\n"},
      {"taps that overlap",
       "input %0 = f32[1, 8, 5, 5] strides [200, 1, 40, 8]\ninput %2 = f32[1, 8, 1, 1]\n"
       "input %1 = f32[16, 8, 3, 3] constant\n" +
           mul + "%4 = conv2d(%3, %1, none, stride=[1], padding=[1], dilation=[1], groups=1)\noutput %4\n"},
      {"every second pixel",
       "input %0 = f32[1, 8, 5, 5] strides [200, 1, 40, 8]\ninput %2 = f32[1, 8, 1, 1]\n"
       "input %1 = f32[16, 8, 1, 1] constant\n" +
           mul + "%4 = conv2d(%3, %1, none, stride=[2], padding=[0], dilation=[1], groups=1)\noutput %4\n"}};
  for (const auto& [why, text] : kNot) {
    SCOPED_TRACE(why);
    expect_joined(text, 0);
  }
}

// What is no longer written takes no memory, and what is done is told.
TEST(LowerPrologue, TakesNoMemoryAndIsExplained) {
  Graph graph = ir::parse(
      "ingot.ir 1\ninput %0 = f32[130, 20]\ninput %1 = f32[20, 33] constant\ninput %2 = f32[20]\n"
      "%3 = mul(%0, %2)\n%4 = matmul(%3, %1)\noutput %4\n");
  const LowerResult joined = lower(graph, Target{}, from_rows(1)), apart = lower(graph, Target{}, from_rows(1, false));
  auto arena = [](const Program& program) {
    int64_t bytes = 0;
    for (const ProgramBuffer& b : program.buffers) bytes += b.place == Place::arena ? program.dims.hint(b.bytes) : 0;
    return bytes;
  };
  EXPECT_EQ(arena(joined.program), 0);
  EXPECT_EQ(arena(apart.program), 130 * 20 * 4);
  ASSERT_EQ(joined.program.steps.size(), 1u);
  const Step &step = joined.program.steps[0], &loop = apart.program.steps[0], &product = apart.program.steps[1];
  EXPECT_EQ(step.name, "mul_matmul");
  EXPECT_EQ(step.operations.code, loop.operations.code + product.operations.code);
  EXPECT_EQ(step.bytes.code, loop.bytes.code + product.bytes.code - 2 * 130 * 20 * 4);
  EXPECT_EQ(algorithm_of(step), "prologue, B packed once");
  for (const FusionGroup& group : joined.explanation.groups) EXPECT_EQ(group.steps, std::vector<uint32_t>{0});
  EXPECT_TRUE(joined.explanation.groups[0].stored.empty());
  const auto decision = std::ranges::find(joined.explanation.decisions, 3u, &FusionDecision::value);
  ASSERT_NE(decision, joined.explanation.decisions.end());
  EXPECT_TRUE(decision->fused);
  EXPECT_EQ(decision->bytes_saved, 2 * 130 * 20 * 4);
}

// Steps behind it move up, those of slices, too.
TEST(LowerPrologue, OfSlices) {
  const std::string text =
      "input %0 = f32[3, 24, 5, 7] strides [840, 1, 168, 24]\ninput %1 = f32[24, 24, 3, 3] constant\n"
      "input %2 = f32[40, 24, 1, 1] constant\ninput %3 = f32[4, 40, 3, 3] constant\n"
      "%4 = conv2d(%0, %1, none, stride=[1], padding=[1], dilation=[1], groups=1)\n"
      "%5 = sum(%4, dim=[2, 3], keepdim=true)\n%6 = sigmoid(%5)\n%7 = mul(%4, %6)\n"
      "%8 = conv2d(%7, %2, none, stride=[1], padding=[0], dilation=[1], groups=1)\n%9 = relu(%8)\n"
      "%10 = conv2d(%9, %3, none, stride=[1], padding=[1], dilation=[1], groups=1)\noutput %10\n";
  LowerOptions options = from_rows(1);
  options.slice_size = 1;
  expect_joined(text, 1, {{}}, {}, options);
  Graph graph = parsed(text);
  ir::run_pipeline(graph);
  const Program joined = lower(graph, Target{}, options).program;
  options.prologue = false;
  const Program apart = lower(graph, Target{}, options).program;
  ASSERT_EQ(joined.segments.size(), 1u);
  ASSERT_EQ(apart.segments.size(), 1u);
  EXPECT_EQ(joined.steps.size() + 1, apart.steps.size());
  EXPECT_EQ(joined.segments[0].first_step, apart.segments[0].first_step);
  EXPECT_EQ(joined.segments[0].end_step + 1, apart.segments[0].end_step);
}

// What a product writes may not lie where its prologue reads.
TEST(LowerPrologue, ReadsWhatThePiecesBeforeHaveNotWritten) {
  const std::string text =
      "input %0 = f32[150, 20]\ninput %1 = f32[20, 20] constant\ninput %2 = f32[20]\n%3 = cumsum(%0, dim=0)\n"
      "%4 = mul(%3, %2)\n%5 = matmul(%4, %1)\n%6 = add(%5, %3, 1)\n%7 = cumsum(%6, dim=0)\noutput %7\n";
  expect_joined(text, 1);
  Graph graph = parsed(text);
  const LowerResult r = lower(graph, Target{}, from_rows(1));
  for (const Step& step : r.program.steps)
    if (step.is<MatmulStep>()) {
      const MatmulStep& product = step.as<MatmulStep>();
      for (const Argument& read : product.prologue->arguments)
        for (const Argument& a : product.epilogue.arguments)
          if (!a.read_only) {
            EXPECT_NE(a.buffer, read.buffer);
            EXPECT_FALSE(may_write_over(step, a.buffer, read.buffer));
          }
    }
}

}  // namespace
}  // namespace ingot::codegen
