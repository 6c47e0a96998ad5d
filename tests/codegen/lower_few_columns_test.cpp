// Rows of few columns, computed side by side: the same bits as one after another, at every place of the dim.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "codegen/lower_support.h"
#include "ir/passes/pipeline.h"
#include "runtime/cpu.h"

namespace ingot::codegen {
namespace {

using namespace test;

/// NaN, infinities and zeros of both signs among ordinary numbers.
ir::ReferenceTensor hostile(DType dtype, const Ints& shape, uint32_t seed) {
  ir::ReferenceTensor t(dtype, shape);
  std::mt19937 random(seed);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double odd[] = {std::nan(""), kInfinity, -kInfinity, 0.0, -0.0, 1, 1};
  for (double& x : t.real)
    x = random() % 3 == 0 ? odd[random() % std::size(odd)]
                          : ir::round_to(dtype, static_cast<double>(random() % 4096) / 1024.0 - 2.0);
  for (int64_t& x : t.integer) x = dtype == DType::bool_ ? random() % 2 : static_cast<int64_t>(random() % 7) - 3;
  return t;
}

/// What a program gives, as bytes. All NaNs are equal.
std::vector<std::string> bytes_of(const std::vector<ir::ReferenceTensor>& tensors) {
  std::vector<std::string> bytes;
  for (const ir::ReferenceTensor& t : tensors) {
    std::string text;
    for (int64_t i = 0; i < t.size(); ++i) {
      const double x = t.floating() && std::isnan(t.real[i]) ? 7.5 : t.at(i);
      text.append(reinterpret_cast<const char*>(&x), sizeof x);
    }
    bytes.push_back(std::move(text));
  }
  return bytes;
}

struct Written {
  bool differs = false;    // the programs
  int reducing_loops = 0;  // steps of the one that may compute side by side which reduce rows, or columns
};
Written compare(const std::string& text, DType dtype, const Ints& shape) {
  ir::Graph graph = ir::parse("ingot.ir 1\n" + text);
  ir::run_pipeline(graph);
  Target machine = runtime::detected_target();
  machine.bf16_dot = false;
  Written written;
  for (const Target& target : {Target{}, machine}) {
    LowerOptions apart;
    apart.side_by_side = false;
    const Program with = lower(graph, target).program, without = lower(graph, target, apart).program;
    written.differs = !(with == without);
    written.reducing_loops = count_steps<ColumnStep>(with);
    for (const Step& step : with.steps)
      if (const auto* loop = std::get_if<LoopStep>(&step.work)) written.reducing_loops += loop->rows_whole;
    for (uint32_t seed : {1u, 2u}) {
      const std::vector<ir::ReferenceTensor> inputs{hostile(dtype, shape, seed)};
      EXPECT_EQ(bytes_of(run_program(graph, with, inputs)), bytes_of(run_program(graph, without, inputs)))
          << target.str() << "\n"
          << text;
    }
  }
  return written;
}

struct Place {
  std::string shape;  // %: the dim
  int dim;
};
const Place kPlaces[] = {{"[50, %]", 1}, {"[%, 50]", 0}, {"[6, %, 20]", 1}, {"[%, 3, 19]", 0}, {"[2, 17, %]", 2}};

Ints sizes_of(std::string shape) {
  Ints sizes;
  for (char* at = shape.data() + 1; *at && *at != ']'; at += *at == ',' ? 2 : 0)
    sizes.push_back(std::strtol(at, &at, 10));
  return sizes;
}

TEST(FewColumns, HaveTheBitsOfRowsOneAfterAnother) {
  const char* ops[] = {"sum(%0, dim=[D])",       "prod(%0, dim=[D])",      "amax(%0, dim=[D])", "amin(%0, dim=[D])",
                       "argmax(%0, dim=D)",      "argmin(%0, dim=D)",      "mean(%0, dim=[D])", "softmax(%0, dim=D)",
                       "log_softmax(%0, dim=D)", "logsumexp(%0, dim=[D])", "any(%0, dim=[D])",  "all(%0, dim=[D])"};
  for (int64_t size : {2, 3, 4, 5, 8, 9, 16, 17})
    for (const Place& place : kPlaces) {
      const bool across = !place.shape.ends_with("%]");
      std::string shape = place.shape;
      shape.replace(shape.find('%'), 1, std::to_string(size));
      for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8, DType::bool_})
        for (std::string op : ops) {
          const bool soft = op.find("softmax") != op.npos || op.find("exp") != op.npos || op.starts_with("mean");
          const bool counts = op.starts_with("any") || op.starts_with("all") || op.starts_with("sum");
          if ((!is_floating(dtype) && soft) || (dtype == DType::bool_ && !counts)) continue;
          op.replace(op.find('D'), 1, std::to_string(place.dim));
          const std::string text =
              "input %0 = " + std::string(name_of(dtype)) + shape + "\n%1 = " + op + "\noutput %1\n";
          const Written written = compare(text, dtype, sizes_of(shape));
          if (size <= (across ? 9 : 4)) {
            EXPECT_EQ(written.reducing_loops, 0) << text;
            EXPECT_TRUE(written.differs) << text;
          }
          if (size == 17 || (size == 9 && !across)) {
            EXPECT_FALSE(written.differs) << text;
          }
        }
    }
}

