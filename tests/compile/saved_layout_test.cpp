// What a function that is compiled alone saves for its way back lies as its program computes it, channels innermost
// behind a convolution. Whatever a user can come to is row-major, as in eager. The same where all that is cheap to
// compute again is not saved, however small it is.
#include <thread>

#include "support.h"

namespace ingot {
namespace {

using namespace test;
namespace F = nn::functional;

class SavedLayout : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) setenv("INGOT_RECOMPUTE_FROM", "1", 1);
  }
  void TearDown() override { unsetenv("INGOT_RECOMPUTE_FROM"); }
};
INSTANTIATE_TEST_SUITE_P(All, SavedLayout, testing::Bool(),
                         [](const auto& info) { return info.param ? "ComputedAgain" : "Kept"; });

struct NetImpl : nn::Module {
  nn::Conv2d stem{3, 8, 3, nn::ConvOptions{.padding = 1}}, depthwise{8, 8, 3, nn::ConvOptions{.groups = 8}},
      out{8, 6, 1};
  nn::BatchNorm2d norm{8}, second_norm{8};
  nn::Linear head{6, 5};
  Tensor forward(const Tensor& x) {
    const Tensor a = F::relu(norm(stem(x)));
    const Tensor b = F::silu(second_norm(depthwise(a)));
    return head(F::max_pool2d(out(b), 2).mean({2, 3}));
  }
};
INGOT_MODULE(Net, stem, depthwise, out, norm, second_norm, head);

Net make_net() {
  manual_seed(11);
  return Net();
}

Tensor images(int64_t n, int64_t height, int64_t width, int64_t step) {
  manual_seed(static_cast<uint64_t>(500 + step));
  return randn({n, 3, height, width});
}

template <class Function>
size_t reordered(const Function& f) {
  const std::string page = f.explain().str();
  size_t count = 0;
  for (size_t at = page.find("lies with its dims in order 0 2 3 1"); at != std::string::npos;
       at = page.find("lies with its dims in order 0 2 3 1", at + 1))
    ++count;
  return count;
}

TEST_P(SavedLayout, GradientsOfImagesAreEagers) {
  on_every_target({1, 2}, [] {
    Net eager = make_net(), compiled = make_net();
    auto fast = compile(compiled);
    const int64_t shapes[][3] = {{2, 6, 7}, {2, 6, 7}, {3, 6, 7}, {3, 9, 7},
                                 {1, 9, 8}, {1, 4, 4}, {5, 4, 4}, {2, 4, 30}};
    int64_t step = 0;
    for (const auto& [n, height, width] : shapes) {
      const Tensor x = images(n, height, width, step++);
      const Tensor a = eager(x), b = fast(x);
      EXPECT_TRUE(same_bits(a.detach(), b.detach()));
      a.square().mean().backward(), b.square().mean().backward();
      for (size_t i = 0; i < eager->parameters().size(); ++i) {
        const Tensor gradient = compiled->parameters()[i].grad();
        EXPECT_TRUE(same_bits(gradient, eager->parameters()[i].grad()))
            << n << "x" << height << "x" << width << ", " << i;
        EXPECT_TRUE(gradient.is_contiguous());
      }
    }
    const Statistics statistics = fast.explain().statistics;
    EXPECT_EQ(statistics.fallbacks, 0);
    EXPECT_LE(statistics.compilations, 4);
    if (runtime::host_target().isa != Isa::none && !GetParam()) {
      // What both norms, both activations and the convolutions read; of the second norm a view of what is stored.
      EXPECT_GE(reordered(fast), 6u) << fast.explain().str();
    }
  });
}

/// What somebody keeps of a value in the middle.
enum class Keeps { nothing, handle, view, transposed, detached, slice, function, twice };

std::vector<float> elements(const Tensor& t) { return {t.data_ptr<float>(), t.data_ptr<float>() + t.numel()}; }

