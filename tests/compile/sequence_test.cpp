// The steps of a sequence as a part of a program that runs once for each: one program for all lengths, whatever lies
// where, forwards and backwards.
#include "compile/support.h"

namespace ingot {
namespace {

using test::same_bits;
using Tensors = std::vector<Tensor>;

void expect_same(const Tensors& got, const Tensors& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(same_bits(got[i].detach(), expected[i].detach())) << what << ", result " << i;
}

nn::RNNOptions both_ways(int64_t layers) { return {.num_layers = layers, .bidirectional = true}; }

constexpr int64_t kLengths[] = {5, 7, 64, 65, 2, 1, 300, 17, 1, 130};
/// That of the first length, one for all, and one of a single step.
constexpr int64_t kPrograms = 3;

template <class Layer>
void expect_one_program(const Layer& layer, CompileMode mode) {
  const NoGradGuard no_grad;
  auto call = [&](const Tensor& x) { return std::get<0>(layer(x)); };
  auto fast = compile(call, {.mode = mode});
  for (int64_t length : kLengths) {
    const Tensor x = randn({length, 3, 4}), expected = call(x);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(fast(x), expected)) << length;
  }
  EXPECT_LE(fast.stats().compilations, kPrograms) << fast.explain().str();
  EXPECT_EQ(fast.stats().fallbacks + fast.stats().graph_breaks, 0);
}

TEST(Sequence, AllLengthsAreOneProgram) {
  test::on_every_target({1, 2}, [] {
    manual_seed(1);
    for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
      expect_one_program(nn::RNN(4, 5, both_ways(1)), mode);
      expect_one_program(nn::GRU(4, 17, both_ways(2)), mode);
      expect_one_program(nn::LSTM(4, 6, both_ways(2)), mode);
    }
  });
}

template <class Layer>
void expect_one_step(Layer layer) {
  auto learn = [&](const Tensor& x) {
    const Tensor loss = std::get<0>(layer(x)).square().sum();
    loss.backward();
    return loss.detach();
  };
  auto gradients = [&] {
    Tensors found;
    for (const Tensor& p : layer->parameters()) found.push_back(p.grad());
    layer->zero_grad();
    return found;
  };
  auto fast = compile(learn);
  for (int64_t length : kLengths) {
    Tensor x = randn({length, 2, 4}).requires_grad_();
    Tensors expected = {learn(x), x.grad()};
    for (const Tensor& g : gradients()) expected.push_back(g);
    for (int i = 0; i < 3; ++i) {
      x.set_grad({});
      Tensors got = {fast(x), x.grad()};
      for (const Tensor& g : gradients()) got.push_back(g);
      expect_same(got, expected, "length " + std::to_string(length));
    }
  }
  EXPECT_LE(fast.stats().compilations, kPrograms) << fast.explain().str();
  EXPECT_EQ(fast.stats().fallbacks + fast.stats().graph_breaks, 0);
}

TEST(Sequence, ATrainingStepOfAllLengthsIsOneProgram) {
  test::on_every_target({1, 2}, [] {
    manual_seed(2);
    expect_one_step(nn::RNN(4, 5, nn::RNNOptions{.bidirectional = true, .nonlinearity = "relu"}));
    expect_one_step(nn::GRU(4, 17, both_ways(1)));
    expect_one_step(nn::LSTM(4, 6, both_ways(2)));
  });
}

// Weights that the step itself writes are read by all steps of the sequence before.
TEST(Sequence, WholeStepsOfTrainingHaveTheBitsOfEager) {
  test::on_every_target({1, 2}, [] {
    auto train = [](bool compiled) {
      manual_seed(8);
      nn::LSTM layer(4, 40, both_ways(1));
      optim::AdamW optimizer(layer->parameters(), {.lr = 1e-2});
      auto learn = [&](const Tensor& x) {
        auto [output, last] = layer(x);
        const Tensor loss = output.square().mean() + std::get<1>(last).sin().sum();
        loss.backward();
        optimizer.step();
        optimizer.zero_grad();
        return loss.detach();
      };
      auto fast = compile(learn);
      Tensors results;
      for (int64_t length : {6, 6, 6, 9, 9, 4, 6, 30, 2}) {
        const Tensor x = randn({length, 3, 4});
        results.push_back(compiled ? fast(x) : learn(x));
      }
      if (compiled) EXPECT_EQ(fast.stats().fallbacks + fast.stats().graph_breaks, 0) << fast.explain().str();
      for (const Tensor& p : layer->parameters()) results.push_back(p.detach().clone());
      return results;
    };
    expect_same(train(true), train(false), "losses and weights");
  });
}

// A program of all lengths is none of length 0, of which eager says that it is an error; the next call is as before.
TEST(Sequence, NoStepsAreRefusedWhateverWasSeenBefore) {
  const NoGradGuard no_grad;
  manual_seed(9);
  const Tensor h = randn({2, 5}), w = randn({5, 5});
  auto call = [&](const Tensor& x) { return rnn_sequence(x, h, w, {}).sum(0); };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(call, {.mode = mode});
    for (int round = 0; round < 3; ++round)
      for (int64_t length : {4, 7, 9, 0, 1, 0, 12}) {
        const Tensor x = randn({length, 2, 5});
        if (length == 0)
          EXPECT_THROW(fast(x), Error);
        else
          EXPECT_TRUE(same_bits(fast(x), call(x))) << length;
      }
  }
}

