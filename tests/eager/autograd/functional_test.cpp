// Derivatives of functions as tensors, against PyTorch's numbers.
#include "eager/autograd/functional.h"

#include <cmath>

#include "support.h"

namespace ingot {
namespace {

using namespace autograd::functional;
using test::contains, test::error_of;

Tensor f64(std::vector<double> values, const IntList& sizes) { return tensor(std::move(values)).view(sizes); }
void expect_near(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.dtype(), expected.dtype());
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_TRUE(allclose(got, expected, 1e-13, 1e-13)) << got << "\nis not\n" << expected;
}
void expect_near(const Tensors& got, const Tensors& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) expect_near(got[i], expected[i]);
}

const Tensor& x() {
  static const Tensor t = f64({0.5, -1.2}, {2});
  return t;
}
const Tensor& y() {
  static const Tensor t = f64({0.3, 0.7, 1.1, -0.4}, {2, 2});
  return t;
}
/// A vector of two and a number.
Tensors two_of(const Tensors& in) { return {in[0].exp().matmul(in[1]), (in[0] * in[0]).sum() + in[1].sin().sum()}; }
Tensor number_of(const Tensors& in) { return in[0].exp().matmul(in[1]).square().sum() * in[0].sin().sum(); }
Tensor outer_of(const Tensor& t) { return outer(t.exp(), t); }
Tensors directions() { return {f64({1, -2}, {2}), f64({0.5, 0.25, -1, 2}, {2, 2})}; }

TEST(FunctionalDerivatives, Jacobian) {
  const std::vector<Tensors> j = jacobian(two_of, {x(), y()});
  ASSERT_EQ(j.size(), 2u);
  expect_near(j[0], {f64({0.4946163812100384, 0.3313136331034224, 1.1541048894900896, -0.12047768476488085}, {2, 2}),
                     f64({1.6487212707001282, 0, 0.30119421191220214, 0, 0, 1.6487212707001282, 0, 0.30119421191220214},
                         {2, 2, 2})});
  expect_near(j[1], {f64({1, -2.4}, {2}),
                     f64({0.955336489125606, 0.7648421872844885, 0.4535961214255773, 0.9210609940028851}, {2, 2})});
  expect_near(jacobian(outer_of, x()), f64({2.4730819060501923, 0, -1.9784655248401537, 1.6487212707001282,
                                            0.30119421191220214, 0.15059710595610107, 0, -0.06023884238244043},
                                           {2, 2, 2}));
  EXPECT_FALSE(j[0][0].requires_grad());
}

TEST(FunctionalDerivatives, Hessian) {
  const std::vector<Tensors> h = hessian(number_of, {x(), y()});
  ASSERT_EQ(h.size(), 2u);
  expect_near(h[0], {f64({1.90545701182808, 1.3998247027439463, 1.399824702743946, 1.6002198342751968}, {2, 2}),
                     f64({0.419186029040129, -0.2740305775136318, 0.3017675067943823, 0.23175671896766067,
                          0.4923909589124141, 1.4148424594167548, -0.13523741018983454, -0.023349184100366016},
                         {2, 2, 2})});
  expect_near(
      h[1], {f64({0.4191860290401286, 0.4923909589124143, -0.2740305775136318, 1.4148424594167546, 0.30176750679438225,
                  -0.13523741018983443, 0.2317567189676607, -0.023349184100366044},
                 {2, 2, 2}),
             f64({-2.460662362222587, 0, -0.44952247183474897, 0, 0, -2.460662362222587, 0, -0.44952247183474897,
                  -0.4495224718347489, 0, -0.0821203492956681, 0, 0, -0.4495224718347489, 0, -0.0821203492956681},
                 {2, 2, 2, 2})});
  // A result of one element may have dims.
  expect_near(hessian([](const Tensor& t) { return t.pow(3).sum().reshape({1}); }, x()),
              f64({3, 0, 0, -7.199999999999999}, {2, 2}));
}

TEST(FunctionalDerivatives, Products) {
  const auto [outputs, gradients] = vjp(two_of, {x(), y()}, {f64({1, 3}, {2}), tensor(-2.0).to(kFloat64)});
  expect_near(outputs, {f64({0.8259300143134608, 1.0336272047252089}, {2}), f64({3.1315269116518154}, {})});
  expect_near(gradients,
              {f64({1.956931049680307, 4.769880578808779}, {2}),
               f64({-0.26195170755108377, 3.4164794375314074, -0.6059980309389525, -0.9385393522691639}, {2, 2})});
  expect_near(jvp(two_of, {x(), y()}, directions()).second,
              {f64({0.3551555384410556, 2.4096290005192875}, {2}), f64({7.857404657964118}, {})});
  const Tensors second = {
      f64({-0.591361092377217, -1.1121698295069493}, {2}),
      f64({-1.3464045980612442, -4.617926030572285, 0.42960144055234495, 0.0018337706183694236}, {2, 2})};
  const auto [value, products] = vhp(number_of, {x(), y()}, directions());
  expect_near(value, f64({-0.7923206479038204}, {}));
  expect_near(products, second);
  expect_near(hvp(number_of, {x(), y()}, directions()).second, second);

  expect_near(vjp(outer_of, x(), ones({2, 2}, kFloat64)).second, f64({0.7958105931222408, 1.7390795342737888}, {2}));
  expect_near(jvp(outer_of, x(), f64({1, 2}, {2})).second,
              f64({2.4730819060501923, 1.3189770165601027, 0.6023884238244043, -0.12047768476488085}, {2, 2}));
  auto cube = [](const Tensor& t) { return t.pow(3).sum(); };
  expect_near(vhp(cube, x(), f64({1, 2}, {2})).second, f64({3, -14.4}, {2}));
  expect_near(hvp(cube, x(), f64({1, 2}, {2})).second, f64({3, -14.4}, {2}));
  // One element needs no vector.
  const Tensor one = f64({2}, {1});
  auto square = [](const Tensor& t) { return t * t; };
  expect_near(vjp(square, one).second, f64({4}, {1}));
  expect_near(jvp(square, one).second, f64({4}, {1}));
  expect_near(vhp(square, one).second, f64({2}, {1}));
}