struct Cube : autograd::Function<Cube> {
  static std::vector<float> seen;
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* ctx, const std::vector<Tensor>& gradients) {
    const Tensor x = ctx->get_saved_variables()[0];
    seen = elements(x);
    return {3 * x * x * gradients[0]};
  }
};
std::vector<float> Cube::seen;

// In the same function, in turns: who holds what is no part of the path that is recorded.
TEST_P(SavedLayout, WhatSomebodyHoldsIsRowMajor) {
  manual_seed(3);
  const Tensor w = randn({6, 3, 3, 3}), v = randn({4, 6, 1, 1});
  Keeps keeps = Keeps::nothing;
  std::vector<Tensor> kept;
  auto body = [&](const Tensor& x, const Tensor& w, const Tensor& v) {
    const Tensor middle = conv2d(x, w).silu();
    const Tensor after = keeps == Keeps::function ? Cube::apply(middle) : middle.square();
    switch (keeps) {
      case Keeps::nothing:
      case Keeps::function:
        break;
      case Keeps::handle:
        kept = {middle};
        break;
      case Keeps::view:
        kept = {middle.view({-1})};
        break;
      case Keeps::transposed:
        kept = {middle.permute({0, 2, 3, 1})};
        break;
      case Keeps::detached:
        kept = {middle.detach()};
        break;
      case Keeps::slice:
        kept = {middle.slice(2, 1, 3)};
        break;
      case Keeps::twice:
        kept = {middle, after, after.detach()};
        break;
    }
    return conv2d(after, v).exp().mean();
  };
  struct Run {
    Tensor loss, w_gradient, v_gradient;
    std::vector<std::vector<float>> kept;
    std::vector<Ints> strides;
    std::vector<float> saved;
  };
  auto run = [&](auto& function, const Tensor& x) {
    const Tensor own_w = w.clone().requires_grad_(), own_v = v.clone().requires_grad_();
    Run r;
    Cube::seen.clear();
    const Tensor loss = function(x, own_w, own_v);
    r.loss = loss.detach();
    for (const Tensor& t : kept) {
      r.strides.emplace_back(t.strides().begin(), t.strides().end());
      r.kept.push_back(elements(t.detach().contiguous()));
      if (t.is_contiguous()) {
        EXPECT_EQ(r.kept.back(), elements(t));
      }
    }
    loss.backward();
    kept.clear();
    r.w_gradient = own_w.grad(), r.v_gradient = own_v.grad(), r.saved = Cube::seen;
    return r;
  };
  auto fast = compile(body, {.recompile_limit = 64});
  for (int round = 0; round < 3; ++round)
    for (Keeps k : {Keeps::nothing, Keeps::handle, Keeps::nothing, Keeps::view, Keeps::transposed, Keeps::function,
                    Keeps::detached, Keeps::slice, Keeps::nothing, Keeps::twice}) {
      keeps = k;
      const Tensor x = images(2 + round % 2, 6, 5, round);
      const Run expected = run(body, x), got = run(fast, x);
      const int what = static_cast<int>(k);
      EXPECT_TRUE(same_bits(got.loss, expected.loss)) << what;
      EXPECT_TRUE(same_bits(got.w_gradient, expected.w_gradient)) << what;
      EXPECT_TRUE(same_bits(got.v_gradient, expected.v_gradient)) << what;
      EXPECT_EQ(got.kept, expected.kept) << what;
      EXPECT_EQ(got.strides, expected.strides) << what;
      EXPECT_EQ(got.saved, expected.saved) << what;
      EXPECT_EQ(got.saved.empty(), k != Keeps::function);
    }
  if (!GetParam()) EXPECT_GE(reordered(fast), 1u);
  EXPECT_EQ(fast.explain().statistics.fallbacks, 0);
  EXPECT_EQ(fast.explain().statistics.recompile_limit_hits, 0);
}

