// What a function that is compiled alone does not save for its way back, as it is cheap to compute again from what is
// saved: memory, errors, and gradients that are eager's whatever was written or called in between.
#include <thread>

#include "support.h"

namespace ingot {
namespace {

using namespace test;
namespace F = nn::functional;

/// However small.
class SavedAgain : public testing::Test {
 protected:
  void SetUp() override { setenv("INGOT_RECOMPUTE_FROM", "1", 1); }
  void TearDown() override { unsetenv("INGOT_RECOMPUTE_FROM"); }
};

template <class Function>
size_t again(const Function& f) {
  size_t count = 0;
  for (const auto& program : f.explain().programs) count += program.recomputed.size();
  return count;
}

constexpr int64_t kRows = 48, kWidth = 64;

Tensor numbers(const std::vector<int64_t>& sizes, uint64_t seed) {
  manual_seed(seed);
  return randn(sizes);
}

using Body = std::function<Tensor(const Tensor& x, const Tensor& w)>;
/// Gradients of both; `between`: what is done before the way back, to the weight's detached handle.
std::vector<Tensor> gradients(const Body& f, uint64_t seed, const std::function<void(const Tensor&)>& between = {}) {
  Tensor x = numbers({kRows, kWidth}, seed).requires_grad_(), w = numbers({kWidth, kWidth}, seed + 1).requires_grad_();
  const Tensor loss = f(x, w);
  if (between) between(w.detach());
  loss.backward();
  return {loss.detach(), x.grad(), w.grad()};
}

void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << what << ", " << i;
}

TEST_F(SavedAgain, GradientsOfEveryKindOfChain) {
  // A gelu keeps its argument: what follows it up to the next product is computed again.
  const std::pair<const char*, Body> bodies[] = {
      {"activations", [](const Tensor& x, const Tensor& w) { return F::gelu(x.matmul(w)).matmul(w).silu().sum(); }},
      {"norm",
       [](const Tensor& x, const Tensor& w) {
         return F::layer_norm(x.matmul(w), IntList{kWidth}).relu().matmul(w).square().sum();
       }},
      {"statistics",
       [](const Tensor& x, const Tensor& w) {
         return F::batch_norm(x.matmul(w), Tensor(), Tensor(), Tensor(), Tensor(), true)
             .relu()
             .matmul(w)
             .square()
             .sum();
       }},
      {"dropout",
       [](const Tensor& x, const Tensor& w) {
         manual_seed(77);
         return F::dropout(F::gelu(x.matmul(w)), 0.5).matmul(w).square().sum();
       }},
      {"in place",
       [](const Tensor& x, const Tensor& w) {
         Tensor y = x.matmul(w);
         y.mul_(2), y.add_(1);
         Tensor z = F::gelu(y);
         z.mul_(3);
         return z.matmul(w).square().sum();
       }},
      {"views",
       [](const Tensor& x, const Tensor& w) {
         const Tensor y = F::gelu(x.matmul(w)).view({2, kRows / 2, kWidth}).permute({0, 2, 1}) + 1;
         return y.matmul(x.view({2, kRows / 2, kWidth})).square().sum();
       }},
      {"dtypes",
       [](const Tensor& x, const Tensor& w) {
         const Tensor y = F::gelu(x.matmul(w).to(kBFloat16)) * 3;
         return ((y + 1).matmul(w.to(kBFloat16)).to(kDouble)).exp().mean().to(kFloat32);
       }},
      {"numbers",
       [](const Tensor& x, const Tensor& w) {
         return (F::gelu(x.matmul(w)) * 3 + 0.25).pow(3).clamp(-2, 5).matmul(w).square().sum();
       }},
      {"where", [](const Tensor& x, const Tensor& w) {
         const Tensor y = F::gelu(x.matmul(w)), z = where(y > 0, y, y * 0.1);
         return z.matmul(w).sigmoid().mul(z).sum();
       }}};
  for (const auto& [name, body] : bodies) {
    auto fast = compile(body);
    for (uint64_t seed = 0; seed < 3; ++seed) expect_same(gradients(fast, seed), gradients(body, seed), name);
    EXPECT_GE(again(fast), 1u) << name;
    EXPECT_EQ(fast.stats().fallbacks, 0) << name;
  }
}

// What a value would be computed from may be written to as soon as the call is over: it is kept by value.
TEST_F(SavedAgain, WhatIsWrittenInBetweenChangesNothing) {
  Tensor bias, shift;
  auto fill = [&](uint64_t seed) { bias = numbers({kWidth}, 90 + seed), shift = numbers({kRows, 1}, 91 + seed); };
  const Body body = [&](const Tensor& x, const Tensor& w) {
    return (F::gelu(x.matmul(w)) + bias - shift).matmul(w).square().sum();
  };
  auto fast = compile(body);
  auto write = [&](const Tensor&) { bias.add_(1), shift.zero_(); };
  for (uint64_t seed = 0; seed < 4; ++seed) {
    fill(seed);
    const std::vector<Tensor> expected = gradients(body, seed, write);
    fill(seed);
    expect_same(gradients(fast, seed, write), expected, std::to_string(seed));
  }
  EXPECT_GE(again(fast), 1u);
}

// What the caller has is no ground to build on: it may be written to, and eager says so only where it is saved itself.
TEST_F(SavedAgain, WhatTheCallerHoldsMayBeWritten) {
  Tensor held;
  auto body = [&](const Tensor& x, const Tensor& w) {
    const Tensor y = x.matmul(w);
    held = y;
    const Tensor z = y * 2;  // nothing of y is saved
    return z.tanh().matmul(w).square().sum();
  };
  auto fast = compile(Body(body));
  const auto write = [&](const Tensor&) { held.detach().zero_(); };
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const std::vector<Tensor> expected = gradients(body, seed, write);
    expect_same(gradients(fast, seed, write), expected, std::to_string(seed));
  }
  // What is held and saved is refused in eager's words.
  auto saves = [&](const Tensor& x, const Tensor& w) {
    held = x.matmul(w).relu();
    return held.matmul(w).square().sum();
  };
  auto fast_saves = compile(Body(saves));
  auto refused = [&](const Body& f, uint64_t seed) {
    std::string error = error_of([&] { gradients(f, seed, write); });
    EXPECT_NE(error.find("was modified by an in-place operation"), std::string::npos) << error;
    return error.substr(0, error.find(" (/"));
  };
  for (uint64_t seed = 0; seed < 3; ++seed) EXPECT_EQ(refused(fast_saves, seed), refused(saves, seed));
}

