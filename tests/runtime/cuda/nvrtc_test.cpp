#include "runtime/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ingot::runtime::cuda {
namespace {

TEST(Nvrtc, ResourcesAreReadFromTheAssemblersAccount) {
  auto kernels = parse_resources(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90'\n"
      "ptxas info    : Function properties for second\n"
      "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 128 registers, used 1 barriers, 384 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_90'\n"
      "ptxas info    : Used 14 registers, used 0 barriers\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].entry, "second");
  EXPECT_EQ(kernels[0].registers, 128);
  EXPECT_EQ(kernels[0].stack_bytes, 16);
  EXPECT_EQ(kernels[0].spill_store_bytes, 8);
  EXPECT_EQ(kernels[0].spill_load_bytes, 12);
  EXPECT_EQ(kernels[1].entry, "first");
  EXPECT_EQ(kernels[1].registers, 14);
  EXPECT_EQ(kernels[1].spill_store_bytes, 0);
}

class NvrtcLibrary : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_missing().empty()) GTEST_SKIP() << nvrtc_missing();
  }
};

TEST_F(NvrtcLibrary, CompilesAndReportsResources) {
  for (int time = 0; time < 2; ++time) {  // nothing is taken from a cache, which tells no resources
    Cubin cubin = compile("extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }", 90);
    EXPECT_FALSE(cubin.image.empty());
    ASSERT_EQ(cubin.kernels.size(), 1u);
    EXPECT_EQ(cubin.kernels[0].entry, "twice");
    EXPECT_GT(cubin.kernels[0].registers, 0);
    EXPECT_EQ(cubin.warnings, "");
  }
}

TEST_F(NvrtcLibrary, TextThatIsRefusedIsABugWithItsLog) {
  try {
    compile("__global__ void broken() { undeclared = 1; }", 90);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("undeclared"), std::string::npos) << error.what();
  }
}

TEST_F(NvrtcLibrary, AnUnknownArchitectureListsThoseThatExist) {
  try {
    compile("", 12);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("sm_90"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ingot::runtime::cuda
