// Attention written out in ops: one step where the bits are those of the ops, as eager computes them one by one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;
using Function = std::function<Tensor(const Tensor& q, const Tensor& k, const Tensor& v)>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Steps of this form in all programs.
template <class F>
int64_t steps(const F& fast, const std::string& form) {
  int64_t count = 0;
  for (const auto& program : fast.explain().programs)
    for (const auto& step : program.steps) count += step.form == form;
  return count;
}

class WrittenAttention : public test::Inference {
 protected:
  /// Eager bits, whatever the mode; `attention`: as a step of its own.
  void expect_bits(const char* what, const Function& f, const Tensor& q, const Tensor& k, const Tensor& v,
                   bool attention = true) {
    SCOPED_TRACE(what);
    const Tensor expected = f(q, k, v);
    for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
      auto fast = compile(f, {.mode = mode});
      for (int call = 0; call < 3; ++call) ASSERT_TRUE(same_bits(fast(q, k, v), expected));
      EXPECT_EQ(steps(fast, "attention"), attention) << fast.explain().str();
    }
  }
};

Tensor scores_of(const Tensor& q, const Tensor& k) { return matmul(q, k.transpose(-2, -1)); }

TEST_F(WrittenAttention, ShapesOfAllKinds) {
  struct Shape {
    Ints batch;
    int64_t queries, keys, depth, width;
  };
  const Shape shapes[] = {{{}, 1, 1, 1, 1},          {{}, 5, 7, 3, 9},         {{2}, 64, 64, 16, 16},
                          {{3}, 65, 129, 33, 17},    {{2, 3}, 17, 16, 64, 64}, {{1, 2}, 130, 515, 8, 40},
                          {{2, 2}, 1, 1100, 64, 64}, {{1, 1}, 3, 70, 700, 5},  {{2, 1}, 40, 1, 1030, 20},
                          {{2, 2}, 0, 5, 4, 4},      {{2, 2}, 5, 0, 4, 4},     {{0, 2}, 5, 5, 4, 4},
                          {{2, 2}, 5, 6, 0, 4},      {{2, 2}, 5, 6, 4, 0},     {{2, 1, 3}, 6, 6, 8, 8},
                          {{2}, 9, 7, 1, 8},         {{2}, 9, 7, 8, 1}};
  test::on_every_target({1, 2, 5}, [&] {
    for (const Shape& s : shapes) {
      SCOPED_TRACE(std::to_string(s.queries) + " " + std::to_string(s.keys) + " " + std::to_string(s.depth));
      manual_seed(3);
      auto random = [&](int64_t rows, int64_t columns) {
        std::vector<int64_t> sizes(s.batch.begin(), s.batch.end());
        sizes.push_back(rows), sizes.push_back(columns);
        return randn(sizes);
      };
      const Tensor q = random(s.queries, s.depth), k = random(s.keys, s.depth), v = random(s.keys, s.width);
      const bool some = q.numel() && k.numel() && v.numel() && std::min({s.queries, s.keys, s.depth, s.width}) > 1;
      auto fast = compile([&](const Tensor& a, const Tensor& b, const Tensor& c) {
        return softmax(scores_of(a, b) * 0.37, -1).matmul(c);
      });
      const Tensor expected = softmax(scores_of(q, k) * 0.37, -1).matmul(v);
      for (int call = 0; call < 2; ++call) ASSERT_TRUE(same_bits(fast(q, k, v), expected));
      if (some) {
        EXPECT_EQ(steps(fast, "attention"), 1) << fast.explain().str();
      }
    }
  });
}

/// Their products have another order then.
TEST_F(WrittenAttention, SizesThatBecomeOne) {
  const auto f = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    const Tensor keys = k.slice(-2, 0, k.size(-2) / 8), values = v.slice(-2, 0, v.size(-2) / 8);
    return softmax(scores_of(q, keys) * 0.37, -1).matmul(values);
  };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(f, {.mode = mode});
    for (int64_t keys : {48, 64, 8, 13, 96}) {
      const Tensor q = randn({2, 5, 33}), k = randn({2, keys, 33}), v = randn({2, keys, 17});
      ASSERT_TRUE(same_bits(fast(q, k, v), f(q, k, v))) << keys;
    }
  }
}

