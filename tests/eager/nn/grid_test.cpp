// Images at positions of a grid, against PyTorch 2.15 in double.
#include "eager/nn/grid.h"

#include "eager/nn/pytorchs.h"
#include "eager/support.h"

namespace ingot {
namespace {

namespace F = nn::functional;
using test::input;
using test::message_of;

Tensor positions(const IntList& sizes) { return (input(sizes, 0.7).detach() * 1.9).requires_grad_(); }

TEST(Grid, Affine) {
  const Tensor flat = input({2, 2, 3}), deep = input({1, 3, 4});
  EXPECT_PYTORCHS(F::affine_grid(flat, {2, 3, 4, 5}, false), ({flat}), -2.2804890349845905, -3.921416124512537);
  EXPECT_PYTORCHS(F::affine_grid(deep, {1, 2, 3, 1, 4}, false), ({deep}), -1.5926228199099464, -1.5541339123478017);
  EXPECT_PYTORCHS(F::affine_grid(flat, {2, 3, 4, 5}, true), ({flat}), -3.142620334582909, -4.9498504830955605);
  EXPECT_PYTORCHS(F::affine_grid(deep, {1, 2, 3, 1, 4}, true), ({deep}), -2.0124982223016845, -2.5202857146973336);
}

TEST(Grid, Images) {
  const Tensor x = input({2, 3, 4, 5}), at = positions({2, 3, 6, 2});
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "zeros", false), ({x, at}), -0.28953873794952745,
                  -7.625652433587822, 2.3660398114632315);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "zeros", false), ({x}), 3.2162568115965176, -6.672227279798394);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bicubic", "zeros", false), ({x, at}), -0.5271994364294249, -9.198290655667417,
                  -0.6133798273664928);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "border", false), ({x, at}), 7.738409345569818, -7.196443797090683,
                  -0.7616952487669395);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "border", false), ({x}), 10.781113119271184, -7.426574341705383);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bicubic", "border", false), ({x, at}), 8.682071137484769, -7.819260927507043,
                  2.8659479263863936);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "reflection", false), ({x, at}), 4.425007990839249,
                  -3.709551788989129, -7.639817387919146);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "reflection", false), ({x}), 10.563571644356175, -8.921334291650512);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bicubic", "reflection", false), ({x, at}), 4.675948831406252,
                  -3.779547498747156, 4.305835025934211);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "zeros", true), ({x, at}), 4.4285861975237495, -6.394023994144419,
                  2.297021844584853);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "zeros", true), ({x}), 6.687053797156128, -7.0406055664090115);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bicubic", "zeros", true), ({x, at}), 6.584807944754373, -7.904856863783265,
                  -1.2548195593985856);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "border", true), ({x, at}), 9.331892179224198, -6.390233569601914,
                  7.3010313629042844);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "border", true), ({x}), 12.397817323029104, -9.352018060415272);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bicubic", "border", true), ({x, at}), 11.945212335806321, -7.927606567916959,
                  0.8585979468534125);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "reflection", true), ({x, at}), -0.1051638991492812,
                  -1.8735367075103804, 11.896352929344319);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "reflection", true), ({x}), 6.920006113159363, -6.715361380069154);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bicubic", "reflection", true), ({x, at}), 0.629502185244184,
                  -2.0784109505596176, 7.4586310804877485);
}

TEST(Grid, Volumes) {
  const Tensor x = input({1, 2, 4, 5, 6}), at = positions({1, 2, 3, 4, 3});
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "zeros", false), ({x, at}), 0.00719931637666779,
                  0.03473504165911791, 0.06469044396027226);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "zeros", false), ({x}), 0.0, 0.0);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "border", false), ({x, at}), -0.870950775965583, 0.9067786335925293,
                  -6.511047632351523);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "border", false), ({x}), -2.0383595907788807, 1.7323748611701164);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "reflection", false), ({x, at}), 2.436279584743901,
                  1.0274651779546975, -18.587986129188316);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "reflection", false), ({x}), 2.0514187818900695, 3.3863156193086468);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "zeros", true), ({x, at}), -0.5354710168765081, 0.5509598983086544,
                  -0.013375995727010093);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "zeros", true), ({x}), -0.3721450853552547, -0.17322870142571967);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "border", true), ({x, at}), -0.9675490255957173, 0.3184172924526178,
                  5.970487555648889);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "border", true), ({x}), -1.6512830639563931, -1.7970239639346821);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "bilinear", "reflection", true), ({x, at}), 1.4799718283611152,
                  -0.5107315532504723, -4.890496885788895);
  EXPECT_PYTORCHS(F::grid_sample(x, at, "nearest", "reflection", true), ({x}), 0.6545984212654157, -0.5274059879733799);
}

TEST(Grid, TricubicOfAVolume) {
  const Tensor volume = arange(54, kFloat64).reshape({1, 2, 3, 3, 3}).sin();
  const Tensor at = tensor({0.1, -0.4, 0.7, 1., 1., -1., -.9, .2, 1.4}, kFloat64).reshape({1, 1, 1, 3, 3});
  const auto expect = [&](const char* padding, const std::vector<double>& numbers) {
    const Tensor got = F::grid_sample(volume, at, "bicubic", padding).flatten();
    EXPECT_TRUE(allclose(got, tensor(numbers), 1e-10, 1e-10)) << padding << got;
  };
  expect("zeros", {0.15163467567903838, 0.24821792157974815, -0.023270742428127475, 0.10748539555571265,
                   -0.13381452056440066, 0.020438483723623557});
  expect("border", {0.11583418979531131, 1.4353364880984008, 0.5906473720772443, 0.02079987033510004,
                    -0.6974372422081108, -0.5374967257015099});
  expect("reflection", {0.11624253229649932, 1.9857433726379854, 0.5362406433579728, 0.020784015393557426,
                        -1.070516164515205, -0.4235447632525313});
}

