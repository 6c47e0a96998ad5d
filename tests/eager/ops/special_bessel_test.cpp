// Bessel functions beside PyTorch's and mpmath's numbers.
#include <limits>

#include "eager/autograd/autograd.h"
#include "eager/ops/near.h"
#include "eager/ops/random.h"
#include "eager/ops/special.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::near;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

TEST(Bessel, Modified) {
  const Tensor x = tensor({-20., -3., 0., .5, 8., 30.}, kFloat64);
  EXPECT_TRUE(near(special::i0(x),
                   tensor({43558282.5596, 4.88079258587, 1.0, 1.06348337074, 427.564115722, 781672297824.0}, kFloat64),
                   1e-11));
  EXPECT_TRUE(near(
      special::i1(x),
      tensor({-42454973.3851, -3.9533702174, 0.0, 0.257894305391, 399.873136783, 768532038939.0}, kFloat64), 1e-11));
  EXPECT_TRUE(
      near(special::i0e(x),
           tensor({0.0897803118848, 0.243000354162, 1.0, 0.645035270449, 0.143431781857, 0.0731459464822}, kFloat64),
           1e-11));
  EXPECT_TRUE(
      near(special::i1e(x),
           tensor({-0.0875062221833, -0.196826713297, 0.0, 0.156420803185, 0.134142493293, 0.0719163305986}, kFloat64),
           1e-11));
}

// These are mpmath's: PyTorch's own are off by 2e-9 at 8.
TEST(Bessel, OfBothKinds) {
  const Tensor x = tensor({-20., -3., 0., .5, 8., 30.}, kFloat64), y = tensor({0., .5, 3., 8., 30.}, kFloat64);
  EXPECT_TRUE(near(
      special::bessel_j0(x),
      tensor({0.1670246643406, -0.2600519549019, 1., 0.9384698072408, 0.1716508071376, -0.08636798358104}, kFloat64),
      1e-12));
  EXPECT_TRUE(near(
      special::bessel_j1(x),
      tensor({-0.06683312417585, -0.3390589585259, 0., 0.2422684576749, 0.2346363468539, -0.1187510626166}, kFloat64),
      1e-12));
  EXPECT_TRUE(near(special::bessel_y0(y),
                   tensor({-kInf, -0.4445187335067, 0.3768500100128, 0.2235214893876, -0.1172957316867}, kFloat64),
                   1e-12));
  EXPECT_TRUE(near(special::bessel_y1(y),
                   tensor({-kInf, -1.47147239267, 0.3246744247918, -0.1580604617312, 0.08442557066175}, kFloat64),
                   1e-12));
}

/// By the last bits: 8 ulp of what mpmath gives.
TEST(Bessel, HaveAllDigits) {
  const Tensor x = tensor({.1, 7.99, 8.01, 100.}, kFloat64);
  const auto digits = [&](const Tensor& got, const Tensor& expected) {
    return near(got / expected, ones_like(x), 2e-15);
  };
  EXPECT_TRUE(
      digits(special::i0(x),
             tensor({1.0025015629340956, 423.5842036746737, 431.5817860520924, 1.0737517071310738e+42}, kFloat64)));
  EXPECT_TRUE(
      digits(special::i1(x),
             tensor({0.050062526047092694, 396.1152262074013, 403.6669399977041, 1.0683693903381625e+42}, kFloat64)));
  EXPECT_TRUE(
      digits(special::i0e(x),
             tensor({0.9071009257823011, 0.14352476537933484, 0.14333897941113852, 0.03994437929909668}, kFloat64)));
  EXPECT_TRUE(
      digits(special::i1e(x),
             tensor({0.045298446808809324, 0.134217339578281, 0.13406776900984482, 0.03974415302513025}, kFloat64)));
  EXPECT_TRUE(
      digits(special::bessel_j0(x),
             tensor({0.99750156206604, 0.17399001312793258, 0.16929736911054297, 0.019985850304223122}, kFloat64)));
  EXPECT_TRUE(
      digits(special::bessel_j1(x),
             tensor({0.049937526036242, 0.23320071425350178, 0.236047103630834, -0.07714535201411216}, kFloat64)));
  EXPECT_TRUE(
      digits(special::bessel_y0(x),
             tensor({-1.5342386513503667, 0.22192874178576452, 0.22508990929357914, -0.07724431336508315}, kFloat64)));
  EXPECT_TRUE(digits(
      special::bessel_y1(x),
      tensor({-6.4589510947020266, -0.16048695141166464, -0.15562145403809824, -0.020372312002759792}, kFloat64)));
  // Up to where the result itself ends.
  EXPECT_TRUE(near(special::i0(tensor({713.}, kFloat64)) / 6.705128263670996e+307, ones({1}, kFloat64), 2e-15));
}