TEST(FewColumns, WithWhatIsBeforeAndAfter) {
  for (const Place& place : kPlaces)
    for (int64_t size : {3, 4, 6}) {
      std::string shape = place.shape;
      shape.replace(shape.find('%'), 1, std::to_string(size));
      const std::string d = std::to_string(place.dim), input = "input %0 = f32" + shape + "\n";
      // Results of rows and of columns, kept values, what is expensive, positions, random numbers.
      compare(input + "%1 = exp(%0)\n%2 = sum(%1, dim=[" + d +
                  "], keepdim=true)\n%3 = div(%1, %2)\n%4 = amax(%3, dim=[" + d + "])\noutput %3, %2, %4\n",
              DType::f32, sizes_of(shape));
      compare(input + "%1 = sin(%0)\n%2 = lgamma(%1)\n%3 = sum(%2, dim=[" + d + "])\noutput %3, %2\n", DType::f32,
              sizes_of(shape));
      compare(input + "%1 = layer_norm(%0, normalized_shape=[" +
                  shape.substr(shape.rfind(' ') + 1, shape.size() - shape.rfind(' ') - 2) +
                  "])\n%2 = argmin(%1, dim=" + d + ", keepdim=true)\noutput %1, %2\n",
              DType::f32, sizes_of(shape));
    }
}

// A GPU's threads take lines together: its loops stay as they are.
TEST(FewColumns, OfALoopGiveWayToALongDim) {
  const ir::Graph graph =
      ir::parse("ingot.ir 1\ninput %0 = f32[500, 3]\ninput %1 = f32[3]\n%2 = add(%0, %1, 1)\noutput %2\n");
  auto columns = [&](const Target& target) {
    return std::get<LoopStep>(lower(graph, target).program.steps.at(0).work).space.back();
  };
  EXPECT_EQ(columns(Target{}), Dim(500));
  EXPECT_EQ(columns(Target{.cuda_arch = 90}), Dim(3));
}

// What lies across the rows says how they are computed, even where something else lies along them.
TEST(FewColumns, LieAcrossWhereOneOperandDoes) {
  const auto reducing_loops = [](const char* other) {
    ir::Graph graph = ir::parse(std::string("ingot.ir 1\ninput %0 = f32[12, 400]\ninput %1 = ") + other +
                                "\n%3 = mul(%0, %2)\n%4 = sum(%3, dim=[0])\noutput %4\n");
    const LowerResult r = check_compiled(graph, 1e-5);
    int loops = 0;
    for (const Step& step : r.program.steps)
      if (const auto* loop = std::get_if<LoopStep>(&step.work)) loops += loop->rows_whole;
    return loops;
  };
  EXPECT_EQ(reducing_loops("f32[12, 400]\n%2 = exp(%1)"), 0);
  EXPECT_EQ(reducing_loops("f32[400, 12]\n%2 = permute(%1, dims=[1, 0])"), 0);
}

