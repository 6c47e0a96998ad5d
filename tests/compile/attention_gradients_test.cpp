// Gradients of attention: a step of its own, eager and compiled, against products and a softmax in double.
#include <limits>
#include <ostream>

#include "runtime/thread_pool.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

enum class Mask { none, boolean, additive };

struct Attention {
  int64_t batch, heads, key_heads, queries, keys, depth, width;
  bool causal = false;
  Mask mask = Mask::none;
  std::optional<double> scale = {};
  friend std::ostream& operator<<(std::ostream& out, const Attention& a) {
    return out << "batch " << a.batch << ", heads " << a.heads << "/" << a.key_heads << ", queries " << a.queries
               << ", keys " << a.keys << ", depth " << a.depth << "/" << a.width << (a.causal ? ", causal" : "")
               << (a.mask == Mask::boolean    ? ", bool mask"
                   : a.mask == Mask::additive ? ", additive mask"
                                              : "");
  }
};

struct Operands {
  Tensor query, key, value, mask, gradient;
};
INGOT_FIELDS(Operands, query, key, value, mask, gradient)

Operands operands_of(const Attention& a, DType dtype) {
  manual_seed(5);
  auto random = [&](int64_t heads, int64_t rows, int64_t columns) {
    return randn({a.batch, heads, rows, columns}, TensorOptions().dtype(dtype));
  };
  Operands o{random(a.heads, a.queries, a.depth), random(a.key_heads, a.keys, a.depth),
             random(a.key_heads, a.keys, a.width), Tensor(), random(a.heads, a.queries, a.width)};
  if (a.mask == Mask::boolean) o.mask = randn({a.queries, a.keys}) > -0.5;
  if (a.mask == Mask::additive) {
    o.mask = randn({a.batch, 1, a.queries, a.keys}, TensorOptions().dtype(dtype));
    o.mask = o.mask.masked_fill(o.mask > 1.0, -std::numeric_limits<double>::infinity());
  }
  return o;
}

struct Wanted {
  bool query = true, key = true, value = true;
};

/// Of query, key and value, as wanted.
std::vector<Tensor> gradients(const Attention& a, const Operands& o, Wanted wanted = {}, bool of_mask = false) {
  std::vector<Tensor> inputs;
  auto input = [&](const Tensor& x, bool is_wanted) {
    Tensor y = x.detach();
    if (is_wanted) inputs.push_back(y.requires_grad_());
    return y;
  };
  const Tensor q = input(o.query, wanted.query), k = input(o.key, wanted.key), v = input(o.value, wanted.value);
  const Tensor mask = of_mask ? input(o.mask, true) : o.mask;
  const ScalarArg scale = a.scale ? ScalarArg(*a.scale) : ScalarArg();
  const bool shared = a.heads != a.key_heads;
  const Tensor y = scaled_dot_product_attention(q, k, v, mask, 0.0, a.causal, scale, shared);
  return autograd::grad({y}, inputs, {o.gradient});
}

/// By products and a softmax, in double: what a mask gets whose own gradient is asked for.
std::vector<Tensor> composed(Attention a, Operands o) {
  for (Tensor* t : {&o.query, &o.key, &o.value, &o.gradient}) *t = t->to(kFloat64);
  const double hidden = -std::numeric_limits<double>::infinity();
  const Tensor zeros = full({a.queries, a.keys}, 0, TensorOptions().dtype(kFloat64));
  if (a.mask == Mask::boolean) o.mask = zeros.masked_fill(o.mask.logical_not(), hidden);
  if (a.mask == Mask::additive) o.mask = o.mask.to(kFloat64);
  if (a.causal) o.mask = zeros.masked_fill((zeros + 1).tril().eq(0), hidden);
  if (!o.mask.defined()) o.mask = zeros;
  a.causal = false;
  std::vector<Tensor> result = gradients(a, o, {}, true);
  result.pop_back();
  return result;
}

