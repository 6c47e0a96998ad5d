// weight_norm and spectral_norm against PyTorch 2.15 in double: parameters and inputs are sines of their positions,
// results are compared by a weighted sum.
#include "eager/nn/parametrizations.h"

#include <gtest/gtest.h>

#include <cmath>

#include "eager/autograd/checkpoint.h"
#include "eager/nn/functional.h"
#include "eager/nn/layers.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

using nn::utils::parametrizations::spectral_norm;
using nn::utils::parametrizations::weight_norm;
using test::message_of;
namespace F = nn::functional;

Tensor positions(const IntList& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes.items()) count *= size;
  return arange(count).to(kFloat64).reshape(sizes);
}
Tensor input(const IntList& sizes) { return (positions(sizes) * 0.61).cos(); }
Tensor weighed(const Tensor& y) { return (y * (positions(y.sizes().vec()) * 0.3).sin()).sum(); }
template <class M>
M filled(M module) {
  const NoGradGuard no_grad;
  module->to(kFloat64);
  for (const Tensor& p : module->parameters()) p.copy_((positions(p.sizes().vec()) * 0.37).sin() + 0.1);
  return module;
}
void expect_near(const Tensor& got, double expected) {
  EXPECT_NEAR(weighed(got.detach()).item<double>(), expected, 1e-12 * std::max(1.0, std::abs(expected)));
}
std::vector<std::string> names_of(nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, t] : module.state_dict()) names.push_back(name);
  return names;
}

template <class M>
void expect_weight_norm(const M& layer, const Tensor& x, std::optional<int64_t> dim, double result, double lengths,
                        double directions) {
  SCOPED_TRACE(std::string(M::module_type()) + " " + std::to_string(dim.value_or(-1)));
  const nn::WeightNorm<M> norm = weight_norm(layer, dim);
  const Tensor y = norm(x);
  expect_near(y, result);
  weighed(y).backward();
  expect_near(norm->original0.grad(), lengths);
  expect_near(norm->original1.grad(), directions);
  EXPECT_TRUE(allclose(norm->weight(), layer->weight, 1e-14, 1e-14));
  EXPECT_TRUE(allclose(norm->layer_of_now()(x), y, 1e-14, 1e-14));
  EXPECT_TRUE(norm->layer_of_now()->weight.is_leaf() && norm->layer_of_now()->weight.requires_grad());
}

TEST(WeightNorm, HasPyTorchsNumbersAndNames) {
  const auto linear = filled(nn::Linear(3, 4));
  expect_weight_norm(linear, input({2, 3}), 0, 1.23482603059189, 0.057707331736851275, -0.05446600860358547);
  expect_weight_norm(linear, input({2, 3}), 1, 1.23482603059189, -0.7709098991962673, -0.4016282076058528);
  expect_weight_norm(linear, input({2, 3}), {}, 1.23482603059189, 0, -0.3133964327449059);
  const auto conv = filled(nn::Conv2d(2, 3, 2));
  expect_weight_norm(conv, input({1, 2, 4, 4}), 0, -2.4096087169494007, -0.6180187739243738, -4.400845827493057);
  expect_weight_norm(conv, input({1, 2, 4, 4}), 1, -2.4096087169494007, -0.6279616669976301, -1.685597883957306);
  const auto transposed = filled(nn::ConvTranspose1d(2, 3, 2));
  expect_weight_norm(transposed, input({1, 2, 4}), 0, -0.47056646867432983, -0.8719836688199241, -2.696477563795617);
  expect_weight_norm(transposed, input({1, 2, 4}), 1, -0.47056646867432983, -0.004426829158630463, -2.4055181568621);

  nn::WeightNorm<nn::Linear> norm{linear};
  EXPECT_EQ(names_of(*norm), (std::vector<std::string>{"bias", "parametrizations.weight.original0",
                                                       "parametrizations.weight.original1"}));
  EXPECT_EQ(norm->original0.sizes(), zeros({4, 1}).sizes());
  EXPECT_EQ(weight_norm(linear, std::nullopt)->original0.dim(), 0);
  EXPECT_TRUE(linear->weight.defined());  // the layer stays as it is
  EXPECT_FALSE(norm->layer.bias.is_same(linear->bias));
}

TEST(WeightNorm, IsAModuleAsOthers) {
  nn::Sequential net(weight_norm(nn::Linear(3, 4)), nn::ReLU(), nn::WeightNorm<nn::Embedding>(nn::Embedding(5, 2), 0));
  EXPECT_EQ(net->named_parameters()[2].first, "0.parametrizations.weight.original1");
  EXPECT_EQ(net->parameters().size(), 5u);
  for (const Tensor& p : net->parameters()) EXPECT_TRUE(p.requires_grad());
  nn::Sequential other = net.clone();
  EXPECT_FALSE(other->parameters()[0].is_same(net->parameters()[0]));
  {
    const NoGradGuard off;
    for (const Tensor& p : other->parameters()) p.zero_().add_(1);
  }
  net->load_state_dict(other->state_dict());
  for (const Tensor& p : net->parameters()) EXPECT_TRUE(equal(p, ones(p.sizes().vec())));
  net->to(kFloat64);
  EXPECT_EQ(nn::WeightNorm<nn::Bilinear>(nn::Bilinear(1, 1, 1))(ones({1, 1}), ones({1, 1})).size(1), 1);
  EXPECT_EQ(nn::WeightNorm<nn::Linear>(nn::Linear(0, 2))(ones({3, 0})).size(0), 3);
}

