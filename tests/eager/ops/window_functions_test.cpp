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

}  // namespace
}  // namespace ingot
