// checkpoint(): gradients have the bits of those without it, less is kept, and a function that is not the same again is
// an Error.
#include "eager/autograd/checkpoint.h"

#include "eager/autocast.h"
#include "eager/autograd/function.h"
#include "eager/execute/caches.h"
#include "eager/nn/functional.h"
#include "eager/nn/layers.h"
#include "eager/ops/random.h"
#include "support.h"

namespace ingot {
namespace {

using autograd::checkpoint;
using test::contains, test::error_of, test::line_text;
namespace F = nn::functional;

struct BlockImpl : nn::Module {
  nn::Linear up{8, 32}, down{32, 8};
  Tensor forward(const Tensor& x) const { return x + down(F::dropout(gelu(up(x)), 0.25, true)).tanh(); }
};
INGOT_MODULE(Block, up, down);

/// Loss, gradients, and what the generator gives next.
using Results = std::vector<Tensor>;

/// `body` gives a loss; the gradients of `inputs`.
Results results_of(const std::function<Tensor()>& body, const std::vector<Tensor>& inputs, bool create_graph = false) {
  manual_seed(3);
  const Tensor loss = body();
  Results results = autograd::grad({loss}, inputs, {}, {}, create_graph, true);
  results.push_back(loss);
  results.push_back(rand({4}));
  return results;
}
void expect_same(const Results& got, const Results& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), expected[i].defined()) << i;
    if (got[i].defined()) {
      EXPECT_TRUE(equal(got[i], expected[i])) << i;
    }
  }
}
std::vector<Tensor> with(std::vector<Tensor> list, const Tensor& x) {
  list.push_back(x);
  return list;
}

TEST(GradientCheckpoint, HasTheSameBitsAndRandomNumbers) {
  manual_seed(1);
  const Block block;
  const Tensor x = randn({5, 8}).requires_grad_();
  const std::vector<Tensor> inputs = with(block->parameters(), x);
  const Results plain = results_of([&] { return block(block(x)).square().sum(); }, inputs);
  expect_same(results_of([&] { return block(checkpoint(block, x)).square().sum(); }, inputs), plain);
  expect_same(results_of([&] { return checkpoint(block, block(x)).square().sum(); }, inputs), plain);
  auto both = [&block](const Tensor& t) { return block(block(t)); };
  expect_same(results_of([&] { return checkpoint(both, x).square().sum(); }, inputs), plain);
  // One in another.
  auto nested = [&block](const Tensor& t) { return checkpoint(block, checkpoint(block, t)); };
  expect_same(results_of([&] { return checkpoint(nested, x).square().sum(); }, inputs), plain);
  auto deep = [&nested](const Tensor& t) { return checkpoint(nested, t); };
  expect_same(results_of([&] { return checkpoint(deep, x).square().sum(); }, inputs), plain);
}

TEST(GradientCheckpoint, GoesIntoGradThroughBackward) {
  manual_seed(1);
  const Block block;
  const Tensor x = randn({5, 8});  // requires no grad: the parameters do
  std::vector<Tensor> gradients[2];
  for (int on : {0, 1}) {
    block->zero_grad();
    for (uint64_t i = 0; i < 2; ++i) {
      manual_seed(i);
      (on ? checkpoint(block, x) : block(x)).sum().backward();
    }
    for (const Tensor& p : block->parameters()) gradients[on].push_back(p.grad().clone());
  }
  expect_same(gradients[1], gradients[0]);
}

