// ctc_loss against PyTorch 2.15 in double: targets padded and joined, lengths that vary, alignments that do not exist.
#include "eager/nn/ctc_loss.h"

#include "eager/nn/layers.h"
#include "eager/nn/pytorchs.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::input;
using test::message_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct CTC : testing::Test {
  const Tensor logits = input({7, 4, 5}), log_probs = logits.log_softmax(2);
  // What is behind a row's length is no class. The third row does not fit: four blanks between seven labels.
  const Tensor targets = tensor({{1, 2, 2, 4}, {3, 1, 0, 9}, {4, 4, 4, 4}, {2, -3, 77, 0}});
  const Tensor joined = tensor({1, 2, 2, 4, 3, 1, 4, 4, 4, 4, 2});
  const Tensor input_lengths = tensor({7, 5, 6, 3}), target_lengths = tensor({4, 2, 4, 1});
};

TEST_F(CTC, IsPyTorchs) {
  const auto loss = [&](const char* reduction) {
    return F::ctc_loss(log_probs, targets, input_lengths, target_lengths, 0, reduction, true);
  };
  EXPECT_PYTORCHS(loss("none"), ({logits}), 13.737430772196856, 0.29346363626534444);
  EXPECT_PYTORCHS(loss("mean"), ({logits}), 1.686819326766898, 0.14459187184810723);
  EXPECT_PYTORCHS(loss("sum"), ({logits}), 12.735239431462032, 0.2894557911177267);
  EXPECT_PYTORCHS(F::ctc_loss(log_probs, joined, input_lengths, target_lengths, 0, "none", true), ({logits}),
                  13.737430772196856, 0.29346363626534444);
  EXPECT_PYTORCHS(F::ctc_loss(log_probs, remainder(targets, 3).add(1).remainder(4), tensor({7, 7, 7, 7}),
                              tensor({3, 3, 2, 3}), 4, "none"),
                  ({logits}), 25.36366286617614, -0.48944077108628337);
  EXPECT_PYTORCHS(F::ctc_loss(log_probs.select(1, 0), targets[0].narrow(0, 0, 2), tensor(6), tensor(2)), ({logits}),
                  1.8381814440665705, 0.3034243508218676);
  EXPECT_PYTORCHS(F::ctc_loss(log_probs, zeros({4, 0}, kInt64), {7, 3, 0, 1}, {0, 0, 0, 0}, 0, "none"), ({logits}),
                  19.458328772538987, 1.3615279378784388);
}

// PyTorch's gradient takes log_probs for what log_softmax gave.
TEST_F(CTC, GradientOfALeaf) {
  const Tensor leaf = log_probs.detach().requires_grad_();
  EXPECT_PYTORCHS(F::ctc_loss(leaf, targets, input_lengths, target_lengths, 0, "none", true), ({leaf}),
                  13.737430772196856, 0.29346363626534466);
  EXPECT_PYTORCHS(F::ctc_loss(logits, targets, input_lengths, target_lengths, 0, "none", true), ({logits}),
                  -8.348995329357965, 29.002057455404564);
}

TEST_F(CTC, FormsOfTargetsAndLengthsAgree) {
  const Tensor expected = F::ctc_loss(log_probs, targets, input_lengths, target_lengths, 0, "none", true);
  const std::vector<int64_t> steps{7, 5, 6, 3}, labels{4, 2, 4, 1};
  EXPECT_TRUE(equal(F::ctc_loss(log_probs, targets, steps, labels, 0, "none", true), expected));
  EXPECT_TRUE(equal(F::ctc_loss(log_probs, joined, steps, labels, 0, "none", true), expected));
  EXPECT_TRUE(equal(F::ctc_loss(log_probs, joined, {7, 5, 6, 3}, {4, 2, 4, 1}, 0, "none", true), expected));
  EXPECT_TRUE(equal(
      F::ctc_loss(log_probs, targets.to(kInt32), input_lengths.to(kInt32), target_lengths.to(kInt16), 0, "none", true),
      expected));
  EXPECT_TRUE(equal(nn::CTCLoss(0, "none", true)(log_probs, targets, input_lengths, target_lengths), expected));
  EXPECT_TRUE(equal(nn::CTCLoss(0, "none", true)(log_probs, targets, steps, labels), expected));
  const Tensor one = log_probs.select(1, 0);
  EXPECT_TRUE(equal(F::ctc_loss(one, targets[0], tensor({7}), tensor({4}), 0, "none"), expected[0]));
  EXPECT_TRUE(equal(F::ctc_loss(one, targets.narrow(0, 0, 1), {7}, {4}, 0, "none"), expected[0]));
  EXPECT_EQ(F::ctc_loss(log_probs.to(kBFloat16), targets, steps, labels).dtype(), kBFloat16);
}

