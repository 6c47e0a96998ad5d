// CUDA text through NVRTC, wherever its library is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "codegen/cuda/cuda.h"
#include "codegen/lower.h"
#include "cuda_graphs.h"
#include "runtime/cuda/nvrtc.h"

namespace ingot::codegen::test {
namespace {
using ir::ArgInfo;
using ir::ArgKind;
using ir::Attr;
using ir::Operand;

class CudaCompile : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!runtime::cuda::nvrtc_missing().empty()) GTEST_SKIP() << runtime::cuda::nvrtc_missing();
    std::vector<int> known = runtime::cuda::nvrtc_architectures();
    if (std::find(known.begin(), known.end(), GetParam()) == known.end())
      GTEST_SKIP() << "NVRTC " << runtime::cuda::nvrtc_version() << " does not know sm_" << GetParam();
  }
  /// Compiles the kernels as one unit; checks that each is there, without a warning.
  runtime::cuda::Cubin compile(const std::vector<KernelPtr>& kernels) {
    runtime::cuda::Cubin cubin = runtime::cuda::compile(cuda::translation_unit(kernels), GetParam());
    EXPECT_FALSE(cubin.image.empty());
    EXPECT_EQ(cubin.warnings, "");
    std::vector<std::string> expected, got;
    for (const KernelPtr& k : kernels) expected.push_back(k->cuda->entry);
    for (const auto& k : cubin.kernels) {
      got.push_back(k.entry);
      EXPECT_GT(k.registers, 0) << k.entry;
    }
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, expected);
    return cubin;
  }
};
INSTANTIATE_TEST_SUITE_P(Sm, CudaCompile, testing::ValuesIn(cuda::kArchitectures));

TEST_P(CudaCompile, EveryFormWithoutSpills) {
  std::vector<KernelPtr> kernels;
  for (const CudaGraph& sample : cuda_graphs())
    for (const Step& step : lower(sample.make(), Target{.cuda_arch = GetParam()}).program.steps)
      for_each_kernel(step, [&](const KernelPtr& kernel) { kernels.push_back(kernel); });
  for (const auto& k : compile(kernels).kernels) {
    EXPECT_EQ(k.spill_store_bytes, 0) << k.entry;
    EXPECT_EQ(k.stack_bytes, 0) << k.entry;
  }
}

/// A graph of one elementwise op over tensors of one dtype; where a row wants scalars, all but the first and a mask are
/// scalars. Without outputs if the row does not take the dtype.
ir::Graph graph_of(const ir::OpInfo& row, DType dtype, const std::vector<Attr>& attributes, bool scalars = false) {
  ir::Graph g;
  const Dim n = g.dims.symbol(1000), stride = g.dims.symbol(7);
  std::vector<Operand> operands;
  for (int i = 0; i < row.operand_count; ++i) {
    const ArgInfo& a = row.operand(i);
    if (a.kind == ArgKind::value || (scalars && i > 0 && !a.mask))
      operands.push_back(Operand::constant(a.default_number));
    else
      operands.push_back(Operand::value(g.add_input(a.mask ? DType::bool_ : dtype, {n}, {stride})));
  }
  try {
    g.outputs = {g.add(row.id, std::move(operands), attributes)};
  } catch (const Error&) {
    return scalars ? ir::Graph() : graph_of(row, dtype, attributes, true);
  }
  return g;
}

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                             DType::i32, DType::i16, DType::i8,  DType::u8,   DType::bool_};

/// The row's kernel with every access strided, so that its expressions stand in the text once.
KernelPtr plain_kernel(const ir::Graph& graph, int arch) {
  LowerResult r = lower(graph, Target{.cuda_arch = arch}, {.output_strides = {{graph.dims.symbol_dim(1)}}});
  EXPECT_EQ(r.program.steps.size(), 1u);
  return r.program.steps[0].as<LoopStep>().kernel;
}

/// Each row is compiled for one architecture and one dtype, in turn; for all of both with INGOT_CUDA_ALL=1 (minutes).
TEST_P(CudaCompile, EveryElementwiseRow) {
  const bool all = std::getenv("INGOT_CUDA_ALL") != nullptr;
  std::vector<KernelPtr> kernels;
  size_t turn = 0, rows = 0;
  for (const ir::OpInfo& row : ir::ops()) {
    if (row.kind != ir::OpKind::elementwise) continue;
    std::vector<ir::Graph> graphs;
    for (DType d : kDTypes) {
      std::vector<std::vector<Attr>> attributes{{}};
      if (row.id == OpId::cast) {
        attributes.clear();
        for (DType to : kDTypes) attributes.push_back({Attr::of(to)});
      }
      for (const auto& list : attributes)
        if (ir::Graph g = graph_of(row, d, list); !g.outputs.empty()) graphs.push_back(std::move(g));
    }
    ASSERT_FALSE(graphs.empty()) << row.name;
    const size_t arch = static_cast<size_t>(
        std::find(std::begin(cuda::kArchitectures), std::end(cuda::kArchitectures), GetParam()) - cuda::kArchitectures);
    ++turn;
    for (size_t i = 0; i < graphs.size(); ++i)
      if (all || (turn % std::size(cuda::kArchitectures) == arch &&
                  i == turn / std::size(cuda::kArchitectures) % graphs.size()))
        kernels.push_back(plain_kernel(graphs[i], GetParam()));
    ++rows;
  }
  EXPECT_GE(kernels.size(), rows / std::size(cuda::kArchitectures));
  runtime::cuda::Cubin cubin = compile(kernels);
  // Spills of a row are the assembler's affair: recorded, not judged.
  for (const auto& k : cubin.kernels)
    if (k.spill_store_bytes) RecordProperty(k.entry, std::to_string(k.spill_store_bytes) + " bytes spilled");
}

}  // namespace
}  // namespace ingot::codegen::test
