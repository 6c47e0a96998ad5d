// Compiled models that compute a batch a slice at a time: eager's bits, at every batch, however they are called.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "support.h"

namespace ingot {
namespace {

/// Every batch that may be sliced is, an element at a time.
class Slices : public test::Inference {
 protected:
  Slices() { setenv("INGOT_SLICE", "1", 1); }
  ~Slices() override { unsetenv("INGOT_SLICE"); }
};

bool in_slices(const Explanation& e) {
  for (const auto& p : e.programs)
    for (const std::string& note : p.notes)
      if (note.find("slices") != std::string::npos) return true;
  return false;
}

struct SmallNetImpl : nn::Module {
  nn::Conv2d stem{3, 8, 3, {.padding = 1}}, wide{8, 8, 3, {.padding = 1, .groups = 8}};
  nn::BatchNorm2d norm{8};
  nn::Linear head{8, 5};
  Tensor forward(const Tensor& x) const {
    const Tensor y = relu(norm(stem(x)));
    const Tensor z = max_pool2d(relu(wide(y) + y), {3}, {2}, {1});
    return head(z.mean({2, 3})).softmax(1);
  }
};
INGOT_MODULE(SmallNet, stem, wide, norm, head);

Tensor images(int64_t n, uint64_t seed) {
  manual_seed(seed);
  return randn({n, 3, 10, 11});
}

TEST_F(Slices, ModelsHaveEagersBitsAtEveryBatch) {
  manual_seed(1);
  SmallNet net;
  net->eval();
  test::on_every_target({1, 2, 3}, [&] {
    for (const bool frozen : {false, true}) {
      auto fast = compile(net, {.mode = frozen ? CompileMode::frozen : CompileMode::checked});
      for (const int64_t n : {6, 6, 4, 1, 9, 0, 2, 6})
        EXPECT_TRUE(test::same_bits(fast(images(n, 7)), net(images(n, 7)))) << n << " images";
      EXPECT_EQ(fast.stats().fallbacks, 0);
      EXPECT_LE(fast.stats().compilations, 3);
      EXPECT_TRUE(in_slices(fast.explain()));
    }
  });
}

// What goes through the whole batch stands between layers that do not; a residual goes round it, and a table of weights
// is made within a segment.
TEST_F(Slices, SegmentsBetweenWhatMeets) {
  manual_seed(2);
  SmallNet net;
  net->eval();
  const Tensor table = randn({8, 1, 1});
  auto f = [&](const Tensor& x) {
    const Tensor y = relu(net->stem(x)), scale = table.softmax(0).cumsum(0);
    const Tensor z = relu(net->wide(y) + y).softmax(3);
    const Tensor centred = z - z.mean({0, 2, 3}, true);
    const Tensor u = (relu(net->wide(centred) * scale) + y).softmax(2);
    const Tensor sorted = std::get<0>(u.sort(3));
    return net->head((relu(net->wide(sorted)) + z).mean({2, 3})).softmax(1);
  };
  test::on_every_target({1, 2, 3}, [&] {
    auto fast = compile(f);
    for (const int64_t n : {6, 6, 4, 1, 9, 2, 6})
      EXPECT_TRUE(test::same_bits(fast(images(n, 7)), f(images(n, 7)))) << n;
    EXPECT_EQ(fast.stats().fallbacks, 0);
    EXPECT_TRUE(in_slices(fast.explain()));
  });
}

// Weights are packed once, and what is made of them alone is made once, for all slices; new weights are noticed.
TEST_F(Slices, WeightsThatMoveAreSeen) {
  SmallNet net;
  net->eval();
  auto fast = compile(net);
  for (int i = 0; i < 6; ++i) {
    net->stem->weight.mul_(1.25);
    net->norm->running_mean.add_(0.5);
    for (int again = 0; again < 3; ++again) EXPECT_TRUE(test::same_bits(fast(images(5, 7)), net(images(5, 7))));
  }
  EXPECT_TRUE(in_slices(fast.explain()));
}

// In place: an element of the batch that one slice writes, no later slice reads; what all read is written behind all.
TEST_F(Slices, WritesInPlace) {
  Tensor scale = full({6, 4}, 1.5), counter = zeros({1});
  auto update = [&](const Tensor& x, Tensor& state) {
    const Tensor y = (x.softmax(1) * 2).softmax(1);
    state.add_(y.cumsum(0).sum() * 0 + y);
    return (state * scale).softmax(1);
  };
  auto simple = [&](const Tensor& x, Tensor& state) {
    const Tensor y = (x.softmax(1) * 2).softmax(1);
    state.add_(y);
    return (state.softmax(1) * scale).softmax(1);
  };
  auto counted = [&](const Tensor& x, Tensor& state) {
    const Tensor y = ((x + counter).softmax(1) * 2).softmax(1);
    counter.add_(1);
    return y.softmax(1) + state;
  };
  auto check = [&](auto f) {
    auto fast = compile(f);
    Tensor a = zeros({6, 4}), b = zeros({6, 4});
    for (int i = 0; i < 5; ++i) {
      manual_seed(static_cast<uint64_t>(i));
      const Tensor x = randn({6, 4}), before = counter.clone();
      const Tensor expected = f(x, a), after = counter.clone();
      counter.copy_(before);
      EXPECT_TRUE(test::same_bits(fast(x, b), expected));
      EXPECT_TRUE(test::same_bits(b, a));
      EXPECT_TRUE(test::same_bits(counter, after));
    }
    EXPECT_EQ(fast.stats().fallbacks, 0);
  };
  check(update), check(simple), check(counted);
}

TEST(SlicesInTraining, StepsHaveEagersBits) {
  setenv("INGOT_SLICE", "2", 1);
  auto train = [](bool compiled) {
    manual_seed(4);
    SmallNet net;
    optim::SGD sgd(net->parameters(), {.lr = 0.1, .momentum = 0.9});
    auto step = [&](const Tensor& x, const Tensor& y) {
      const Tensor loss = nn::functional::cross_entropy(net(x), y);
      loss.backward();
      sgd.step();
      sgd.zero_grad();
      return loss;
    };
    auto fast = compile(step);
    std::vector<Tensor> results;
    for (int64_t i = 0; i < 5; ++i) {
      const Tensor x = images(6, static_cast<uint64_t>(i)), y = randint(0, 5, {6});
      results.push_back((compiled ? fast(x, y) : step(x, y)).detach().clone());
    }
    for (const Tensor& p : net->parameters()) results.push_back(p.detach().clone());
    return results;
  };
  const std::vector<Tensor> expected = train(false), got = train(true);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(test::same_bits(got[i], expected[i])) << i;
  unsetenv("INGOT_SLICE");
}

// Arguments that share memory, views, and one tensor twice.
TEST_F(Slices, Aliases) {
  auto f = [](const Tensor& x, const Tensor& y) { return (x.softmax(1) - y.softmax(1)).softmax(1); };
  auto fast = compile(f);
  manual_seed(3);
  const Tensor whole = randn({13, 9}), other = randn({6, 9});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(test::same_bits(fast(other, other), f(other, other)));
    EXPECT_TRUE(test::same_bits(fast(whole.slice(0, 0, 6), whole.slice(0, 3, 9)),
                                f(whole.slice(0, 0, 6), whole.slice(0, 3, 9))));
    EXPECT_TRUE(test::same_bits(fast(whole.slice(0, 0, 12, 2), other), f(whole.slice(0, 0, 12, 2), other)));
    const Tensor one = whole.slice(0, 2, 3).expand({6, 9});
    EXPECT_TRUE(test::same_bits(fast(one, other), f(one, other)));
    EXPECT_TRUE(test::same_bits(fast(other, one), f(other, one)));
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST_F(Slices, ManyCallersAtOnce) {
  SmallNet net;
  net->eval();
  auto fast = compile(net, {.mode = CompileMode::frozen});
  std::vector<Tensor> given, expected;
  for (int64_t n = 1; n <= 4; ++n) given.push_back(images(n, 7)), expected.push_back(net(given.back()));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const NoGradGuard no_grad;
      for (int i = 0; i < 20; ++i) {
        const auto n = static_cast<size_t>((t + i) % 4);
        wrong += !test::same_bits(fast(given[n]), expected[n]);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Slices, WhatIsNoNumberIsRefused) {
  setenv("INGOT_SLICE", "many", 1);
  auto fast = compile([](const Tensor& x) { return x.softmax(1).softmax(0); });
  EXPECT_THROW(fast(ones({3, 3})), Error);
}

}  // namespace
}  // namespace ingot