TEST(FewColumns, OfManyOperands) {
  std::string text, sum = "0";
  int value = 30;
  for (int i = 0; i < value; ++i) text += "input %" + std::to_string(i) + " = f32[4, 60]\n";
  for (int i = 1; i < 30; ++i, ++value) {
    text += "%" + std::to_string(value) + " = mul(%" + sum + ", %" + std::to_string(i) + ")\n";
    sum = std::to_string(value);
  }
  ir::Graph graph = ir::parse("ingot.ir 1\n" + text + "%" + std::to_string(value) + " = sum(%" + sum +
                              ", dim=[0])\noutput %" + std::to_string(value) + "\n");
  const LowerResult r = check_compiled(graph, 1e-5);
  ASSERT_EQ(r.program.steps.size(), 1u);
  EXPECT_EQ(std::get<LoopStep>(r.program.steps[0].work).arguments.size(), 121u);
}

// What would be too large is no part of the kernel, and what is left of it is computed side by side.
TEST(FewColumns, OfTooLargeAKernelAreThoseOfASmallerOne) {
  std::string text = "input %0 = f32[400, 8]\n%1 = lgamma(%0)\n";
  int last = 1;
  for (; last < 16; ++last) text += "%" + std::to_string(last + 1) + " = lgamma(%" + std::to_string(last) + ")\n";
  text += "%" + std::to_string(last + 1) + " = sum(%" + std::to_string(last) + ", dim=[1])\noutput %" +
          std::to_string(last + 1) + "\n";
  const Written written = compare(text, DType::f32, {400, 8});
  EXPECT_TRUE(written.differs);
  EXPECT_EQ(written.reducing_loops, 0);
  // Another reader of the same rows, which alone would be no kernel of few columns.
  std::string siblings = "input %0 = f32[16, 400]\n%1 = sum(%0, dim=[0])\n%2 = lgamma(%0)\n";
  for (last = 2; last < 12; ++last)
    siblings += "%" + std::to_string(last + 1) + " = lgamma(%" + std::to_string(last) + ")\n";
  EXPECT_EQ(compare(siblings + "output %1, %" + std::to_string(last) + "\n", DType::f32, {16, 400}).reducing_loops, 0);
}

TEST(FewColumns, NeedRowsToFillAVector) {
  EXPECT_FALSE(compare("input %0 = f32[5, 3]\n%1 = sum(%0, dim=[1])\noutput %1\n", DType::f32, {5, 3}).differs)
      << "few rows fill no vector";
  EXPECT_FALSE(compare("input %0 = f32[50, 1]\n%1 = sum(%0, dim=[1])\noutput %1\n", DType::f32, {50, 1}).differs);
}

// A varying number of columns is few by a guard, and in eager alone.
TEST(FewColumns, BesideTheirRowsAreSummedInRegisters) {
  struct Sum {
    bool in_registers;
    size_t guards;
  };
  auto sum = [](int64_t rows, int64_t columns, bool varying, bool one_op) {
    ir::Graph graph;
    const Dim width = varying ? graph.dims.symbol(columns) : Dim(columns);
    const ir::ValueId x = graph.add_input(DType::f32, {3, rows, width});
    graph.outputs = {graph.add(OpId::sum, {val(x)}, {ints({1})})};
    LowerOptions options;
    options.one_op = one_op;
    const Program program =
        check_compiled(graph, 1e-5, options, varying ? std::vector<int64_t>{columns} : std::vector<int64_t>{}).program;
    for (const Step& step : program.steps)
      if (const auto* column = std::get_if<ColumnStep>(&step.work))
        return Sum{column->in_registers, program.dims.guards().size()};
    ADD_FAILURE() << "no sum over columns";
    return Sum{};
  };
  EXPECT_TRUE(sum(20, 100, false, false).in_registers);
  EXPECT_TRUE(sum(20, 1000, false, false).in_registers);
  EXPECT_FALSE(sum(20, 2000, false, false).in_registers);
  EXPECT_FALSE(sum(256, 256, false, false).in_registers) << "what lies together is read together";
  const size_t usual = sum(20, 100, true, false).guards;
  EXPECT_FALSE(sum(20, 100, true, false).in_registers);
  EXPECT_TRUE(sum(20, 100, true, true).in_registers);
  EXPECT_GT(sum(20, 100, true, true).guards, usual);
  EXPECT_FALSE(sum(20, 2000, true, true).in_registers);
}

}  // namespace
}  // namespace ingot::codegen
