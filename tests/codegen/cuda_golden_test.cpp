// Lowered graphs as CUDA text, compared with the files in golden/. After a change that is meant:
//   INGOT_UPDATE_GOLDEN=1 build/tests/test_codegen --gtest_filter='*CudaGolden*' && git diff tests/codegen/golden
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "codegen/cuda/cuda.h"
#include "codegen/lower.h"
#include "cuda_graphs.h"

namespace ingot::codegen::test {
namespace {

class CudaGolden : public testing::TestWithParam<CudaGraph> {};

TEST_P(CudaGolden, TextIsTheCheckedInOne) {
  const CudaGraph& sample = GetParam();
  ir::Graph graph = sample.make();
  Program program = lower(graph, Target{.cuda_arch = 90}).program;
  ASSERT_TRUE(program.device_source.starts_with(cuda::prelude()));
  std::string text = program.device_source.substr(std::string(cuda::prelude()).size());
  for (const Step& step : program.steps)
    for_each_kernel(step, [&](const KernelPtr& kernel) {
      EXPECT_NE(text.find("void __launch_bounds__"), std::string::npos);
      EXPECT_NE(text.find(" " + kernel->cuda->entry + "("), std::string::npos) << kernel->cuda->entry;
    });
  std::string path = std::string(INGOT_SOURCE_DIR) + "/tests/codegen/golden/" + sample.name + ".cu";
  if (std::getenv("INGOT_UPDATE_GOLDEN")) std::ofstream(path) << text;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing";
  std::string expected((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, expected);
}

INSTANTIATE_TEST_SUITE_P(Samples, CudaGolden, testing::ValuesIn(cuda_graphs()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ingot::codegen::test
