// vmap: values of PyTorch's, gradients of each sample, batches in batches, random numbers, errors.
#include <gtest/gtest.h>

#include "eager/autocast.h"
#include "eager/func.h"
#include "eager/nn/layers.h"
#include "eager/ops/linalg.h"
#include "eager/ops/random.h"
#include "eager/ops/selection.h"
#include "eager/support.h"

namespace ingot {
namespace {

using func::vmap;
using std::nullopt;
using test::message_of;

const Tensor& samples() {
  static const Tensor x = tensor({{1., -2., 3.}, {0.5, 4., -1.}}, kFloat64);
  return x;
}
Tensor loss(const Tensor& w, const Tensor& x, const Tensor& y) {
  return nn::functional::cross_entropy(matmul(w, x).tanh().unsqueeze(0), y.unsqueeze(0));
}

TEST(Vmap, ValuesOfPyTorch) {
  const Tensor w = tensor({{0.5, -1., 2.}, {1., 0.25, -0.5}}, kFloat64), y = tensor({1, 0});
  EXPECT_TRUE(allclose(vmap(func::grad(loss), {nullopt, 0, 0})(w, samples(), y),
                       tensor({{{1.4132e-07, -2.8264e-07, 4.2397e-07}, {-3.5841e-01, 7.1682e-01, -1.0752e+00}},
                               {{-1.7767e-05, -1.4214e-04, 3.5534e-05}, {3.0979e-02, 2.4783e-01, -6.1958e-02}}},
                              kFloat64),
                       1e-4));
  const Tensor x = samples().slice(1, 0, 2);
  EXPECT_TRUE(equal(vmap(func::hessian([](const Tensor& v) { return (v * v * v).sum(); }))(x),
                    tensor({{{6., 0.}, {0., -12.}}, {{3., 0.}, {0., 24.}}}, kFloat64)));
  const auto product = [](const Tensor& v) { return v.sin() * v.sum(); };
  const Tensor jacobian = tensor({{{0.3012, 0.8415}, {-0.9093, -0.4932}}}, kFloat64);
  EXPECT_TRUE(allclose(vmap(func::jacfwd(product))(x.slice(0, 0, 1)), jacobian, 1e-3));
  EXPECT_TRUE(allclose(vmap(func::jacrev(product))(x.slice(0, 0, 1)), jacobian, 1e-3));
  EXPECT_TRUE(equal(vmap([](const Tensor& a, const Tensor& b) { return a.outer(b).sum(0); }, {0, 1}, 1)(
                        samples(), samples().t().clone()),
                    tensor({{2., 1.75}, {-4., 14.}, {6., -3.5}}, kFloat64)));
}

TEST(Vmap, GradientsOfEachSample) {
  const nn::Sequential net(nn::Conv2d(1, 2, 3), nn::ReLU(), nn::Flatten(), nn::LayerNorm(IntList{8}), nn::Linear(8, 3));
  StateDict parameters;
  for (const auto& [name, t] : net->state_dict()) parameters[name] = t.detach();
  const Tensor x = randn({3, 1, 4, 4}), y = tensor({2, 0, 1});
  const auto of_one = [&](const StateDict& p, const Tensor& image, const Tensor& label) {
    return nn::functional::cross_entropy(func::functional_call(net, p, image.unsqueeze(0)), label.unsqueeze(0));
  };
  const auto [all, losses] = vmap(func::grad_and_value(of_one), {nullopt, 0, 0})(parameters, x, y);
  const StateDict parts = vmap(func::grad(of_one), {nullopt, 0, 0}, 0, "error", 2)(parameters, x, y);
  for (int64_t i = 0; i < 3; ++i) {
    const auto [one, value] = func::grad_and_value(of_one)(parameters, x[i], y[i]);
    EXPECT_TRUE(allclose(losses[i], value));
    for (const auto& [name, gradient] : one) {
      EXPECT_TRUE(allclose(all.at(name)[i], gradient, 1e-5, 1e-6)) << name;
      EXPECT_TRUE(equal(all.at(name), parts.at(name))) << name;
    }
  }
}

TEST(Vmap, TapesInsideAndOutside) {
  const Tensor x = samples().clone().requires_grad_(), w = tensor({2., 3., 4.}, kFloat64).requires_grad_();
  vmap([&](const Tensor& v) { return (v * w).sin().sum(); })(x).sum().backward();
  EXPECT_TRUE(equal(x.grad(), ((samples() * w.detach()).cos() * w.detach())));
  EXPECT_TRUE(allclose(w.grad(), ((samples() * w.detach()).cos() * samples()).sum(0)));
  // A derivative of derivatives of slices.
  const auto cubes = [](const Tensor& v) { return (v * v * v).sum(); };
  const Tensor slope = vmap(func::grad(cubes))(x);
  EXPECT_TRUE(equal(autograd::grad({slope.sum()}, {x})[0], samples() * 6));
  // Slices of the gradient alone: the rows of a jacobian.
  const auto [value, pull] = func::vjp([](const Tensor& v) { return v * v; }, samples()[0]);
  EXPECT_TRUE(equal(vmap(pull)(eye(3, {}, kFloat64)), tensor({{2., 0., 0.}, {0., -4., 0.}, {0., 0., 6.}}, kFloat64)));
  EXPECT_TRUE(vmap([](const Tensor& v) { return v * 2; })(x).requires_grad());
  EXPECT_FALSE(samples().requires_grad());
}

TEST(Vmap, BatchesInBatches) {
  const Tensor x = samples(), y = x.flip({1});
  const auto products = [&](const Tensor& a) { return vmap([&](const Tensor& b) { return a.dot(b); })(y); };
  EXPECT_TRUE(equal(vmap(products)(x), x.mm(y.t())));
  const auto twice = vmap(vmap([](const Tensor& a, const Tensor& b) { return a + b; }, {0, nullopt}), {0, 0}, 1);
  EXPECT_TRUE(equal(twice(x, y), (x.unsqueeze(2) + y.unsqueeze(1)).transpose(0, 1)));
  const auto slopes =
      vmap(vmap(func::grad([](const Tensor& w, const Tensor& v) { return (w * v).square().sum(); }), {nullopt, 0}),
           {nullopt, 0});
  EXPECT_TRUE(equal(slopes(ones({1}, kFloat64), x), (x * x * 2).unsqueeze(2)));
}

TEST(Vmap, ListsTuplesAndNumbers) {
  const Tensor x = samples();
  const auto f = [](const std::vector<Tensor>& list, double scale) {
    return std::make_tuple(list[0] * scale, StateDict{{"sum", list[1].sum()}}, ones({2}));
  };
  const auto [scaled, state, same] = vmap(f, {0, nullopt}, {1, 0, nullopt})(std::vector<Tensor>{x, x}, 2.);
  EXPECT_TRUE(equal(scaled, (x * 2).t()));
  EXPECT_TRUE(equal(state.at("sum"), x.sum(1)));
  EXPECT_TRUE(same.sizes() == (IntArrayRef(Ints{2})));
  // What is the same for all slices is repeated for them; sizes 0 and 1.
  EXPECT_TRUE(equal(vmap([](const Tensor&) { return ones({2}); })(x), ones({2, 2})));
  EXPECT_TRUE(equal(vmap([](const Tensor& v) { return v.cumsum(0).max(); })(zeros({1, 2})), zeros({1})));
  EXPECT_TRUE(equal(vmap([](const Tensor& v) { return v.sum() + 1; })(zeros({0, 2})), zeros({0})));
}

TEST(Vmap, WritesToSlices) {
  const Tensor x = samples().clone();
  const Tensor result = vmap([](const Tensor& v) {
    const Tensor made = zeros_like(v);
    made.select(0, 1).copy_(v.sum());
    v.mul_(2);
    return made;
  })(x);
  EXPECT_TRUE(equal(result, tensor({{0., 2., 0.}, {0., 3.5, 0.}}, kFloat64)));
  EXPECT_TRUE(equal(x, samples() * 2));
}

// A zero-dim tensor takes part in promotion as a scalar does, also where the batch has many.
TEST(Vmap, DtypesAreThoseOfASlice) {
  const Tensor x = tensor({1., 2.}, kFloat64);
  const Tensor sum = vmap([](const Tensor& v) { return v + ones({2}); })(x);
  EXPECT_EQ(sum.dtype(), kFloat32);
  EXPECT_TRUE(equal(sum, tensor({{2.f, 2.f}, {3.f, 3.f}})));
  const AutocastGuard autocast;
  const Tensor w = randn({3, 3}), bias = randn({3}), batch = randn({2, 3});
  EXPECT_EQ(vmap([&](const Tensor& v) { return linear(v, w, bias); })(batch).dtype(), kBFloat16);
  EXPECT_EQ(vmap([&](const Tensor& v) { return linear(batch, w, v); })(batch).dtype(), kBFloat16);
}

TEST(Vmap, RandomNumbers) {
  const auto noise = [](const Tensor& v) { return v + rand({64}) + nn::functional::dropout(ones({64})); };
  const Tensor different = vmap(noise, 0, 0, "different")(zeros({2, 64}));
  EXPECT_FALSE(equal(different[0], different[1]));
  const Tensor same = vmap(noise, 0, 0, "same")(zeros({2, 64}));
  EXPECT_TRUE(equal(same[0], same[1]));
  // The numbers of slices follow one another.
  manual_seed(3);
  const Tensor all = rand({2, 5}), next = rand({1});
  manual_seed(3);
  EXPECT_TRUE(equal(vmap([](const Tensor&) { return rand({5}); }, 0, 0, "different")(zeros({2})), all));
  EXPECT_TRUE(equal(rand({1}), next));
  // Where they are refused, none are taken.
  manual_seed(3);
  EXPECT_NE(message_of([] { vmap([](const Tensor& v) { return v + rand({5}); })(zeros({2})); }), "no error");
  EXPECT_TRUE(equal(rand({2, 5}), all));
}

TEST(Vmap, Errors) {
  const Tensor x = samples(), other = zeros({3}, kFloat64);
  const auto says = [](const std::function<void()>& f, const char* text) {
    const std::string message = message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_NE(message.find("func_vmap_test.cpp"), std::string::npos) << message;
  };
  const auto of_slice = [&](const std::function<Tensor(const Tensor&)>& f) { return [&x, f] { vmap(f)(x); }; };
  says(of_slice([](const Tensor& v) { return v * v.sum().item<double>(); }),
       "item: self: got a tensor inside of a vmap");
  says(of_slice([](const Tensor& v) { return nonzero(v); }), "a tensor inside of a vmap");
  says(of_slice([&](const Tensor& v) { return other.add_(v); }), "add_: self: got a tensor that is the same for all");
  says(of_slice([](const Tensor& v) { return v + rand({3}); }), "rand: got a random op inside of a vmap");
  says(of_slice([](const Tensor& v) { return v.matmul(ones({4, 2}, kFloat64)); }), "matmul: other: got shape [4, 2]");
  says(of_slice([](const Tensor& v) { return v.as_strided({2}, {1}); }), "as_strided: self");
  says(of_slice([](const Tensor& v) { return v.backward(), v; }), "backward: self: got a tensor inside of a vmap");
  const auto pseudo_inverse = [](const Tensor& v) { return linalg::pinv(v.outer(v) + eye(3, {}, kFloat64)).sum(); };
  says([&] { vmap(func::grad(pseudo_inverse))(x); }, "a tensor inside of a vmap that requires grad");
  says([&] { vmap([](const Tensor& v) { return v; }, 2)(x); }, "vmap: in_dims: got 2, expected a dim from -2 to 1");
  says([&] { vmap([](const Tensor& v) { return v; }, {0, 0})(x); }, "vmap: in_dims: got 2 dims, expected 1");
  says([&] { vmap([](const Tensor& v) { return v; }, nullopt)(x); }, "vmap: in_dims: got no argument with a batch");
  says([&] { vmap([](const Tensor& v) { return v; }, 0, nullopt)(x); }, "vmap: out_dims: got nullopt");
  says([&] { vmap([](const Tensor& v) { return v; }, 0, 0, "some")(x); }, "vmap: randomness: got \"some\"");
  says([&] { vmap([](const Tensor& a, const Tensor& b) { return a + b; })(x, other); }, "batches of 2 and 3 slices");
  says([&] { vmap([](const Tensor& v) { return v; })(ones({})); }, "vmap: in_dims: got a dim of a zero-dim tensor");
  EXPECT_TRUE(equal(other, zeros({3}, kFloat64)));
  // A slice that outlives its vmap is nothing.
  Tensor kept;
  vmap([&](const Tensor& v) { return kept = v; })(x);
  says([&] { kept + 1; }, "add: self: got a tensor inside of a vmap");
  EXPECT_TRUE(equal(vmap([](const Tensor& v) { return v; })(x), x));
}

TEST(Vmap, CallsAnEnsembleOfModulesAtOnce) {
  const std::vector<nn::Sequential> nets{nn::Sequential(nn::Linear(3, 4), nn::Tanh(), nn::BatchNorm1d(4)),
                                         nn::Sequential(nn::Linear(3, 4), nn::Tanh(), nn::BatchNorm1d(4))};
  for (const nn::Sequential& net : nets) net->eval();
  const auto [parameters, buffers] = func::stack_module_state(nets);
  EXPECT_EQ(parameters.at("0.weight").sizes(), (Ints{2, 4, 3}));
  EXPECT_TRUE(parameters.at("0.weight").is_leaf() && parameters.at("0.weight").requires_grad());
  EXPECT_EQ(buffers.at("2.running_mean").sizes(), (Ints{2, 4}));
  auto one = [&](const StateDict& p, const StateDict& b, const Tensor& x) {
    StateDict all = p;
    all.insert(b.begin(), b.end());
    return func::functional_call(nets[0], all, x);
  };
  const Tensor x = randn({5, 3});
  const Tensor y = func::vmap(one, {0, 0, std::nullopt})(parameters, buffers, x);
  for (int64_t i = 0; i < 2; ++i) EXPECT_TRUE(allclose(y[i], nets[static_cast<size_t>(i)](x)));
  y.square().sum().backward();
  nets[1](x).square().sum().backward();
  EXPECT_TRUE(allclose(parameters.at("0.weight").grad()[1], nets[1]->parameters()[0].grad()));
  auto refused = [](const std::vector<nn::Module*>& modules) {
    return message_of([&] { func::stack_module_state(modules); });
  };
  const nn::Linear a(2, 2), b(2, 2);
  const nn::ReLU other;
  EXPECT_EQ(refused({}).rfind("stack_module_state: modules: got none", 0), 0u) << refused({});
  EXPECT_NE(refused({&*a, &*other}).find("modules of several types"), std::string::npos);
  b->weight.requires_grad_(false);
  EXPECT_NE(refused({&*a, &*b}).find("\"weight\" with and without a gradient"), std::string::npos);
  b->eval();
  EXPECT_NE(refused({&*a, &*b}).find("in evaluation"), std::string::npos);
}

}  // namespace
}  // namespace ingot
