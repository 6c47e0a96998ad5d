// A size that is an expression of others, and 1 only because a guard says so, broadcasts like a 1.
#include <string>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

template <class F>
void judge(const char* name, F f) {
  auto fast = compile(f);
  for (int64_t i : {2, 1, 0, 3, 1}) EXPECT_TRUE(same_bits(fast(i), f(i))) << name << " " << i;
  EXPECT_EQ(fast.stats().fallbacks, 0) << name;
  EXPECT_LE(fast.stats().compilations, 2) << name;
}

TEST(BroadcastByGuard, OfAWindowAtAHostsIndex) {
  const Tensor w = randn({4, 3, 3}), u = randn({4, 4, 3, 3}), v = randn({4, 3}), x = randn({2, 3, 3});
  const Tensor q = randn({4, 2, 5, 8}), m = randn({4, 5, 5}), whole = (w * 4).to(kInt64), y = (x * 4).to(kInt64);
  judge("left of a product", [&](int64_t i) { return w.narrow(0, i, 1).matmul(x); });
  judge("right of a product", [&](int64_t i) { return x.matmul(w.narrow(0, i, 1)); });
  judge("two dims of a product", [&](int64_t i) { return u.narrow(0, i, 1).narrow(1, i, 1).matmul(x); });
  judge("of integers", [&](int64_t i) { return whole.narrow(0, i, 1).matmul(y); });
  judge("added to products", [&](int64_t i) { return w.narrow(0, i, 1).baddbmm(x, x); });
  judge("a row added to a product", [&](int64_t i) { return v.narrow(0, i, 1).addmm(x[0], x[1]); });
  judge("a row times a batch", [&](int64_t i) { return v.narrow(0, i, 1).matmul(x); });
  judge("mask", [&](int64_t i) { return scaled_dot_product_attention(q, q, q, m.narrow(0, i, 1)); });
  judge("row of a mask", [&](int64_t i) { return scaled_dot_product_attention(q, q, q, m[0].narrow(0, i, 1)); });
  judge("keys", [&](int64_t i) { return scaled_dot_product_attention(q, q.narrow(0, i, 1), q.narrow(0, i, 1)); });
  judge("elementwise", [&](int64_t i) { return where(x > 0, w.narrow(0, i, 1), x); });
  judge("written", [&](int64_t i) {
    Tensor z = x.clone();
    return z.add_(w.narrow(0, i, 1)), z;
  });
}

TEST(BroadcastByGuard, OfEveryOtherRowOfAChangingBatch) {
  auto f = [](const Tensor& x) { return x.matmul(x.index({Slice(1, None, 2)}).transpose(-1, -2)); };
  auto fast = compile(f);
  for (int64_t batch : {2, 3, 2, 3}) {
    const Tensor x = randn({batch, 4, 5});
    EXPECT_TRUE(same_bits(fast(x), f(x))) << batch;
  }
}

}  // namespace
}  // namespace ingot
