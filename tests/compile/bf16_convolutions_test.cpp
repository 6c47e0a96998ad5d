// Convolutions of bf16, which tiles sum two channels at a time where the processor can: eager's bits, whatever is known
// of their sizes, wherever their images lie, forwards and back.
#include <gtest/gtest.h>

#include "compile/support.h"

namespace ingot {
namespace {

// Even and odd numbers of channels, of groups, and one; taps side by side, apart, alone, and back to front.
struct NetImpl : nn::Module {
  nn::Conv2d stem{3, 16, 5, {.stride = 2, .padding = 2}}, whole{16, 32, 3, {.padding = 1}}, one{32, 24, 1},
      groups{24, 48, 3, {.padding = 1, .groups = 4}}, odd{48, 30, 3, {.padding = 2, .dilation = 2, .groups = 6}},
      depthwise{30, 30, 3, {.padding = 1, .groups = 30}}, odd_one{15, 8, 1, {.groups = 1}};
  nn::BatchNorm2d norm{32};
  nn::ConvTranspose2d up{8, 6, 2, {.stride = 2}};
  nn::Conv1d along{6, 4, 3};
  Tensor forward(const Tensor& x) {
    const Tensor a = relu(norm(whole(stem(x))));
    const Tensor b = depthwise(odd(relu(groups(one(a) + 1))));
    return along(up(odd_one(b.slice(1, 0, 15))).flatten(2));
  }
};
INGOT_MODULE(Net, stem, whole, one, groups, odd, depthwise, odd_one, norm, up, along);

Net net() { return manual_seed(1), Net(); }
Tensor images(int64_t n, int64_t size) {
  return manual_seed(static_cast<uint64_t>(n)), randn({n, 3, size, size + 1}, kBFloat16);
}
Tensor channels_inside(const Tensor& x) { return x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2}); }

TEST(Bf16Convolutions, HaveEagersBitsWhereverImagesLie) {
  test::on_every_target({1, 2}, [] {
    const NoGradGuard no_grad;
    Net model = net();
    model->to(kBFloat16);
    model->eval();
    auto checked = compile(model), frozen = compile(model, {.mode = CompileMode::frozen});
    for (const auto& [n, size] : std::vector<std::pair<int64_t, int64_t>>{{2, 9}, {1, 9}, {3, 14}, {2, 9}, {16, 7}}) {
      const Tensor x = images(n, size), expected = model(x);
      ASSERT_EQ(expected.dtype(), kBFloat16);
      for (const Tensor& given : {x, channels_inside(x)}) {
        EXPECT_TRUE(test::same_bits(model(given), expected)) << n;
        EXPECT_TRUE(test::same_bits(checked(given), expected)) << n;
        EXPECT_TRUE(test::same_bits(frozen(given), expected)) << n;
      }
    }
    EXPECT_EQ(checked.stats().fallbacks, 0);
    EXPECT_EQ(frozen.stats().fallbacks, 0);
  });
}

TEST(Bf16Convolutions, TrainedHaveEagersBits) {
  test::on_every_target({1, 2}, [] {
    struct Trained {
      Net model = net();
      optim::SGD opt{model->parameters(), {.lr = 0.05}};
    };
    Trained eager, whole, alone;
    auto step_of = [](Trained& trained, auto& model) {
      return [&](const Tensor& x) {
        Tensor loss;
        {
          const AutocastGuard autocast;
          loss = model(x).square().mean();
        }
        loss.backward();
        trained.opt.step(), trained.opt.zero_grad();
        return loss.detach();
      };
    };
    auto compiled = compile(step_of(whole, whole.model));
    auto model = compile(alone.model);
    const auto step = step_of(eager, eager.model);
    const auto step_alone = step_of(alone, model);
    for (const int64_t n : {2, 2, 5}) {
      const Tensor x = images(n, 9).to(kFloat32), loss = step(x);
      EXPECT_TRUE(test::same_bits(loss, compiled(channels_inside(x)))) << n;
      EXPECT_TRUE(test::same_bits(loss, step_alone(x))) << n;
    }
    const auto expected = eager.model->state_dict();
    for (const auto& [name, t] : expected) {
      EXPECT_TRUE(test::same_bits(t, whole.model->state_dict().at(name))) << name;
      EXPECT_TRUE(test::same_bits(t, alone.model->state_dict().at(name))) << name;
    }
    EXPECT_EQ(compiled.stats().fallbacks, 0);
  });
}

// Nothing, one of something, and parts of a larger image.
TEST(Bf16Convolutions, OfAnySizeAndOfViews) {
  test::on_every_target({2}, [] {
    const NoGradGuard no_grad;
    struct Sizes {
      int64_t images, channels, results, size, taps;
    };
    for (const Sizes& s : std::vector<Sizes>{
             {0, 4, 5, 6, 3}, {2, 0, 5, 6, 3}, {2, 4, 0, 6, 3}, {1, 3, 1, 1, 1}, {2, 5, 7, 1, 3}, {1, 2, 1, 2, 2}}) {
      manual_seed(5);
      const Tensor w = randn({s.results, s.channels, s.taps, s.taps}, kBFloat16), b = randn({s.results}, kBFloat16);
      const Tensor whole = randn({s.images, s.channels + 2, s.size + 1, s.size + 3}, kBFloat16),
                   part = whole.slice(1, 1, s.channels + 1).slice(2, 1, s.size + 1).slice(3, 2, s.size + 2);
      auto function = [&](const Tensor& x) { return conv2d(x, w, b, 1, s.taps / 2); };
      auto checked = compile(function), frozen = compile(function, {.mode = CompileMode::frozen});
      const Tensor expected = function(part.contiguous());
      for (const Tensor& x : {part, part.contiguous(), part}) {
        EXPECT_TRUE(test::same_bits(function(x), expected)) << s.images << ", " << s.channels << ", " << s.results;
        EXPECT_TRUE(test::same_bits(checked(x), expected)) << s.images << ", " << s.channels << ", " << s.results;
        EXPECT_TRUE(test::same_bits(frozen(x), expected)) << s.images << ", " << s.channels << ", " << s.results;
      }
    }
  });
}

// What a program itself has cast to f32 is multiplied as f32, also where it stands beside the cast.
TEST(Bf16Convolutions, OfWhatWasCastByHandAreOfF32) {
  const NoGradGuard no_grad;
  manual_seed(3);
  const Tensor x = randn({2, 6, 7, 7}, kBFloat16), w = randn({4, 6, 3, 3}, kBFloat16);
  auto function = [&](const Tensor& image) {
    return std::tuple(conv2d(image.to(kFloat32), w.to(kFloat32)), conv2d(image, w),
                      conv2d(image, w, {}, 1, 0, 1, 1, kFloat32));
  };
  auto fast = compile(function);
  const auto expected = function(x), got = fast(x);
  EXPECT_TRUE(test::same_bits(std::get<0>(got), std::get<0>(expected)));
  EXPECT_TRUE(test::same_bits(std::get<1>(got), std::get<1>(expected)));
  EXPECT_TRUE(test::same_bits(std::get<2>(got), std::get<2>(expected)));
  EXPECT_EQ(std::get<2>(got).dtype(), kFloat32);
  EXPECT_TRUE(test::same_bits(std::get<2>(got).to(kBFloat16), std::get<1>(got)));  // rounded once
  const Tensor exact = conv2d(x.to(kFloat64), w.to(kFloat64));
  EXPECT_LT((std::get<2>(got).to(kFloat64) - exact).abs().max().item<double>(), 1e-4);
}

}  // namespace
}  // namespace ingot
