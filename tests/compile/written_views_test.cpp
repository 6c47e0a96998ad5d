// Memory that is written while other tensors from outside look at parts of it, or at it in another order: a program as
// long as they are read before, with eager's bits in any case.
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

/// Calls f on fresh copies of `memory` and of what sees it, eager and compiled, and compares results and memory.
template <class F>
Statistics expect_same(F f, const std::function<Tensor(const Tensor&)>& view, CompileMode mode = CompileMode::checked,
                       int calls = 4) {
  const Tensor memory = randn({4, 6});
  const Tensor eager_memory = memory.clone(), fast_memory = memory.clone();
  const Tensor eager_view = view(eager_memory), fast_view = view(fast_memory);
  auto fast = compile(f, {.mode = mode});
  for (int call = 0; call < calls; ++call) {
    const Tensor expected = f(eager_memory, eager_view), result = fast(fast_memory, fast_view);
    EXPECT_TRUE(same_bits(result, expected)) << "call " << call;
    EXPECT_TRUE(same_bits(fast_memory, eager_memory)) << "call " << call;
  }
  EXPECT_EQ(fast.stats().frozen_calls > 0, mode == CompileMode::frozen && !fast.stats().fallbacks);
  return fast.stats();
}

using View = std::function<Tensor(const Tensor&)>;
const View kViews[] = {[](const Tensor& m) { return m.t(); },
                       [](const Tensor& m) { return m.narrow(0, 1, 2).t(); },
                       [](const Tensor& m) { return m.select(1, 2); },
                       [](const Tensor& m) { return m.view({24}); },
                       [](const Tensor& m) {
                         return m.as_strided({3, 3}, {1, 3}, 4);
                       },
                       [](const Tensor& m) { return m.narrow(1, 0, 1); }};

TEST(WrittenViews, AreOneProgramWhereTheyAreReadFirst) {
  for (const View& view : kViews)
    for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
      EXPECT_EQ(expect_same(
                    [](const Tensor& memory, const Tensor& part) {
                      const Tensor y = part.exp() * 2;
                      memory.mul_(0.5).add_(y.sum());
                      return y;
                    },
                    view, mode)
                    .fallbacks,
                0);
      EXPECT_EQ(expect_same(
                    [](const Tensor& memory, const Tensor& part) {
                      const Tensor y = part + 1;
                      memory.fill_(3);
                      memory.select(0, 1).add_(y.sum());
                      return y * 2;
                    },
                    view, mode)
                    .fallbacks,
                0);
      EXPECT_EQ(expect_same(
                    [](const Tensor& memory, const Tensor& part) {  // what is written is the part
                      const Tensor y = memory.cumsum(0);
                      part.add_(1);
                      return y;
                    },
                    view, mode)
                    .fallbacks,
                0);
    }
}

TEST(WrittenViews, RunOpByOpWhereTheyAreReadLater) {
  for (const View& view : kViews)
    for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
      EXPECT_GT(expect_same(
                    [](const Tensor& memory, const Tensor& part) {
                      const Tensor y = part * 2;
                      memory.add_(1);
                      return y + part;
                    },
                    view, mode)
                    .fallbacks,
                0);
      EXPECT_GT(expect_same(
                    [](const Tensor& memory, const Tensor& part) {
                      const Tensor row = part.unsqueeze(0);
                      memory.add_(1);
                      return row + 1;
                    },
                    view, mode)
                    .fallbacks,
                0);
      EXPECT_GT(expect_same(
                    [](const Tensor& memory, const Tensor& part) {
                      part.mul_(2);
                      memory.add_(1);
                      return memory + 1;
                    },
                    view, mode)
                    .fallbacks,
                0);
    }
}

// Views that were taken before the write, of either tensor, and these themselves: they show what is written, and what
// is written to them is in the memory.
TEST(WrittenViews, ThatAreReturnedShowWhatIsWritten) {
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen})
    for (int which = 0; which < 4; ++which) {
      auto f = [which](const Tensor& memory, const Tensor& part) {
        const Tensor taken = part.narrow(0, 0, 2), other = memory.select(0, 1), y = part.exp();
        memory.mul_(0.5).add_(y.sum());
        return which == 0 ? taken : which == 1 ? part : which == 2 ? other : memory;
      };
      const Tensor eager_memory = randn({4, 6}), fast_memory = eager_memory.clone();
      const Tensor eager_view = eager_memory.t(), fast_view = fast_memory.t();
      auto fast = compile(f, {.mode = mode});
      for (int call = 0; call < 4; ++call) {
        const Tensor expected = f(eager_memory, eager_view), result = fast(fast_memory, fast_view);
        EXPECT_TRUE(same_bits(result, expected)) << which << ", call " << call;
        expected.fill_(call), result.fill_(call);
        EXPECT_TRUE(same_bits(fast_memory, eager_memory)) << which << ", call " << call;
      }
      EXPECT_EQ(fast.stats().fallbacks, 0) << which;
    }
}