// Written after it was saved, in the function itself: eager refuses the gradient.
TEST_F(SavedAgain, WritesInTheFunctionAreRefusedAsInEager) {
  auto body = [](const Tensor& x, const Tensor& w) {
    Tensor y = x.matmul(w).relu();
    const Tensor z = y.exp();
    y.add_(1);
    return (z * y).sum();
  };
  auto saved_before = [](const Tensor& x, const Tensor& w) {
    Tensor y = x.matmul(w).sigmoid();
    const Tensor z = y * y;
    y.add_(1);
    return (z + y).sum();
  };
  auto fast = compile(Body(body)), fast_saved_before = compile(Body(saved_before));
  for (uint64_t seed = 0; seed < 3; ++seed) {
    for (const auto& both : {std::pair<Body, Body>(fast, body), {fast_saved_before, saved_before}}) {
      const std::string error = error_of([&] { gradients(both.second, seed); });
      EXPECT_NE(error.find("was modified by an in-place operation"), std::string::npos) << error;
      EXPECT_EQ(error_of([&] { gradients(both.first, seed); }), error);
    }
  }
}

TEST_F(SavedAgain, WaysBack) {
  const Body body = [](const Tensor& x, const Tensor& w) { return F::gelu(x.matmul(w)).matmul(w).tanh().mean(); };
  auto fast = compile(body);
  using Way = std::vector<Tensor> (*)(const Body&);
  const std::pair<const char*, Way> ways[] = {
      {"twice",
       [](const Body& f) {
         Tensor x = numbers({kRows, kWidth}, 5).requires_grad_(), w = numbers({kWidth, kWidth}, 6).requires_grad_();
         const Tensor loss = f(x, w);
         loss.backward({}, true), loss.backward();
         const std::string error = error_of([&] { loss.backward(); });
         EXPECT_NE(error.find("its saved tensors are gone"), std::string::npos) << error;
         return std::vector<Tensor>{x.grad(), w.grad()};
       }},
      {"node by node",
       [](const Body& f) {
         const autograd::DetectAnomalyGuard anomaly;
         return gradients(f, 5);
       }},
      {"derivatives of derivatives",
       [](const Body& f) {
         Tensor x = numbers({kRows, kWidth}, 5).requires_grad_(), w = numbers({kWidth, kWidth}, 6).requires_grad_();
         const Tensor first = autograd::grad({f(x, w)}, {w}, {}, true, true)[0];
         return autograd::grad({first.square().sum()}, {x, w});
       }},
      {"in a region of autocast",
       [](const Body& f) {
         Tensor x = numbers({kRows, kWidth}, 5).requires_grad_(), w = numbers({kWidth, kWidth}, 6).requires_grad_();
         const Tensor loss = f(x, w);
         const AutocastGuard autocast;
         loss.backward();
         return std::vector<Tensor>{x.grad(), w.grad()};
       }},
      {"in another compiled function",
       [](const Body& f) {
         Tensor x = numbers({kRows, kWidth}, 5).requires_grad_(), w = numbers({kWidth, kWidth}, 6).requires_grad_();
         const Tensor loss = f(x, w);
         auto back = compile([&](const Tensor& by) {
           loss.backward(by, true);
           return x.grad() * 2;
         });
         const Tensor doubled = back(full({}, 0.5));
         return std::vector<Tensor>{doubled, x.grad(), w.grad()};
       }},
      {"in another order",
       [](const Body& f) {
         Tensor x = numbers({kRows, kWidth}, 5).requires_grad_(), w = numbers({kWidth, kWidth}, 6).requires_grad_();
         const Tensor one = f(x, w), two = f(w.slice(0, 0, kRows), w);
         one.backward(), two.backward();
         return std::vector<Tensor>{x.grad(), w.grad()};
       }},
      {"from two threads",
       [](const Body& f) {
         Tensor x = numbers({kRows, kWidth}, 5).requires_grad_(), w = numbers({kWidth, kWidth}, 6).requires_grad_();
         const Tensor loss = f(x, w);
         std::vector<Tensor> got(2);
         auto back = [&](size_t i) { got[i] = autograd::grad({loss}, {i ? w : x}, {}, true)[0]; };
         std::thread other([&] { back(1); });
         back(0);
         other.join();
         return got;
       }},
      {"checkpointed", [](const Body& f) {
         Tensor x = numbers({kRows, kWidth}, 5).requires_grad_(), w = numbers({kWidth, kWidth}, 6).requires_grad_();
         const Tensor y = autograd::checkpoint([&](const Tensor& t) { return f(t, w) * t; }, x);
         y.sum().backward();
         return std::vector<Tensor>{x.grad(), w.grad()};
       }}};
  for (const auto& [name, way] : ways)
    for (int round = 0; round < 3; ++round) expect_same(way(fast), way(body), name);
  EXPECT_GE(again(fast), 1u);
}

