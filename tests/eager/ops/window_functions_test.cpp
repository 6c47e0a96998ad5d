// Windows beside PyTorch's numbers.
#include "eager/ops/window_functions.h"

#include "eager/ops/near.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;
using test::near;

TEST(WindowFunctions, PeriodicAndSymmetric) {
  const auto of = [](std::vector<double> values) { return tensor(values); };
  EXPECT_TRUE(near(hann_window(6, kFloat64), of({0.0, 0.25, 0.75, 1.0, 0.75, 0.25}), 1e-14));
  EXPECT_TRUE(near(hann_window(5, false, kFloat64), of({0.0, 0.5, 1.0, 0.5, 0.0}), 1e-14));
  EXPECT_TRUE(near(hamming_window(6, kFloat64), of({0.08, 0.31, 0.77, 1.0, 0.77, 0.31}), 1e-14));
  EXPECT_TRUE(near(hamming_window(5, false, kFloat64), of({0.08, 0.54, 1.0, 0.54, 0.08}), 1e-14));
  EXPECT_TRUE(near(hamming_window(4, true, 0.6, 0.3, kFloat64), of({0.3, 0.6, 0.9, 0.6}), 1e-14));
  EXPECT_TRUE(near(blackman_window(6, kFloat64), of({0.0, 0.13, 0.63, 1.0, 0.63, 0.13}), 1e-14));
  EXPECT_TRUE(near(blackman_window(5, false, kFloat64), of({0.0, 0.34, 1.0, 0.34, 0.0}), 1e-14));
  EXPECT_TRUE(near(bartlett_window(6, kFloat64), of({0.0, 1 / 3., 2 / 3., 1.0, 2 / 3., 1 / 3.}), 1e-14));
  EXPECT_TRUE(near(bartlett_window(5, false, kFloat64), of({0.0, 0.5, 1.0, 0.5, 0.0}), 1e-14));
  EXPECT_TRUE(near(kaiser_window(6, kFloat64),
                   of({5.27734413201e-05, 0.0547593641312, 0.518844721672, 1.0, 0.518844721672, 0.0547593641312}),
                   1e-11));
  EXPECT_TRUE(near(kaiser_window(5, false, 4, kFloat64),
                   of({0.0884805260764, 0.633431779756, 1.0, 0.633431779756, 0.0884805260764}), 1e-11));
}

TEST(WindowFunctions, ShortOnesAndOptions) {
  for (bool periodic : {false, true}) {
    EXPECT_EQ(hann_window(0, periodic).sizes(), IntArrayRef(Ints{0}));
    EXPECT_EQ(kaiser_window(1, periodic).item<float>(), 1);
  }
  EXPECT_EQ(blackman_window(3).dtype(), kFloat32);
  EXPECT_TRUE(near(hamming_window(3, kBFloat16), hamming_window(3).to(kBFloat16), 0));
  EXPECT_TRUE(bartlett_window(3, requires_grad()).requires_grad());
  EXPECT_NE(message_of([] { hann_window(-1); }).find("hann_window: window_length: got -1, expected no negative number"),
            std::string::npos);
  EXPECT_NE(message_of([] { hann_window(3, kInt64); }).find("hann_window: dtype: got i64, expected a floating dtype"),
            std::string::npos);
}

