// Frozen mode: what is repeated without the callable, what is guarded, what is refused.
#include "runtime/memory/storage.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

TEST(Frozen, TheThirdCallDoesNotRunTheCallable) {
  int runs = 0;
  Tensor w = randn({8, 4});
  auto f = [&](const Tensor& x) {
    ++runs;
    Tensor y = x.matmul(w).relu();
    return std::pair(y, y.sum(1));
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int i = 0; i < 5; ++i) {
    Tensor x = randn({3, 8});
    auto [y, sum] = fast(x);
    Tensor expected = x.matmul(w).relu();
    EXPECT_TRUE(same_bits(y, expected));
    EXPECT_TRUE(same_bits(sum, expected.sum(1)));
  }
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(fast.stats().compilations, 1);
  EXPECT_EQ(fast.explain().frozen, "1 frozen, 0 seen once");
}

TEST(Frozen, KeepsNoResult) {
  auto fast = compile([](const Tensor& x) { return std::pair(x * 2, 3); }, {.mode = CompileMode::frozen});
  for (int i = 0; i < 4; ++i) {
    auto [y, three] = fast(randn({4}));
    EXPECT_EQ(three, 3);
    EXPECT_EQ(y.impl()->references, 1);
    EXPECT_EQ(y.impl()->storage->references(), 1);
  }
}

TEST(Frozen, OtherArgumentsRunTheCallable) {
  int runs = 0;
  auto fast = compile(
      [&](const Tensor& x, double scale, const std::string& mode) {
        ++runs;
        return mode == "neg" ? -x * scale : x * scale;
      },
      {.mode = CompileMode::frozen});
  Tensor x = randn({4});
  for (int i = 0; i < 3; ++i) fast(randn({4}), 2.0, "pos");
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(same_bits(fast(x, 3.0, "pos"), x * 3.0));
  EXPECT_TRUE(same_bits(fast(x, 2.0, "neg"), -x * 2.0));
  Tensor y = randn({5}), z = randn({4}, kFloat64), t = randn({4, 4}).select(1, 0);
  EXPECT_TRUE(same_bits(fast(y, 2.0, "pos"), y * 2.0));
  EXPECT_TRUE(same_bits(fast(z, 2.0, "pos"), z * 2.0));
  EXPECT_TRUE(same_bits(fast(t, 2.0, "pos"), t * 2.0));
  EXPECT_EQ(runs, 7);
  EXPECT_TRUE(same_bits(fast(x, 2.0, "pos"), x * 2.0));
  EXPECT_EQ(runs, 7);
}

TEST(Frozen, AnArgumentThatIsAlsoCapturedIsTold) {
  Tensor w = randn({4});
  auto f = [&](const Tensor& x) { return x * 2 + w; };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(fast(w), f(w)));
  for (int i = 0; i < 4; ++i) {
    Tensor x = randn({4});
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
  EXPECT_TRUE(same_bits(fast(w), f(w)));
}

TEST(Frozen, EqualArgumentsAreTold) {
  auto f = [](const Tensor& x, const Tensor& y) { return x * 2 - y; };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int i = 0; i < 4; ++i) {
    Tensor x = randn({4});
    EXPECT_TRUE(same_bits(fast(x, x), f(x, x)));
  }
  for (int i = 0; i < 4; ++i) {
    Tensor x = randn({4}), y = randn({4});
    EXPECT_TRUE(same_bits(fast(x, y), f(x, y)));
  }
}

TEST(Frozen, PositionsAreStillChecked) {
  Tensor table = randn({5, 3});
  auto f = [&](const Tensor& index) { return table.index_select(0, index) * 2; };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  Tensor good = tensor({0, 4, 2}), bad = tensor({0, 5, 2});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(fast(good.clone()), f(good)));
  EXPECT_THROW(fast(bad), Error);
  EXPECT_TRUE(same_bits(fast(good), f(good)));
}

TEST(Frozen, InsideACheckedFunctionItIsACall) {
  int runs = 0;
  auto inner = compile(
      [&](const Tensor& x) {
        ++runs;
        return x.exp();
      },
      {.mode = CompileMode::frozen});
  auto outer = compile([&](const Tensor& x) { return inner(x + 1) * 2; });
  for (int i = 0; i < 4; ++i) {
    Tensor x = randn({3});
    EXPECT_TRUE(same_bits(outer(x), (x + 1).exp() * 2));
  }
  EXPECT_EQ(runs, 2);
}

template <class F>
std::string refusal(F f) {
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int i = 0; i < 4; ++i) {
    Tensor x = ones({3});
    fast(x);
  }
  return fast.explain().frozen;
}

TEST(Frozen, RefusesWhatOnlyARunCanKnow) {
  double counter = 0;
  EXPECT_EQ(refusal([&](const Tensor& x) { return x * ++counter; }),
            "refused: a scalar changed between two calls with equal arguments");
  std::vector<Tensor> kept;
  EXPECT_EQ(refusal([&](const Tensor& x) {
              kept.push_back(x * 2);
              return x + 1;
            }),
            "refused: a tensor that the call computed escaped by another way than its result");
  EXPECT_EQ(refusal([&](const Tensor& x) { return x * x.sum().item<float>(Location("model.cpp", 7)); }),
            "refused: the call is computed in parts: item at model.cpp:7");
  EXPECT_EQ(refusal([&](const Tensor& x) {
              return x + tensor({1.0f, 2.0f, 3.0f});
            }),
            "refused: a tensor is made outside the ops while the callable runs (tensor(...), from_blob, a file)");
  std::vector<Tensor> pool{ones({3}), ones({3})};
  size_t next = 0;
  EXPECT_EQ(refusal([&](const Tensor& x) { return x + pool[next++ % 2]; }),
            "refused: the function used another captured tensor at its second call");
}

TEST(Frozen, WritesThatRanOpByOpAreRefused) {
  Tensor state = zeros({3});
  Tensor part = state.narrow(0, 0, 2);
  EXPECT_EQ(refusal([&](const Tensor& x) {
              part.add_(1);
              state.add_(x);
            }),
            "refused: the call did not run as one program: a tensor that is written shares its storage with another "
            "tensor from outside");
  EXPECT_TRUE(same_bits(state, tensor({8.f, 8.f, 4.f})));
}

}  // namespace
}  // namespace ingot
