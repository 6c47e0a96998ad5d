// The stages of lowering by name: each that may be left out changes a program and no result; what follows is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/lower_support.h"

namespace ingot::codegen {
namespace {

using namespace test;

/// For each switch, a graph that lowers otherwise without it.
const std::map<std::string_view, std::string> kGraphs{
    {"channels_last",
     "input %0 = f32[1, 2, 5, 5]\ninput %1 = f32[3, 2, 3, 3]\ninput %2 = f32[4, 3, 1, 1]\n"
     "%3 = conv2d(%0, %1, none, stride=[1], padding=[0], dilation=[1], groups=1)\n"
     "%4 = conv2d(%3, %2, none, stride=[1], padding=[0], dilation=[1], groups=1)\noutput %4\n"},
    {"fuse", "input %0 = f32[8]\n%1 = neg(%0)\n%2 = exp(%1)\noutput %2\n"},
    {"siblings", "input %0 = f32[8]\n%1 = neg(%0)\n%2 = exp(%0)\noutput %1, %2\n"},
    {"split_cat", "input %0 = f32[3, 4]\ninput %1 = f32[5, 4]\n%2 = cat(%0, %1, dim=0)\n%3 = neg(%2)\noutput %3\n"},
    {"side_by_side", "input %0 = f32[40, 3]\n%1 = softmax(%0, dim=1)\noutput %1\n"},
    {"transpose",
     "input %0 = f32[40, 50]\ninput %1 = f32[50, 40]\n%2 = permute(%0, dims=[1, 0])\n%3 = add(%2, %1, 1)\noutput %3\n"},
    {"winograd",
     "input %0 = f32[1, 16, 12, 12]\ninput %1 = f32[16, 16, 3, 3]\ninput %2 = f32[4, 16, 1, 1]\n"
     "%3 = conv2d(%0, %1, none, stride=[1], padding=[1], dilation=[1], groups=1)\n"
     "%4 = conv2d(%3, %2, none, stride=[1], padding=[0], dilation=[1], groups=1)\noutput %4\n"},
    {"keep",
     "input %0 = f32[8, 5]\ninput %1 = f32[5] constant\n%2 = exp(%1)\n%3 = cumsum(%0, dim=0)\n%4 = mul(%3, %2)\n"
     "%5 = cumsum(%4, dim=0)\n%6 = mul(%5, %2)\noutput %6\n"},
    {"slice", "input %0 = f32[3, 8, 8]\n%1 = softmax(%0, dim=2)\n%2 = softmax(%1, dim=1)\noutput %2\n"},
    {"prologue",
     "input %0 = f32[130, 20]\ninput %1 = f32[20]\ninput %2 = f32[20, 16] constant\n%3 = mul(%0, %1)\n"
     "%4 = matmul(%3, %2)\noutput %4\n"},
    {"join_buffers",
     "input %0 = f32[8, 8]\n%1 = cumsum(%0, dim=0)\n%2 = neg(%1)\n%3 = cumsum(%2, dim=0)\noutput %3\n"}};

TEST(LowerStages, EachThatMayBeLeftOutChangesAProgramAndNoResult) {
  for (const Stage& stage : stages()) {
    if (!stage.option) continue;
    SCOPED_TRACE(stage.name);
    const Graph graph = ir::parse("ingot.ir 1\n" + kGraphs.at(stage.name));
    LowerOptions with, without;
    if (stage.name == "slice") with.slice_size = without.slice_size = 1;
    with.*stage.option = true, without.*stage.option = false;
    // Transformed tiles round otherwise (docs/numerics.md).
    const LowerResult whole = check_compiled(graph, stage.name == "winograd" ? 3e-5 : 1e-5, with),
                      left_out = check_compiled(graph, 1e-5, without);
    EXPECT_FALSE(whole.program == left_out.program);
  }
}

// Buffers of what steps make of constant inputs, and of nothing else.
TEST(LowerStages, KeepWhatIsMadeOfConstantInputsAlone) {
  auto kept = [](const std::string& text) {
    const LowerResult r = check_compiled(ir::parse("ingot.ir 1\n" + text), 1e-5);
    return std::count_if(r.program.buffers.begin(), r.program.buffers.end(),
                         [](const ProgramBuffer& b) { return b.place == Place::kept; });
  };
  auto with = [](const std::string& weight, const std::string& of_it) {
    return "input %0 = f32[8, 5]\ninput %1 = " + weight + "\n%2 = cumsum(%0, dim=0)\n%3 = " + of_it +
           "\n%4 = cumsum(%3, dim=0)\n%5 = mul(%2, %4)\n%6 = cumsum(%5, dim=0)\n%7 = mul(%6, %3)\noutput %7\n";
  };
  EXPECT_EQ(kept(with("f32[8, 5] constant", "exp(%1)")), 1) << "a scan is no loop: what it reads is kept";
  EXPECT_EQ(kept(with("f32[8, 5]", "exp(%1)")), 0) << "it may be another at each call";
  EXPECT_EQ(kept(with("f32[8, 5] constant", "add(%1, %2, 1)")), 0) << "it reads an argument, too";
  EXPECT_EQ(kept("input %0 = f32[20000]\ninput %1 = f32[20000] constant\n%2 = cumsum(%0, dim=0)\n%3 = exp(%1)\n"
                 "%4 = cumsum(%3, dim=0)\n%5 = mul(%2, %4)\n%6 = mul(%5, %3)\noutput %6\n"),
            0)
      << "large ones are not";
}

TEST(LowerStages, AreTimedAndToldInOrder) {
  std::vector<std::string_view> told;
  LowerOptions options;
  options.after = [&](std::string_view stage, const std::string& text) {
    EXPECT_FALSE(text.empty()) << stage;
    told.push_back(stage);
  };
  const Graph graph = ir::parse("ingot.ir 1\n" + kGraphs.at("siblings"));
  std::vector<std::string_view> timed;
  for (const ir::PassTime& stage : lower(graph, Target{.cuda_arch = 90}, options).stages) timed.push_back(stage.name);
  std::vector<std::string_view> listed;
  for (const Stage& stage : stages())
    if (stage.run) listed.push_back(stage.name);
  EXPECT_EQ(timed, listed);
  EXPECT_EQ(told, listed);
  std::set<std::string_view> names;
  for (const Stage& stage : stages()) EXPECT_TRUE(names.insert(stage.name).second) << stage.name;
}

}  // namespace
}  // namespace ingot::codegen