TEST(Grid, TheIdentity) {
  const Tensor x = input({1, 2, 4, 5}).detach().to(kFloat32);
  const Tensor same = tensor({{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}});
  for (bool corners : {false, true})
    EXPECT_TRUE(allclose(F::grid_sample(x, F::affine_grid(same, {1, 2, 4, 5}, corners), "bilinear", "zeros", corners),
                         x, 1e-5, 1e-6));
  // Far outside, and nowhere.
  const Tensor nan = full({1, 1, 1, 2}, std::nan("")), far = full({1, 1, 1, 2}, 1e6);
  EXPECT_TRUE(equal(F::grid_sample(x, nan), zeros({1, 2, 1, 1})));
  EXPECT_TRUE(equal(F::grid_sample(x, far), zeros({1, 2, 1, 1})));
  EXPECT_TRUE(equal(F::grid_sample(x, far, "nearest", "border").view({2}), x.select(3, 4).select(2, 3).view({2})));
  // NaN is clipped to the first pixel where there is no outside.
  EXPECT_TRUE(equal(F::grid_sample(x, nan, "bilinear", "border").view({2}), x.select(3, 0).select(2, 0).view({2})));
  // No result of the nearest pixel moves with the grid.
  for (const char* padding : {"zeros", "border", "reflection"}) {
    const Tensor moved = (rand({1, 2, 3, 2}) * 3 - 1.5).requires_grad_();
    F::grid_sample(x, moved, "nearest", padding).sum().backward();
    EXPECT_TRUE(equal(moved.grad(), zeros({1, 2, 3, 2}))) << padding;
  }
  EXPECT_EQ(F::grid_sample(x.to(kBFloat16), far.to(kBFloat16)).dtype(), kBFloat16);
  EXPECT_EQ(F::grid_sample(x, zeros({1, 0, 3, 2})).sizes(), (std::vector<int64_t>{1, 2, 0, 3}));
}

TEST(Grid, WhatLiesOutsideIsNotRead) {
  const Tensor x = full({2, 5, 3, 3}, std::nan("")).requires_grad_(), far = full({2, 1, 2, 2}, -3.0).requires_grad_();
  for (const char* mode : {"bilinear", "nearest", "bicubic"}) {
    const Tensor result = F::grid_sample(x, far, mode);
    EXPECT_TRUE(equal(result, zeros({2, 5, 1, 2}))) << mode;
    const std::vector<Tensor> slopes = autograd::grad({result.sum()}, {x, far}, {}, {}, false, true);
    EXPECT_TRUE(equal(slopes[0], zeros_like(x))) << mode;
  }
  // Of one pixel of many channels in another order of memory.
  const Tensor image = input({2, 1, 1, 40}).detach().permute({0, 3, 1, 2}), centre = zeros({2, 3, 1, 2}, kFloat64);
  EXPECT_TRUE(equal(F::grid_sample(image, centre), image.expand({2, 40, 3, 1})));
  EXPECT_EQ(F::grid_sample(zeros({2, 0, 3, 3}), zeros({2, 4, 1, 2})).sizes(), (std::vector<int64_t>{2, 0, 4, 1}));
  EXPECT_EQ(F::grid_sample(zeros({0, 3, 3, 3}), zeros({0, 4, 1, 2})).sizes(), (std::vector<int64_t>{0, 3, 4, 1}));
}

TEST(Grid, RefusesWhatIsWrong) {
  const auto expect = [&](const std::string& words, const std::function<void()>& f) {
    EXPECT_EQ(message_of(f).rfind(words, 0), 0u) << message_of(f);
  };
  const Tensor x = ones({1, 2, 4, 5}), at = zeros({1, 3, 3, 2});
  expect("grid_sample: mode: got \"cubic\"", [&] { F::grid_sample(x, at, "cubic"); });
  expect("grid_sample: padding_mode: got \"wrap\"", [&] { F::grid_sample(x, at, "nearest", "wrap"); });
  expect("grid_sample: input: got shape [2, 4, 5]", [&] { F::grid_sample(x[0], at); });
  expect("grid_sample: grid: got shape [1, 3, 3, 1]", [&] { F::grid_sample(x, at.narrow(3, 0, 1)); });
  expect("grid_sample: grid: got shape [2, 3, 3, 2]", [&] { F::grid_sample(x, zeros({2, 3, 3, 2})); });
  expect("grid_sample: grid: got a tensor of f64", [&] { F::grid_sample(x, at.to(kFloat64)); });
  expect("grid_sample: input: got shape [1, 2, 0, 5]", [&] { F::grid_sample(x.narrow(2, 0, 0), at); });
  expect("affine_grid: theta: got shape [1, 2, 2], expected [1, 2, 3]", [&] {
    F::affine_grid(ones({1, 2, 2}), {1, 2, 4, 5});
  });
  expect("affine_grid: size: got 3 sizes", [&] { F::affine_grid(ones({1, 2, 3}), {1, 2, 4}); });
  expect("affine_grid: size: got 0", [&] { F::affine_grid(ones({1, 2, 3}), {1, 2, 0, 4}); });
}

}  // namespace
}  // namespace ingot