TEST_F(CTC, WithoutAnAlignment) {
  const auto loss = [&](const Tensor& x, bool zero_infinity) {
    return F::ctc_loss(x, targets, input_lengths, target_lengths, 0, "none", zero_infinity);
  };
  EXPECT_EQ(loss(log_probs, false)[2].item<double>(), kInfinity);
  EXPECT_EQ(loss(log_probs, true)[2].item<double>(), 0);
  EXPECT_EQ(F::ctc_loss(log_probs, targets, input_lengths, target_lengths).item<double>(), kInfinity);
  for (bool zero_infinity : {false, true}) {
    const Tensor g = autograd::grad({loss(log_probs, zero_infinity).sum()}, {logits}, {}, true)[0];
    EXPECT_TRUE(g.isfinite().all().item<bool>());
    EXPECT_TRUE((g.select(1, 2) == 0).all().item<bool>());
    EXPECT_FALSE((g.select(1, 0) == 0).any().item<bool>());
    // Steps behind the end have none.
    EXPECT_TRUE((g.select(1, 3).narrow(0, 3, 4) == 0).all().item<bool>());
  }
  // Labels that cannot be emitted.
  const Tensor never = log_probs.detach().clone();
  never.select(2, 2).fill_(-kInfinity);
  never.requires_grad_();
  const Tensor losses = loss(never, true);
  EXPECT_EQ(losses[0].item<double>(), 0);
  EXPECT_EQ(losses[3].item<double>(), 0);
  EXPECT_GT(losses[1].item<double>(), 0);
  losses.sum().backward();
  EXPECT_TRUE(never.grad().isfinite().all().item<bool>());
  // No steps: only a target of none fits.
  const Tensor none = F::ctc_loss(log_probs, targets, {0, 0, 0, 0}, {0, 1, 2, 0}, 0, "none");
  EXPECT_EQ(none[0].item<double>(), 0);
  EXPECT_EQ(none[1].item<double>(), kInfinity);
  EXPECT_EQ(none[2].item<double>(), kInfinity);
}

TEST_F(CTC, GradientsAreThoseOfDifferences) {
  using List = std::vector<Tensor>;
  const auto loss = [&](const List& x) {
    return List{F::ctc_loss(x[0].log_softmax(2), targets, input_lengths, target_lengths, 0, "none", true)};
  };
  EXPECT_TRUE(autograd::gradcheck(loss, {logits}));
  EXPECT_TRUE(autograd::gradgradcheck(loss, {logits}));
}

TEST_F(CTC, NaNStays) {
  const Tensor spoilt = log_probs.detach().clone();
  spoilt.select(0, 1).select(0, 0).fill_(std::nan(""));
  const Tensor losses = F::ctc_loss(spoilt, targets, input_lengths, target_lengths, 0, "none", true);
  EXPECT_TRUE(losses[0].isnan().item<bool>());
  EXPECT_FALSE(losses[1].isnan().item<bool>());
}

TEST_F(CTC, RefusesWhatIsWrong) {
  const auto expect = [&](const std::string& words, const std::function<void()>& f) {
    EXPECT_EQ(message_of(f).rfind("ctc_loss: " + words, 0), 0u) << message_of(f);
  };
  const auto with = [&](const Tensor& x, const Tensor& t, const Tensor& il, const Tensor& tl, int64_t blank = 0) {
    return [=] { F::ctc_loss(x, t, il, tl, blank); };
  };
  expect("input_lengths: got 8, expected numbers from 0 to 7",
         with(log_probs, targets, input_lengths + 1, target_lengths));
  expect("input_lengths: got -1", with(log_probs, targets, input_lengths - 4, target_lengths));
  expect("target_lengths: got 5, expected numbers from 0 to 4",
         with(log_probs, targets, input_lengths, target_lengths + 1));
  expect("targets: got 9, expected numbers from 0 to 4", with(log_probs, targets, input_lengths, tensor({4, 4, 4, 1})));
  expect("targets: got more or fewer numbers, expected as many as the sum of target_lengths",
         with(log_probs, joined, input_lengths, tensor({4, 2, 3, 1})));
  expect("targets: got shape [3, 4], expected [4, S]",
         with(log_probs, targets.narrow(0, 0, 3), input_lengths, target_lengths));
  expect("targets: got a tensor of f64", with(log_probs, targets.to(kFloat64), input_lengths, target_lengths));
  expect("blank: got 5, expected a class from 0 to 4", with(log_probs, targets, input_lengths, target_lengths, 5));
  expect("input_lengths: got shape [3]", with(log_probs, targets, input_lengths.narrow(0, 0, 3), target_lengths));
  expect("target_lengths: got a tensor of f32", with(log_probs, targets, input_lengths, target_lengths.to(kFloat32)));
  expect("log_probs: got shape [7, 0, 5], expected elements",
         with(log_probs.narrow(1, 0, 0), targets, input_lengths, target_lengths));
  expect("log_probs: got shape [5]", with(log_probs[0][0], targets, input_lengths, target_lengths));
  expect("log_probs: got a tensor of i64", with(log_probs.to(kInt64), targets, input_lengths, target_lengths));
  expect("reduction: got \"avg\"", [&] { F::ctc_loss(log_probs, targets, input_lengths, target_lengths, 0, "avg"); });
}

}  // namespace
}  // namespace ingot