// Which are computed in pieces.
TEST(Bessel, OfManyElementsAreThoseOfFew) {
  manual_seed(1);
  const Tensor x = randn({60'000, 3}) * 5, many = special::bessel_j0(x);
  EXPECT_EQ(many.sizes(), x.sizes());
  for (int64_t begin : {0, 8'190, 16'380, 59'000})
    EXPECT_TRUE(equal(many.narrow(0, begin, 1'000), special::bessel_j0(x.narrow(0, begin, 1'000)))) << begin;
}

TEST(Bessel, AtTheEnds) {
  const Tensor x = tensor({-kInf, kInf, kNan, 800.}, kFloat64);
  EXPECT_TRUE(near(special::i0(x), tensor({kInf, kInf, kNan, kInf}, kFloat64)));
  EXPECT_TRUE(near(special::i1(x), tensor({-kInf, kInf, kNan, kInf}, kFloat64)));
  EXPECT_TRUE(near(special::i0e(x).narrow(0, 0, 3), tensor({0., 0., kNan}, kFloat64)));
  EXPECT_TRUE(near(special::i1e(x).narrow(0, 0, 3), tensor({0., 0., kNan}, kFloat64)));
  EXPECT_TRUE(near(special::bessel_j0(x).narrow(0, 0, 3), tensor({0., 0., kNan}, kFloat64)));
  EXPECT_TRUE(near(special::bessel_y1(x).narrow(0, 0, 3), tensor({kNan, 0., kNan}, kFloat64)));
  EXPECT_TRUE(near(special::i0(tensor({int64_t{2}})), tensor({2.2795854f})));
  EXPECT_EQ(special::i0e(zeros({0, 3}, kBFloat16)).dtype(), kBFloat16);
  EXPECT_THROW(special::i0(Tensor()), Error);
}

TEST(Bessel, HaveGradients) {
  const Tensor x = tensor({-3., .4, 2., 9.}, kFloat64).requires_grad_(),
               y = tensor({.4, 2., 9.}, kFloat64).requires_grad_();
  const auto all = [](const std::vector<Tensor>& v) {
    return std::vector<Tensor>{i0(v[0]),
                               special::i1(v[0]),
                               special::i0e(v[0]),
                               special::i1e(v[0]),
                               special::bessel_j0(v[0]),
                               special::bessel_j1(v[0]),
                               special::bessel_y0(v[1]),
                               special::bessel_y1(v[1])};
  };
  EXPECT_TRUE(autograd::gradcheck(all, {x, y}, 1e-6, 1e-4));
  EXPECT_TRUE(autograd::gradgradcheck(all, {x, y}, {}, 1e-6, 1e-3));
  const Tensor zero = zeros({1}, kFloat64).requires_grad_();
  (special::i1(zero) + special::i1e(zero) + special::bessel_j1(zero)).sum().backward();
  EXPECT_TRUE(near(zero.grad(), tensor({1.5}, kFloat64), 1e-15));
}

// mpmath's numbers.
TEST(Bessel, ModifiedOfTheSecondKind) {
  const Tensor x = tensor({0.01, 0.5, 1.9999, 2.0001, 3.5, 20., 700.}, kFloat64);
  EXPECT_TRUE(near(special::modified_bessel_k0(x) /
                       tensor({4.7212447301610949, 0.92441907122766586, 0.11390786025689361, 0.11387988708044137,
                               0.019598897170368489, 5.7412378153365243e-10, 4.6697764316853769e-306},
                              kFloat64),
                   ones({7}, kFloat64), 1e-14));
  EXPECT_TRUE(near(special::modified_bessel_k1(x) /
                       tensor({99.973894118296246, 1.6564411200033009, 0.13988426583169102, 0.13984750046881139,
                               0.022239392925923834, 5.8830579695570382e-10, 4.6731107967079661e-306},
                              kFloat64),
                   ones({7}, kFloat64), 1e-14));
  EXPECT_TRUE(near(special::scaled_modified_bessel_k0(x),
                   tensor({4.7686940285444619, 1.5241093857739095, 0.84158740659860283, 0.84154902487215156,
                           0.64902633768868843, 0.27854487665718222, 0.047362369454613572},
                          kFloat64),
                   1e-14));
  EXPECT_TRUE(near(special::scaled_modified_bessel_k1(x),
                   tensor({100.97864845824005, 2.7310097082117857, 1.0335093314872253, 1.0334443655287813,
                           0.73646754802891241, 0.28542549694072645, 0.047396187653494544},
                          kFloat64),
                   1e-14));
  const Tensor ends = tensor({0., -1., kInf, kNan}, kFloat64);
  for (auto f : {special::modified_bessel_k0, special::modified_bessel_k1, special::scaled_modified_bessel_k0,
                 special::scaled_modified_bessel_k1}) {
    EXPECT_TRUE(near(f(ends), tensor({kInf, kNan, 0., kNan}, kFloat64), 0));
    EXPECT_EQ(f(tensor({1, 2})).dtype(), kFloat32);
    EXPECT_EQ(f(zeros({0}, kFloat16)).dtype(), kFloat16);
    const Tensor at = tensor({0.3, 1.5, 2.5, 9.}, kFloat64).requires_grad_();
    const auto listed = [f](const std::vector<Tensor>& v) { return std::vector<Tensor>{f(v[0])}; };
    EXPECT_TRUE(autograd::gradcheck(listed, {at}));
    EXPECT_TRUE(autograd::gradgradcheck(listed, {at}));
  }
}

// mpmath's numbers.
TEST(Bessel, Airy) {
  const Tensor x = tensor({-12.5, -4.5, -3.9, -2., -0.25, 0., 0.5, 1.9, 2.1, 4., 25., 100.}, kFloat64);
  const Tensor expected =
      tensor({-0.27627456138116025, 0.29215278105595947, -0.14741990564074426, 0.2274074282016856, 0.41872461427545292,
              0.35502805388781724, 0.23169360648083349, 0.040594420031529502, 0.029952602115866522,
              9.5156385120480187e-4, 8.1160268246913867e-38, 2.6344821520881845e-291},
             kFloat64);
  EXPECT_TRUE(near(special::airy_ai(x) / expected, ones({12}, kFloat64), 1e-13));
  EXPECT_TRUE(near(special::airy_ai(tensor({0.5f})), tensor({0.231693606f}), 0));
  EXPECT_TRUE(
      near(special::airy_ai(tensor({kInf, -kInf, kNan, 1e4}, kFloat64)), tensor({kNan, kNan, kNan, 0.}, kFloat64), 0));
  EXPECT_EQ(special::airy_ai(tensor({1, 2})).dtype(), kFloat32);
  EXPECT_EQ(special::airy_ai(zeros({0}, kBFloat16)).dtype(), kBFloat16);
  const Tensor leaf = ones({2}).requires_grad_();
  EXPECT_NE(test::message_of([&] { special::airy_ai(leaf).sum().backward(); }).find("there is no gradient"),
            std::string::npos);
}

TEST(Bessel, Spherical) {
  const Tensor x = tensor({-3., 1e-3, 0.05, 0.5, 10., 0., kInf, kNan}, kFloat64).requires_grad_();
  const Tensor y = special::spherical_bessel_j0(x);
  EXPECT_TRUE(near(y.detach(),
                   tensor({0.047040002686622407, 0.99999983333334167, 0.99958338541356658, 0.958851077208406,
                           -0.054402111088936981, 1., 0., kNan},
                          kFloat64),
                   1e-15));
  y.narrow(0, 0, 6).sum().backward();
  EXPECT_TRUE(near(x.grad().narrow(0, 0, 6),
                   tensor({0.34567749976235595, -0.0003333333000000012, -0.016662500372006588, -0.16253703063606657,
                           -0.078466941798751547, 0.},
                          kFloat64),
                   1e-14));
}

}  // namespace
}  // namespace ingot