TEST_P(SavedLayout, DerivativesOfDerivatives) {
  manual_seed(4);
  const Tensor w = randn({4, 3, 2, 2});
  auto body = [](const Tensor& x, const Tensor& w) { return F::avg_pool2d(conv2d(x, w).tanh(), 2).sigmoid(); };
  auto fast = compile(body);
  for (int step = 0; step < 3; ++step) {
    const Tensor x = images(2, 7, 7, step).requires_grad_();
    auto second = [&](auto& f) {
      const Tensor own = w.clone().requires_grad_();
      const Tensor gradient = autograd::grad({f(x, own).sum()}, {own}, {}, true, true)[0];
      return autograd::grad({gradient.square().sum()}, {own, x});
    };
    const std::vector<Tensor> expected = second(body), got = second(fast);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << step;
  }
}

// A second time, and node by node, through what was written in place.
TEST_P(SavedLayout, OtherWaysBack) {
  manual_seed(5);
  const Tensor w = randn({4, 3, 3, 3});
  auto body = [](const Tensor& x, const Tensor& w) {
    Tensor y = conv2d(x, w);
    y.relu_();
    return F::max_pool2d(y * y, 2).mean();
  };
  auto fast = compile(body);
  for (int step = 0; step < 4; ++step) {
    const Tensor x = images(2, 8, 6, step);
    auto way = [&](auto& f) {
      const Tensor own = w.clone().requires_grad_();
      const Tensor loss = f(x, own);
      if (step % 2) {
        autograd::backward({loss}, {}, true);
        autograd::backward({loss});
      } else {
        const autograd::DetectAnomalyGuard anomaly;
        loss.backward();
      }
      return own.grad();
    };
    EXPECT_TRUE(same_bits(way(fast), way(body))) << step;
  }
}

TEST_P(SavedLayout, SizesOfNoneAndOne) {
  manual_seed(6);
  auto body = [](const Tensor& x, const Tensor& w) { return conv2d(x, w).silu().square().sum(); };
  auto fast = compile(body, {.recompile_limit = 64});
  const int64_t shapes[][4] = {{2, 3, 5, 4}, {0, 3, 5, 4}, {1, 3, 1, 1}, {2, 3, 1, 4}, {2, 3, 5, 1},
                               {1, 3, 5, 4}, {2, 3, 1, 1}, {2, 3, 5, 4}, {0, 3, 1, 1}};
  for (int64_t channels : {1, 4})
    for (const auto& [n, c, height, width] : shapes) {
      const Tensor x = randn({n, c, height, width}), w = randn({channels, c, 1, 1});
      auto gradient = [&](auto& f) {
        const Tensor own = w.clone().requires_grad_(), image = x.clone().requires_grad_();
        return autograd::grad({f(image, own)}, {own, image});
      };
      const std::vector<Tensor> expected = gradient(body), got = gradient(fast);
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << n << ' ' << height << ' ' << width;
    }
  EXPECT_EQ(fast.explain().statistics.recompile_limit_hits, 0);
}

TEST_P(SavedLayout, TwoThreadsTrainThroughOneFunction) {
  Net shared = make_net();
  auto fast = compile(shared);
  std::vector<std::vector<Tensor>> gradients(2);
  const Tensor inputs[] = {images(2, 6, 6, 0), images(2, 6, 6, 1)};  // of the one generator that threads share
  auto train = [&](size_t thread) {
    for (int step = 0; step < 4; ++step) {
      const Tensor x = inputs[thread].clone().requires_grad_();
      gradients[thread].push_back(autograd::grad({fast(x).square().sum()}, {x})[0]);
    }
  };
  shared->eval();  // no statistics that both would write
  std::thread other([&] { train(1); });
  train(0);
  other.join();
  for (size_t thread = 0; thread < 2; ++thread) {
    const Tensor x = inputs[thread].clone().requires_grad_();
    const Tensor expected = autograd::grad({shared(x).square().sum()}, {x})[0];
    for (const Tensor& gradient : gradients[thread]) EXPECT_TRUE(same_bits(gradient, expected));
  }
}

}  // namespace
}  // namespace ingot
