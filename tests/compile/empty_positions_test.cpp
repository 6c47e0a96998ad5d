// Positions that an empty range makes hide no others: what eager refuses is refused.
#include "support.h"

namespace ingot {
namespace {

TEST(EmptyPositions, DoNotEndTheChecks) {
  Tensor table = randn({4, 3});
  auto f = [&](const Tensor& x, int64_t n, const Tensor& index) {
    Tensor none = table.index_select(0, arange(n)).sum();
    return table.index_select(0, index) * x + none;
  };
  auto fast = compile(f);
  const Tensor x = randn({2, 3});
  auto judge = [&](int64_t n, const Tensor& index) {
    std::string expected, got;
    Tensor right, result;
    try {
      right = f(x, n, index);
    } catch (const Error& e) {
      expected = e.what();
    }
    try {
      result = fast(x, n, index);
    } catch (const Error& e) {
      got = e.what();
    }
    EXPECT_EQ(got.empty(), expected.empty()) << n << got << expected;
    if (got.empty() && expected.empty()) EXPECT_TRUE(test::same_bits(result, right));
  };
  const Tensor good = tensor({int64_t{1}, int64_t{3}}), bad = tensor({int64_t{1}, int64_t{4}}),
               worse = tensor({int64_t{1} << 40, int64_t{0}});
  for (int round = 0; round < 3; ++round)
    for (int64_t n : {2, 3, 0, 4, 0, 5, 0})
      for (const Tensor& index : {good, bad, good, worse}) judge(n, index);
}

}  // namespace
}  // namespace ingot