// Around blocks of 64 (causal: 32) queries, blocks of 256 keys, and vectors of 16.
const Attention kCases[] = {
    {2, 3, 3, 5, 7, 8, 6},
    {1, 2, 2, 64, 64, 16, 16},
    {1, 2, 1, 65, 63, 17, 5, false, Mask::none, 0.3},
    {2, 4, 2, 130, 33, 8, 24},
    {1, 4, 4, 1, 40, 16, 16},
    {1, 1, 1, 40, 1, 16, 16},
    {1, 1, 1, 3, 1100, 4, 33},
    {1, 2, 2, 31, 31, 8, 8, true},
    {1, 2, 2, 32, 32, 8, 8, true},
    {1, 2, 1, 33, 33, 8, 8, true, Mask::none, 0.3},
    {2, 2, 2, 97, 97, 20, 12, true},
    {1, 2, 2, 70, 20, 8, 8, true},
    {1, 2, 2, 20, 70, 8, 8, true},
    {2, 2, 2, 66, 35, 8, 8, false, Mask::boolean},
    {2, 4, 2, 66, 35, 8, 8, false, Mask::additive, 0.3},
};

class AttentionGradients : public testing::TestWithParam<Attention> {};

TEST_P(AttentionGradients, AreThoseOfProductsAndASoftmax) {
  for (DType dtype : {kFloat64, kFloat32, kBFloat16}) {
    const Operands o = operands_of(GetParam(), dtype);
    const std::vector<Tensor> got = gradients(GetParam(), o), expected = composed(GetParam(), o);
    const double bound = dtype == kFloat64 ? 1e-13 : dtype == kFloat32 ? 2e-6 : 5e-3;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got[i].dtype(), dtype);
      const double largest = 1 + expected[i].abs().amax().item<double>();
      const double error = (got[i].to(kFloat64) - expected[i]).abs().amax().item<double>();
      EXPECT_LE(error, bound * largest) << name_of(dtype) << ", gradient " << i;
    }
  }
}

TEST_P(AttentionGradients, HaveTheSameBitsCompiledOnAnyThreadsAndInstructionSet) {
  for (DType dtype : {kFloat32, kFloat64}) {
    const Operands o = operands_of(GetParam(), dtype);
    std::vector<Tensor> first;
    test::on_every_target({1, 2, 5}, [&] {
      auto fast = compile([&](const Operands& x) { return gradients(GetParam(), x); });
      const std::vector<Tensor> eager = gradients(GetParam(), o), compiled = fast(o);
      EXPECT_EQ(fast.stats().fallbacks, 0);
      if (first.empty()) first = eager;
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(same_bits(eager[i], first[i])) << "gradient " << i;
        EXPECT_TRUE(same_bits(compiled[i], first[i])) << "gradient " << i;
      }
    });
  }
}

