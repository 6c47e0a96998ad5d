// Orthogonal polynomials beside PyTorch's numbers.
#include "eager/ops/polynomials.h"

#include <limits>

#include "eager/ops/near.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;
using test::near;

TEST(Polynomials, OfDegree4) {
  const Tensor x = tensor({-1.5, -0.3, 0., 0.7, 1., 2.5}, kFloat64);
  const auto expect = [&](Tensor (*f)(const OperandArg&, const OperandArg&), const std::vector<double>& values) {
    EXPECT_TRUE(near(f(x, 4), tensor(values), 1e-10));
  };
  expect(special::chebyshev_polynomial_t, {23.5, 0.3448, 1.0, -0.9992, 1.0, 263.5});
  expect(special::chebyshev_polynomial_u, {55.0, 0.0496, 1.0, -1.0384, 5.0, 551.0});
  expect(special::chebyshev_polynomial_v, {76.0, -0.9344, 1.0, -0.9824, 1.0, 436.0});
  expect(special::chebyshev_polynomial_w, {34.0, 1.0336, 1.0, -1.0944, 9.0, 666.0});
  expect(special::shifted_chebyshev_polynomial_t, {1921.0, 32.9488, 1.0, -0.0752, 1.0, 1921.0});
  expect(special::shifted_chebyshev_polynomial_u, {3905.0, 75.1376, 5.0, -0.5104, 5.0, 3905.0});
  expect(special::shifted_chebyshev_polynomial_v, {4401.0, 101.5056, 9.0, 0.5776, 1.0, 3409.0});
  expect(special::shifted_chebyshev_polynomial_w, {3409.0, 48.7696, 1.0, -1.5984, 9.0, 4401.0});
  expect(special::hermite_polynomial_h, {-15.0, 7.8096, 12.0, -7.6784, -20.0, 337.0});
  expect(special::hermite_polynomial_he, {-5.4375, 2.4681, 3.0, 0.3001, -2.0, 4.5625});
  expect(special::laguerre_polynomial_l, {16.2109375, 2.4883375, 1.0, -0.5486625, -0.625, 0.9609375});
  expect(special::legendre_polynomial_p, {14.0859375, 0.0729375, 0.375, -0.4120625, 1.0, 147.8359375});
}

TEST(Polynomials, DegreesDtypesAndErrors) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Tensor degrees = tensor({-1., 0., 1.9, 2., kNan}, kFloat64);
  EXPECT_TRUE(near(special::legendre_polynomial_p(0.5, degrees), tensor({0., 1., 0.5, -0.125, kNan}, kFloat64), 0));
  EXPECT_TRUE(near(special::chebyshev_polynomial_t(ones({2, 1}), tensor({1, 2, 3})), ones({2, 3}), 0));
  EXPECT_EQ(special::hermite_polynomial_h(tensor({1, 2}), tensor({1, 2})).dtype(), kFloat32);
  EXPECT_EQ(special::hermite_polynomial_h(ones({0}, kFloat64), 3).sizes(), IntArrayRef(Ints{0}));
  // Odd ones are exactly 0 at 0.
  EXPECT_EQ(special::chebyshev_polynomial_t(0.f, tensor({7})).item<float>(), 0);
  const Tensor x = ones({2}).requires_grad_();
  EXPECT_EQ(message_of([&] {
              special::laguerre_polynomial_l(x, 2).sum().backward();
            }).rfind("special::laguerre_polynomial_l: x: got a tensor that requires grad", 0),
            0u);
  EXPECT_NE(
      message_of([] { special::laguerre_polynomial_l(ones({2}), ones({3})); }).find("special::laguerre_polynomial_l"),
      std::string::npos);
}

}  // namespace
}  // namespace ingot
