// Reductions over few elements in functions that write over what they read: on the arguments, on views of them and of
// captured tensors, at sizes that change.
#include <gtest/gtest.h>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

TEST(FewColumns, WrittenOverWhatTheyRead) {
  test::on_every_target({1, 3}, [] {
    for (int64_t dim : {0, 1}) {
      const Tensor captured = arange(4000).to(kFloat32).reshape({4, 1000}) * 1e-3;
      auto step = [&](const Tensor& x) {
        x.copy_(softmax(x * 2, dim));
        x.sub_(x.amax({dim}, true));
        const Tensor view = captured.narrow(1, 3, 900).t();
        view.mul_(1 + view.argmax(1, true).to(kFloat32));
        x.select(1, 0).add_(x.sum({1}));
        return std::make_tuple(x.argmin(dim), x + 1, view.sum({1}));
      };
      auto fast = compile(step);
      for (int64_t size : {3, 4, 2, 8, 9, 1, 3, 5})
        for (int64_t rows : {100, 1, 0, 17, 100}) {
          SCOPED_TRACE(std::to_string(rows) + " of " + std::to_string(size) + ", dim " + std::to_string(dim));
          manual_seed(3);
          const Tensor whole =
              randn(dim == 1 ? std::vector<int64_t>{rows, size + 2} : std::vector<int64_t>{size, rows + 2});
          if (rows == 0 && dim == 0) continue;
          const Tensor expected_of = whole.clone(), kept = captured.clone();
          const Tensor a = expected_of.narrow(1, 1, whole.size(1) - 2), b = whole.narrow(1, 1, whole.size(1) - 2);
          if (a.size(1) == 0) continue;
          const auto expected = step(a);
          const Tensor left = captured.clone();
          captured.copy_(kept);
          const auto got = fast(b);
          EXPECT_TRUE(same_bits(whole, expected_of));
          EXPECT_TRUE(same_bits(captured, left));
          EXPECT_TRUE(same_bits(std::get<0>(got), std::get<0>(expected)));
          EXPECT_TRUE(same_bits(std::get<1>(got), std::get<1>(expected)));
          EXPECT_TRUE(same_bits(std::get<2>(got), std::get<2>(expected)));
          captured.copy_(kept);
        }
      EXPECT_GT(fast.stats().compilations, 0);
      EXPECT_EQ(fast.stats().fallbacks, 0);
    }
  });
}

}  // namespace
}  // namespace ingot
