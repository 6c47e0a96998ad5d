// Values made from coordinates (arange, tril) among what is fused: an epilogue has none.
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

template <class F>
void expect_bits(const char* what, F f) {
  SCOPED_TRACE(what);
  auto fast = compile(f);
  for (int64_t rows : {3, 1, 17, 40}) {
    Tensor x = randn({rows, 6}), w = randn({6, 20}), b = randn({20}), c = randn({rows, 20});
    const std::vector<Tensor> expected = f(x, w, b, c), got = fast(x, w, b, c);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << rows << " result " << i;
  }
}

#define EXPECT_BITS(...)                                                                                               \
  expect_bits(#__VA_ARGS__,                                                                                            \
              []([[maybe_unused]] const Tensor& x, [[maybe_unused]] const Tensor& w, [[maybe_unused]] const Tensor& b, \
                 [[maybe_unused]] const Tensor& c) { return std::vector<Tensor>{__VA_ARGS__}; })

Tensor places(int64_t n) { return arange(n).to(kFloat32); }

TEST(Coordinates, BesideAProduct) {
  EXPECT_BITS(x.matmul(w) + places(20));
  EXPECT_BITS(x.matmul(w) + (places(20) * 2 + b));
  EXPECT_BITS(x.matmul(w) + (c * 2 + places(20)) * b);
  EXPECT_BITS(x.matmul(w).relu() + (b + 1) * places(20), b + 1);
  EXPECT_BITS(c + places(20), c * 2, x.matmul(w) + c);
  EXPECT_BITS(c * 2, c + places(20), x.matmul(w) + c * 2);
  EXPECT_BITS(x.matmul(w) + c * 2, c * 2, c.tril() + places(20));
  EXPECT_BITS((x.matmul(w) + b).tril(), (c + b).triu());
  EXPECT_BITS((c * b).tril(), c * b, x.matmul(w) * (c * b));
  EXPECT_BITS(x.matmul(w).tril() + c, x.matmul(w) + c.triu());
}

TEST(Coordinates, OneValueInSeveralKernels) {
  EXPECT_BITS((c + places(20)).sum(1), (c + places(20)) * b, x.matmul(w) + (c + places(20)));
  EXPECT_BITS(c.exp(), c.exp() + places(20), c.exp().sum(1), x.matmul(w) * c.exp());
  EXPECT_BITS(c.exp() + places(20), c.exp(), x.matmul(w) * c.exp(), c.exp().sum(0));
}

}  // namespace
}  // namespace ingot