TEST(GradientCheckpoint, TakesSeveralInputsAndGivesWhatTheFunctionGives) {
  const Tensor a = test::leaf({1, 2, 3}), b = test::leaf({4, 5, 6});
  const Tensor positions = tensor({2, 0, 1});
  auto function = [](const Tensor& x, const Tensor& y, const Tensor& i, const Tensor& none) {
    EXPECT_FALSE(none.defined());
    return std::make_pair((x * y).exp().index_select(0, i), x.sin() * y.sin());
  };
  auto loss_of = [](const std::pair<Tensor, Tensor>& t) { return t.first.log().sum() + t.second.square().sum(); };
  const Results plain = results_of([&] { return loss_of(function(a, b, positions, Tensor())); }, {a, b});
  expect_same(results_of([&] { return loss_of(checkpoint(function, a, b, positions, Tensor())); }, {a, b}), plain);
  // Only one of them is used.
  auto first = [&] { return checkpoint(function, a, b, positions, Tensor()).second.sum(); };
  expect_same(results_of(first, {a, b}),
              results_of([&] { return function(a, b, positions, Tensor()).second.sum(); }, {a, b}));
  // No tensor requires grad, or none is recorded.
  EXPECT_FALSE(checkpoint([](const Tensor& x) { return x.exp(); }, ones({2})).requires_grad());
  const NoGradGuard off;
  EXPECT_FALSE(checkpoint([](const Tensor& x) { return x.exp(); }, a).requires_grad());
}

TEST(GradientCheckpoint, OfSizesZeroAndOne) {
  for (int64_t n : {0, 1}) {
    const Tensor x = randn({n, 3}).requires_grad_();
    auto f = [](const Tensor& t) { return t.exp().tanh(); };
    expect_same(results_of([&] { return checkpoint(f, x).sum(); }, {x}), results_of([&] { return f(x).sum(); }, {x}));
  }
}

TEST(GradientCheckpoint, HasGradientsOfSecondOrder) {
  const Tensor x = randn({4}, kFloat64).requires_grad_(), w = randn({4}, kFloat64).requires_grad_();
  auto f = [w](const Tensor& t) { return (t * w).tanh() * (t.sin() * w.exp()); };
  auto second = [&](bool on) {
    auto body = [&] {
      const Tensor first = autograd::grad({(on ? checkpoint(f, x * 2) : f(x * 2)).sum()}, {x}, {}, {}, true)[0];
      return (first * first).sum();
    };
    return results_of(body, {x, w});
  };
  expect_same(second(true), second(false));
  EXPECT_TRUE(autograd::gradgradcheck(
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{checkpoint(f, in[0])}; }, {x}));
}

TEST(GradientCheckpoint, MayBeWalkedTwice) {
  const Tensor x = test::leaf({1, 2});
  const Tensor y = checkpoint([](const Tensor& t) { return t.exp().sin(); }, x).sum();
  const Tensor first = autograd::grad({y}, {x}, {}, true)[0];
  const Tensor second = autograd::grad({y}, {x})[0];
  EXPECT_TRUE(equal(first, second));
  EXPECT_TRUE(contains(error_of([&] { autograd::grad({y}, {x}); }), "its saved tensors are gone"));
}

TEST(GradientCheckpoint, RunsInItsRegionOfAutocast) {
  manual_seed(5);
  const Tensor x = randn({4, 8}).requires_grad_(), w = randn({8, 8}).requires_grad_();
  auto f = [&](const Tensor& t) {
    Tensor y = t.matmul(w).tanh();
    const AutocastGuard inner(false);
    return y.to(kFloat32) * t.matmul(w);
  };
  auto body = [&](bool on) {
    const AutocastGuard autocast;
    return (on ? checkpoint(f, x) : f(x)).sum();
  };
  expect_same(results_of([&] { return body(true); }, {x, w}), results_of([&] { return body(false); }, {x, w}));
}

struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    const Tensor square = x * x;
    ctx->save_for_backward({x, square});
    return square * x;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* ctx, const std::vector<Tensor>& gradients) {
    EXPECT_TRUE(ctx->get_saved_variables()[0].defined());
    return {3 * ctx->get_saved_variables()[1] * gradients[0]};
  }
};

TEST(GradientCheckpoint, HoldsFunctionsWritesAndViews) {
  const Tensor x = test::leaf({1, 2, 3, 4}), w = test::leaf({2, 3});
  auto f = [w](const Tensor& t) {
    Tensor y = Cube::apply(t).view({2, 2});
    y.select(0, 1).mul_(w);
    y.add_(w.exp()).tanh_();
    return y * y.t();
  };
  expect_same(results_of([&] { return checkpoint(f, x * 2).sum(); }, {x, w}),
              results_of([&] { return f(x * 2).sum(); }, {x, w}));
}

