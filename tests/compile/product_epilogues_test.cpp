// Products of one block of terms, or of two, and what follows them, compiled: with the bits that the ops have one by
// one.
#include <functional>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

class ProductEpilogues : public test::Inference {};

struct Sizes {
  int64_t m, k, n;
};
constexpr Sizes kSizes[] = {{1, 8, 48},    {5, 1, 17},     {13, 64, 50},   {14, 128, 96}, {27, 255, 33}, {64, 256, 200},
                            {65, 257, 48}, {128, 128, 16}, {100, 31, 384}, {16, 0, 48},   {0, 8, 48}};

template <class F>
void expect_bits(const char* what, F f) {
  SCOPED_TRACE(what);
  for (const Sizes& s : kSizes) {
    SCOPED_TRACE(std::to_string(s.m) + "x" + std::to_string(s.k) + "x" + std::to_string(s.n));
    manual_seed(7);
    const Tensor x = randn({s.m, s.k}), w = randn({s.n, s.k}), b = randn({s.n}), r = randn({s.m, s.n});
    const Tensor expected = f(x, w, b, r);
    test::on_every_target({1, 2, 5}, [&] {
      auto fast = compile([&](const Tensor& a, const Tensor& rest) { return f(a, w, b, rest); });
      for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(fast(x, r), expected));
    });
  }
}

#define EXPECT_BITS(expression)                                                                                        \
  expect_bits(#expression,                                                                                             \
              []([[maybe_unused]] const Tensor& x, [[maybe_unused]] const Tensor& w, [[maybe_unused]] const Tensor& b, \
                 [[maybe_unused]] const Tensor& r) { return expression; })

/// One column is a sum of products, one product an element no sum: known at once, or of a size that becomes 1.
TEST_F(ProductEpilogues, OneColumnAndOneProduct) {
  using Function = std::function<Tensor(const Tensor&, const Tensor&)>;
  using Shapes = std::vector<std::pair<Ints, Ints>>;
  const auto random = [](const Ints& sizes) { return randn(std::vector<int64_t>(sizes.begin(), sizes.end())); };
  const auto expect = [&](const Function& f, const Shapes& shapes) {
    for (DType dtype : {kFloat32, kFloat64, kBFloat16})
      for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
        auto fast = compile(f, {.mode = mode});
        for (int round = 0; round < 2; ++round)
          for (const auto& [left, right] : shapes) {
            const Tensor a = random(left).to(dtype), b = random(right).to(dtype), expected = f(a, b);
            EXPECT_TRUE(same_bits(fast(a, b), expected)) << expected.str();
            const double bound = dtype == kBFloat16 ? 2e-2 : 1e-5;
            EXPECT_TRUE(allclose(expected.to(kFloat64), f(a.to(kFloat64), b.to(kFloat64)), bound, bound));
          }
      }
  };
  const Function product = [](const Tensor& a, const Tensor& b) { return matmul(a, b); };
  expect(product, {{{7, 300}, {300, 1}}, {{7, 1}, {1, 300}}, {{0, 4}, {4, 1}}, {{5, 0}, {0, 1}}});
  expect(product, {{{3, 7, 40}, {3, 40, 1}}, {{2, 5, 1}, {2, 1, 9}}, {{2, 1, 1}, {2, 1, 1}}, {{3, 7, 40}, {1, 40, 1}}});
  expect(product, {{{3, 7, 40}, {40, 1}}, {{3, 7, 1}, {1, 6}}});
  expect(product, {{{3, 1, 7, 40}, {4, 40, 1}}, {{3, 1, 7, 1}, {4, 1, 5}}});
  expect([](const Tensor& a, const Tensor& b) { return matmul(a, b.slice(-1, 0, b.size(-1) / 8)); },
         {{{7, 30}, {30, 40}}, {{7, 30}, {30, 8}}, {{7, 30}, {30, 56}}, {{7, 30}, {30, 4}}});
  expect(
      [](const Tensor& a, const Tensor& b) {
        const Size depth = a.size(-1) / 8;
        return matmul(a.slice(-1, 0, depth), b.slice(-2, 0, depth));
      },
      {{{2, 5, 48}, {2, 48, 9}}, {{2, 5, 8}, {2, 8, 9}}, {{2, 5, 88}, {2, 88, 9}}, {{2, 5, 4}, {2, 4, 9}}});
}