TEST(SignalWindows, SymmetricAndPeriodic) {
  namespace windows = signal_windows;
  const auto expect = [](const Tensor& got, std::vector<double> values) {
    EXPECT_TRUE(near(got, tensor(values), 1e-11));
  };
  expect(windows::bartlett(5, true, kFloat64), {0.0, 0.5, 1.0, 0.5, 0.0});
  expect(windows::bartlett(5, false, kFloat64), {0.0, 0.4, 0.8, 0.8, 0.4});
  expect(windows::blackman(5, true, kFloat64), {0.0, 0.34, 1.0, 0.34, 0.0});
  expect(windows::cosine(5, true, kFloat64), {0.309016994375, 0.809016994375, 1.0, 0.809016994375, 0.309016994375});
  expect(windows::cosine(5, false, kFloat64),
         {0.258819045103, 0.707106781187, 0.965925826289, 0.965925826289, 0.707106781187});
  expect(windows::exponential(5, {}, 2, true, kFloat64),
         {0.367879441171, 0.606530659713, 1.0, 0.606530659713, 0.367879441171});
  expect(windows::exponential(5, {}, 2, false, kFloat64),
         {0.28650479686, 0.472366552741, 0.778800783071, 0.778800783071, 0.472366552741});
  expect(windows::exponential(4, 1, 2, false, kFloat64), {0.606530659713, 1.0, 0.606530659713, 0.367879441171});
  expect(windows::gaussian(5, 1.5, true, kFloat64),
         {0.411112290507, 0.800737402917, 1.0, 0.800737402917, 0.411112290507});
  expect(windows::gaussian(5, 1.5, false, kFloat64),
         {0.249352208777, 0.606530659713, 0.945959468907, 0.945959468907, 0.606530659713});
  expect(windows::general_cosine(5, {.5, .3, .2}, true, kFloat64), {0.4, 0.3, 1.0, 0.3, 0.4});
  expect(windows::general_cosine(5, {.5, .3, .2}, false, kFloat64),
         {0.4, 0.245491502813, 0.804508497187, 0.804508497187, 0.245491502813});
  expect(windows::general_hamming(5, .6, true, kFloat64), {0.2, 0.6, 1.0, 0.6, 0.2});
  expect(windows::hamming(5, false, kFloat64), {0.08, 0.397852182588, 0.912147817412, 0.912147817412, 0.397852182588});
  expect(windows::hann(5, false, kFloat64), {0.0, 0.345491502813, 0.904508497187, 0.904508497187, 0.345491502813});
  expect(windows::kaiser(5, 4, true, kFloat64), {0.088480526076, 0.633431779756, 1.0, 0.633431779756, 0.088480526076});
  expect(windows::kaiser(5, 4, false, kFloat64),
         {0.088480526076, 0.508515915392, 0.932711570032, 0.932711570032, 0.508515915392});
  expect(windows::nuttall(5, true, kFloat64), {0.0003628, 0.2269824, 1.0, 0.2269824, 0.0003628});
}

TEST(SignalWindows, ShortOnesAndErrors) {
  namespace windows = signal_windows;
  for (bool sym : {true, false}) {
    EXPECT_EQ(windows::hann(0, sym).sizes(), IntArrayRef(Ints{0}));
    EXPECT_EQ(windows::gaussian(1, 1, sym).item<float>(), 1);
    EXPECT_EQ(windows::cosine(1, sym).item<float>(), 1);
  }
  EXPECT_EQ(windows::nuttall(3).dtype(), kFloat32);
  const auto expect = [](const std::string& words, const std::function<void()>& f) {
    EXPECT_EQ(message_of(f).rfind(words, 0), 0u) << message_of(f);
  };
  expect("signal_windows::general_cosine: M: got -1, expected no negative number", [&] { windows::hann(-1); });
  expect("signal_windows::cosine: dtype: got i64, expected a floating dtype",
         [&] { windows::cosine(3, true, kInt64); });
  expect("signal_windows::gaussian: std: got 0", [&] { windows::gaussian(3, 0); });
  expect("signal_windows::exponential: tau: got -1", [&] { windows::exponential(3, {}, -1); });
  expect("signal_windows::exponential: center: got 1", [&] { windows::exponential(3, 1); });
  expect("signal_windows::kaiser: beta: got -1", [&] { windows::kaiser(3, -1); });
  expect("signal_windows::general_cosine: a: got an empty list", [&] { windows::general_cosine(3, {}); });
}

}  // namespace
}  // namespace ingot
