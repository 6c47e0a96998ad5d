// A product whose right operand was cast to f32 reads it as it lay before: int8, f16 or bf16, one or two bytes an
// element, with the bits of the product of the f32.
#include "eager/ops/functions.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;
using NarrowWeights = test::Inference;

Tensor narrow(const IntList& sizes, DType dtype) {
  return dtype == kInt8 ? randint(-127, 128, sizes).to(kInt8) : randn(sizes).to(dtype);
}
/// The same product with nothing to read through: its weight is f32 from outside.
Tensor product(const Tensor& x, const Tensor& w) { return linear(x, w.to(kFloat32).contiguous()); }

bool reads_narrow(const Explanation& e) { return e.str().find("widens what was cast") != std::string::npos; }

/// Weights of one size, [n, k] and [k, n], captured and as arguments, for every number of rows.
void expect_bits(DType dtype, int64_t k, int64_t n) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " k " + std::to_string(k) + " n " + std::to_string(n));
  const Tensor w = narrow({n, k}, dtype), across = narrow({k, n}, dtype);
  auto fast = compile([&](const Tensor& x) { return linear(x, w.to(kFloat32)); });
  auto turned = compile([&](const Tensor& x) { return linear(x, across.t().to(kFloat32)) * 0.5; });
  auto given = compile([&](const Tensor& x, const Tensor& y) { return matmul(x, y.to(kFloat32)); },
                       {.mode = CompileMode::frozen});
  for (int64_t m : {0, 1, 2, 5, 16, 40}) {
    SCOPED_TRACE(m);
    const Tensor x = randn({m, k});
    ASSERT_TRUE(same_bits(fast(x), product(x, w)));
    ASSERT_TRUE(same_bits(turned(x), product(x, across.t()) * 0.5));
    ASSERT_TRUE(same_bits(given(x, across), product(x, across.t())));
  }
}

TEST_F(NarrowWeights, HaveTheBitsOfF32AtAllSizes) {
  test::on_every_target({2}, [] {
    for (DType dtype : {kInt8, kFloat16, kBFloat16})
      for (int64_t k : {1, 3, 255, 256, 257, 513})
        for (int64_t n : {1, 17, 48, 290}) expect_bits(dtype, k, n);
  });
}

TEST_F(NarrowWeights, HaveThemOnAllThreads) {
  test::on_every_target({1, 2, 5}, [] {
    for (DType dtype : {kInt8, kFloat16, kBFloat16})
      for (int64_t k : {64, 1030}) expect_bits(dtype, k, 300);
  });
}

TEST_F(NarrowWeights, ViewsOfThemAreReadWhereTheyLie) {
  for (DType dtype : {kInt8, kFloat16, kBFloat16}) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor w = narrow({90, 70}, dtype), batch = narrow({3, 40, 70}, dtype);
    auto expect = [](const char* what, auto f, const Tensor& x) {
      SCOPED_TRACE(what);
      auto fast = compile(f);
      for (int call = 0; call < 3; ++call) ASSERT_TRUE(same_bits(fast(x), f(x)));
      EXPECT_TRUE(reads_narrow(fast.explain()));
    };
    const Tensor x = randn({4, 40}), y = randn({4, 70}), z = randn({3, 4, 70});
    expect(
        "rows and columns", [&](const Tensor& a) { return linear(a, w.slice(0, 5, 40).slice(1, 8, 48).to(kFloat32)); },
        x);
    expect(
        "before the cast", [&](const Tensor& a) { return matmul(a, w.t().to(kFloat32).slice(1, 3, 60)); }, y);
    expect(
        "a batch", [&](const Tensor& a) { return matmul(a, batch.to(kFloat32).transpose(1, 2)); }, z);
    expect(
        "one of a batch", [&](const Tensor& a) { return linear(a, batch[1].to(kFloat32)).relu(); }, y);
    expect(
        "a batch as one",
        [&](const Tensor& a) {
          return linear(a, batch.view({120, 70}).to(kFloat32));
        },
        y);
    expect(
        "repeated",
        [&](const Tensor& a) {
          return matmul(a, w.to(kFloat32).t().unsqueeze(0).expand({3, 70, 90}));
        },
        z);
  }
}

TEST_F(NarrowWeights, OthersAreCastFirst) {
  auto expect = [](auto f, const Tensor& x) {
    auto fast = compile(f);
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same_bits(fast(x), f(x)));
    EXPECT_FALSE(reads_narrow(fast.explain()));
  };
  const Tensor w = narrow({30, 20}, kInt8), x = randn({4, 20});
  expect([&](const Tensor& a) { return linear(a, (w + w).to(kFloat32)); }, x);
  expect([&](const Tensor& a) { return linear(a, w.to(kInt32).to(kFloat32) * 2); }, x);
  expect([&](const Tensor& a) { return linear(a.to(kFloat64), w.to(kFloat64)); }, x);
  expect([&](const Tensor& a) { return matmul(a, w.as_strided({20, 10}, {2, 40}).to(kFloat32)); }, x);
}

