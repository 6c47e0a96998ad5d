// CUDA text, run on the processor, against the scalar executor.
#include <cmath>
#include <deque>

#include "base/half.h"
#include "codegen/cuda/cuda.h"
#include "cuda_trial.h"

namespace ingot::codegen::test {
namespace {

const Target kCuda{.cuda_arch = 90};

TEST(CudaText, RandomKernelsGiveTheBitsOfTheScalarExecutor) {
  std::deque<RandomKernel> makers;
  std::vector<KernelPtr> texts;
  for (uint64_t seed = 1; seed <= 48; ++seed) {
    RandomKernel& maker = makers.emplace_back(seed, /*ordered=*/false);
    seed % 4 == 0 ? maker.make_columns() : maker.make();
    texts.push_back(generate(maker.kernel().kernel, kCuda, "random", seed % 2 ? 2 : 3));
  }
  HostUnit unit(texts);
  for (size_t i = 0; i < makers.size(); ++i) {
    const uint64_t seed = i + 1;
    RandomKernel& maker = makers[i];
    const Kernel& kernel = maker.kernel().kernel;
    std::vector<Layout> layouts;
    for (const Buffer& b : kernel.buffers)
      layouts.push_back({b.access == Access::dense ? 1 : b.access == Access::uniform ? 0 : maker.below(2) ? 2 : -1});
    for (uint32_t t : maker.tables_) layouts[t].index_count = 4;
    const int64_t sizes[] = {1, 16, 37, 300, 1024, 2050};
    int64_t rows = 1 + static_cast<int64_t>(seed % 7), columns = sizes[seed % 6];
    if (kernel.form == Form::columns) rows = sizes[seed / 4 % 6], columns = 1 + static_cast<int64_t>(seed * 7 % 90);
    std::vector<int64_t> outer{2, 1};
    if (seed % 2 == 0) outer = {1, 2, 2};
    CudaTrial{kernel,
              *texts[i],
              unit,
              rows,
              columns,
              outer,
              layouts,
              {0x3fc00000, 0x4004000000000000, 5, 7, seed & 1},
              seed,
              {},
              static_cast<int64_t>(seed % 3)}
        .run();
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

}  // namespace
}  // namespace ingot::codegen::test
