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

TEST(Special, HaveGradients) {
  const Tensor x = tensor({.3, 1., 4.}, kFloat64).requires_grad_(),
               z = tensor({-9., -1.5, -.2, .7}, kFloat64).requires_grad_();
  const auto all = [](const std::vector<Tensor>& v) {
    return std::vector<Tensor>{special::entr(v[0]), special::xlog1py(v[0], v[0] + 1), mvlgamma(v[0] + 2, 3),
                               special::ndtr(v[1]), special::log_ndtr(v[1])};
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
