// What functions written over ops refuse of values: in eager's words in compiled and frozen functions too, at the line
// of the call, without a break.
#include <cmath>
#include <limits>

#include "eager/support.h"
#include "support.h"

namespace ingot {
namespace {

namespace F = nn::functional;
using test::message_of;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

/// `wrong` is refused and `right` is computed, in turns. Where an op checks its own positions, `argument` is that op's.
template <class F>
void check(const std::string& argument, F f, const Tensor& right, const Tensor& wrong) {
  SCOPED_TRACE(argument);
  EXPECT_NE(message_of([&] { f(wrong); }), "no error");
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(f, {.mode = mode});
    for (int call = 0; call < 3; ++call) {
      EXPECT_TRUE(test::same_bits(fast(right), f(right)));
      const std::string text = message_of([&] { fast(wrong); });
      EXPECT_EQ(text.rfind(argument, 0), 0u) << text;
      EXPECT_NE(text.find("composed_checks_test.cpp"), std::string::npos) << text;
    }
    EXPECT_EQ(fast.stats().graph_breaks, 0);
  }
}

TEST(ComposedChecks, Statistics) {
  const Tensor x = tensor({1.f, 2.f, 4.f});
  for (float bad : {kNaN, kInfinity}) {
    const Tensor spoilt = tensor({1.f, bad, 4.f});
    check(
        "histc: self: got an element", [](const Tensor& x) { return histc(x * 2, 4); }, x, spoilt);
    check(
        "histogram: self: got an element", [](const Tensor& x) { return std::get<0>(histogram(x, 4)); }, x, spoilt);
  }
  check(
      "histogram: bins: got an edge", [](const Tensor& x) { return std::get<0>(histogram(x, x)); }, x, x.flip(0));
  check(
      "cov: aweights: got a weight", [](const Tensor& w) { return cov(w, 1, {}, w); }, x, -x);
  check(
      "cov: aweights: got weights whose sum is 0", [](const Tensor& w) { return cov(w, 1, {}, w); }, x, x * 0);
  check(
      "cov: fweights: got a weight", [](const Tensor& w) { return cov(w.to(kFloat32), 1, w); }, tensor({1, 2, 3}),
      tensor({1, -2, 3}));
  check(
      "quantile: q: got a number", [](const Tensor& q) { return quantile(q, q / 4); }, x, x * 2);
  check(
      "normal: std: got a number", [](const Tensor& std) { return (normal(0, std) * 0).abs(); }, x, -x);
}

TEST(ComposedChecks, Losses) {
  const Tensor rows = tensor({{.1f, .2f, .7f}, {.5f, .3f, .2f}});
  check(
      "multilabel_margin_loss: target: got a number that is no class",
      [=](const Tensor& t) { return F::multilabel_margin_loss(rows, t); }, tensor({{2, -1, 0}, {0, 1, 2}}),
      tensor({{2, -1, 3}, {0, 1, 2}}));
  check(
      "multilabel_margin_loss: target: got a number that is no class",
      [=](const Tensor& t) { return F::multilabel_margin_loss(rows, t); }, tensor({{2, -1, 0}, {0, 1, 2}}),
      tensor({{2, -2, 0}, {0, 1, 2}}));
  check(
      "multi_margin_loss, in gather: index: got the position 3",
      [=](const Tensor& t) { return F::multi_margin_loss(rows, t); }, tensor({2, 0}), tensor({2, 3}));
  check(
      "gaussian_nll_loss: var: got negative numbers",
      [=](const Tensor& var) { return F::gaussian_nll_loss(rows, rows + 1, var); }, rows, rows - .3);
  const Tensor steps = randn({5, 2, 4}).log_softmax(2), labels = tensor({{1, 2, 3}, {3, 1, 1}});
  check(
      "ctc_loss, in gather: index: got the position 4",
      [=](const Tensor& t) {
        return F::ctc_loss(steps, t, tensor({5, 4}), tensor({2, 1}));
      },
      labels, labels + 1);
  check(
      "ctc_loss: input_lengths: got a length",
      [=](const Tensor& n) {
        return F::ctc_loss(steps, labels, n, tensor({2, 1}));
      },
      tensor({5, 4}), tensor({5, 6}));
  check(
      "ctc_loss: target_lengths: got a length",
      [=](const Tensor& n) {
        return F::ctc_loss(steps, labels, tensor({5, 4}), n);
      },
      tensor({2, 1}), tensor({2, -1}));
}

TEST(ComposedChecks, Selections) {
  const Tensor weight = randn({6, 2}), indices = tensor({1, 2, 3, 4});
  const auto bags = [=](const Tensor& offsets) { return F::embedding_bag(indices, weight, offsets); };
  const Tensor right = tensor({0, 2, 3});
  check("embedding_bag: offsets: got one that is smaller", bags, right, tensor({0, 3, 2}));
  check("embedding_bag: offsets: got one that is negative or too large", bags, right, tensor({0, 2, 5}));
  check("embedding_bag: offsets: got a first offset that is not 0", bags, right, tensor({1, 2, 3}));
  check(
      "take, in index_select: index: got the position 12", [=](const Tensor& i) { return weight.take(i); },
      tensor({0, -12}), tensor({0, 12}));
  check(
      "one_hot, in scatter: index: got the position 3", [](const Tensor& i) { return one_hot(i, 3); }, tensor({0, 2}),
      tensor({0, 3}));
}

// The ops that a function is made of are named beside it.
TEST(ComposedChecks, ShapesThatAnOpRefuses) {
  const auto f = [](const Tensor& x) { return F::lp_pool2d(x, 2, 3); };
  const std::string eager = message_of([&] { f(zeros({3})); });
  EXPECT_EQ(eager.rfind("lp_pool2d, in avg_pool2d: self: got shape [3]", 0), 0u) << eager;
  EXPECT_EQ(message_of([&] { compile(f)(zeros({3})); }), eager);
  EXPECT_EQ(message_of([] { add(zeros({2}), zeros({3})); }).rfind("add: ", 0), 0u);
}

}  // namespace
}  // namespace ingot
