// What sums over nothing give: variances of no numbers, attention of heads without elements or without keys.
#include "support.h"

namespace ingot {
namespace {

namespace F = nn::functional;
using test::same_bits;

bool all_nan(const Tensor& t) { return t.isnan().all().item<bool>(); }

TEST(OfNothing, VariancesAreNoNumbers) {
  for (const double correction : {-1.0, 0.0, 1.0, 2.0}) {
    auto f = [&](const Tensor& x) { return x.var(0, correction); };
    auto fast = compile(f);
    for (const Tensor& x : {zeros({0, 3}), zeros({0, 5})}) {
      EXPECT_TRUE(all_nan(f(x))) << correction;
      EXPECT_TRUE(all_nan(fast(x))) << correction;
      EXPECT_TRUE(all_nan(x.std(0, correction))) << correction;
      EXPECT_TRUE(all_nan(std::get<0>(var_mean(x, 0, correction)))) << correction;
    }
    const Tensor x = randn({4, 3});
    EXPECT_TRUE(same_bits(fast(x), f(x)));
    EXPECT_FALSE(x.var(0, correction).isnan().any().item<bool>());
  }
}

// Every score is an empty sum: all keys weigh the same.
TEST(OfNothing, HeadsWithoutElementsLookAtAllKeys) {
  auto f = [](const Tensor& q, const Tensor& k, const Tensor& v) { return F::scaled_dot_product_attention(q, k, v); };
  auto fast = compile(f);
  for (const int64_t keys : {3, 4, 17}) {
    const Tensor q = zeros({1, 2, 0}), k = zeros({1, keys, 0}), v = arange(keys, kFloat32).view({1, keys, 1});
    const Tensor expected = full({1, 2, 1}, static_cast<double>(keys - 1) / 2);
    EXPECT_TRUE(allclose(f(q, k, v), expected)) << keys;
    EXPECT_TRUE(same_bits(fast(q, k, v), f(q, k, v))) << keys;
    const Tensor leaf = v.clone().requires_grad_();
    f(q, k, leaf).sum().backward();
    EXPECT_TRUE(allclose(leaf.grad(), full({1, keys, 1}, 2.0 / static_cast<double>(keys)))) << keys;
    const Tensor mask = zeros({2, keys}).requires_grad_(), again = v.clone().requires_grad_();
    F::scaled_dot_product_attention(q, k, again, mask).sum().backward();
    EXPECT_TRUE(allclose(again.grad(), leaf.grad())) << keys;
    EXPECT_TRUE(allclose(F::scaled_dot_product_attention(q, k, v, {}, 1e-9), expected)) << "with dropout";
  }
}

TEST(OfNothing, QueriesWithoutKeysGiveZerosAndNoGradient) {
  auto step = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
    const Tensor y = F::scaled_dot_product_attention(q, k, v, mask);
    std::vector<Tensor> all = autograd::grad({y.sum()}, {q, k, v, mask});
    all.push_back(y);
    return all;
  };
  auto fast = compile(step);
  for (const int64_t queries : {2, 3, 5})
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{queries, 0}, {queries, 1}, {0}}) {
      auto leaf = [](const Tensor& t) { return t.requires_grad_(); };
      const Tensor q = leaf(randn({1, queries, 4})), k = leaf(zeros({1, 0, 4})), v = leaf(zeros({1, 0, 4})),
                   mask = leaf(zeros(shape));
      for (const std::vector<Tensor>& found : {step(q, k, v, mask), fast(q, k, v, mask)}) {
        EXPECT_TRUE(equal(found[0], zeros_like(q)));
        EXPECT_TRUE(equal(found[3], zeros_like(mask)));
        EXPECT_TRUE(equal(found[4], zeros_like(q)));
      }
      const Tensor dropped = F::scaled_dot_product_attention(q.detach(), k.detach(), v.detach(), {}, 0.5);
      EXPECT_TRUE(equal(dropped, zeros_like(q)));
    }
}

}  // namespace
}  // namespace ingot