// What shares memory is another program's, in frozen calls too: the same function of tensors that do not meet, that
// meet where it is read first, and that are one.
TEST(WrittenViews, AreToldFromTensorsApart) {
  const auto f = [](const Tensor& memory, const Tensor& other) {
    const Tensor y = other * 3;
    memory.add_(y.sum());
    return y;
  };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(f, {.mode = mode});
    const Tensor whole = randn({40}), same = whole.clone();
    const auto compare = [&](int64_t at, int64_t beside) {
      const Tensor expected = f(same.narrow(0, at, 8), same.narrow(0, beside, 8));
      EXPECT_TRUE(same_bits(fast(whole.narrow(0, at, 8), whole.narrow(0, beside, 8)), expected));
      EXPECT_TRUE(same_bits(whole, same)) << at << ", " << beside;
    };
    for (int round = 0; round < 3; ++round)
      for (const auto& [at, beside] : {std::pair{0, 16}, {8, 12}, {3, 3}, {24, 20}, {0, 7}}) compare(at, beside);
    EXPECT_EQ(fast.stats().fallbacks, 0);
  }
}

// Two storages over one buffer count their writes apart.
TEST(WrittenViews, OfTwoBlobsRunOpByOp) {
  std::vector<float> buffer(12, 1.0f);
  const Tensor whole = from_blob(buffer.data(), {12}), part = from_blob(buffer.data() + 2, {5});
  auto fast = compile([](const Tensor& a, const Tensor& b) {
    const Tensor y = b * 2;
    a.add_(1);
    return y;
  });
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(same_bits(fast(whole, part), full({5}, 2.0 * (call + 1))));
    EXPECT_TRUE(same_bits(whole, full({12}, call + 2.0)));
  }
  EXPECT_EQ(fast.stats().fallbacks, 3);
}

/// Three steps on `net` of a function that asks for its loss before it goes back.
template <class Net>
Statistics expect_same_training(const Net& net, const std::function<Tensor(const Net&, const Tensor&)>& forward) {
  const Net copy = net.clone();
  const auto step_of = [&](const Net& trained) {
    auto opt = std::make_shared<optim::AdamW>(trained->parameters(), optim::AdamWOptions{.lr = 0.1});
    return [&forward, trained, opt](const Tensor& x) {
      const Tensor loss = forward(trained, x).square().mean();
      if (std::isnan(loss.item<float>())) return loss.detach();
      opt->zero_grad();
      loss.backward();
      opt->step();
      return loss.detach();
    };
  };
  auto eager = step_of(copy);
  auto fast = compile(step_of(net));
  for (int step = 0; step < 4; ++step) {
    const Tensor x = randn({2, 3, 8});
    EXPECT_TRUE(same_bits(fast(x), eager(x))) << "step " << step;
  }
  const std::vector<Tensor> a = net->parameters(), b = copy->parameters();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i], b[i])) << "parameter " << i;
  return fast.stats();
}

// The tape holds views of the parameters that the optimizer writes.
TEST(WrittenViews, OfParametersWhereAStepAsksForItsLoss) {
  manual_seed(4);
  EXPECT_EQ(expect_same_training<nn::Linear>(
                nn::Linear(8, 8),
                [](const nn::Linear& net, const Tensor& x) { return x.matmul(net->weight.t()).tanh() + net->bias; })
                .fallbacks,
            0);
  EXPECT_EQ(expect_same_training<nn::Linear>(nn::Linear(8, 8),
                                             [](const nn::Linear& net, const Tensor& x) {
                                               const auto halves = net->weight.chunk(2);
                                               return F::linear(x, halves[0]).exp() * F::linear(x, halves[1]);
                                             })
                .fallbacks,
            0);
  EXPECT_EQ(expect_same_training<nn::MultiheadAttention>(
                nn::MultiheadAttention(8, 2),
                [](const nn::MultiheadAttention& net, const Tensor& x) { return net(x, x * 2, x + 1); })
                .fallbacks,
            0);
}

}  // namespace
}  // namespace ingot