template <class M>
void expect_spectral_norm(const M& layer, const Tensor& x, std::vector<std::pair<double, double>> calls, double u,
                          double v) {
  SCOPED_TRACE(M::module_type());
  const nn::SpectralNorm<M> norm = spectral_norm(layer, {.n_power_iterations = 2});
  const auto& state = norm->parametrization;
  state.u.copy_(F::normalize((positions({state.u.size(0)}) + 1).cos(), 2, 0));
  state.v.copy_(F::normalize((positions({state.v.size(0)}) + 2).sin(), 2, 0));
  for (size_t i = 0; i < calls.size(); ++i) {
    norm->train(i == 1 || i == 2);
    norm->zero_grad();
    const Tensor y = norm(x);
    expect_near(y, calls[i].first);
    weighed(y).backward();
    expect_near(state.original.grad(), calls[i].second);
  }
  expect_near(state.u, u);
  expect_near(state.v, v);
  const Tensor y = norm(x);
  EXPECT_TRUE(equal(norm->layer_of_now()(x), y));
}

TEST(SpectralNorm, HasPyTorchsNumbersAndNames) {
  expect_spectral_norm(filled(nn::Linear(3, 4)), input({2, 3}),
                       {{6.4362289961989685, 0.3466203657286906},
                        {2.4728486737316686, 0.013347062255025743},
                        {2.546747061332275, -0.12888528421452233},
                        {2.546747061332275, -0.12888528421452233}},
                       0.23298854593128854, 0.5199258534924772);
  expect_spectral_norm(filled(nn::Conv2d(2, 3, 2)), input({1, 2, 4, 4}),
                       {{15.267261755557344, 27.65141014171912},
                        {-0.5802020671717146, -0.9739309803103058},
                        {-0.5801718182896038, -0.9716753554696544},
                        {-0.5801718182896038, -0.9716753554696544}},
                       0.19836293309360759, 2.125828210484149);
  expect_spectral_norm(filled(nn::ConvTranspose1d(2, 3, 2)), input({1, 2, 4}),
                       {{1.109453139971377, 1.7845929631894977},
                        {0.02796662148921808, -1.3822269790317305},
                        {0.0391502682796277, -1.3375852334523923},
                        {0.0391502682796277, -1.3375852334523923}},
                       0.6318494356475829, -0.0605623271252376);
  nn::SpectralNorm<nn::Linear> norm{nn::Linear(3, 4)};
  EXPECT_EQ(names_of(*norm),
            (std::vector<std::string>{"bias", "parametrizations.weight.0._u", "parametrizations.weight.0._v",
                                      "parametrizations.weight.original"}));
  EXPECT_EQ(norm->parameters().size(), 2u);
  EXPECT_EQ(norm->buffers().size(), 2u);
  // The largest singular value is found as it is made.
  const nn::SpectralNorm<nn::Linear> one{nn::Linear(1, 1)};
  EXPECT_NEAR(std::abs(one->weight().item<float>()), 1, 1e-6);
}

TEST(SpectralNorm, TakesItsStepsOnceInACheckpoint) {
  manual_seed(1);
  const nn::SpectralNorm<nn::Linear> plain{nn::Linear(3, 4)}, norm = plain.clone();
  const Tensor x = randn({2, 3});
  plain(x).square().sum().backward();
  autograd::checkpoint(norm, x).square().sum().backward();
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(equal(norm->parameters()[i].grad(), plain->parameters()[i].grad()));
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(equal(norm->buffers()[i], plain->buffers()[i]));
}

TEST(Parametrizations, Errors) {
  auto says = [](const std::function<void()>& f, const std::string& text) {
    const std::string message = message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  says([] { weight_norm(nn::Linear(3, 4), 2); }, "WeightNorm: dim: got 2, expected one of the weight's 2");
  says([] { weight_norm(nn::LayerNorm(3, nn::NormOptions{.affine = false})); },
       "WeightNorm: module: got LayerNorm without a floating-point weight, expected a layer that has one");
  says([] { spectral_norm(nn::Linear(3, 4), {.dim = -1}); }, "SpectralNorm: dim: got -1");
  says([] { spectral_norm(nn::Linear(3, 4), {.n_power_iterations = 0}); },
       "SpectralNorm: n_power_iterations: got 0, expected one or more");
  says([] { spectral_norm(nn::Linear(nullptr)); }, "Linear: self: got an empty module");
}

}  // namespace
}  // namespace ingot
