// Ops that index, scan, sort and scatter inside of compiled functions: the same bits as eager, one program, no break
// where the shape does not depend on values, and eager's errors.
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

template <class F, class... Args>
void check(F f, const Args&... args) {
  auto fast = compile(f);
  EXPECT_TRUE(same_bits(fast(args...), f(args...)));
  EXPECT_TRUE(same_bits(fast(args...), f(args...)));
  EXPECT_EQ(fast.stats().graph_breaks, 0);
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().compilations, 1);
}

TEST(CompiledIndexing, HostStepsAmongKernels) {
  Tensor x = randn({7, 33}), i = randint(0, 7, {5}), src = randn({5, 33});
  check([](const Tensor& x) { return (x * 2).cumsum(1).exp() + x.sigmoid().cumsum(0); }, x);
  check([](const Tensor& x) { return std::get<0>((x + 1).sort(1)) * std::get<1>(x.topk(33, 1)); }, x);
  check([](const Tensor& x, const Tensor& i, const Tensor& s) { return (x + 1).index_add(0, i, s * 2, 0.5).relu(); }, x,
        i, src);
  check([](const Tensor& x, const Tensor& i, const Tensor& s) { return x.index_copy(0, i + 0, s).neg(); }, x, i, src);
  check([](const Tensor& x) { return x.flip({0, 1}).roll({3, -2}, {0, 1}) + x.rot90(2) * 2; }, x);
  check([](const Tensor& x) { return masked_scatter(x, x > 0, x.reshape({-1}).neg()) + x; }, x);
  check([](const Tensor& x) { return x.diag_embed(1, 0, 2).sum({1}) + x.select(0, 0).diag().trace(); }, x);
  check([](const Tensor& x) { return bucketize(x, x.select(0, 0).msort()); }, x);
}

TEST(CompiledIndexing, WritesInPlace) {
  auto f = [](const Tensor& x, const Tensor& i) {
    Tensor y = x.clone();
    y.select(0, 1).index_fill_(0, i, 3.0);
    y.scatter_add_(1, i.unsqueeze(0).expand({x.size(0), i.size(0)}), x);
    y.index_put_({i, 0}, x.select(1, 2).slice(0, 0, i.size(0)), true);
    y.index_put_({y > 1}, 0.5);
    y.masked_scatter_(y < 0, x.reshape({-1}));
    return y;
  };
  check(f, randn({6, 9}), randint(0, 6, {4}));
}

TEST(CompiledIndexing, OtherSizesCostOneMoreProgram) {
  auto f = [](const Tensor& x) {
    auto [values, order] = x.sort(0, true);
    return values.cumsum(0).flip({0}).roll(-1, 0) + x.take_along_dim(order, 0).cumprod(0);
  };
  auto fast = compile(f);
  for (int64_t n : {20, 31, 500, 64, 1000}) {
    Tensor x = randn({n, 3});
    EXPECT_TRUE(same_bits(fast(x), f(x))) << n;
  }
  EXPECT_LE(fast.stats().compilations, 2);
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(CompiledIndexing, ShapesFromValuesBreakAndGoOn) {
  auto f = [](const Tensor& x) {
    Tensor big = masked_select(x * 2, x > 0);
    return big.cumsum(0) + repeat_interleave(tensor({1.f}), big.numel());
  };
  auto fast = compile(f);
  for (int i = 0; i < 3; ++i) {
    Tensor x = randn({40});
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
  EXPECT_GT(fast.stats().graph_breaks, 0);
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(CompiledIndexing, PositionsOutOfRangeAreEagersErrors) {
  auto add = [](const Tensor& x, const Tensor& i) { return x.index_add(0, i, ones({i.size(0)})); };
  auto computed = [](const Tensor& x, const Tensor& i) { return x.scatter_add(0, i * 2, ones({i.size(0)})); };
  Tensor x = zeros({4}), good = tensor({0, 1}), bad = tensor({1, 4});
  auto fast_add = compile(add);
  auto fast_computed = compile(computed);
  EXPECT_TRUE(same_bits(fast_add(x, good), add(x, good)));
  EXPECT_TRUE(same_bits(fast_computed(x, good), computed(x, good)));
  EXPECT_THROW(fast_add(x, bad), Error);
  EXPECT_THROW(fast_computed(x, bad), Error);
  EXPECT_TRUE(same_bits(fast_computed(x, good), computed(x, good)));
}

// As LibTorch reads them: a number, a truth value, the whole dim.
TEST(CompiledIndexing, TensorsWithoutDims) {
  const Tensor t = arange(24).reshape({2, 3, 4});
  auto read = [](const Tensor& t, const Tensor& i) { return t.index({i, Slice(), tensor({0, 2})}); };
  const Tensor expected = t.select(0, 1).index({Slice(), tensor({0, 2})});
  ASSERT_EQ(expected.sizes(), (std::vector<int64_t>{3, 2}));
  auto fast = compile(read);
  for (int call = 0; call < 2; ++call) {
    EXPECT_TRUE(same_bits(read(t, tensor(1)), expected));
    EXPECT_TRUE(same_bits(fast(t, tensor(1)), expected));
    EXPECT_TRUE(same_bits(fast(t, tensor(-2)), t.select(0, 0).index({Slice(), tensor({0, 2})})));
  }
  auto write = [](const Tensor& x, const Tensor& i) {
    Tensor y = x.clone();
    y.index({i, Slice()}) = 4;
    y.index({Slice(), i}).add_(1);
    y.index_put_({i, i}, 9);
    return y;
  };
  auto fast_write = compile(write);
  const Tensor x = zeros({2, 3}), written = tensor({{0.f, 1.f, 0.f}, {4.f, 9.f, 4.f}});
  for (int call = 0; call < 2; ++call) {
    EXPECT_TRUE(same_bits(write(x, tensor(1)), written));
    EXPECT_TRUE(same_bits(fast_write(x, tensor(1)), written));
  }
  const Tensor loss = tensor(3.f);
  EXPECT_TRUE(same_bits(loss.index({loss > 0}), tensor({3.f})));
  EXPECT_EQ(loss.index({loss < 0}).sizes(), (std::vector<int64_t>{0}));
  EXPECT_TRUE(same_bits(x.index({tensor(true)}), x.unsqueeze(0)));
  EXPECT_TRUE(same_bits(t.index({Tensor(), tensor({2})}), t.index({Slice(), tensor({2})})));
  EXPECT_NE(test::error_of([&] { t.index({tensor(2)}); }).find("2"), std::string::npos);
  EXPECT_THROW(t.index({tensor(0.5f)}), Error);
}

}  // namespace
}  // namespace ingot
