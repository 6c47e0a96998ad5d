// Results of products that lie where an operand of their epilogue lay, with eager's bits.
#include <functional>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

struct WrittenOver : testing::Test {
  const test::RestoredSettings restored;
};

// cumsum gives a value that nobody but the product's epilogue reads.
TEST_F(WrittenOver, AnOperandOfAnEpilogue) {
  struct Sizes {
    int64_t m, k, n;
  };
  // One row, one block of k, several blocks, cuts of k, edges of tiles, nothing.
  for (const auto [m, k, n] : {Sizes{1, 40, 300}, Sizes{7, 16, 5}, Sizes{64, 64, 64}, Sizes{33, 1500, 47},
                               Sizes{16, 4096, 16}, Sizes{200, 20, 130}, Sizes{5, 0, 6}}) {
    const Tensor a = randn({m, k}), w = randn({k, n}), square = randn({m, m}), x = randn({m, n});
    const std::function<Tensor(const Tensor&)> functions[] = {
        [&](const Tensor& t) { return ((a.matmul(w) + 1) * t.cumsum(0)).cumsum(1); },
        [&](const Tensor& t) {
          const Tensor u = t.cumsum(0), y = a.matmul(w);
          return (y * u).cumsum(1) + (y - u).cumsum(0);  // two results
        },
        [&](const Tensor& t) {
          const Tensor u = square.cumsum(0);  // an operand of the product, too
          return (u.matmul(u) * u).cumsum(1).sum() + t;
        },
        [&](const Tensor& t) {
          const Tensor u = t.cumsum(0);
          return ((a.matmul(w) * u).cumsum(1) + u.t().contiguous().t()).cumsum(0);  // read after it
        },
        [&](const Tensor& t) {
          const Tensor u = t.cumsum(0);
          return (a.matmul(w) * u.flip({0})).cumsum(1);  // other elements of it
        },
    };
    for (size_t f = 0; f < std::size(functions); ++f)
      for (Isa isa : {runtime::detected_target().isa, Isa::avx2, Isa::none}) {
        if (isa > runtime::detected_target().isa) continue;
        SCOPED_TRACE(std::to_string(f) + " of " + std::to_string(m) + ", " + std::to_string(k) + ", " +
                     std::to_string(n));
        const Tensor expected = functions[f](x);
        runtime::set_host_target(runtime::target_of(isa));
        auto fast = compile(functions[f]), apart = compile(functions[f], {.disable = {"join_buffers"}});
        for (int threads : {1, 2}) {
          set_num_threads(threads);
          for (int call = 0; call < 2; ++call) {
            EXPECT_TRUE(same_bits(fast(x), expected));
            EXPECT_TRUE(same_bits(apart(x), expected));
          }
        }
        EXPECT_EQ(fast.stats().fallbacks, 0);
        runtime::set_host_target(std::nullopt);
      }
  }
}

}  // namespace
}  // namespace ingot
