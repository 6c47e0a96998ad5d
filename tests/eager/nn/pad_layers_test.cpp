// Padding layers against PyTorch 2.15 in double.
#include "eager/nn/pad_layers.h"

#include "eager/nn/pytorchs.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::input;
using test::message_of;

TEST(PadLayers, OneDim) {
  const Tensor x = input({2, 3, 4});
  EXPECT_PYTORCHS(nn::ZeroPad1d({1, 2})(x), ({x}), 1.1007466245979198, -1.3134553452865776);
  EXPECT_PYTORCHS(nn::ReflectionPad1d({1, 2})(x), ({x}), 4.501315251994903, -2.040335901433918);
  EXPECT_PYTORCHS(nn::ReplicationPad1d({1, 2})(x), ({x}), 1.069085440746429, -2.298060271655551);
  EXPECT_PYTORCHS(nn::CircularPad1d({1, 2})(x), ({x}), 5.132558836472126, -1.5955071749508265);
  EXPECT_PYTORCHS(nn::ConstantPad1d({1, 2}, 3.5)(x), ({x}), 1.2325161368031616, -1.3134553452865776);
  EXPECT_PYTORCHS(nn::ZeroPad1d(1)(x[0]), ({x}), 1.0073688423797718, 4.83540739399632);
  EXPECT_PYTORCHS(nn::ReflectionPad1d(1)(x[0]), ({x}), 1.4886802265716463, 6.802361395091978);
  EXPECT_PYTORCHS(nn::ReplicationPad1d(1)(x[0]), ({x}), 1.500190856225843, 6.763376958398022);
  EXPECT_PYTORCHS(nn::CircularPad1d(1)(x[0]), ({x}), 1.0116002726346012, 6.3654364254855595);
}

TEST(PadLayers, TwoDims) {
  const Tensor x = input({2, 3, 4, 5});
  const IntList around{1, 2, 0, 3};
  EXPECT_PYTORCHS(nn::ZeroPad2d(around)(x), ({x}), -6.859622097703041, 6.814324585536843);
  EXPECT_PYTORCHS(nn::ReflectionPad2d(around)(x), ({x}), -4.157779774398417, 9.245524967299339);
  EXPECT_PYTORCHS(nn::ReplicationPad2d(around)(x), ({x}), -15.835652201432008, 7.398515936407734);
  EXPECT_PYTORCHS(nn::CircularPad2d(around)(x), ({x}), -0.28190964228486126, 1.5445195274386703);
  EXPECT_PYTORCHS(nn::ConstantPad2d(around, 3.5)(x), ({x}), -5.226648141311546, 6.814324585536843);
  EXPECT_PYTORCHS(nn::ZeroPad2d(1)(x[0]), ({x}), 12.937174547036253, -19.354555555000772);
  EXPECT_PYTORCHS(nn::ReflectionPad2d(1)(x[0]), ({x}), 3.6443231853543856, -19.43469182007891);
  EXPECT_PYTORCHS(nn::ReplicationPad2d(1)(x[0]), ({x}), 32.467556123268835, -8.570315829261247);
  EXPECT_PYTORCHS(nn::CircularPad2d(1)(x[0]), ({x}), 1.1388107350108205, -27.70256626211124);
  // Negative numbers cut.
  EXPECT_PYTORCHS(nn::ConstantPad2d({-1, 2, 1, -2}, 3.5)(x), ({x}), -9.742882825581955, 13.018653310214066);
  EXPECT_PYTORCHS(nn::ZeroPad2d({-1, 2, 1, -2})(x), ({x}), -3.5835536675476245, 13.018653310214066);
  EXPECT_PYTORCHS(nn::CircularPad2d({-1, 2, 1, -2})(x), ({x}), 7.176609273026823, 5.656275704162491);
}

TEST(PadLayers, ThreeDims) {
  const Tensor x = input({1, 2, 4, 3, 5});
  const IntList around{1, 2, 0, 1, 2, 3};
  EXPECT_PYTORCHS(nn::ZeroPad3d(around)(x), ({x}), 32.922465737392315, 10.96746294481454);
  EXPECT_PYTORCHS(nn::ReflectionPad3d(around)(x), ({x}), 102.55964340256497, 29.814008606451416);
  EXPECT_PYTORCHS(nn::ReplicationPad3d(around)(x), ({x}), 44.30364187639254, 15.218212539446746);
  EXPECT_PYTORCHS(nn::CircularPad3d(around)(x), ({x}), 91.59298311123173, 11.72633467699102);
  EXPECT_PYTORCHS(nn::ConstantPad3d(around, 3.5)(x), ({x}), 50.30547158987531, 10.96746294481454);
  EXPECT_PYTORCHS(nn::ReflectionPad3d(1)(x[0]), ({x}), -4.439531011441968, 25.850578343363875);
}

TEST(PadLayers, RefuseWhatIsWrong) {
  const auto expect = [&](const std::string& words, const std::function<void()>& f) {
    EXPECT_EQ(message_of(f).rfind(words, 0), 0u) << message_of(f);
  };
  expect("ReflectionPad2d: padding: got 3 numbers, expected one, or 4", [] { nn::ReflectionPad2d({1, 2, 3}); });
  expect("ConstantPad1d: padding: got 4 numbers, expected one, or 2", [] { nn::ConstantPad1d({1, 2, 3, 4}, 1.0); });
  expect("ReflectionPad1d: x: got 1 dims, expected 2 or 3", [] { nn::ReflectionPad1d(1)(ones({3})); });
  expect("CircularPad3d: x: got 3 dims, expected 4 or 5", [] { nn::CircularPad3d(1)(ones({3, 3, 3})); });
  expect("ZeroPad2d: x: got 1 dims, expected 2 at least", [] { nn::ZeroPad2d(1)(ones({3})); });
  expect("ZeroPad1d: x: got", [] { nn::ZeroPad1d(1)(Tensor()); });
  expect("pad: pad: got 3 beside a size of 3", [] { nn::ReflectionPad1d(3)(ones({2, 3})); });
  EXPECT_EQ(nn::ZeroPad1d(1)(ones({3})).sizes(), (std::vector<int64_t>{5}));
  EXPECT_EQ(nn::ConstantPad1d(2, 1.5)(ones({0}, kInt64)).dtype(), kInt64);
}

}  // namespace
}  // namespace ingot
