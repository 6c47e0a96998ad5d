// Sizes that move from call to call, one or several at a time: only what follows from them is inferred and bound anew,
// and nothing of another call's sizes is left.
#include "support.h"

namespace ingot {
namespace {

using test::error_of;
using test::same_bits;

/// Two ways that share their start, views of views, an in-place op, sizes as attributes, a result that does not follow
/// from its operand's sizes, and an op that other sizes refuse.
std::vector<Tensor> forks(const std::vector<Tensor>& in, const Tensor& captured, int way) {
  const Tensor &a = in[0], &b = in[1], &c = in[2];
  Tensor total = a.sum({0}) + captured;  // [4], whatever a's rows
  Tensor joined = cat({a, b}, 0);        // [m + n, 4]
  Tensor part = joined.slice(0, 1).t().slice(1, 0, b.size(0));
  if (way == 0) return {total * 2, part * total.unsqueeze(1), c.view({-1, 2}) + 1};
  Tensor scratch = zeros({c.numel()}) + 0.5;
  scratch.add_(c.view({-1}));
  if (way == 1) return {scratch, (joined.softmax(0) - total).t(), part.contiguous()};
  try {
    return {scratch, matmul(a, b.t()) + c.size(0), a + b};  // a + b: only where both have as many rows, or one has one
  } catch (const Error&) {
    return {total, a.index({Slice(0, 1)}) * scratch.sum()};
  }
}

TEST(MovingSizes, InAnyOrderOnAnyWay) {
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    Tensor captured = randn({4});
    auto f = [&](const std::vector<Tensor>& in, int way) { return forks(in, captured, way); };
    CompileOptions options{.mode = mode};
    options.recompile_limit = 64;
    auto fast = compile(f, options);
    uint64_t random = 7;
    auto next = [&](uint64_t n) {
      return static_cast<int64_t>((random = random * 6364136223846793005u + 1) >> 33) % static_cast<int64_t>(n);
    };
    int64_t m = 3, n = 2, k = 4;
    for (int call = 0; call < 600; ++call) {
      const int64_t which = next(5);
      if (which == 0) m = 1 + next(6);
      if (which == 1) n = 1 + next(6);
      if (which == 2) k = 2 * next(5);
      if (which == 3 && mode == CompileMode::checked) captured = randn({8}).slice(0, next(4)).slice(0, 0, 4);
      // Views with offsets, and other strides of equal sizes.
      Tensor wide = randn({m + 3, 9}), a = wide.slice(0, next(3)).slice(0, 0, m).slice(1, next(5)).slice(1, 0, 4);
      if (next(3) == 0) a = randn({4, m}).t();
      const std::vector<Tensor> in{a, randn({n, 4}), randn({k, 3})};
      const int way = static_cast<int>(next(3));
      const std::vector<Tensor> expected = f(in, way), got = fast(in, way);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(same_bits(got[i], expected[i])) << call << " result " << i;
    }
  }
}

// Sizes that an op refuses: the error is eager's, and the sizes before and after it are right.
TEST(MovingSizes, AroundAnError) {
  auto f = [](const Tensor& a, const Tensor& b) {
    Tensor y = a.exp();
    return (y + b).sum({0}) * y.size(0);
  };
  auto fast = compile(f);
  for (int call = 0; call < 60; ++call) {
    const int64_t m = 2 + call % 3, n = call % 4 == 3 ? m + 1 : m;
    Tensor a = randn({m, 3}), b = randn({n, 3});
    std::string expected, got;
    Tensor x, y;
    expected = error_of([&] { x = f(a, b); });
    got = error_of([&] { y = fast(a, b); });
    ASSERT_EQ(expected, got);
    if (expected.empty()) {
      ASSERT_TRUE(same_bits(x, y)) << call;
    }
  }
}

// The diagonal of a mask moves with the positions before it: one program serves all of them.
TEST(MovingSizes, DiagonalsMoveWithThem) {
  auto mask = [](const Tensor& x, int64_t past) {
    Tensor visible = ones({x.size(0), x.size(0) + past}, kBool).tril(past);
    Tensor scores = matmul(x, x.t()).sum() + visible.to(kFloat32);
    return scores.masked_fill(visible.logical_not(), -1e9).softmax(-1).triu(-past).tril(past - 1);
  };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(mask, {.mode = mode});
    for (int64_t past : {0, 1, 7, 2, 5, 300, 4, 1, 0, 6})
      for (int64_t rows : {1, 3, 40}) {
        Tensor x = randn({rows, 4});
        ASSERT_TRUE(same_bits(fast(x, past), mask(x, past))) << past << " " << rows;
      }
    EXPECT_LE(fast.stats().compilations, 6);
    EXPECT_EQ(fast.stats().recompile_limit_hits, 0);
  }
}