TEST_F(SavedAgain, AThousandCallsHoldNothing) {
  auto fast = compile(
      Body([](const Tensor& x, const Tensor& w) { return F::gelu(x.matmul(w)).matmul(w).silu().matmul(w).mean(); }));
  auto calls = [&](uint64_t from, uint64_t to) {
    for (uint64_t seed = from; seed < to; ++seed) {
      if (seed % 3) {
        gradients(fast, seed);
      } else {  // nobody goes back
        fast(numbers({kRows, kWidth}, seed).requires_grad_(), numbers({kWidth, kWidth}, seed));
      }
    }
    return memory_stats().allocated_bytes;
  };
  const int64_t before = calls(0, 30);
  EXPECT_EQ(calls(30, 1030), before);
  EXPECT_GE(again(fast), 1u);
}

// One recording has them all: whether somebody holds a value is no part of its path.
TEST_F(SavedAgain, WhoHoldsAValueMayChange) {
  Tensor held;
  bool hold = false;
  const Body body = [&](const Tensor& x, const Tensor& w) {
    const Tensor y = F::gelu(x.matmul(w)) + 1;
    if (hold) held = y;
    return y.matmul(w).square().mean();
  };
  auto fast = compile(body);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    hold = seed % 2;
    const std::vector<Tensor> expected = gradients(body, seed);
    const Tensor eagers = hold ? held.detach().clone() : Tensor();
    expect_same(gradients(fast, seed), expected, std::to_string(seed));
    if (hold) EXPECT_TRUE(same_bits(held.detach(), eagers));
    held = {};
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST_F(SavedAgain, SizesAndNumbersAreThoseOfTheCall) {
  const Body body = [](const Tensor& x, const Tensor& w) {
    return (F::layer_norm(x.matmul(w), IntList{kWidth}) * static_cast<double>(x.size(0)))
        .tanh()
        .matmul(w)
        .square()
        .sum();
  };
  auto fast = compile(body, {.recompile_limit = 16});
  for (int64_t rows : {48, 1, 0, 300, 2, 48, 1, 9})
    for (bool strided : {false, true}) {
      auto run = [&](const Body& f) {
        Tensor x = numbers(strided ? std::vector<int64_t>{kWidth, rows} : std::vector<int64_t>{rows, kWidth},
                           20 + static_cast<uint64_t>(rows));
        if (strided) x = x.t();
        x.requires_grad_();
        Tensor w = numbers({kWidth, kWidth}, 21).requires_grad_();
        f(x, w).backward();
        return std::vector<Tensor>{x.grad(), w.grad()};
      };
      expect_same(run(fast), run(body), std::to_string(rows));
    }
  EXPECT_EQ(fast.stats().recompile_limit_hits, 0);
}

}  // namespace