TEST_F(ProductEpilogues, BiasesActivationsAndResiduals) {
  EXPECT_BITS(linear(x, w, b));
  EXPECT_BITS(linear(x, w, b).relu());
  EXPECT_BITS(linear(x, w) + r);
  EXPECT_BITS((linear(x, w, b) * 2).sigmoid() * r);
  EXPECT_BITS(linear(x, w).mul(b).clamp(-1, 1));
}

TEST_F(ProductEpilogues, OperandsOfAnyLayout) {
  EXPECT_BITS(x.t().contiguous().t().matmul(w.t()) + r);
  EXPECT_BITS(x.matmul(w.t().contiguous()).relu() - r);
  EXPECT_BITS(linear(x, w) + r.t().contiguous().t());
  EXPECT_BITS(linear(x, w) + r.slice(1, 0, 1));
  EXPECT_BITS(linear(x, w).t() + b.unsqueeze(1));
  EXPECT_BITS(bmm(stack({x, x * 2}, 0), stack({w, w + 1}, 0).transpose(1, 2)) + r);
}

// Lines of A that are packed in pieces go span by span of k, while the sums of all rows wait: of one block of rows, of
// several, of more panels than may wait at once, and of more rows. B is a weight (packed before), or not.
TEST_F(ProductEpilogues, LeftOperandsAcrossInSpansOfK) {
  for (const Sizes& s : {Sizes{90, 256, 130}, {90, 257, 130}, {530, 700, 200}, {4300, 300, 150}, {8300, 257, 128}}) {
    SCOPED_TRACE(std::to_string(s.m) + "x" + std::to_string(s.k) + "x" + std::to_string(s.n));
    manual_seed(9);
    const Tensor x = randn({s.k, s.m}), w = randn({s.k, s.n}), rows = x.t().contiguous(), r = randn({s.m, s.n});
    const Tensor plain = matmul(rows, w), followed = (plain + r).relu();
    EXPECT_TRUE(allclose(plain.to(kFloat64), matmul(rows.to(kFloat64), w.to(kFloat64)), 1e-4, 1e-3));
    test::on_every_target({1, 2, 3}, [&] {
      if (s.m > 1000 && (num_threads() == 3 || runtime::host_target().isa == Isa::none)) return;  // it takes long
      auto product = compile([](const Tensor& a, const Tensor& b) { return matmul(a.t(), b); });
      auto weighed = compile([&](const Tensor& a) { return matmul(a.t(), w); });
      auto both =
          compile([](const Tensor& a, const Tensor& b, const Tensor& c) { return (matmul(a.t(), b) + c).relu(); });
      EXPECT_TRUE(same_bits(product(x, w), plain));
      EXPECT_TRUE(same_bits(weighed(x), plain));
      EXPECT_TRUE(same_bits(both(x, w, r), followed));
      EXPECT_TRUE(same_bits(matmul(x.t(), w), plain));
    });
  }
}

// What is written is read by the tile that writes it, or by nobody.
TEST_F(ProductEpilogues, InPlace) {
  auto f = [](const Tensor& x, const Tensor& w, const Tensor& r) {
    r.add_(linear(x, w));
    return r * 2;
  };
  for (const Sizes& s : kSizes) {
    const Tensor x = randn({s.m, s.k}), w = randn({s.n, s.k}), r = randn({s.m, s.n});
    test::on_every_target({1, 2}, [&] {
      auto fast = compile(f);
      for (int call = 0; call < 3; ++call) {
        const Tensor mine = r.clone(), its = r.clone();
        EXPECT_TRUE(same_bits(fast(x, w, its), f(x, w, mine)));
        EXPECT_TRUE(same_bits(its, mine));
      }
    });
  }
}

TEST_F(ProductEpilogues, OtherTypes) {
  for (DType a : {kBFloat16, kFloat16, kFloat64, kFloat32})
    for (DType result : {kFloat32, kBFloat16, kFloat64}) {
      const Tensor x = randn({27, 64}).to(a), w = randn({50, 64}).to(a), b = randn({50}).to(result);
      auto f = [&](const Tensor& x) { return (linear(x, w).to(result) + b).relu(); };
      const Tensor expected = f(x);
      auto fast = compile(f);
      for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(fast(x), expected)) << name_of(a) << name_of(result);
    }
}

}  // namespace
}  // namespace ingot