/// Calls of the op itself, eager and compiled, as what they read lies elsewhere or in one another.
void expect_bits_of_copies(const std::function<Tensors(const Tensors&)>& f, const Tensors& in,
                           const std::string& what) {
  Tensors copies;
  for (const Tensor& t : in) copies.push_back(t.contiguous().clone());
  const Tensors expected = f(copies);
  expect_same(f(in), expected, what + ", eager");
  auto fast = compile(f);
  for (int i = 0; i < 3; ++i) expect_same(fast(in), expected, what);
  EXPECT_EQ(fast.stats().fallbacks + fast.stats().graph_breaks, 0) << what;
}

TEST(Sequence, OperandsMayLieAnywhereAndInOneAnother) {
  const NoGradGuard no_grad;
  manual_seed(3);
  test::on_every_target({1, 2}, [] {
    const Tensor all = randn({8, 4, 16});
    for (bool reverse : {false, true}) {
      auto call = [=](const Tensors& in) {
        auto [h, c] = lstm_sequence(in[0], in[1], in[2], in[3], in[4], reverse);
        return Tensors{h, c};
      };
      auto expect = [&](const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w, const Tensor& b,
                        const char* what) {
        expect_bits_of_copies(call, {x, h, c, w, b}, what);
      };
      const Tensor weight = randn({16, 4}), bias = randn({16}), state = randn({4, 4});
      expect(all, all.select(0, 2).narrow(1, 1, 4), all.select(0, 7).narrow(1, 12, 4),
             all.select(1, 0).t().narrow(1, 0, 4), all.select(0, 3).select(0, 1), "all of one tensor");
      expect(all.transpose(0, 1), randn({8, 4}), randn({8, 4}), weight, bias, "along the batch");
      expect(all.permute({0, 2, 1}).narrow(2, 0, 4).transpose(1, 2), state, state, weight, bias, "columns apart");
      expect(all.narrow(0, 3, 1).expand({8, 4, 16}), state, state, weight, bias, "one row for all steps");
      expect(all.narrow(1, 0, 1).expand({8, 4, 16}), state, state, weight.t().contiguous().t(), bias,
             "one for all rows");
      expect(all.slice(0, 1, 8, 3), state.t(), state.expand({4, 4}), weight, bias, "every third step");
    }
  });
}

// One result is read along two of its dims, by steps before and behind, and as a whole.
TEST(Sequence, AResultMayBeReadInAllWays) {
  const NoGradGuard no_grad;
  manual_seed(4);
  test::on_every_target({1, 2}, [] {
    const Tensor w = randn({6, 6}), h = randn({6, 6});
    for (bool first : {false, true})
      for (bool second : {false, true}) {
        auto call = [=](const Tensors& in) {
          const Tensor x = in[0] * 2, y = rnn_sequence(x, h, w, {}, "tanh", first);
          const Tensor across = rnn_sequence(y.transpose(0, 1), y.select(0, 1), w, {}, "relu", second);
          const Tensor along = rnn_sequence(y, across.select(1, 2), y.select(0, 3), y.select(0, 0).select(0, 0));
          const Tensor joined = cat({y, across, along}, 2);
          const Tensor last =
              rnn_sequence(joined.narrow(2, 6, 6), h, joined.narrow(2, 0, 6).select(1, 1), {}, "tanh", second);
          return Tensors{x, y, across, along, joined, last, last.sum(0)};
        };
        expect_bits_of_copies(call, {randn({6, 6, 6})}, "read in all ways");
      }
  });
}

// What is written over an operand is seen by nobody before it; a write into the result is no write to a state.
TEST(Sequence, WritesComeAfterAllSteps) {
  const NoGradGuard no_grad;
  manual_seed(5);
  auto call = [](Tensor x, Tensor h, Tensor w) {
    Tensor y = rnn_sequence(x, h, w, {});
    x.copy_(y);  // over the input
    h.copy_(y.select(0, -1));
    y.select(0, 0).mul_(2);
    w.add_(y.select(0, -1));
    return Tensors{y, x * 1, h * 1, w * 1};
  };
  auto fast = compile(call);
  for (int64_t steps : {4, 2, 4, 9, 1}) {
    const Tensor x = randn({steps, 5, 5}), h = randn({5, 5}), w = randn({5, 5});
    Tensors eager = {x.clone(), h.clone(), w.clone()}, compiled = {x.clone(), h.clone(), w.clone()};
    expect_same(fast(compiled[0], compiled[1], compiled[2]), call(eager[0], eager[1], eager[2]), "results");
    expect_same(compiled, eager, "what was written over");
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(Sequence, BatchesMayBeEmptyAndWeightsMayMove) {
  const NoGradGuard no_grad;
  manual_seed(6);
  nn::LSTM layer(4, 6);
  auto call = [&](const Tensor& x) { return std::get<0>(layer(x)); };
  auto fast = compile(call, {.mode = CompileMode::frozen});
  for (int round = 0; round < 3; ++round) {
    for (int64_t batch : {3, 1, 0, 5, 2}) {
      const Tensor x = randn({4, batch, 4});
      EXPECT_TRUE(same_bits(fast(x), call(x))) << batch;
    }
    for (Tensor& p : layer->parameters()) p.mul_(0.5);
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

}  // namespace
}  // namespace ingot
