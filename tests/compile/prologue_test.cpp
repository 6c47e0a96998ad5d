// Products that make the rows of their left operand: inputs of any layout, sizes, dtypes, from several threads.
#include <functional>
#include <thread>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

struct Prologue : testing::Test {
  const test::RestoredSettings restored;
  const NoGradGuard no_grad;
};

/// A convolution of pixels that are scaled, between two others; and a linear layer that alone reads what is normalized.
struct Network {
  Tensor first, second, third, weight;
  explicit Network(DType dtype)
      : first(randn({24, 3, 3, 3}).to(dtype)),
        second(randn({40, 24, 1, 1}).to(dtype)),
        third(randn({5, 40, 3, 3}).to(dtype)),
        weight(randn({20, 33}).to(dtype)) {}
  Tensor images(const Tensor& x) const {
    const Tensor y = conv2d(x, first, {}, 1, 1), scale = sigmoid(y.mean({2, 3}, true));
    return conv2d(relu(conv2d(y * scale, second)), third);
  }
  Tensor rows(const Tensor& x) const { return softmax(x, 1).matmul(weight) * 2; }
};

template <class F>
bool has_prologue(const F& fast) {
  for (const auto& program : fast.explain().programs)
    for (const auto& step : program.steps)
      if (step.algorithm.find("prologue") != std::string::npos) return true;
  return false;
}

TEST_F(Prologue, OfInputsOfAnyLayoutAndSize) {
  for (DType dtype : {kFloat32, kFloat64})
    for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
      const Network network(dtype);
      auto images = compile([&](const Tensor& x) { return network.images(x); }, {.mode = mode});
      auto rows = compile([&](const Tensor& x) { return network.rows(x); }, {.mode = mode});
      for (int round = 0; round < 3; ++round)
        for (int64_t n : {2, 3, 1, 0, 2}) {
          const Tensor whole = randn({n + 1, 3, 14, 16}).to(dtype);
          for (const Tensor& x : {whole.narrow(0, 1, n), whole.narrow(0, 0, n).narrow(3, 1, 14),
                                  whole.permute({0, 1, 3, 2}).narrow(0, 0, n)})
            EXPECT_TRUE(same_bits(images(x), network.images(x)));
          const Tensor matrix = randn({150 * n + 1, 40}).to(dtype);
          for (const Tensor& x : {matrix.narrow(1, 0, 20), matrix.narrow(0, 0, 150 * n).narrow(1, 3, 20)})
            EXPECT_TRUE(same_bits(rows(x), network.rows(x)));
        }
      EXPECT_TRUE(has_prologue(images));
      EXPECT_TRUE(has_prologue(rows));
      EXPECT_EQ(images.stats().fallbacks + rows.stats().fallbacks, 0);
    }
}

TEST_F(Prologue, OfManyCallsFromSeveralThreads) {
  const Network network(kFloat32);
  auto fast = compile([&](const Tensor& x) { return network.rows(x); }, {.mode = CompileMode::frozen});
  const Tensor first = randn({200, 20});
  for (int call = 0; call < 3; ++call) fast(first);
  std::vector<Tensor> inputs, expected;
  for (int i = 0; i < 4; ++i) inputs.push_back(randn({200, 20})), expected.push_back(network.rows(inputs.back()));
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const NoGradGuard guard;
      for (int call = 0; call < 600; ++call) wrong[i] += !same_bits(fast(inputs[i]), expected[i]);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
  EXPECT_TRUE(has_prologue(fast));
}

}  // namespace
}  // namespace ingot
