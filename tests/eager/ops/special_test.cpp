// Special functions beside PyTorch's numbers.
#include "eager/ops/special.h"

#include <limits>

#include "eager/autograd/autograd.h"
#include "eager/ops/near.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::near;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

Tensor points() { return tensor({-kInf, -30., -8., -1., -.3, 0., .2, 1., 6., kInf, kNan}, kFloat64); }

TEST(Special, ValuesAndTheirEnds) {
  EXPECT_TRUE(near(special::ndtr(points()),
                   tensor({0., 0., 6.10622663544e-16, 0.158655253931, 0.382088577811, 0.5, 0.579259709439,
                           0.841344746069, 0.999999999013, 1., kNan},
                          kFloat64),
                   1e-10));
  EXPECT_TRUE(near(special::log_ndtr(points()),
                   tensor({-kInf, -454.321243956, -35.0134371599, -1.84102164501, -0.962102818169, -0.69314718056,
                           -0.546004353723, -0.172753779023, -9.86587645524e-10, 0., kNan},
                          kFloat64),
                   1e-10));
  EXPECT_TRUE(
      near(special::entr(points()),
           tensor({-kInf, -kInf, -kInf, -kInf, -kInf, 0., 0.321887582487, 0., -10.7505568154, -kInf, kNan}, kFloat64),
           1e-10));
  EXPECT_TRUE(near(special::ndtr(tensor({0, 1})), tensor({0.5f, 0.84134471f})));
  EXPECT_TRUE(near(mvlgamma(tensor({2., 3.5}, kFloat64), 3), tensor({1.59631259114, 3.89589848215}, kFloat64), 1e-10));
  EXPECT_TRUE(near(special::multigammaln(tensor({3, 4}), 2), tensor({1.550195f, 3.5650978f})));
  EXPECT_THROW(mvlgamma(points(), 0), Error);
}

TEST(Special, ZeroTimesALogarithmOfOneMore) {
  const Tensor x = tensor({0., 0., 0., 2., 2., kNan}, kFloat64), y = tensor({-1., kInf, kNan, -1., .5, 0.}, kFloat64);
  EXPECT_TRUE(near(special::xlog1py(x, y), tensor({0., 0., kNan, -kInf, 0.810930216216, kNan}, kFloat64)));
  EXPECT_TRUE(near(special::xlog1py(x, 1e-9), x * 1e-9, 1e-15));
  EXPECT_TRUE(near(special::xlog1py(x, -1), tensor({0., 0., 0., -kInf, -kInf, kNan}, kFloat64)));
  EXPECT_TRUE(near(special::xlog1py(2, tensor({.5f})), tensor({0.81093019f})));
}

TEST(Special, QuantilesOfTheNormalDistribution) {
  EXPECT_TRUE(near(special::ndtri(tensor({0., 1e-100, 1e-5, .05, .1, .5, .7, .999, 1., -.1, 1.1, kNan}, kFloat64)),
                   tensor({-kInf, -21.273453561, -4.26489079392, -1.64485362695, -1.28155156554, 0.0, 0.524400512708,
                           3.09023230617, kInf, kNan, kNan, kNan},
                          kFloat64),
                   1e-11));
  const Tensor p = tensor({1e-300, 1e-20, .0999, .1001, .3, .8}, kFloat64);
  EXPECT_TRUE(near(special::ndtr(special::ndtri(p)) / p, ones_like(p), 1e-12));
  EXPECT_TRUE(near(special::ndtri(tensor({.05f, .5f})), tensor({-1.64485363f, 0.f})));
}

TEST(Special, ZetaOfHurwitz) {
  EXPECT_TRUE(
      near(special::zeta(tensor({1.5, 2., 3., 30., 1., .5, kNan, 2.}, kFloat64),
                         tensor({1., .5, 7., 2., 1., 1., 1., kNan}, kFloat64)),
           tensor({2.61237534869, 4.93480220054, 0.0117652364929, 9.3132743242e-10, kInf, kNan, kNan, kNan}, kFloat64),
           1e-11));
  EXPECT_TRUE(
      near(special::zeta(2, tensor({1.f, 0.f, -1.f, -1.5f})),
           tensor({1.64493407f, static_cast<float>(kInf), static_cast<float>(kInf), static_cast<float>(kNan)})));
  // mpmath's, to the last digits.
  EXPECT_TRUE(near(special::zeta(tensor({1.0001, 50., 3.7}, kFloat64), tensor({1., 333., 1e6}, kFloat64)) /
                       tensor({10000.577222947539, 5.515846508920769e-126, 2.3368822084190074e-17}, kFloat64),
                   ones({3}, kFloat64), 1e-14));
  const Tensor x = tensor({2.5, 4.}, kFloat64).requires_grad_(), q = tensor({.7, 3.}, kFloat64).requires_grad_();
  EXPECT_TRUE(autograd::gradcheck(
      [](const std::vector<Tensor>& v) { return std::vector<Tensor>{special::zeta(v[0], v[1])}; }, {x, q}));
}

TEST(Special, HaveGradients) {
  const Tensor x = tensor({.3, 1., 4.}, kFloat64).requires_grad_(),
               z = tensor({-9., -1.5, -.2, .7}, kFloat64).requires_grad_();
  const auto all = [](const std::vector<Tensor>& v) {
    return std::vector<Tensor>{special::entr(v[0]), special::xlog1py(v[0], v[0] + 1), mvlgamma(v[0] + 2, 3),
                               special::ndtr(v[1]), special::log_ndtr(v[1]),          special::ndtri(v[0] / 5)};
  };
  EXPECT_TRUE(autograd::gradcheck(all, {x, z}));
  EXPECT_TRUE(autograd::gradgradcheck(all, {x, z}, {}, 1e-6, 1e-4));
  // At the ends, PyTorch's: of no branch that is not taken.
  const Tensor zeros_and_more = tensor({0., .5, 0.}, kFloat64).requires_grad_();
  special::entr(zeros_and_more).sum().backward();
  EXPECT_TRUE(near(zeros_and_more.grad(), tensor({kInf, -0.30685281944, kInf}, kFloat64)));
  const Tensor weight = tensor({0., 0.}, kFloat64).requires_grad_();
  special::xlog1py(weight, tensor({-1., .5}, kFloat64)).sum().backward();
  EXPECT_TRUE(near(weight.grad(), tensor({0., 0.405465108108}, kFloat64)));
}

}  // namespace
}  // namespace ingot