TEST(FunctionalDerivatives, OfConstantsAndOfNothing) {
  auto constant = [](const Tensor&) { return ones({3}, kFloat64); };
  expect_near(jacobian(constant, x()), zeros({3, 2}, kFloat64));
  expect_near(vjp(constant, x(), ones({3}, kFloat64)).second, zeros({2}, kFloat64));
  expect_near(jvp(constant, x(), ones({2}, kFloat64)).second, zeros({3}, kFloat64));
  auto sum = [](const Tensor& t) { return t.sum(); };
  expect_near(hessian(sum, x()), zeros({2, 2}, kFloat64));
  expect_near(vhp(sum, x(), ones({2}, kFloat64)).second, zeros({2}, kFloat64));
  expect_near(hvp(sum, x(), ones({2}, kFloat64)).second, zeros({2}, kFloat64));
  const std::vector<Tensors> h = hessian([](const Tensors& in) { return in[0].square().sum(); }, {x(), y()});
  EXPECT_EQ(h[1][0].sizes(), zeros({2, 2, 2}).sizes());
  const Tensor empty = zeros({0}, kFloat64);
  EXPECT_EQ(jacobian([](const Tensor& t) { return t * 2; }, empty).sizes(), zeros({0, 0}).sizes());
  EXPECT_EQ(jacobian([](const Tensor& t) { return t.narrow(0, 0, 0); }, x()).sizes(), zeros({0, 2}).sizes());
  EXPECT_EQ(jacobian([](const Tensor& t) { return t.sum(); }, empty).sizes(), zeros({0}).sizes());
}

TEST(FunctionalDerivatives, HaveATapeWhereItIsAskedFor) {
  const Tensor leaf = x().clone().requires_grad_(), other = y().clone().requires_grad_();
  for (bool on : {false, true}) {
    EXPECT_EQ(jacobian(outer_of, leaf, on).requires_grad(), on);
    EXPECT_EQ(hessian(number_of, {leaf, other}, on)[0][1].requires_grad(), on);
    EXPECT_EQ(vjp(outer_of, leaf, ones({2, 2}, kFloat64), on).second.requires_grad(), on);
    EXPECT_EQ(vjp(outer_of, leaf, ones({2, 2}, kFloat64), on).first.requires_grad(), on);
    EXPECT_EQ(jvp(outer_of, leaf, ones({2}, kFloat64), on).second.requires_grad(), on);
    EXPECT_EQ(vhp(number_of, {leaf, other}, directions(), on).second[0].requires_grad(), on);
    EXPECT_EQ(hvp(number_of, {leaf, other}, directions(), on).second[0].requires_grad(), on);
  }
  EXPECT_FALSE(leaf.grad().defined());
  // Through the tape: the gradient of the trace of a hessian.
  const Tensor trace = hessian([](const Tensor& t) { return t.pow(4).sum(); }, leaf, true).diagonal().sum();
  expect_near(autograd::grad({trace}, {leaf})[0], 24 * x());
  // Whether gradients are recorded outside makes no difference.
  const NoGradGuard off;
  expect_near(jacobian(outer_of, leaf), jacobian(outer_of, x()));
}

TEST(FunctionalDerivatives, Errors) {
  auto text = [](const std::function<void()>& f) { return error_of(f); };
  EXPECT_TRUE(contains(text([] {
                         jacobian(outer_of, tensor({1, 2}));
                       }),
                       "jacobian: inputs: got number 0, i64[2], expected tensors of floating-point dtypes"));
  EXPECT_TRUE(contains(text([] { hessian(outer_of, x()); }),
                       "hessian: function: got f64[2, 2], expected a result of one element"));
  EXPECT_TRUE(contains(text([] { vjp(outer_of, x()); }), "vjp: v: got none, expected 1, the first like f64[2, 2]"));
  EXPECT_TRUE(
      contains(text([] { vjp(outer_of, x(), ones({2}, kFloat64)); }), "vjp: v: got f64[2], expected f64[2, 2]"));
  EXPECT_TRUE(contains(text([] {
                         jvp(two_of, {x(), y()}, {x()});
                       }),
                       "jvp: v: got 1 tensors, expected 2, the first like f64[2]"));
  EXPECT_TRUE(contains(text([] { jacobian([](const Tensor&) { return Tensor(); }, x()); }), "jacobian"));
  EXPECT_TRUE(contains(text([] { jacobian([](const Tensor& t) { return t > 0; }, x()); }),
                       "jacobian: function: got bool[2] as output 0, expected tensors of floating-point dtypes"));
  EXPECT_TRUE(contains(text([] { jacobian(two_of, Tensors()); }), "jacobian: inputs: got none"));
  const std::string strict = "got one whose ";
  EXPECT_TRUE(contains(text([] { jacobian([](const Tensor&) { return ones({1}); }, x(), false, true); }), strict));
  EXPECT_TRUE(contains(text([] { hessian([](const Tensor& t) { return t.sum(); }, x(), false, true); }), strict));
  EXPECT_TRUE(contains(text([] { jvp([](const Tensor&) { return ones({1}); }, x(), x(), false, true); }), strict));
  EXPECT_TRUE(contains(text([] { vhp([](const Tensor& t) { return t.sum(); }, x(), x(), false, true); }), strict));
}

}  // namespace
}  // namespace ingot
