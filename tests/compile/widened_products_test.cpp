// A product of what the user has cast to f32 is one of f32, and a product of bf16 one of bf16: compiled as eager.
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

Tensor normal(const IntList& sizes, DType dtype) { return randn(sizes).to(dtype); }

/// The bits of eager, compiled, with the first tensor an argument and the second captured, and the other way round.
template <class F>
void expect_bits(const char* what, F f, const Tensor& a, const Tensor& b) {
  SCOPED_TRACE(what);
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile([&](const Tensor& x) { return f(x, b); }, {.mode = mode});
    auto other = compile([&](const Tensor& y) { return f(a, y); }, {.mode = mode});
    for (int call = 0; call < 4; ++call) {
      EXPECT_TRUE(same_bits(fast(a), f(a, b)));
      EXPECT_TRUE(same_bits(other(b), f(a, b)));
    }
  }
}

#define EXPECT_BITS(expression) \
  expect_bits(                  \
      #expression, [](const Tensor& a, const Tensor& b) { return expression; }, a, b)

TEST(WidenedProducts, CastsBeforeAProductAreTheUsers) {
  for (int64_t k : {1, 7, 10, 64, 300}) {
    SCOPED_TRACE(k);
    Tensor a = normal({5, k}, kBFloat16), b = normal({6, k}, kBFloat16);
    EXPECT_BITS(linear(a.to(kFloat32), b.to(kFloat32)));
    EXPECT_BITS(linear(a.to(kFloat32), b.to(kFloat32)).to(kBFloat16));
    EXPECT_BITS(matmul(a.to(kFloat32), b.to(kFloat32).t()));
    EXPECT_BITS(matmul(a.to(kFloat32), b.t().to(kFloat32)));
    EXPECT_BITS(matmul(a.to(kFloat32).slice(0, 1, 4), b.to(kFloat32).t()));
    EXPECT_BITS(matmul(b.to(kFloat32), b.to(kFloat32).t()) + a.to(kFloat32).sum());
    EXPECT_BITS(linear(a.relu().to(kFloat32), (b * 2).to(kFloat32)));
    EXPECT_BITS(linear(a.to(kFloat32), b.to(kFloat32) * 0.5));
    EXPECT_BITS(matmul(a.to(kFloat32), b[2].to(kFloat32)));
    EXPECT_BITS(matmul(a.unsqueeze(0).expand({3, -1, -1}).to(kFloat32), b.to(kFloat32).t()));
    EXPECT_BITS(bmm(a.unsqueeze(0).to(kFloat32), b.to(kFloat32).unsqueeze(0).transpose(1, 2)));
    EXPECT_BITS(addmm(ones({6}), a.to(kFloat32), b.to(kFloat32).t(), 0.5, 2));
    EXPECT_BITS(linear(a.to(kFloat64), b.to(kFloat64)));
  }
}

// Where the operands come from, and how they lie, must not decide which instructions multiply them.
TEST(WidenedProducts, ProductsOfBf16WhereverTheirOperandsAreMade) {
  for (int64_t k : {1, 7, 10, 64, 300}) {
    SCOPED_TRACE(k);
    Tensor a = normal({5, k}, kBFloat16), b = normal({6, k}, kBFloat16);
    EXPECT_BITS(linear(a, b));
    EXPECT_BITS(linear(a.relu(), b * 2));
    EXPECT_BITS(matmul(a, b.t()));
    EXPECT_BITS(matmul(a, b.t().contiguous()));
    EXPECT_BITS(matmul(a, (b + 1).t()));
    EXPECT_BITS(matmul(a, stack({b, b * 3}, 2).select(2, 1).t()));
    EXPECT_BITS(matmul(a, stack({b, b * 3}, 2).select(2, 1).t() + 0));
    EXPECT_BITS(linear(a.to(kFloat32).to(kBFloat16), b.to(kFloat32).exp().to(kBFloat16)));
    EXPECT_BITS(addmm(ones({6}).to(kBFloat16), a, b.t(), 0.5, 2));
    EXPECT_BITS(matmul(a, b[2]));
    EXPECT_BITS(matmul(a.unsqueeze(0).expand({3, -1, -1}), b.t()));
    EXPECT_BITS(matmul(a, b.t(), kFloat32));
    EXPECT_BITS(matmul(a, b.t(), kFloat32) + matmul(a.to(kFloat32), b.to(kFloat32).t()));
    EXPECT_BITS(matmul(a, b.t()).to(kFloat32) + matmul(a, b.t(), kFloat32));
    Tensor x = a.to(kFloat16), y = b.to(kFloat16);
    EXPECT_TRUE(same_bits(matmul(x, y.t(), kFloat32), matmul(x.to(kFloat32), y.to(kFloat32).t())));
  }
}

}  // namespace
}  // namespace ingot
