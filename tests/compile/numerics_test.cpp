// Levels of numerics: which bits they promise, and that a change of level changes the code.
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

struct Levels : ::testing::Test {
  const test::RestoredSettings restored;
};

std::vector<Target> targets() {
  std::vector<Target> all;
  for (Isa isa : {Isa::none, Isa::avx2, Isa::avx512})
    if (isa <= runtime::detected_target().isa) all.push_back(runtime::target_of(isa));
  return all;
}

Tensor product(const Tensor& a, const Tensor& b) { return (matmul(a, b) + 1).relu(); }

TEST_F(Levels, StrictProductsHaveTheSameBitsOnEveryTarget) {
  Tensor a = randn({65, 131}, kBFloat16), b = randn({131, 70}, kBFloat16), expected;
  set_numerics(Numerics::strict);
  for (const Target& target : targets()) {
    runtime::set_host_target(target);
    Tensor eager = product(a, b), compiled = compile(product)(a, b);
    if (!expected.defined()) expected = eager;
    EXPECT_TRUE(same_bits(eager, expected)) << target.str();
    EXPECT_TRUE(same_bits(compiled, expected)) << target.str();
  }
}

TEST_F(Levels, EagerIsCompiledToTheBit) {
  auto f = [](const Tensor& a, const Tensor& b) {
    Tensor y = matmul(a, b);
    return softmax((y * 0.5 + a.narrow(1, 0, 33)).tanh() - y, 1) * y.pow(2);
  };
  for (Numerics level : {Numerics::strict, Numerics::default_}) {
    set_numerics(level);
    for (const Target& target : targets()) {
      runtime::set_host_target(target);
      auto fast = compile(f);
      for (DType d : {kFloat32, kBFloat16, kFloat16, kFloat64}) {
        Tensor a = randn({17, 40}, d), b = randn({40, 33}, d);
        EXPECT_TRUE(same_bits(fast(a, b), f(a, b))) << name_of(level) << " " << target.str() << " " << name_of(d);
      }
    }
  }
}

// What is left of 0.001 beside 1: nothing in bf16.
Tensor remainder_of(const Tensor& x) { return x + 0.001 - x; }

TEST_F(Levels, FastKeepsSixteenBitFloatsWideInsideAKernel) {
  Tensor x = ones({40}, kBFloat16), all = full({40}, 0.001, kBFloat16);
  EXPECT_TRUE(same_bits(compile(remainder_of)(x), zeros({40}, kBFloat16)));
  auto fast = compile(remainder_of, {.numerics = Numerics::fast});
  EXPECT_TRUE(allclose(fast(x).to(kFloat32), full({40}, 0.001), 0.01));
  EXPECT_EQ(fast(x).dtype(), kBFloat16);
  // What is stored is rounded, and no op sees what its dtype cannot hold where that matters.
  auto stored = compile(
      [](const Tensor& t) {
        Tensor sum = t + 0.001;
        return std::pair(sum, nextafter(sum, 2));
      },
      {.numerics = Numerics::fast});
  auto [sum, next] = stored(x);
  EXPECT_TRUE(same_bits(sum, x));
  EXPECT_TRUE(same_bits(next, nextafter(x, 2)));
}

TEST_F(Levels, AChangeOfTheLevelCompilesAgain) {
  auto fast = compile(remainder_of);
  Tensor x = ones({40}, kBFloat16), none = zeros({40}, kBFloat16);
  for (int round = 0; round < 2; ++round) {
    set_numerics(Numerics::default_);
    EXPECT_TRUE(same_bits(fast(x), none));
    set_numerics(Numerics::fast);
    EXPECT_FALSE(same_bits(fast(x), none));
    EXPECT_EQ(fast.stats().compilations, 2);
  }
  auto recompiles = fast.explain().recompiles;
  ASSERT_EQ(recompiles.size(), 1u);
  EXPECT_EQ(recompiles[0].guard, "target and numerics");
  EXPECT_NE(recompiles[0].after.find("fast"), std::string::npos);
}

TEST_F(Levels, FrozenCallsHoldAtTheirLevel) {
  int runs = 0;
  auto f = [&](const Tensor& t) {
    ++runs;
    return remainder_of(t);
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  Tensor x = ones({40}, kBFloat16), none = zeros({40}, kBFloat16);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(fast(x), none));
  EXPECT_EQ(runs, 2);
  set_numerics(Numerics::fast);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(same_bits(fast(x), none));
  EXPECT_EQ(runs, 4);
  set_numerics(Numerics::default_);
  EXPECT_TRUE(same_bits(fast(x), none));
  EXPECT_EQ(runs, 4);
}

TEST_F(Levels, AFunctionsOwnLevelHoldsInsideItOnly) {
  Tensor x = ones({40}, kBFloat16), none = zeros({40}, kBFloat16);
  std::vector<Numerics> seen;
  auto inner = compile(
      [&](const Tensor& t) {
        seen.push_back(numerics());
        return remainder_of(t);
      },
      {.numerics = Numerics::fast});
  auto outer = compile([&](const Tensor& t) {
    Tensor wide = inner(t);
    seen.push_back(numerics());
    return std::pair(wide, remainder_of(t));
  });
  for (int i = 0; i < 3; ++i) {
    auto [wide, narrow] = outer(x);
    EXPECT_FALSE(same_bits(wide, none));
    EXPECT_TRUE(same_bits(narrow, none));
  }
  EXPECT_EQ(seen[0], Numerics::fast);
  EXPECT_EQ(seen[1], Numerics::default_);
  EXPECT_EQ(numerics(), Numerics::default_);
  auto throwing = compile([](const Tensor&) { throw std::runtime_error("stop"); }, {.numerics = Numerics::fast});
  EXPECT_THROW(throwing(x), std::runtime_error);
  EXPECT_EQ(numerics(), Numerics::default_);
}

TEST_F(Levels, ALevelSetInsideACallHoldsFromThereOn) {
  auto f = [](const Tensor& t) {
    set_numerics(Numerics::default_);
    Tensor narrow = remainder_of(t);
    set_numerics(Numerics::fast);
    return std::pair(narrow, remainder_of(t));
  };
  auto fast = compile(f);
  Tensor x = ones({40}, kBFloat16), none = zeros({40}, kBFloat16);
  for (int i = 0; i < 3; ++i) {
    auto [narrow, wide] = fast(x);
    EXPECT_TRUE(same_bits(narrow, none));
    EXPECT_FALSE(same_bits(wide, none));
  }
}

}  // namespace
}  // namespace ingot