TEST(SavedAgainMemory, ALayersNormalizedResultIsNotSaved) {
  constexpr int64_t kBytes = 8 * 32 * 32 * 32 * 4;  // of an image
  manual_seed(1);
  nn::Conv2d first(3, 32, 3, nn::ConvOptions{.padding = 1}), second(32, 32, 3, nn::ConvOptions{.padding = 1});
  nn::BatchNorm2d norm(32);
  auto loss_of = compile([&](const Tensor& x) { return second(nn::functional::relu(norm(first(x)))).square().mean(); });
  const Tensor x = randn({8, 3, 32, 32});
  for (int step = 0; step < 2; ++step) loss_of(x).backward();
  const MemoryStats before = memory_stats();
  const Tensor loss = loss_of(x);
  // What both convolutions made, statistics and parameters of the norm; eager has the ReLU's result, too.
  EXPECT_LE(memory_stats().allocated_bytes - before.allocated_bytes, 2 * kBytes + kBytes / 8);
  const auto explanation = loss_of.explain();
  const auto& program = explanation.programs.back();
  ASSERT_EQ(program.recomputed.size(), 1u);
  EXPECT_EQ(program.recomputed[0].op, "relu");
  EXPECT_EQ(program.recomputed[0].bytes, kBytes);
  EXPECT_GE(program.bytes_saved_for_backward(), 2 * kBytes);
  EXPECT_NE(explanation.str().find("computed again"), std::string::npos);
}

}  // namespace ingot
