// Functions and layers made of ops: compiled, they give eager's bits and gradients without a graph break, for batches
// of several sizes.
#include <functional>

#include "compile/support.h"

namespace ingot {
namespace {

using test::same_bits;
using Tensors = std::vector<Tensor>;

/// Of a batch of n: what a function is given, the first of it with a gradient.
using Inputs = std::function<Tensors(int64_t n)>;
using Function = std::function<Tensor(const Tensors&)>;

constexpr int64_t kBatches[] = {4, 4, 7, 1, 5};

void expect_same(const char* what, const Inputs& inputs, const Function& function, int64_t breaks = 0) {
  SCOPED_TRACE(what);
  const auto with_gradient = [&](const Tensors& given) {
    const Tensor y = function(given);
    if (!y.requires_grad()) return Tensors{y};
    return Tensors{y.detach(), autograd::grad({(y * y).sum()}, {given[0]})[0]};
  };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    const NoGradGuard no_grad;
    auto fast = compile(function, {.mode = mode});
    for (int64_t n : kBatches) {
      const Tensors given = inputs(n);
      EXPECT_TRUE(same_bits(fast(given), function(given))) << "batch " << n;
    }
    EXPECT_EQ(fast.stats().fallbacks, 0);
    if (breaks == 0) EXPECT_EQ(fast.stats().graph_breaks, 0);
  }
  auto fast = compile(with_gradient);
  for (int64_t n : kBatches) {
    const Tensors given = inputs(n), expected = with_gradient(given), got = fast(given);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << "batch " << n << ", " << i;
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

Tensor learned(const IntList& sizes) { return randn(sizes).requires_grad_(); }
Tensor classes(int64_t n, int64_t count) { return remainder(arange(n), count); }

TEST(NNFunctions, Losses) {
  manual_seed(1);
  const Inputs rows = [](int64_t n) {
    return Tensors{learned({n, 6}), randn({n, 6}), randn({n, 6}), classes(n * 6, 2).view({n, 6}) * 2.0 - 1.0};
  };
  const Inputs scores = [](int64_t n) {
    return Tensors{learned({n, 6}), classes(n, 6), remainder(arange(n * 6), 7).view({n, 6}) - 1};
  };
  expect_same("margin_ranking_loss", rows,
              [](const Tensors& t) { return F::margin_ranking_loss(t[0], t[1], t[3], 0.5); });
  expect_same("hinge_embedding_loss", rows, [](const Tensors& t) { return F::hinge_embedding_loss(t[0], t[3], 0.5); });
  expect_same("cosine_embedding_loss", rows,
              [](const Tensors& t) { return F::cosine_embedding_loss(t[0], t[1], t[3].select(1, 0), 0.1, "none"); });
  expect_same("triplet_margin_loss", rows,
              [](const Tensors& t) { return F::triplet_margin_loss(t[0], t[1], t[2], 1, 2, 1e-6, true); });
  expect_same("multi_margin_loss", scores, [](const Tensors& t) { return F::multi_margin_loss(t[0], t[1], 2); });
  expect_same("multilabel_margin_loss", scores, [](const Tensors& t) { return F::multilabel_margin_loss(t[0], t[2]); });
  expect_same("multilabel_soft_margin_loss", rows,
              [](const Tensors& t) { return F::multilabel_soft_margin_loss(t[0], t[3]); });
  expect_same("poisson_nll_loss", rows,
              [](const Tensors& t) { return F::poisson_nll_loss(t[0], t[3] + 2, true, true); });
  expect_same("gaussian_nll_loss", rows,
              [](const Tensors& t) { return F::gaussian_nll_loss(t[0], t[1], t[2].exp(), true); });
}

TEST(NNFunctions, Pads) {
  manual_seed(9);
  for (const char* mode : {"reflect", "replicate", "circular"})
    for (const std::vector<int64_t>& pads : {std::vector<int64_t>{1, 2, 0, 3}, {-1, 1, 2, -2}, {0, 0, 3, 0}})
      expect_same(
          mode,
          [](int64_t n) {
            return Tensors{learned({2, n + 4, 5})};
          },
          [mode, pads](const Tensors& t) { return F::pad(t[0] * 2, pads, mode).exp(); });
}

// Amounts that change from call to call are sizes of one program, where they follow from sizes in a frozen call, too.
TEST(NNFunctions, PadsOfAnyAmountShareAProgram) {
  manual_seed(9);
  const Tensor x = learned({3, 9, 10});
  for (const char* mode : {"constant", "reflect", "replicate", "circular"}) {
    const auto padded = [&](int64_t n) {
      const Tensor y = F::pad(x.exp(), {n, n + 1, 0, 2 + n}, mode);
      return Tensors{y.detach(), autograd::grad({(y * y).sum()}, {x})[0]};
    };
    auto fast = compile(padded);
    for (const int64_t n : {1, 2, 3, 4, 5, 6, 2}) {
      const Tensors expected = padded(n), got = fast(n);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << mode << " " << n;
    }
    EXPECT_LE(fast.stats().compilations, 3) << mode;  // one repeated position is broadcast, more are not
  }
  const NoGradGuard no_grad;
  const auto to_twelve = [](const Tensor& t) { return F::pad(t * 2, {0, 12 - t.size(1)}, "constant", 7) + 1; };
  auto frozen = compile(to_twelve, {.mode = CompileMode::frozen});
  for (const int64_t n : {4, 4, 4, 5, 5, 6, 7, 8, 9, 10, 12, 11, 13, 3}) {
    const Tensor t = randn({2, n});
    EXPECT_TRUE(same_bits(frozen(t), to_twelve(t))) << n;
  }
  EXPECT_GE(frozen.stats().frozen_calls, 7);
  EXPECT_LE(frozen.stats().compilations, 4);
}

TEST(NNFunctions, CTC) {
  manual_seed(2);
  const Inputs batch = [](int64_t n) {
    return Tensors{learned({9, n, 5}), randint(1, 5, {n, 4}), classes(n, 4) + 6, classes(n, 4) + 1};
  };
  expect_same("ctc_loss", batch,
              [](const Tensors& t) { return F::ctc_loss(t[0].log_softmax(2), t[1], t[2], t[3], 0, "none", true); });
  // The longest target is read.
  expect_same(
      "ctc_loss of joined targets", batch,
      [](const Tensors& t) {
        const Tensor lengths = t[3] * 0 + 3;
        return F::ctc_loss(t[0].log_softmax(2), t[1].narrow(1, 0, 3).reshape({-1}), t[2], lengths);
      },
      1);
}

TEST(NNFunctions, Cells) {
  manual_seed(3);
  const nn::RNNCell rnn(6, 5);
  const nn::GRUCell gru(6, 5);
  const nn::LSTMCell lstm(6, 5);
  const Inputs steps = [](int64_t n) { return Tensors{learned({n, 6}), randn({n, 5}), randn({n, 5})}; };
  expect_same("RNNCell", steps, [&](const Tensors& t) { return rnn(t[0], t[1]); });
  expect_same("GRUCell", steps, [&](const Tensors& t) { return gru(t[0], gru(t[0], t[1])); });
  expect_same("LSTMCell", steps, [&](const Tensors& t) {
    const auto [h, c] = lstm(t[0], lstm(t[0], std::tuple(t[1], t[2])));
    return h + c;
  });
}

TEST(NNFunctions, Images) {
  manual_seed(4);
  const Inputs images = [](int64_t n) { return Tensors{learned({n, 4, 6, 7}), randn({n, 3, 5, 2})}; };
  const nn::Sequential pads{nn::ReflectionPad2d(1), nn::CircularPad2d({1, 2, 0, 1}), nn::ReplicationPad2d(2),
                            nn::ConstantPad2d(1, 0.5), nn::ZeroPad2d({-1, 1, -1, 1})};
  expect_same("pads", images, [&](const Tensors& t) { return pads(t[0]); });
  expect_same("channel_shuffle", images, [](const Tensors& t) { return F::channel_shuffle(t[0], 2) * 2; });
  expect_same("lp_pool2d", images, [](const Tensors& t) { return F::lp_pool2d(t[0], 2, 2); });
  expect_same("max_unpool2d", images, [](const Tensors& t) {
    const auto [values, at] = F::max_pool2d_with_indices(t[0], 2);
    return F::max_unpool2d(values, at, 2, {}, 0, {6, 7});
  });
  expect_same("Softmax2d", images, [](const Tensors& t) { return nn::Softmax2d()(t[0]); });
  for (const char* padding : {"zeros", "border", "reflection"}) {
    expect_same("grid_sample, bilinear", images,
                [&](const Tensors& t) { return F::grid_sample(t[0], t[1], "bilinear", padding); });
    expect_same("grid_sample, bicubic", images,
                [&](const Tensors& t) { return F::grid_sample(t[0], t[1], "bicubic", padding); });
  }
}

TEST(NNFunctions, ProductsAndDistances) {
  manual_seed(5);
  const nn::Bilinear bilinear(6, 4, 3);
  const Inputs rows = [](int64_t n) { return Tensors{learned({n, 6}), randn({n, 4})}; };
  expect_same("Bilinear", rows, [&](const Tensors& t) { return bilinear(t[0], t[1]); });
  expect_same(
      "pdist",
      [](int64_t n) {
        return Tensors{learned({n + 1, 6})};
      },
      [](const Tensors& t) { return F::pdist(t[0]); });
}

// What is drawn is drawn anew at each call, in eager's order.
TEST(NNFunctions, DrawnNumbers) {
  const nn::RReLU slopes;
  const nn::AlphaDropout alpha(0.3);
  const nn::FeatureAlphaDropout channels(0.3);
  const nn::Dropout1d dropped(0.3);
  const auto draw = [&](const Tensor& x) {
    return dropped(channels(alpha(slopes(x)))) + F::gumbel_softmax(x, 0.5, true);
  };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(draw, {.mode = mode});
    const NoGradGuard no_grad;
    for (int64_t n : kBatches) {
      const Tensor x = randn({n, 3, 4});
      manual_seed(100);
      const Tensor first = draw(x), second = draw(x);
      manual_seed(100);
      EXPECT_TRUE(same_bits(fast(x), first));
      EXPECT_TRUE(same_bits(fast(x), second));
      EXPECT_FALSE(equal(first, second));
    }
    EXPECT_EQ(fast.stats().fallbacks + fast.stats().graph_breaks, 0);
  }
}

// A factor is a number of the program, as its sizes are.
TEST(NNFunctions, ImagesScaledByAnyFactor) {
  const Tensor image = randn({1, 2, 9, 12}).requires_grad_();
  for (const char* mode : {"nearest", "nearest-exact", "bilinear", "bicubic"})
    for (bool recompute : {false, true}) {
      const auto scale = [&](double factor) {
        return F::interpolate(image, {}, {factor, factor + 0.3}, mode, {}, recompute);
      };
      auto fast = compile(scale);
      for (double factor : {1.0, 1.25, 0.5, 2.0, 1.1, 3.7, 0.9, 1.5, 2.2, 0.77, 1.9, 2.6}) {
        const Tensor one = fast(factor), other = scale(factor);
        EXPECT_TRUE(same_bits(one, other)) << mode << " " << factor;
        EXPECT_TRUE(same_bits(autograd::grad({one.square().sum()}, {image})[0],
                              autograd::grad({other.square().sum()}, {image})[0]))
            << mode << " " << factor;
      }
      EXPECT_LE(fast.stats().compilations, 3) << mode;
      EXPECT_EQ(fast.stats().recompile_limit_hits, 0);
    }
}

TEST(NNFunctions, AdaptiveLogSoftmaxEagersBitsWithItsBreaks) {
  const nn::AdaptiveLogSoftmaxWithLoss layer(8, 20, {4, 9}, {.div_value = 2});
  const auto loss = [&](const Tensor& x, const Tensor& y) { return std::get<1>(layer(x, y)); };
  auto fast = compile(loss);
  for (int64_t n : {6, 6, 9}) {
    const Tensor x = randn({n, 8}), y = randint(0, 20, {n});
    EXPECT_TRUE(same_bits(fast(x, y), loss(x, y)));
  }
  EXPECT_GT(fast.stats().graph_breaks, 0);
}

TEST(NNFunctions, FractionalMaxPoolEagersBits) {
  const Tensor samples = rand({2, 3, 2});
  const auto pool = [&](const Tensor& x) {
    const auto [values, indices] = F::fractional_max_pool2d_with_indices(x, 2, {3, 4}, {}, samples);
    return values * 2 + indices;
  };
  auto fast = compile(pool);
  for (int64_t side : {8, 8, 11}) {
    const Tensor x = randn({2, 3, side, side});
    EXPECT_TRUE(same_bits(fast(x), pool(x)));
  }
  EXPECT_EQ(fast.stats().graph_breaks, 0);
  const nn::FractionalMaxPool2d drawn(2, {.output_ratio = {0.5}});
  auto random = compile([&](const Tensor& x) { return drawn(x); });
  const Tensor x = randn({2, 3, 8, 8});
  for (uint64_t seed : {1, 2}) {
    manual_seed(seed);
    const Tensor expected = drawn(x);
    manual_seed(seed);
    EXPECT_TRUE(same_bits(random(x), expected));
  }
}

}  // namespace
}  // namespace ingot
