// Random kernels, generated and interpreted.
#include "codegen/random_kernel.h"

namespace ingot::codegen::test {
namespace {

class X86Random : public X86 {};
INGOT_X86_SUITE(X86Random);

TEST_P(X86Random, KernelsGiveTheBitsOfTheScalarExecutor) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    RandomKernel maker(seed);
    const bool columns_form = seed % 4 == 0;
    columns_form ? maker.make_columns() : maker.make();
    const Kernel& kernel = maker.kernel().kernel;
    std::vector<Layout> layouts;
    for (const Buffer& b : kernel.buffers)
      layouts.push_back({b.access == Access::dense     ? 1
                         : b.access == Access::uniform ? 0
                         : b.stride                    ? b.stride
                         : maker.below(2)              ? 2
                                                       : -1});
    for (uint32_t t : maker.tables_) layouts[t].index_count = 4;
    std::vector<uint64_t> scalars{0x3fc00000, 0x4004000000000000, 5, 7, seed & 1};
    const int64_t columns[] = {1, 16, 37, 300, 2050};
    Trial{kernel,
          target(),
          columns_form ? static_cast<int64_t>(seed % 257) : 1 + static_cast<int64_t>(seed % 3),
          columns[seed % 5],
          layouts,
          scalars,
          {},
          seed}
        .run();
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

}  // namespace
}  // namespace ingot::codegen::test