TEST_P(AttentionGradients, HaveTheSameBitsWhicheverAreWanted) {
  const Operands o = operands_of(GetParam(), kFloat32);
  const std::vector<Tensor> all = gradients(GetParam(), o);
  for (int bits = 1; bits < 7; ++bits) {
    const Wanted wanted{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    auto fast = compile([&](const Operands& x) { return gradients(GetParam(), x, wanted); });
    const std::vector<Tensor> eager = gradients(GetParam(), o, wanted), compiled = fast(o);
    size_t next = 0;
    for (size_t i = 0; i < 3; ++i) {
      if (!(bits >> i & 1)) continue;
      EXPECT_TRUE(same_bits(eager[next], all[i])) << bits;
      EXPECT_TRUE(same_bits(compiled[next++], all[i])) << bits;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionGradients, testing::ValuesIn(kCases));

TEST(AttentionGradient, OfNothingIsZeros) {
  for (const Attention& a :
       {Attention{2, 2, 2, 0, 5, 8, 8}, Attention{2, 2, 2, 5, 0, 8, 8}, Attention{0, 2, 2, 5, 5, 8, 8},
        Attention{2, 2, 1, 0, 5, 8, 8, true}, Attention{1, 2, 2, 3, 5, 4, 0}}) {
    const Operands o = operands_of(a, kFloat32);
    auto fast = compile([&](const Operands& x) { return gradients(a, x); });
    for (const std::vector<Tensor>& got : {gradients(a, o), fast(o)}) {
      const Tensor* given[] = {&o.query, &o.key, &o.value};
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(got[i].sizes(), given[i]->sizes()) << a;
        EXPECT_TRUE(same_bits(got[i], zeros_like(*given[i]))) << a;
      }
    }
  }
}

TEST(AttentionGradient, WhatAMaskHidesStaysHidden) {
  for (Mask mask : {Mask::boolean, Mask::additive}) {
    const Attention a{1, 2, 2, 5, 6, 8, 8, false, mask};
    Operands o = operands_of(a, kFloat32);
    const Tensor hidden = arange(6).eq(2);  // a key, and for one query all
    const Tensor blind = arange(5).eq(3).unsqueeze(1).logical_or(hidden);
    o.mask = mask == Mask::boolean ? blind.logical_not()
                                   : full({5, 6}, 0.5).masked_fill(blind, -std::numeric_limits<double>::infinity());
    const std::vector<Tensor> expected = gradients(a, o);
    EXPECT_TRUE(same_bits(expected[0].select(2, 3), full({1, 2, 8}, 0.0)));
    for (int i : {1, 2}) EXPECT_TRUE(same_bits(expected[static_cast<size_t>(i)].select(2, 2), full({1, 2, 8}, 0.0)));
    o.value = o.value.masked_fill(hidden.unsqueeze(1), std::numeric_limits<double>::quiet_NaN());
    const std::vector<Tensor> got = gradients(a, o);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << i;
  }
}

// The step has one dim before the heads, which such a mask's dims are not.
TEST(AttentionGradient, MasksOverSomeOfManyDimsBeforeTheHeads) {
  manual_seed(6);
  const Tensor query = randn({2, 3, 2, 5, 4}), key = randn({2, 3, 2, 7, 4}), value = randn({2, 3, 2, 7, 6});
  auto run = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
    const Tensor x = q.detach().requires_grad_(), y = k.detach().requires_grad_(), z = v.detach().requires_grad_();
    const Tensor result = scaled_dot_product_attention(x, y, z, mask);
    std::vector<Tensor> all = autograd::grad({(result * result).sum()}, {x, y, z});
    all.push_back(result.detach());
    return all;
  };
  const std::vector<std::vector<int64_t>> shapes = {{1, 3, 1, 5, 7}, {2, 1, 1, 1, 7}, {2, 1, 2, 5, 7}, {3, 2, 5, 7},
                                                    {3, 1, 1, 7},    {2, 3, 1, 5, 1}, {2, 5, 7},       {5, 7}};
  for (const std::vector<int64_t>& shape : shapes) {
    auto fast = compile(run);
    for (const Tensor& mask : {randn(shape), randn(shape) > -1}) {
      const Tensor whole = mask.expand({2, 3, 2, 5, 7}).contiguous().view({6, 2, 5, 7});
      const std::vector<Tensor> expected =
          run(query.view({6, 2, 5, 4}), key.view({6, 2, 7, 4}), value.view({6, 2, 7, 6}), whole);
      const std::vector<Tensor> eager = run(query, key, value, mask), compiled = fast(query, key, value, mask);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(same_bits(eager[i], expected[i].view_as(eager[i]))) << i;
        EXPECT_TRUE(same_bits(compiled[i], eager[i])) << i;
      }
    }
    EXPECT_EQ(fast.stats().fallbacks, 0);
  }
}