TEST_F(NarrowWeights, FollowWhatIsWrittenToThem) {
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen})
    for (DType dtype : {kInt8, kFloat16, kBFloat16}) {
      Tensor w = narrow({300, 64}, dtype);
      auto fast = compile([&](const Tensor& x) { return linear(x, w.to(kFloat32)); }, {.mode = mode});
      for (int call = 0; call < 8; ++call) {
        const Tensor x = randn({1 + call % 3, 64});
        ASSERT_TRUE(same_bits(fast(x), product(x, w))) << call;
        if (call % 2) w.slice(0, call, 100).copy_(narrow({100 - call, 64}, dtype));
        if (call == 4 && mode == CompileMode::checked) w = narrow({300, 64}, dtype);
      }
    }
}

// A constant weight of 16-bit floats, or of int8, is kept in memory once more as it is, not as f32.
TEST_F(NarrowWeights, ArePackedAsTheyAre) {
  auto packed_bytes = [] {
    for (const CacheFigures& c : cache_figures())
      if (c.name == "packed weights") return c.bytes;
    return int64_t{-1};
  };
  const Tensor x = randn({1, 256});
  for (DType dtype : {kInt8, kFloat16, kBFloat16}) {
    clear_caches();
    const Tensor w = narrow({480, 256}, dtype), half = x.to(dtype == kInt8 ? kFloat32 : dtype);
    auto fast = compile([&](const Tensor& a) { return dtype == kInt8 ? linear(a, w.to(kFloat32)) : linear(a, w); });
    for (int call = 0; call < 4; ++call)
      ASSERT_TRUE(same_bits(fast(half), dtype == kInt8 ? product(half, w) : linear(half, w)));
    EXPECT_EQ(packed_bytes(), 480 * 256 * size_of(dtype)) << name_of(dtype);
  }
}

TEST_F(NarrowWeights, LinearInt8IsTheComposition) {
  test::on_every_target({1, 2, 5}, [] {
    for (int64_t k : {3, 513})
      for (int64_t n : {1, 272}) {
        const Tensor w = narrow({n, k}, kInt8), scale = rand({n}) * 0.1;
        for (DType dtype : {kFloat32, kFloat16, kBFloat16, kFloat64}) {
          const Tensor bias = randn({n}).to(dtype);
          const DType wide = dtype == kFloat64 ? kFloat64 : kFloat32;
          auto plain = [&](const Tensor& x) {
            return (linear(x.to(wide), w.to(wide)) * scale.to(wide) + bias.to(wide)).to(dtype);
          };
          auto checked = compile([&](const Tensor& x) { return linear_int8(x, w, scale, bias); });
          auto frozen =
              compile([&](const Tensor& x) { return linear_int8(x, w, scale, bias); }, {.mode = CompileMode::frozen});
          for (int64_t m : {0, 1, 2, 5, 16, 40}) {
            SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(m) + " x " + std::to_string(k) + " x " +
                         std::to_string(n));
            const Tensor x = randn({m, k}).to(dtype);
            ASSERT_TRUE(same_bits(linear_int8(x, w, scale, bias), plain(x)));
            ASSERT_TRUE(same_bits(checked(x), plain(x)));
            ASSERT_TRUE(same_bits(frozen(x), plain(x)));
          }
        }
      }
  });
}

TEST_F(NarrowWeights, LinearInt8RefusesWhatIsNone) {
  const Tensor x = randn({2, 3}), w = narrow({4, 3}, kInt8), scale = ones({4});
  auto error = [](auto f) { return test::without_line(test::error_of(f)); };
  EXPECT_EQ(error([&] { linear_int8(x, w.to(kFloat32), scale); }),
            "linear_int8: weight: got tensor f32[4, 3], expected i8");
  EXPECT_EQ(error([&] { linear_int8(x, w, scale.to(kFloat16)); }),
            "linear_int8: weight_scale: got tensor f16[4], expected f32");
  EXPECT_EQ(error([&] { linear_int8(x, w, scale, ones({4}, kFloat64)); }),
            "linear_int8: bias: got tensor f64[4], expected f32, the dtype of input");
  EXPECT_EQ(error([&] { linear_int8(x, w, ones({3})); }),
            "linear_int8: weight_scale: got shape [3], expected shape [4], one for each row of weight");
  EXPECT_EQ(error([&] { linear_int8(x, w[0], scale); }), "linear_int8: weight: got shape [3], expected two dims");
  EXPECT_NE(error([&] { linear_int8(randn({2, 4}), w, scale); }), "");
  EXPECT_NE(error([&] { linear_int8(x.to(kInt32), w, scale); }), "");
}

