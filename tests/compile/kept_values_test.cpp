// What a program computes of its weights alone is kept between calls, and made again when a weight, the memory that it
// lies in, or a scalar is another.
#include <atomic>
#include <thread>

#include "runtime/thread_pool.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

class KeptValues : public test::Inference {};

struct BlockImpl : nn::Module {
  nn::Conv2d conv{16, 16, 3, nn::ConvOptions{.padding = 1}};
  nn::BatchNorm2d norm{16};
  nn::Conv2d last{16, 4, 1};
  Tensor forward(const Tensor& x) const { return last(relu(norm(conv(x)))); }
};
INGOT_MODULE(Block, conv, norm, last);

/// Whose running statistics are not those of a fresh one.
Block block(uint64_t seed) {
  manual_seed(seed);
  Block b;
  b->norm->running_mean.copy_(randn({16}));
  b->norm->running_var.copy_(rand({16}) + 0.5);
  b->eval();
  return b;
}

int kept_steps(const Explanation& explanation) {
  int kept = 0;
  for (const Explanation::Step& step : explanation.programs.back().steps)
    kept += step.weight.find("kept while the weights stay") != std::string::npos;
  return kept;
}

/// Calls checked and frozen functions of the block between writes, beside eager.
template <class Write>
void follow(Write write) {
  test::on_every_target({1, 2}, [&] {
    Block b = block(1);
    auto checked = compile(b), frozen = compile(b, {.mode = CompileMode::frozen});
    for (int call = 0; call < 24; ++call) {
      if (call % 4 == 3) write(b, call);
      manual_seed(static_cast<uint64_t>(call));
      const Tensor x = randn({1 + call % 2, 16, 9, 8}), y = b(x);
      ASSERT_TRUE(same_bits(checked(x), y)) << "call " << call;
      ASSERT_TRUE(same_bits(frozen(x), y)) << "call " << call;
    }
    EXPECT_EQ(kept_steps(checked.explain()), 1);
  });
}

TEST_F(KeptValues, FollowEveryWriteToTheirWeights) {
  follow([](Block&, int) {});
  follow([](Block& b, int) { b->norm->running_mean.add_(0.5); });
  follow([](Block& b, int) { b->norm->running_var.slice(0, 3, 5).mul_(2); });
  follow([](Block& b, int) { b->norm->weight[7].neg_(); });
  follow([](Block& b, int call) { b->norm->bias = randn({16}) + call; });
  follow([](Block& b, int) { b->norm->running_var = b->norm->running_var.clone() + 1; });
  follow([](Block& b, int call) { b->load_state_dict(block(static_cast<uint64_t>(call))->state_dict()); });
  follow([](Block& b, int call) {
    b->load_state_dict(block(static_cast<uint64_t>(call))->state_dict(), {.assign = true});
  });
  follow([](Block& b, int call) {  // a step of training between calls for inference
    b->train();
    (void)b(randn({3, 16, 6, 6}) * call);
    b->eval();
  });
}

// Another storage, an offset in the same one, and memory that is written without a trace.
TEST_F(KeptValues, AreToldByWhereTheirSourcesLie) {
  Tensor scale = rand({16}), many = rand({4, 16});
  std::vector<float> own(16, 0.5f);
  Tensor outside = from_blob(own.data(), {16});
  int64_t row = 0;
  auto root = [&](const Tensor& x) { return x * (scale + 1).sqrt() + (many[row] + 1).rsqrt() + (outside + 1).sqrt(); };
  auto checked = compile(root);
  for (int call = 0; call < 20; ++call) {
    if (call % 3 == 0) scale = rand({16});
    if (call % 2 == 0) row = call / 2 % 4;
    own[3] += 0.25f;
    const Tensor x = randn({3, 16});
    ASSERT_TRUE(same_bits(checked(x), root(x))) << "call " << call;
  }
}

TEST_F(KeptValues, AreToldByTheScalarsOfTheirSteps) {
  const Tensor weight = rand({32});
  auto f = [&](const Tensor& x, double by) { return x.sum({0}) + (weight + by).log(); };
  auto checked = compile(f), frozen = compile(f, {.mode = CompileMode::frozen});
  for (int call = 0; call < 12; ++call) {
    const Tensor x = randn({64, 32});
    const double by = call / 3 + 0.5;
    ASSERT_TRUE(same_bits(checked(x, by), f(x, by))) << "call " << call;
    ASSERT_TRUE(same_bits(frozen(x, by), f(x, by))) << "call " << call;
  }
}

// A function that writes to the weight whose root it read.
TEST_F(KeptValues, ReadBeforeAndWrittenInTheSameCall) {
  Tensor eager = rand({16}) + 1, captured = eager.clone();
  auto step = [](const Tensor& x, Tensor& weight) {
    const Tensor y = x * weight.sqrt();
    weight.mul_(1.125);
    return y + weight.log();
  };
  auto fast = compile([&](const Tensor& x) { return step(x, captured); });
  for (int call = 0; call < 8; ++call) {
    const Tensor x = randn({5, 16});
    ASSERT_TRUE(same_bits(fast(x), step(x, eager))) << "call " << call;
    ASSERT_TRUE(same_bits(captured, eager)) << "call " << call;
  }
}

TEST_F(KeptValues, OfEachThreadsRunsAreItsOwn) {
  Block b = block(2);
  auto fast = compile(b, {.mode = CompileMode::frozen});
  const Tensor x = randn({1, 16, 9, 8});
  for (int round = 0; round < 5; ++round) {
    b->norm->running_mean.add_(1);
    const Tensor y = b(x);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        const NoGradGuard none;
        for (int i = 0; i < 20; ++i) wrong += !same_bits(fast(x), y);
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0) << "round " << round;
  }
}

}  // namespace
}  // namespace ingot
