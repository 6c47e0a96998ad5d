// Convolutions under fast numerics: tiles may be transformed, and nothing else about a call shows in their bits.
#include <array>
#include <cmath>

#include "runtime/thread_pool.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

class Winograd : public test::Inference {};

/// The second convolution lets the first one's result lie with its channels innermost.
Tensor network(const Tensor& x, const Tensor& weight, const Tensor& last) {
  return conv2d(relu(conv2d(x, weight, Tensor(), 1, 1)), last);
}

struct Operands {
  Tensor x, weight, last;
  Operands(int64_t n, int64_t in, int64_t out, int64_t h, int64_t w) {
    manual_seed(9);
    x = randn({n, in, h, w}), weight = randn({out, in, 3, 3}) / std::sqrt(9.0 * static_cast<double>(in));
    last = randn({5, out, 1, 1}) / std::sqrt(static_cast<double>(out));
  }
  Tensor direct() const { return network(x, weight, last); }
  Tensor exact() const { return network(x.to(kFloat64), weight.to(kFloat64), last.to(kFloat64)); }
};

double error_of(const Tensor& got, const Tensor& exact) {
  return (got.to(kFloat64) - exact).abs().amax().item<double>() / exact.abs().amax().item<double>();
}

std::string algorithms(Explanation explanation) {
  std::string text;
  for (const Explanation::Step& step : explanation.programs.back().steps) text += step.algorithm + "\n";
  return text;
}

TEST_F(Winograd, OnlyFastNumericsTransformTilesWithinItsError) {
  const Operands o(2, 64, 48, 29, 33);
  auto by_default = compile(network), fast = compile(network, {.numerics = Numerics::fast});
  EXPECT_TRUE(same_bits(by_default(o.x, o.weight, o.last), o.direct()));
  const Tensor y = fast(o.x, o.weight, o.last), exact = o.exact();
  EXPECT_FALSE(same_bits(y, o.direct()));
  EXPECT_LE(error_of(y, exact), 20 * error_of(o.direct(), exact));
  EXPECT_EQ(algorithms(by_default.explain()).find("Winograd"), std::string::npos);
  EXPECT_NE(algorithms(fast.explain()).find("Winograd"), std::string::npos);
}

// A small image is computed directly, whatever the level.
TEST_F(Winograd, FewTilesAreNot) {
  for (auto [h, w] : {std::pair<int64_t, int64_t>(7, 7), {9, 10}, {1, 1}, {1, 400}}) {
    const Operands o(1, 32, 32, h, w);
    auto fast = compile(network, {.numerics = Numerics::fast});
    EXPECT_TRUE(same_bits(fast(o.x, o.weight, o.last), o.direct())) << h << " x " << w;
    const Tensor many = o.x.expand({20, 32, h, w});
    EXPECT_TRUE(same_bits(fast(many, o.weight, o.last)[19], o.direct()[0])) << h << " x " << w;
  }
}

// Batches, threads, layouts, sizes of before, and bands of lines: 112 x 112 images take several.
TEST_F(Winograd, BitsAreThoseOfEachImageAlone) {
  for (auto [n, h, w] : {std::array<int64_t, 3>{3, 18, 21}, {2, 112, 112}}) {
    const Operands o(n, 64, 64, h, w);
    std::vector<Tensor> alone;
    auto first = compile(network, {.numerics = Numerics::fast});
    for (int64_t i = 0; i < n; ++i) alone.push_back(first(o.x.slice(0, i, i + 1), o.weight, o.last));
    const Tensor expected = cat(alone, 0);
    const test::RestoredSettings restored;
    for (int threads : {1, 2, 5})
      for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
        set_num_threads(threads);
        auto fast = compile(network, {.mode = mode, .numerics = Numerics::fast});
        for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(fast(o.x, o.weight, o.last), expected));
        EXPECT_TRUE(
            same_bits(fast(o.x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2}), o.weight, o.last), expected));
        EXPECT_TRUE(same_bits(fast(o.x.slice(0, 0, 1), o.weight, o.last), alone[0]));
      }
  }
}

// Kept packed, packed for one call, or made from what was written a moment ago.
TEST_F(Winograd, WeightsThatMove) {
  Operands o(1, 32, 40, 20, 20);
  Tensor captured = o.weight.clone(), wide = randn({44, 36, 3, 3});
  auto by_capture =
      compile([&](const Tensor& x) { return network(x, captured, o.last); }, {.numerics = Numerics::fast});
  auto by_view = compile([&](const Tensor& x) { return network(x, wide.slice(0, 2, 42).slice(1, 4, 36), o.last); },
                         {.numerics = Numerics::fast});
  for (int call = 0; call < 12; ++call) {
    // Still for three calls, then another one each time.
    if (call > 2) captured.mul_(1.25), wide.add_(0.125);
    auto once = compile(network, {.numerics = Numerics::fast});
    EXPECT_TRUE(same_bits(by_capture(o.x), once(o.x, captured.clone(), o.last))) << "call " << call;
    EXPECT_TRUE(same_bits(by_view(o.x), once(o.x, wide.slice(0, 2, 42).slice(1, 4, 36).clone(), o.last)));
  }
}

}  // namespace
}  // namespace ingot
