#include "compiler/evaluate.h"

#include <gtest/gtest.h>

#include "ir/passes/passes.h"

namespace ingot::compiler {
namespace {

/// What fold makes of the last node of these constants: its text.
std::string folded(const std::string& nodes) {
  ir::Graph graph = ir::parse("ingot.ir 1\n" + nodes + "output %1\n");
  ir::fold(graph, evaluate);
  ir::eliminate_dead_code(graph);
  std::string text = ir::print(graph);
  size_t begin = text.find("full("), end = text.find('\n', begin);
  return begin == std::string::npos ? text : text.substr(begin, end - begin);
}

TEST(Evaluate, ConstantsOfEveryDtypeAreComputedByKernels) {
  const std::string base = "%0 = full(2.5, size=[3], dtype=f32)\n";
  EXPECT_EQ(folded(base + "%1 = mul(%0, 2)\n"), "full(5.0, size=[3], dtype=f32) : f32[3]");
  EXPECT_EQ(folded(base + "%1 = cast(%0, dtype=f64)\n"), "full(2.5, size=[3], dtype=f64) : f64[3]");
  EXPECT_EQ(folded(base + "%1 = cast(%0, dtype=f16)\n"), "full(2.5, size=[3], dtype=f16) : f16[3]");
  EXPECT_EQ(folded(base + "%1 = cast(%0, dtype=bf16)\n"), "full(2.5, size=[3], dtype=bf16) : bf16[3]");
  for (const char* dtype : {"i64", "i32", "i16", "i8", "u8"})
    EXPECT_EQ(folded(base + "%1 = cast(%0, dtype=" + dtype + ")\n"),
              "full(2, size=[3], dtype=" + std::string(dtype) + ") : " + dtype + "[3]");
  EXPECT_EQ(folded(base + "%1 = gt(%0, 2)\n"), "full(true, size=[3], dtype=bool) : bool[3]");
  EXPECT_EQ(folded("%0 = full(-1, size=[2], dtype=f32)\n%1 = sqrt(%0)\n"), "full(nan, size=[2], dtype=f32) : f32[2]");
}

}  // namespace
}  // namespace ingot::compiler