TEST(GradientCheckpoint, DrawsUnderNoGradAndFromOtherGenerators) {
  const Tensor x = test::leaf({1, 2, 3, 4});
  const Generator own(9);
  auto f = [own](const Tensor& t) {
    Tensor mask;
    {
      const NoGradGuard off;
      mask = (rand({4}) < 0.5).to(kFloat32) + randn({4}, {}, own);
    }
    return (t * mask).exp();
  };
  const Tensor state = own.get_state();
  auto body = [&](bool on) {
    own.set_state(state);
    return (on ? checkpoint(f, x) : f(x)).sum();
  };
  const Results plain = results_of([&] { return body(false); }, {x});
  const Tensor next = rand({2}, {}, own);
  expect_same(results_of([&] { return body(true); }, {x}), plain);
  EXPECT_TRUE(equal(rand({2}, {}, own), next));
}

TEST(GradientCheckpoint, UpdatesStatisticsOnce) {
  for (std::optional<double> momentum : {std::optional<double>(0.1), std::optional<double>()}) {
    Results results[2];
    for (int on : {0, 1}) {
      manual_seed(2);
      nn::Sequential net(nn::BatchNorm2d(3, {.momentum = momentum}), nn::ReLU(),
                         nn::InstanceNorm2d(3, {.track_running_stats = true}));
      const Tensor x = randn({2, 3, 4, 4}), y = randn({2, 3, 4, 4});
      const Tensor a = on ? checkpoint(net, x) : net(x), b = on ? checkpoint(net, y) : net(y);
      (a.square().sum() + b.exp().sum()).backward();
      for (const Tensor& p : net->parameters()) results[on].push_back(p.grad());
      for (const Tensor& p : net->buffers()) results[on].push_back(p);
    }
    expect_same(results[1], results[0]);
  }
}

TEST(GradientCheckpoint, KeepsLess) {
  const int64_t n = 1 << 16, bytes = 4 * n, layers = 8;
  const Tensor x = randn({n}).requires_grad_();
  auto chain = [](const Tensor& t) {
    Tensor y = t;
    for (int i = 0; i < layers; ++i) y = y.sin();
    return y;
  };
  auto peak_of = [&](bool on) {
    reset_peak_memory_stats();
    const int64_t before = memory_stats().allocated_bytes;
    Tensor y = x;
    for (int i = 0; i < layers; ++i) y = on ? checkpoint(chain, y) : chain(y);
    const int64_t kept = memory_stats().allocated_bytes - before;
    y.sum().backward();
    return std::make_pair(kept, memory_stats().peak_bytes - before);
  };
  peak_of(true);
  x.set_grad({});
  const auto [kept, peak] = peak_of(false);
  x.set_grad({});
  const auto [kept_less, lower_peak] = peak_of(true);
  EXPECT_GE(kept, layers * layers * bytes);
  EXPECT_LE(kept_less, (layers + 1) * bytes);
  EXPECT_GE(peak, layers * layers * bytes);
  EXPECT_LE(lower_peak, (2 * layers + 5) * bytes);
}

TEST(GradientCheckpoint, LetsGoOfItsTape) {
  const int64_t before = memory_stats().allocated_bytes;
  {
    const Tensor x = randn({1024}).requires_grad_();
    Tensor y = x * 2;
    const Tensor z = checkpoint([](const Tensor& t) { return t.exp(); }, y);
    y.add_(z);  // the input's tape now leads through the region that holds the input
  }
  EXPECT_EQ(memory_stats().allocated_bytes, before);
}