// Any diagonal, of any dtype and layout, once and twice: what is folded away is so only for the same diagonal.
TEST(MovingSizes, DiagonalsOfEveryKind) {
  auto f = [](const Tensor& x, int64_t a, int64_t b) {
    std::vector<Tensor> results{x.tril(a), x.triu(b), x.tril(a).tril(b), x.triu(a).triu(a), x.tril(a).triu(b), tril(x)};
    x.clone().tril_(a);
    return results;
  };
  CompileOptions options;
  options.recompile_limit = 64;
  auto fast = compile(f, options);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  for (DType dtype : {kFloat32, kFloat64, kBFloat16, kInt64, kInt8, kBool})
    for (int turned = 0; turned < 2; ++turned)
      for (auto [a, b] :
           {std::pair<int64_t, int64_t>{0, 1}, {1, 0}, {-1, -1}, {2, -2}, {-9, 9}, {kMost, kLeast}, {kLeast, kMost}}) {
        Tensor x = (randn({2, 5, 7}) * 3).to(dtype);
        if (turned) x = x.transpose(1, 2);
        const std::vector<Tensor> expected = f(x, a, b), got = fast(x, a, b);
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_TRUE(same_bits(got[i], expected[i])) << name_of(dtype) << " " << a << " " << b << " result " << i;
        for (int64_t row = 0; row < x.size(1); ++row)
          for (int64_t column = 0; column < x.size(2); ++column) {
            const double given = x.index({1, row, column}).to(kFloat64).item<double>();
            ASSERT_EQ(got[0].index({1, row, column}).to(kFloat64).item<double>(), column - row <= a ? given : 0.0);
            ASSERT_EQ(got[1].index({1, row, column}).to(kFloat64).item<double>(), column - row >= b ? given : 0.0);
          }
      }
  Tensor x = randn({3, 3});
  const std::string expected = "tril: diagonal: got a floating scalar, expected an integer";
  EXPECT_EQ(test::without_line(error_of([&] { (void)x.tril(0.5); })), expected);
  EXPECT_EQ(test::without_line(error_of([&] { (void)compile([](const Tensor& y) { return y.tril(0.5); })(x); })),
            expected);
}

// An output size that comes to be 1 is a mean, which sums in another order than bins.
TEST(MovingSizes, AdaptivePoolingComesToOne) {
  namespace F = nn::functional;
  manual_seed(5);
  auto pooled = [](int kind, const Tensor& x, const Size& a, const Size& b) {
    if (kind == 0) return F::adaptive_avg_pool2d(x, {a, b});
    if (kind == 1) return F::interpolate(x, {a, b}, {}, "area");
    return F::adaptive_avg_pool3d(x, {a, b, a});
  };
  for (int kind : {0, 1, 2}) {
    auto f =
        compile([&](const Tensor& x, const Tensor& sizes) { return pooled(kind, x, sizes.size(0), sizes.size(1)); });
    for (std::pair<int, int> size : {std::pair{2, 2}, {3, 3}, {1, 1}, {2, 1}, {1, 3}, {0, 2}, {1, 0}, {4, 4}, {1, 1}}) {
      const auto [a, b] = size;
      if (kind == 1 && a * b == 0) continue;
      const Tensor image = kind == 2 ? randn({1, 3, 7, 16, 9}) : randn({1, 3, 16, 9});
      const Tensor x = image.clone().requires_grad_(), y = image.clone().requires_grad_();
      const Tensor got = f(x, zeros({a, b})), expected = pooled(kind, y, Size::of(a), Size::of(b));
      EXPECT_TRUE(same_bits(got.detach(), expected.detach())) << kind << " " << a << " " << b;
      const Tensor gradient = randn(expected.sizes().vec());
      got.backward(gradient);
      expected.backward(gradient);
      EXPECT_TRUE(same_bits(x.grad(), y.grad())) << kind << " " << a << " " << b;
    }
    EXPECT_EQ(f.stats().fallbacks, 0);
  }
}

TEST(MovingSizes, PoolingOfInputsSmallerThanTheWindow) {
  const NoGradGuard no_grad;
  for (bool average : {false, true}) {
    auto f = [&](const Tensor& x) { return average ? avg_pool2d(x, 3, 2, 0, true) : max_pool2d(x, 3, 2, 0, 1, true); };
    auto fast = compile(f);
    for (int size : {5, 2, 3, 7, 4, 2, 9}) {
      const Tensor x = randn({1, 2, size, size + 1});
      EXPECT_TRUE(same_bits(fast(x), f(x))) << size;
    }
    EXPECT_EQ(fast.stats().fallbacks, 0);
  }
}

// Of an empty tensor everything is a view: a program of such a call is its own, and those after it have theirs.
TEST(MovingSizes, AnEmptyCallLeavesTheOthersCompiled) {
  const NoGradGuard no_grad;
  auto f = [](const Tensor& x, const Tensor& y) { return einsum("btd,bsd->bts", {x, y}); };
  auto g = [](const Tensor& x, const Tensor& y) {
    return x.unflatten(2, {2, 4}).transpose(1, 2).flatten(0, 1).sum(0) + y.sum();
  };
  auto check = [](auto& fast, auto& plain) {
    auto call = [&](int b, int t, int s) {
      const Tensor x = randn({b, t, 8}), y = randn({b, s, 8});
      EXPECT_TRUE(same_bits(fast(x, y), plain(x, y))) << b << " " << t << " " << s;
    };
    call(2, 3, 4), call(1, 2, 0), call(2, 5, 6), call(0, 5, 6), call(3, 0, 2), call(2, 5, 6), call(3, 7, 8);
    const int64_t compilations = fast.stats().compilations;
    call(4, 5, 9), call(1, 2, 0), call(2, 6, 3);
    EXPECT_EQ(fast.stats().compilations, compilations);
    EXPECT_EQ(fast.stats().fallbacks, 0);
  };
  auto fast_f = compile(f);
  auto fast_g = compile(g);
  check(fast_f, f), check(fast_g, g);
}

}  // namespace
}  // namespace ingot
