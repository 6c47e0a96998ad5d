// What a compiled training step gives back and keeps: its loss with a tape, gradients, masks.
#include "small_net.h"

namespace ingot {
namespace {

using namespace test;
namespace F = nn::functional;

/// A step that ends with `return loss;`.
auto step_of(const Net& net, optim::Optimizer& opt, std::optional<bool> retain_graph = {}) {
  return [net, &opt, retain_graph](const Tensor& x, const Tensor& y) {
    Tensor loss = F::mse_loss(net(x), y);
    loss.backward({}, retain_graph);
    opt.step();
    opt.zero_grad();
    return loss;
  };
}

TEST(ReturnedLoss, WithATapeThatWasUsedHasEagersBits) {
  Net eager = make_net(), compiled = make_net();
  optim::AdamW eager_opt(eager->parameters(), {.lr = 1e-2}), compiled_opt(compiled->parameters(), {.lr = 1e-2});
  auto one = step_of(eager, eager_opt);
  auto fast = compile(step_of(compiled, compiled_opt));
  for (int s = 0; s < 8; ++s) {
    const Tensor x = batch(4, s), y = batch(4, s + 50);
    const Tensor expected = one(x, y), got = fast(x, y);
    EXPECT_TRUE(same_bits(got.detach(), expected.detach())) << s;
    EXPECT_TRUE(got.requires_grad());
    EXPECT_FALSE(got.is_leaf());
    EXPECT_EQ(got.grad_fn().name(), expected.grad_fn().name());
    auto backward = [](const Tensor& loss) { return error_of([&] { loss.backward(); }); };
    const std::string error = backward(expected);
    EXPECT_NE(error.find("its saved tensors are gone"), std::string::npos) << error;
    EXPECT_EQ(backward(got), error);
  }
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(same_bits(eager->parameters()[i].detach(), compiled->parameters()[i].detach())) << i;
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().graph_breaks, 0);
}

// Kept for another time, the tape reads parameters that the step has written: refused, in eager's words.
TEST(ReturnedLoss, WithATapeThatIsKept) {
  Net eager = make_net(), compiled = make_net();
  optim::SGD eager_opt(eager->parameters(), {.lr = 0.1}), compiled_opt(compiled->parameters(), {.lr = 0.1});
  auto one = step_of(eager, eager_opt, true);
  auto fast = compile(step_of(compiled, compiled_opt, true));
  for (int s = 0; s < 4; ++s) {
    const Tensor x = batch(4, s), y = batch(4, s + 50);
    const Tensor expected = one(x, y), got = fast(x, y);
    EXPECT_TRUE(same_bits(got.detach(), expected.detach())) << s;
    auto backward = [](const Tensor& loss) { return error_of([&] { loss.backward(); }); };
    const std::string error = backward(expected);
    EXPECT_NE(error.find("was modified by an in-place operation after it was saved"), std::string::npos) << error;
    EXPECT_EQ(backward(got), error);
    eager_opt.zero_grad(), compiled_opt.zero_grad();
  }
  // Where nothing was written the tape that came out goes on.
  auto gradients = [](const Tensor& x) {
    Tensor loss = x.tanh().square().sum();
    loss.backward({}, true);
    return loss;
  };
  auto compiled_gradients = compile(gradients);
  for (int s = 0; s < 3; ++s) {
    Tensor a = batch(4, s).requires_grad_(), b = a.detach().clone().requires_grad_();
    gradients(a).backward(), compiled_gradients(b).backward();
    EXPECT_TRUE(same_bits(a.grad(), b.grad()));
  }
}

constexpr int64_t kWidth = 1024;
constexpr int64_t kGradient = kWidth * kWidth * 4;

/// The most that a later step of one wide layer has beyond what is there between steps, and its program.
struct WideStep {
  int64_t bytes = 0;
  Explanation::Program program;
  explicit WideStep(bool keep) {
    nn::Linear layer(kWidth, kWidth);
    auto step = compile([&](const Tensor& x) {
      Tensor loss = layer(x).square().mean();
      loss.backward();
      const NoGradGuard no_grad;
      for (const Tensor& p : layer->parameters()) {
        p.sub_(p.grad(), 1e-3);
        if (!keep) p.set_grad({});
      }
      return loss.detach();
    });
    const Tensor x = randn({8, kWidth});
    for (int s = 0; s < 4; ++s) {
      layer->zero_grad();
      reset_peak_memory_stats();
      const MemoryStats before = memory_stats();
      step(x);
      bytes = memory_stats().peak_beyond_scratch_bytes - (before.allocated_bytes - before.scratch_bytes);
    }
    EXPECT_EQ(step.stats().fallbacks, 0);
    program = step.explain().programs.back();
  }
};

TEST(StepMemory, AGradientThatNobodyKeepsHasNoneOfItsOwn) {
  const WideStep kept(true), passing(false);
  EXPECT_GE(kept.bytes, kGradient);
  EXPECT_LT(passing.bytes, kGradient / 2) << passing.program.report;
  // The loss, both parameters, and the gradients that are kept.
  EXPECT_EQ(kept.program.outputs.size(), passing.program.outputs.size() + 2);
}

/// With dropout in the middle, whose mask is a value of 256 KiB in f32.
struct DroppedImpl : nn::Module {
  nn::Linear up{64, 256}, down{256, 64};
  Tensor forward(const Tensor& x) { return down(F::dropout(gelu(up(x)), 0.25)); }
};
INGOT_MODULE(Dropped, up, down);

TEST(StepMemory, DropoutKeepsNoMask) {
  auto make = [] {
    manual_seed(3);
    return Dropped();
  };
  Dropped eager = make(), compiled = make();
  auto step_of = [](const Dropped& net) {
    return [net](const Tensor& x) {
      Tensor loss = net(x).square().mean();
      loss.backward();
      const NoGradGuard no_grad;
      for (const Tensor& p : net->parameters()) {
        p.sub_(p.grad(), 0.1);
        p.set_grad({});
      }
      return loss.detach();
    };
  };
  auto one = step_of(eager);
  auto fast = compile(step_of(compiled));
  for (int s = 0; s < 4; ++s) {
    manual_seed(100 + s);
    const Tensor x = randn({256, 64}), expected = one(x);
    manual_seed(100 + s);
    randn({256, 64});  // as for x
    EXPECT_TRUE(same_bits(fast(x), expected)) << s;
  }
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(same_bits(eager->parameters()[i].detach(), compiled->parameters()[i].detach())) << i;
  EXPECT_EQ(fast.stats().fallbacks, 0);
  const Explanation explained = fast.explain();
  const Explanation::Program& program = explained.programs.back();
  std::string all;
  int64_t large = 0;
  for (const auto& saved : program.saved) {
    all += saved.op + " " + std::to_string(saved.bytes) + ", " + saved.reason + "\n";
    large += saved.bytes >= 256 * 256 * 4;
  }
  for (const auto& again : program.recomputed) all += "again " + again.op + ", " + again.reason + "\n";
  // What gelu reads and what the second layer reads; no third value of that size, which the mask would be.
  EXPECT_LE(large, 2) << all;
  EXPECT_FALSE(std::any_of(program.saved.begin(), program.saved.end(), [](const auto& s) {
    return s.op == "dropout" || s.op.find("rand") != std::string::npos;
  })) << all;
}

}  // namespace
}  // namespace ingot