TEST(GradientCheckpoint, RefusesWhatIsNotTheSameAgain) {
  auto message = [](const std::function<Tensor(const Tensor&)>& f, const std::function<void(const Tensor&)>& then) {
    const Tensor x = test::leaf({1, 2}), input = x * 1;
    const Tensor y = checkpoint(f, input).sum();
    then(input);
    const std::string first = error_of([&] { y.backward({}, true); });
    EXPECT_FALSE(x.grad().defined());
    return first;
  };
  auto nothing = [](const Tensor&) {};
  // An input.
  auto sine = [](const Tensor& t) { return t.sin(); };
  EXPECT_TRUE(contains(message(sine, [](const Tensor& x) { x.add_(1); }),
                       "checkpoint: inputs: got number 0, which was written to in place since, expected a tensor that "
                       "rests until backward() has come here"));
  // A tensor that it captures, saved or not; the line is that of its reader.
  const Tensor bias = tensor({1.f, 2.f});
  const int line = __LINE__ + 1;
  auto biased = [bias](const Tensor& t) { return (t + bias).relu(); };
  const std::string text = message(biased, [&](const Tensor&) { bias.add_(1); });
  EXPECT_TRUE(contains(text, "operand 1 of add, f32[2], written to in between as it ran again")) << text;
  EXPECT_TRUE(contains(text, line_text(__FILE__, line))) << text;
  // Other ops, numbers, random numbers, sizes.
  int runs = 0;
  EXPECT_TRUE(contains(message([&](const Tensor& t) { return runs++ ? t.exp().cos() : t.exp().sin(); }, nothing),
                       "got cos where it called sin as it ran again, expected what it did in its first run"));
  runs = 0;
  EXPECT_TRUE(contains(message([&](const Tensor& t) { return (t * ++runs).sin(); }, nothing),
                       "another number as operand 1 of mul"));
  runs = 0;
  EXPECT_TRUE(
      contains(message([&](const Tensor& t) { return runs++ ? t.sin() : t.sin().sin(); }, nothing), "got fewer ops"));
  runs = 0;
  EXPECT_TRUE(contains(message([&](const Tensor& t) { return runs++ ? t.sin().sin() : t.sin(); }, nothing),
                       "got one more sin"));
  runs = 0;
  EXPECT_TRUE(contains(message([&](const Tensor& t) { return runs++ ? (t * rand({2})).sin() : t.sin(); }, nothing),
                       "got more random numbers"));
  const Tensor weight = test::leaf({3, 4});
  EXPECT_TRUE(contains(message([=](const Tensor& t) { return t * weight; },
                               [&](const Tensor&) {
                                 const NoGradGuard off;
                                 weight.add_(1);
                               }),
                       "operand 1 of mul, f32[2], written to in between as it ran again"));
}

TEST(GradientCheckpoint, PassesOnWhatTheFunctionThrows) {
  int runs = 0;
  const Tensor x = test::leaf({1, 2});
  auto f = [&](const Tensor& t) {
    Tensor y = t.exp().sin();
    if (runs++ == 1) throw std::runtime_error("no more");
    return y;
  };
  const Tensor y = checkpoint(f, x).sum();
  EXPECT_THROW(y.backward({}, true), std::runtime_error);
  EXPECT_TRUE(GradMode::is_enabled());
  // Nothing is left of it: it may be tried again.
  y.backward();
  EXPECT_TRUE(equal(x.grad(), autograd::grad({x.exp().sin().sum()}, {x})[0]));
  EXPECT_THROW(checkpoint([](const Tensor& t) -> Tensor { throw std::runtime_error(std::to_string(t.dim())); }, x),
               std::runtime_error);
}

TEST(GradientCheckpoint, OfASequential) {
  manual_seed(4);
  nn::Sequential net;
  for (int i = 0; i < 7; ++i) net->push_back(Block());
  const Tensor x = randn({3, 8}).requires_grad_();
  const std::vector<Tensor> inputs = with(net->parameters(), x);
  const Results plain = results_of([&] { return net(x).sum(); }, inputs);
  for (int64_t segments : {1, 2, 3, 7})
    expect_same(results_of([&] { return autograd::checkpoint_sequential(net, segments, x).sum(); }, inputs), plain);
  for (int64_t segments : {0, 8})
    EXPECT_TRUE(contains(error_of([&] { autograd::checkpoint_sequential(net, segments, x); }),
                         "checkpoint_sequential: segments: got " + std::to_string(segments) +
                             ", expected from 1 to the number of modules, 7"));
}

}  // namespace
}  // namespace ingot
