// Convolutions that sum few products and what follows them, compiled: batch norm, activations and residuals of any
// layout.
#include <atomic>
#include <thread>

#include "runtime/thread_pool.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

class ConvolutionEpilogues : public test::Inference {};

/// A convolution and the batch norm behind it.
struct Block {
  int64_t in, out, kernel, stride = 1, groups = 1;
  Tensor weight = randn({out, in / groups, kernel, kernel}), scale = rand({out}) + 0.5, shift = randn({out}),
         mean = randn({out}), variance = rand({out}) + 0.5;
  Tensor operator()(const Tensor& x) const {
    const Tensor y = conv2d(x, weight, Tensor(), stride, kernel / 2, 1, groups);
    return nn::functional::batch_norm(y, mean, variance, scale, shift);
  }
};

const std::vector<Block>& blocks() {
  static const std::vector<Block> all = [] {
    manual_seed(3);
    return std::vector<Block>{{16, 48, 1}, {256, 24, 1}, {48, 48, 3, 1, 48}, {24, 24, 3, 2, 24}, {3, 16, 3, 2},
                              {28, 48, 3}, {19, 31, 1},  {16, 48, 1, 2},     {50, 50, 5, 1, 50}};
  }();
  return all;
}

Tensor image(int64_t n, int64_t c, int64_t h, int64_t w, uint64_t seed, bool channels_last = false) {
  manual_seed(seed);
  if (!channels_last) return randn({n, c, h, w});
  return randn({n, h, w, c}).permute({0, 3, 1, 2});
}

struct Size {
  int64_t n, h, w;
};
constexpr Size kSizes[] = {{1, 7, 7}, {3, 8, 8}, {1, 3, 5}, {1, 1, 1}, {0, 7, 7}, {2, 13, 9}};

// The sums of a tile are finished in its registers, in rows or where they lie: the same bits, wherever operands lie.
TEST_F(ConvolutionEpilogues, Activations) {
  for (const Block& block : blocks()) {
    SCOPED_TRACE(std::to_string(block.in) + " -> " + std::to_string(block.out) + ", kernel " +
                 std::to_string(block.kernel));
    const auto clamped = [&](const Tensor& x) { return block(x).clamp(0, 6); };
    const auto swish = [&](const Tensor& x) { return nn::functional::silu(block(x)); };
    const auto plain = [&](const Tensor& x) { return block(x); };
    test::on_every_target({1, 2, 5}, [&] {
      for (const Size& s : kSizes) {
        auto fast_clamped = compile(clamped);
        auto fast_swish = compile(swish);
        auto fast_plain = compile(plain);
        for (bool channels_last : {false, true}) {
          const Tensor x = image(s.n, block.in, s.h, s.w, 7, channels_last);
          EXPECT_TRUE(same_bits(clamped(x), fast_clamped(x)));
          EXPECT_TRUE(same_bits(swish(x), fast_swish(x)));
          EXPECT_TRUE(same_bits(plain(x), fast_plain(x)));
        }
        EXPECT_EQ(fast_clamped.stats().graph_breaks + fast_clamped.stats().recompile_limit_hits, 0);
      }
    });
  }
}

/// Residuals of the result's sizes, however they lie.
std::vector<Tensor> residuals(const Tensor& y) {
  const int64_t n = y.size(0), c = y.size(1), h = y.size(2), w = y.size(3);
  const Tensor rows_apart = image(n, c, h, w + 5, 11).slice(3, 2, 2 + w);
  const Tensor images_apart = image(n + 2, c, h, w, 12).slice(0, 1, 1 + n);
  const Tensor channels_apart = image(n, c + 16, h, w, 13, true).slice(1, 8, 8 + c);
  return {image(n, c, h, w, 14),
          image(n, c, h, w, 15, true),
          rows_apart,
          images_apart,
          channels_apart,
          image(n, c, 1, 1, 16).expand({n, c, h, w}),
          image(1, 1, h, w, 17).expand({n, c, h, w})};
}