struct NetImpl : nn::Module {
  nn::Linear first{20, 33}, last{33, 7, false};
  Tensor forward(const Tensor& x) const { return last(F::gelu(first(x))); }
};
INGOT_MODULE(Net, first, last);

// A compiled function notices that the weights of its module are others now.
TEST_F(NarrowWeights, OfAModuleThatIsQuantizedLater) {
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    Net net;
    net->eval();
    auto fast = compile(net, {.mode = mode});
    const Tensor x = randn({5, 20});
    for (int call = 0; call < 4; ++call) EXPECT_TRUE(same_bits(fast(x), net(x)));
    nn::quantize_weights(*net);
    for (int call = 0; call < 4; ++call) EXPECT_TRUE(same_bits(fast(x), net(x)));
    net->first->weight.zero_();
    for (int call = 0; call < 4; ++call) EXPECT_TRUE(same_bits(fast(x), net(x)));
    nn::Linear other{20, 33};
    nn::quantize_weights(*other);
    net->first = other;
    for (int call = 0; call < 4; ++call) EXPECT_TRUE(same_bits(fast(x), net(x)));
    net->to(kBFloat16);
    for (int call = 0; call < 4; ++call) EXPECT_TRUE(same_bits(fast(x.to(kBFloat16)), net(x.to(kBFloat16))));
  }
}

// Linear layers of bf16 or f16: the bits of eager and of f32 weights that were rounded so, for one row, as when a token
// is decoded, and for several.
TEST_F(NarrowWeights, OfConvertedLayersAreReadAsTheyAre) {
  test::on_every_target({1, 2}, [] {
    for (DType format : {kBFloat16, kFloat16}) {
      SCOPED_TRACE(name_of(format));
      nn::Linear layer(513, 272), rounded(513, 272);
      layer->weight.copy_(randn({272, 513}));
      rounded->weight = layer->weight.to(format).to(kFloat32), rounded->bias = layer->bias;
      nn::convert_weights(*layer, format);
      for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
        auto fast = compile(layer, {.mode = mode});
        for (int64_t rows : {1, 2, 16, 40, 1, 2, 16, 40}) {
          SCOPED_TRACE(rows);
          const Tensor x = randn({rows, 513}), expected = rounded(x);
          ASSERT_TRUE(same_bits(layer(x), expected));
          ASSERT_TRUE(same_bits(fast(x), expected));
        }
        if (runtime::host_target().isa != Isa::none) EXPECT_TRUE(reads_narrow(fast.explain()));
        EXPECT_EQ(fast.stats().fallbacks, 0);
      }
    }
  });
}

// A compiled function notices that its module has been converted.
TEST_F(NarrowWeights, OfAModuleThatIsConvertedLater) {
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    Net net;
    net->eval();
    auto fast = compile(net, {.mode = mode});
    const Tensor x = randn({5, 20});
    Tensor before = net(x);
    for (DType format : {kFloat16, kBFloat16, kInt8}) {
      for (int call = 0; call < 4; ++call) EXPECT_TRUE(same_bits(fast(x), net(x)));
      EXPECT_EQ(nn::convert_weights(*net, format), 2);
      EXPECT_FALSE(same_bits(net(x), before));
      before = net(x);
      for (int call = 0; call < 4; ++call) EXPECT_TRUE(same_bits(fast(x), before)) << call;
    }
  }
}

TEST(NarrowWeightsGradients, GoToTheInput) {
  const Tensor w = narrow({30, 20}, kInt8), scale = rand({30}), x = randn({5, 20}).requires_grad_(),
               dy = randn({5, 30});
  auto gradient = [&](const Tensor& a) { return autograd::grad({linear_int8(a, w, scale)}, {a}, {dy})[0]; };
  const Tensor got = gradient(x), expected = matmul(dy.to(kFloat64), w.to(kFloat64) * scale.to(kFloat64).unsqueeze(1));
  EXPECT_LT((got.to(kFloat64) - expected).abs().amax().item<double>(), 1e-5 * expected.abs().amax().item<double>());
  EXPECT_TRUE(same_bits(got, matmul(dy * scale, w.to(kFloat32))));
  auto fast = compile(gradient);
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(fast(x), got));
}

}  // namespace
}  // namespace ingot