TEST(AttentionGradient, ManyDimsBeforeTheHeadsOfSizesNoneAndOne) {
  manual_seed(7);
  for (int64_t a : {0, 1, 2})
    for (int64_t b : {1, 3})
      for (const std::vector<int64_t>& shape : {std::vector<int64_t>{a, b, 1, 5, 7}, {a, 1, 2, 5, 7}, {b, 1, 1, 7}}) {
        const Tensor q = randn({a, b, 2, 5, 4}), k = randn({a, b, 2, 7, 4}), mask = randn(shape);
        auto run = [](const Tensor& x, const Tensor& y, const Tensor& m) {
          return scaled_dot_product_attention(x, y, y, m);
        };
        const Tensor whole = mask.expand({a, b, 2, 5, 7}).contiguous().view({a * b, 2, 5, 7});
        const Tensor expected = run(q.view({a * b, 2, 5, 4}), k.view({a * b, 2, 7, 4}), whole).view_as(q);
        EXPECT_TRUE(same_bits(run(q, k, mask), expected)) << a << " " << b;
        EXPECT_TRUE(same_bits(compile(run)(q, k, mask), expected)) << a << " " << b;
      }
}

TEST(AttentionGradient, SizesAreSymbols) {
  auto fast = compile([](const Operands& x) { return gradients({1, 2, 2, 0, 0, 8, 8, true}, x); });
  for (int64_t n : {30, 33, 31, 97, 64, 20}) {
    const Attention a{n % 4 + 1, 2, 2, n, n, 8, 8, true};
    const Operands o = operands_of(a, kFloat32);
    const std::vector<Tensor> eager = gradients(a, o), compiled = fast(o);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(compiled[i], eager[i])) << n;
  }
  EXPECT_LE(fast.stats().compilations, 3);
}

TEST(AttentionGradient, KeepsNothingOfTheSizeOfTheScores) {
  const Attention a{1, 4, 4, 1024, 1024, 8, 8};
  const Operands o = operands_of(a, kFloat32);
  const int64_t scores = 4 * 1024 * 1024 * 4;
  auto fast = compile([&](const Operands& x) { return gradients(a, x); });
  fast(o);
  reset_peak_memory_stats();
  const int64_t before = memory_stats().peak_bytes;
  gradients(a, o);
  fast(o);
  EXPECT_LT(memory_stats().peak_bytes - before, scores / 4);

  const auto explanation = fast.explain();
  int steps = 0;
  for (const auto& step : explanation.programs[0].steps) steps += step.form == "attention_backward";
  EXPECT_EQ(steps, 1);
}

// The mask's own gradient, and gradients of gradients: products and a softmax.
TEST(AttentionGradient, OfAMaskAndOfGradients) {
  const Attention a{1, 2, 2, 4, 5, 3, 3, false, Mask::additive};
  Operands o = operands_of(a, kFloat64);
  o.mask = randn({4, 5}, TensorOptions().dtype(kFloat64));
  const Tensor q = o.query.detach().requires_grad_(), mask = o.mask.detach().requires_grad_();
  auto loss = [&](const Tensor& x, const Tensor& m) {
    return scaled_dot_product_attention(x, o.key, o.value, m).mul(o.gradient).sum();
  };
  // The slope of |dq|^2 along a direction, by differences and by its gradient.
  auto squares = [&](const Tensor& x) {
    const Tensor leaf = x.requires_grad() ? x : x.detach().requires_grad_();
    return autograd::grad({loss(leaf, o.mask)}, {leaf}, {}, true, true)[0].square().sum();
  };
  const Tensor along = randn({1, 2, 4, 3}, TensorOptions().dtype(kFloat64));
  const double h = 1e-5;
  const double expected =
      (squares(q.detach() + along * h).item<double>() - squares(q.detach() - along * h).item<double>()) / (2 * h);
  const Tensor slope = autograd::grad({squares(q)}, {q})[0];
  EXPECT_NEAR((slope * along).sum().item<double>(), expected, 1e-7 * (1 + std::abs(expected)));

  const Tensor of_mask = autograd::grad({loss(q, mask)}, {mask})[0];
  const Tensor step = randn({4, 5}, TensorOptions().dtype(kFloat64));
  const double difference =
      (loss(q, mask.detach() + step * h).item<double>() - loss(q, mask.detach() - step * h).item<double>()) / (2 * h);
  EXPECT_NEAR((of_mask * step).sum().item<double>(), difference, 1e-7 * (1 + std::abs(difference)));
}

}  // namespace
}  // namespace ingot