TEST_F(WrittenAttention, EveryWayToWriteIt) {
  manual_seed(7);
  const Tensor x = randn({2, 37, 4 * 24}), q = randn({2, 4, 37, 24}), k = randn({2, 4, 53, 24}),
               v = randn({2, 4, 53, 20});
  const Tensor hidden = randn({37, 53}) > 0.5, some = randn({2, 1, 1, 53}) > 0.0, bias = randn({4, 37, 53});
  const Tensor causal = full({37, 53}, -kInfinity).triu(1), lower = ones({37, 53}).tril();
  const double root = std::sqrt(24.0);
#define OF_Q_K_V(...)                                                                                         \
  [=]([[maybe_unused]] const Tensor& q, [[maybe_unused]] const Tensor& k, [[maybe_unused]] const Tensor& v) { \
    return __VA_ARGS__;                                                                                       \
  }
#define EXPECT_ATTENTION(...) expect_bits(#__VA_ARGS__, OF_Q_K_V(__VA_ARGS__), q, k, v)
#define EXPECT_OPS(...) expect_bits(#__VA_ARGS__, OF_Q_K_V(__VA_ARGS__), q, k, v, false)
  EXPECT_ATTENTION(softmax(matmul(q, k.transpose(-2, -1)), -1).matmul(v));
  EXPECT_ATTENTION(softmax(matmul(q, k.transpose(-2, -1)) / root, -1).matmul(v));
  EXPECT_ATTENTION(softmax(matmul(q, k.transpose(-2, -1)) / 8, -1).matmul(v));
  EXPECT_ATTENTION(softmax((1 / root) * matmul(q, k.transpose(-2, -1)), -1).matmul(v));
  EXPECT_ATTENTION(matmul(softmax(matmul(q / root, k.mT()), -1), v));
  EXPECT_ATTENTION(softmax(scores_of(q, k).div(root).masked_fill(hidden, -kInfinity), -1).matmul(v));
  EXPECT_ATTENTION(softmax((scores_of(q, k) * 0.2).masked_fill(hidden.logical_not(), -1e9), -1).matmul(v));
  EXPECT_ATTENTION(softmax((scores_of(q, k) * 0.2).masked_fill(some == 0, -1e9), -1).matmul(v));
  EXPECT_ATTENTION(softmax((scores_of(q, k) * 0.2).masked_fill(lower == 0, -kInfinity), -1).matmul(v));
  EXPECT_ATTENTION(softmax(scores_of(q, k).where(hidden, -kInfinity), -1).matmul(v));
  EXPECT_ATTENTION(softmax(scores_of(q, k) * 0.2 + causal, -1).matmul(v));
  EXPECT_ATTENTION(softmax(bias + scores_of(q, k) / root, -1).contiguous().matmul(v));
  EXPECT_ATTENTION(nn::functional::dropout(softmax(scores_of(q, k) / root, -1), 0.1, false)
                       .matmul(v)
                       .transpose(1, 2)
                       .reshape({2, 37, -1}));
  EXPECT_ATTENTION(bmm(softmax(bmm(q.reshape({8, 37, 24}), k.reshape({8, 53, 24}).transpose(1, 2)) / root, 2),
                       v.reshape({8, 53, 20})));
  EXPECT_ATTENTION(mm(softmax(mm(q[0][1], k[1][2].t()) / root, 1), v[0][3]));
  // Heads of one projection; fewer heads of keys, repeated.
  EXPECT_ATTENTION([&] {
    auto heads = [](const Tensor& t) { return t.view({2, 37, 4, 24}).transpose(1, 2); };
    const Tensor a = heads(x), b = heads(x * 2), c = heads(x + 1);
    return softmax(matmul(a, b.transpose(-2, -1)) / root, -1).matmul(c).transpose(1, 2).contiguous().view({2, 37, 96});
  }());
  EXPECT_ATTENTION([&] {
    const Tensor b = k.slice(1, 0, 2).repeat_interleave(2, 1), c = v.slice(1, 0, 2).repeat_interleave(2, 1);
    return softmax(matmul(q, b.transpose(-2, -1)) / root, -1).matmul(c);
  }());
  // Other ops than the step has, or others who read.
  EXPECT_OPS(softmax(scores_of(q, k).tanh() * 30, -1).matmul(v));
  EXPECT_OPS(softmax((scores_of(q, k) + causal) / root, -1).matmul(v));
  EXPECT_OPS((softmax(scores_of(q, k) / root, -1) * 0.5).matmul(v));
  EXPECT_OPS(softmax(scores_of(q, k) / root, -2).matmul(v));
  EXPECT_OPS(softmax(scores_of(q, k) * bias, -1).matmul(v));
  EXPECT_OPS([&] {
    const Tensor weights = softmax(scores_of(q, k) / root, -1);
    return weights.matmul(v) + weights.sum();
  }());
  // More dims than the step has for a mask.
  const Tensor far = randn({2, 1, 1, 37, 53});
  expect_bits(
      "a mask of five dims",
      [&](const Tensor& a, const Tensor& b, const Tensor& c) { return softmax(scores_of(a, b) + far, -1).matmul(c); },
      q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), false);
  // 16-bit floats are rounded after each op.
  for (DType dtype : {DType::f16, DType::bf16})
    expect_bits(
        "16-bit",
        [&](const Tensor& a, const Tensor& b, const Tensor& c) {
          return softmax(scores_of(a, b) / root, -1).matmul(c);
        },
        q.to(dtype), k.to(dtype), v.to(dtype), false);
  expect_bits(
      "f64",
      [&](const Tensor& a, const Tensor& b, const Tensor& c) { return softmax(scores_of(a, b) / root, -1).matmul(c); },
      q.to(DType::f64), k.to(DType::f64), v.to(DType::f64));
}