TEST_F(ConvolutionEpilogues, Residuals) {
  const auto after = [](const Block& block) {
    return [&block](const Tensor& x, const Tensor& residual) { return relu(block(x) + residual); };
  };
  const auto in_place = [](const Block& block) {
    return [&block](const Tensor& x, const Tensor& residual) {
      Tensor y = residual.clone();
      y.add_(block(x));
      return y.relu_();
    };
  };
  for (const Block& block : blocks()) {
    SCOPED_TRACE(std::to_string(block.in) + " -> " + std::to_string(block.out) + ", kernel " +
                 std::to_string(block.kernel));
    test::on_every_target({1, 2}, [&] {
      for (const Size& s : kSizes) {
        auto fast_after = compile(after(block));
        auto fast_in_place = compile(in_place(block));
        const Tensor x = image(s.n, block.in, s.h, s.w, 7);
        for (const Tensor& residual : residuals(block(x))) {
          EXPECT_TRUE(same_bits(after(block)(x, residual), fast_after(x, residual)));
          EXPECT_TRUE(same_bits(in_place(block)(x, residual), fast_in_place(x, residual)));
        }
        EXPECT_EQ(fast_after.stats().recompile_limit_hits + fast_in_place.stats().recompile_limit_hits, 0);
      }
    });
  }
}

// What is written is the residual itself, an argument or captured, whole or a part of something larger.
TEST_F(ConvolutionEpilogues, ResultsThatAreWrittenOverTheirResidual) {
  for (const Block& block : blocks()) {
    if (block.stride != 1) continue;
    SCOPED_TRACE(std::to_string(block.in) + " -> " + std::to_string(block.out) + ", kernel " +
                 std::to_string(block.kernel));
    test::on_every_target({1, 2}, [&] {
      for (bool channels_last : {false, true}) {
        const Tensor start = image(3, block.out + 8, 9, 8, 21, channels_last);
        Tensor eager = start.clone(), captured = start.clone(), given = start.clone();
        const auto step = [&block](const Tensor& x, const Tensor& onto) {
          Tensor part = onto.slice(0, 1, 3).slice(1, 8, 8 + block.out);
          part.add_(block(x));
          return part.sum();
        };
        auto onto_captured = compile([&](const Tensor& x) { return step(x, captured); });
        auto onto_given = compile(step);
        for (uint64_t s = 0; s < 4; ++s) {
          const Tensor x = image(2, block.in, 9, 8, 30 + s);
          const Tensor sum = step(x, eager);
          EXPECT_TRUE(same_bits(sum, onto_captured(x)));
          EXPECT_TRUE(same_bits(sum, onto_given(x, given)));
          EXPECT_TRUE(same_bits(eager, captured));
          EXPECT_TRUE(same_bits(eager, given));
        }
      }
    });
  }
}

// A later call has other values in the same memory: nothing of what batch norm gives a channel stays from before.
TEST_F(ConvolutionEpilogues, StatisticsThatMove) {
  manual_seed(4);
  Block block{16, 48, 1};
  const auto f = [&](const Tensor& x) { return block(x).clamp(0, 6); };
  auto fast = compile(f);
  auto frozen = compile(f, {.mode = CompileMode::frozen});
  for (uint64_t s = 0; s < 1000; ++s) {
    const Tensor x = image(1, 16, s % 3 + 6, 7, s);
    if (s % 10 == 9) block.mean.add_(0.25), block.variance.mul_(1.01), block.shift.neg_();
    const Tensor y = f(x);
    ASSERT_TRUE(same_bits(y, fast(x))) << "call " << s;
    ASSERT_TRUE(same_bits(y, frozen(x))) << "call " << s;
  }
}

TEST_F(ConvolutionEpilogues, SeveralThreads) {
  manual_seed(5);
  const Block first{16, 48, 1}, second{48, 48, 3, 1, 48};
  const auto f = [&](const Tensor& x) {
    const Tensor y = first(x).clamp(0, 6);
    return second(y).clamp(0, 6) + y;
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  std::vector<Tensor> inputs, expected;
  for (uint64_t s = 0; s < 4; ++s) {
    inputs.push_back(image(1, 16, 14, 14, s));
    expected.push_back(f(inputs.back()));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const NoGradGuard none;
      for (int i = 0; i < 100; ++i) {
        const size_t s = (t + static_cast<size_t>(i)) % expected.size();
        if (!same_bits(expected[s], fast(inputs[s]))) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ingot
