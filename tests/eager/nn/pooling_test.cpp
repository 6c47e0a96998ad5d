// Pooling by norms, and its opposite, against PyTorch 2.15 in double.
#include "eager/nn/pooling.h"

#include "eager/nn/pytorchs.h"
#include "eager/nn/window_layers.h"
#include "eager/support.h"

namespace ingot {
namespace {

namespace F = nn::functional;

using test::input;
using test::message_of;

void expect_error(const std::string& words, const std::function<void()>& f) {
  EXPECT_EQ(message_of(f).rfind(words, 0), 0u) << message_of(f);
}

TEST(Pooling, Norms) {
  const Tensor line = input({2, 3, 7}), image = input({2, 3, 4, 5}), volume = input({1, 2, 4, 5, 6});
  EXPECT_PYTORCHS(F::lp_pool1d(line, 2, 3, 2), ({line}), -1.3783010037025805, -0.011905994590451496);
  EXPECT_PYTORCHS(F::lp_pool1d(line, 2, 3, 2, true), ({line}), -1.3783010037025805, -0.011905994590451496);
  EXPECT_PYTORCHS(F::lp_pool2d(image, 4, {2, 3}, {1, 2}), ({image}), 0.4094508957165379, -0.12983948867088724);
  EXPECT_PYTORCHS(F::lp_pool2d(image, 2, 2), ({image}), 2.6487241969871613, -0.089236855493116);
  EXPECT_PYTORCHS(F::lp_pool2d(image, 1, 2), ({image}), -0.193424360502696, 0.07465990827392915);
  EXPECT_PYTORCHS(F::lp_pool3d(volume, 2, 2), ({volume}), 5.748096630073116, 0.07043736722850216);
  EXPECT_TRUE(equal(nn::LPPool1d(2, 3, {.stride = 2, .ceil_mode = true})(line), F::lp_pool1d(line, 2, 3, 2, true)));
  EXPECT_TRUE(equal(nn::LPPool2d(4, {2, 3}, {.stride = {1, 2}})(image), F::lp_pool2d(image, 4, {2, 3}, {1, 2})));
  EXPECT_TRUE(equal(nn::LPPool3d(2, 2)(volume), F::lp_pool3d(volume, 2, 2)));
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor mixed = tensor({-3.0, -2.0, 3.0, 1.0, 5.0}).view({1, 1, 5});
  EXPECT_TRUE(equal(F::lp_pool1d(mixed, infinity, 2, {}, true).view({3}), tensor({3.0, 3.0, 5.0})));
  EXPECT_TRUE(equal(F::lp_pool1d(mixed, -infinity, 2).view({2}), tensor({2.0, 1.0})));
  const Tensor nothing = zeros({1, 1, 4}).requires_grad_();
  F::lp_pool1d(nothing, 2, 2).sum().backward();
  EXPECT_TRUE(equal(nothing.grad(), zeros({1, 1, 4})));
  expect_error("lp_pool2d: norm_type: got 0", [&] { F::lp_pool2d(image, 0, 2); });
  expect_error("lp_pool2d: kernel_size: got 3 numbers", [&] { F::lp_pool2d(image, 2, {1, 2, 3}); });
  expect_error("LPPool2d: norm_type: got 0", [&] { nn::LPPool2d(0, 2); });
  expect_error("LPPool2d: kernel_size: got 0", [&] { nn::LPPool2d(2, 0); });
  expect_error("LPPool2d: stride: got 0", [&] { nn::LPPool2d(2, 2, {.stride = 0}); });
}

// Short bins and long ones, of one size and of several.
TEST(Pooling, Adaptive) {
  for (const auto& [size, count] :
       std::vector<std::pair<int64_t, int64_t>>{{12, 4}, {13, 4}, {40, 2}, {41, 2}, {3, 5}, {6, 6}, {16, 1}, {1, 3}}) {
    const Tensor x = input({2, 3, size}).detach();
    std::vector<Tensor> means, largest;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = i * size / count, last = ((i + 1) * size + count - 1) / count;
      means.push_back(x.slice(2, first, last).mean(2));
      largest.push_back(x.slice(2, first, last).amax(2));
    }
    const Tensor image = x.view({2, 3, 1, size}).expand({2, 3, 5, size});
    EXPECT_TRUE(allclose(adaptive_avg_pool1d(x, count), stack(means, 2), 1e-14, 1e-14)) << size << ", " << count;
    EXPECT_TRUE(equal(adaptive_max_pool1d(x, count), stack(largest, 2))) << size << ", " << count;
    EXPECT_TRUE(allclose(adaptive_avg_pool2d(image, {1, count}).select(2, 0), stack(means, 2), 1e-14, 1e-14));
  }
}

TEST(Pooling, OneBinIsTheWholeDim) {
  const Tensor x = input({2, 3, 18, 33}), y = adaptive_max_pool2d(x, 1);
  EXPECT_TRUE(equal(y, x.amax({2, 3}, true)));
  y.sum().backward();
  EXPECT_TRUE(equal(x.grad(), (x == y).to(x.dtype())));
  const Tensor line = input({2, 3, 33});
  EXPECT_TRUE(equal(adaptive_avg_pool2d(line, {1, 33}), line.mean(1, true)));
}

TEST(Pooling, Unpooled) {
  const Tensor line = input({2, 3, 7}), image = input({2, 3, 4, 5}), volume = input({1, 2, 4, 5, 6});
  const auto [of_line, in_line] = F::max_pool1d_with_indices(line, 3, 2, 1);
  EXPECT_PYTORCHS(F::max_unpool1d(of_line, in_line, 3, 2, 1), (), 2.6691951807950094);
  const auto [apart, in_parts] = F::max_pool1d_with_indices(line, 3, 3, 1);
  EXPECT_PYTORCHS(F::max_unpool1d(apart, in_parts, 3, 3, 1, 7), ({line}), 1.7103477149713608, 9.380147829557002);
  const auto [of_image, in_image] = F::max_pool2d_with_indices(image, 2);
  EXPECT_PYTORCHS(F::max_unpool2d(of_image, in_image, 2), ({image}), 0.1330405730967873, 3.1566110772850533);
  EXPECT_PYTORCHS(F::max_unpool2d(of_image, in_image, 2, {}, 0, {4, 5}), ({image}), 0.29342035143553713,
                  11.885552432102907);
  const auto [of_volume, in_volume] = F::max_pool3d_with_indices(volume, 2);
  EXPECT_PYTORCHS(F::max_unpool3d(of_volume, in_volume, 2, {}, 0, {1, 2, 4, 5, 6}), ({volume}), 3.57120328229812,
                  7.028964423136012);
  EXPECT_TRUE(equal(nn::MaxUnpool1d(3, {.stride = 2, .padding = 1})(of_line, in_line),
                    F::max_unpool1d(of_line, in_line, 3, 2, 1)));
  const auto [values_of_layer, places_of_layer] = nn::MaxPool2d(2)->forward_with_indices(image);
  EXPECT_TRUE(equal(values_of_layer, of_image) && equal(places_of_layer, in_image));
  EXPECT_TRUE(equal(std::get<1>(nn::AdaptiveMaxPool2d(2)->forward_with_indices(image)),
                    std::get<1>(F::adaptive_max_pool2d_with_indices(image, 2))));
  EXPECT_TRUE(equal(nn::MaxUnpool2d(2)(of_image, in_image, IntList{4, 5}),
                    F::max_unpool2d(of_image, in_image, 2, {}, 0, {4, 5})));
  EXPECT_TRUE(equal(F::max_unpool1d(tensor({{1.0, 2.0}}), tensor({{0, 3}}), 2), tensor({{1.0, 0.0, 0.0, 2.0}})));
  EXPECT_EQ(F::max_unpool1d(zeros({0, 3, 2}), zeros({0, 3, 2}, kInt64), 2).sizes(), (std::vector<int64_t>{0, 3, 4}));
  const Tensor values = of_image.detach(), at = in_image;
  expect_error("max_unpool2d: indices: got 20, expected numbers from 0 to 19", [&] {
    F::max_unpool2d(values, at * 0 + 20, 2, {}, 0, {4, 5});
  });
  expect_error("max_unpool2d: indices: got -1", [&] { F::max_unpool2d(values, at * 0 - 1, 2); });
  expect_error("max_unpool2d: indices: got a tensor of i32", [&] { F::max_unpool2d(values, at.to(kInt32), 2); });
  expect_error("max_unpool2d: indices: got shape [2, 3, 2, 1]",
               [&] { F::max_unpool2d(values, at.narrow(3, 0, 1), 2); });
  expect_error("max_unpool2d: output_size: got 6, expected a size from 3 to 5", [&] {
    F::max_unpool2d(values, at, 2, {}, 0, {6, 6});
  });
  expect_error("max_unpool2d: output_size: got 3 sizes", [&] { F::max_unpool2d(values, at, 2, {}, 0, {1, 4, 4}); });
  expect_error("max_unpool1d: input: got shape [2], expected 2 or 3 dims",
               [&] { F::max_unpool1d(ones({2}), zeros({2}, kInt64), 2); });
  expect_error("MaxUnpool3d: kernel_size: got 0", [&] { nn::MaxUnpool3d(0); });
}

// As PyTorch has it: each of those that went to one place has the gradient there.
TEST(Pooling, UnpooledToOnePlaceHasItsGradient) {
  const Tensor x = tensor({{5.f, 2.f, 2.f}}).requires_grad_(), at = tensor({{0, 3, 3}});
  const Tensor y = F::max_unpool1d(x, at, 2);
  EXPECT_TRUE(equal(y.detach(), tensor({{5.f, 0.f, 0.f, 2.f, 0.f, 0.f}})));
  (y * arange(1, 7)).sum().backward();
  EXPECT_TRUE(equal(x.grad(), tensor({{1.f, 4.f, 4.f}})));
}

}  // namespace
}  // namespace ingot