TEST_F(WrittenAttention, ValuesThatAreNoOrdinaryNumbers) {
  test::on_every_target({1, 2}, [] {
    manual_seed(11);
    const Tensor q = randn({2, 20, 8}), k = randn({2, 70, 8}), v = randn({2, 70, 6});
    Tensor hidden = randn({20, 70}) > 0.0;
    hidden[3].fill_(1), hidden[19].fill_(1);  // rows that see nothing
    const double odd[] = {0.0, -0.0, kInfinity, -kInfinity, std::nan(""), 1e38, -1e38, 1e-40, -1e-30};
    for (double number : odd)
      for (int where = 0; where < 3; ++where)
        for (double scale : {0.3, 1e30, 1e-35}) {
          SCOPED_TRACE(std::to_string(number) + " in " + std::to_string(where) + ", scale " + std::to_string(scale));
          Tensor operands[] = {q.clone(), k.clone(), v.clone()};
          operands[where][1].slice(0, 3, 5).fill_(number);
          for (int form = 0; form < 5; ++form) {
            auto f = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
              Tensor scores = form == 1 ? scores_of(a, b) / scale : scores_of(a, b) * scale;
              if (form == 2) scores = scores.masked_fill(hidden, -kInfinity);
              if (form == 3) scores = scores.masked_fill(hidden, number);
              if (form == 4) scores = scores + zeros({20, 70}).masked_fill(hidden, -kInfinity);
              return softmax(scores, -1).matmul(c);
            };
            auto fast = compile(f);
            const Tensor expected = f(operands[0], operands[1], operands[2]);
            ASSERT_TRUE(same_bits(fast(operands[0], operands[1], operands[2]), expected)) << form;
            EXPECT_EQ(steps(fast, "attention"), 1);
          }
        }
  });
}

TEST_F(WrittenAttention, SizesAndNumbersThatChange) {
  auto f = [](const Tensor& q, const Tensor& k, const Tensor& v, double scale, double fill) {
    const Tensor hidden = ones({q.size(1), k.size(1)}).triu(1) > 0;
    return softmax((scores_of(q, k) * scale).masked_fill(hidden, fill), -1).matmul(v);
  };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(f, {.mode = mode});
    for (int64_t n : {9, 30, 1, 70, 2})
      for (double scale : {0.3, 0.125})
        for (double fill : {-kInfinity, -1e4}) {
          const Tensor q = randn({3, n, 16}), k = randn({3, n + 2, 16}), v = randn({3, n + 2, 8});
          ASSERT_TRUE(same_bits(fast(q, k, v, scale, fill), f(q, k, v, scale, fill))) << n;
        }
    EXPECT_GE(steps(fast, "attention"), 1);
  }
}

TEST(WrittenAttentionGradients, StayThoseOfTheOps) {
  manual_seed(2);
  const Tensor q = randn({2, 3, 33, 16}), k = randn({2, 3, 40, 16}), v = randn({2, 3, 40, 8});
  auto step = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
    const Tensor y = softmax(scores_of(a, b) * 0.25, -1).matmul(c);
    return autograd::grad({y.square().sum()}, {a, b, c});
  };
  auto leaves = [&] {
    std::vector<Tensor> all;
    for (const Tensor& t : {q, k, v}) all.push_back(t.clone().requires_grad_());
    return all;
  };
  const std::vector<Tensor> in = leaves(), expected = step(in[0], in[1], in[2]);
  auto fast = compile(step);
  for (int call = 0; call < 3; ++call) {
    const std::vector<Tensor> given = leaves(), found = fast(given[0], given[1], given[2]);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(found[i], expected[i])) << i;
  }
  EXPECT_EQ(steps(fast, "attention") + steps(fast, "attention_backward"), 0);
}

TEST_F(WrittenAttention, MayBeLeftOut) {
  auto f = [](const Tensor& q) { return softmax(scores_of(q, q), -1).matmul(q); };
  const Tensor q = randn({2, 9, 4});
  auto fast = compile(f, {.disable = {"attention"}});
  EXPECT_TRUE(same_bits(fast(q), f(q)));
  EXPECT_EQ(steps(fast, "attention"), 0);
}

}  // namespace
}  // namespace ingot
