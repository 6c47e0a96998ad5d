// Losses made of ops: against PyTorch 2.15 in double, and what they refuse.
#include "eager/nn/losses.h"

#include "eager/nn/layers.h"
#include "eager/nn/pytorchs.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::input;
using test::message_of;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Numbers to 1e-6 and NaN.
void expect_numbers(const Tensor& y, const std::vector<double>& expected) {
  ASSERT_EQ(y.numel(), static_cast<int64_t>(expected.size()));
  const Tensor flat = y.detach().reshape({-1}).to(kFloat64);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double value = flat[i].item<double>(), wanted = expected[static_cast<size_t>(i)];
    if (std::isnan(wanted))
      EXPECT_TRUE(std::isnan(value)) << i << ": " << value;
    else
      EXPECT_NEAR(value, wanted, 1e-6 * std::max(1.0, std::abs(wanted))) << i;
  }
}
#define EXPECT_REFUSED(words, expression)                                           \
  EXPECT_EQ(message_of([&] { static_cast<void>(expression); }).rfind(words, 0), 0u) \
      << message_of([&] { static_cast<void>(expression); })

struct Losses : testing::Test {
  const Tensor a = input({4, 3}), b = input({4, 3}, 1.0), c = input({4, 3}, 2.5);
  const Tensor sides = (remainder(arange(12), 3) != 1).reshape({4, 3}).to(kFloat64) * 2 - 1;
  const Tensor classes = tensor({2, 0, 1, 2}), lists = tensor({{0, 2, -1}, {-1, 1, 0}, {1, -1, 2}, {2, 1, -1}});
  const Tensor counts = remainder(arange(12), 4).reshape({4, 3}).to(kFloat64);
  const Tensor weight = tensor({1.0, 2.0, 0.5}, kFloat64);
  static Tensor variance(const IntList& sizes) { return (input(sizes, 0.4).detach() + 1.1).requires_grad_(); }
};

TEST_F(Losses, Margins) {
  EXPECT_PYTORCHS(F::margin_ranking_loss(a, b, sides, 0.3, "none"), ({a, b}), 1.2677859379430436, 1.3384472695268361,
                  -1.3384472695268361);
  EXPECT_PYTORCHS(F::margin_ranking_loss(a, b, sides, 0.3), ({a, b}), 0.39806514278465016, 0.06080813235626466,
                  -0.06080813235626466);
  EXPECT_PYTORCHS(F::margin_ranking_loss(a, b, sides, 0.3, "sum"), ({a, b}), 4.776781713415803, 0.7296975882751757,
                  -0.7296975882751757);
  EXPECT_PYTORCHS(F::hinge_embedding_loss(a, sides, 0.7, "none"), ({a}), 0.03755326369915846, 3.6030828583617147);
  EXPECT_PYTORCHS(F::hinge_embedding_loss(a, sides, 0.7), ({a}), 0.2519874157759409, 0.08198625175066636);
  EXPECT_PYTORCHS(F::hinge_embedding_loss(a, sides, 0.7, "sum"), ({a}), 3.023848989311291, 0.9838350210079965);
  EXPECT_PYTORCHS(F::hinge_embedding_loss(a, zeros({4, 3}, kFloat64), 1, "none"), ({a}), 3.0760945464740437,
                  0.7080734182735712);
  const Tensor alike = tensor({1, -1, -1, 1});
  EXPECT_PYTORCHS(F::cosine_embedding_loss(a, b, alike, 0.2, "none"), ({a, b}), 1.3921366848675658,
                  0.027328693255955994, -1.1989050387307874);
  EXPECT_PYTORCHS(F::cosine_embedding_loss(a, b, alike, 0.2), ({a, b}), 0.32389933548301425, 0.018489329880184258,
                  -0.3107666086581543);
  EXPECT_PYTORCHS(F::cosine_embedding_loss(a, b, alike, 0.2, "sum"), ({a, b}), 1.295597341932057, 0.07395731952073703,
                  -1.2430664346326172);
  EXPECT_PYTORCHS(F::cosine_embedding_loss(a[0], b[0], tensor(-1), -0.9), ({a, b}), 0.9900980322871062,
                  -0.4020202156018559, 1.5962680560374474);
}

TEST_F(Losses, Triplets) {
  EXPECT_PYTORCHS(F::triplet_margin_loss(a, b, c, 1, 2, 1e-6, false, "none"), ({a, b, c}), 0.170763034270574,
                  0.18065041025914821, 0.08236861772032758, -0.26301902797947574);
  EXPECT_PYTORCHS(F::triplet_margin_loss(a, b, c), ({a, b, c}), 0.03593835866093744, 0.0380192309411166,
                  0.017335092098143177, -0.05535432303925977);
  EXPECT_PYTORCHS(F::triplet_margin_loss(a, b, c, 1, 2, 1e-6, false, "sum"), ({a, b, c}), 0.14375343464374976,
                  0.1520769237644664, 0.06934036839257271, -0.2214172921570391);
  EXPECT_PYTORCHS(F::triplet_margin_loss(a, b, c, 2, 1, 1e-6, true, "none"), ({a, b, c}), 4.527880481182045,
                  3.797082408462373, -5.081353015582912, 1.2842706071205392);
  EXPECT_PYTORCHS(F::triplet_margin_loss(a, b, c, 0.6, 3, 1e-3, false, "none"), ({a, b, c}), 0.0, 0.0, 0.0, 0.0);
  const auto l1 = [](const Tensor& x, const Tensor& y) { return (x - y).abs().sum(-1); };
  EXPECT_PYTORCHS(F::triplet_margin_with_distance_loss(a, b, c, l1, 2, true, "none"), ({a, b, c}), 4.527880553212879,
                  3.797082408462373, -5.081353015582912, 1.2842706071205392);
  EXPECT_PYTORCHS(F::triplet_margin_with_distance_loss(a, b, c, {}, 0.5, false, "none"), ({a, b, c}), 0.0, 0.0, 0.0,
                  0.0);
}

TEST_F(Losses, ClassesWithMargins) {
  EXPECT_PYTORCHS(F::multi_margin_loss(a, classes, 1, 1, {}, "none"), ({a}), 2.426333933642306, -0.03953405307361657);
  EXPECT_PYTORCHS(F::multi_margin_loss(a, classes), ({a}), 0.5542518033553849, -0.00966083741105711);
  EXPECT_PYTORCHS(F::multi_margin_loss(a, classes, 1, 1, {}, "sum"), ({a}), 2.2170072134215397, -0.03864334964422844);
  EXPECT_PYTORCHS(F::multi_margin_loss(a, classes, 2, 0.6, weight, "none"), ({a}), 1.4505107869129636,
                  -0.40407504828793483);
  EXPECT_PYTORCHS(F::multi_margin_loss(a[1], classes[1], 1, 1, {}, "none"), ({a}), 0.21120873750294025,
                  -0.13621497460176402);
  EXPECT_PYTORCHS(F::multilabel_margin_loss(a, lists, "none"), ({a}), 1.8379189919633863, 0.21635880525406154);
  EXPECT_PYTORCHS(F::multilabel_margin_loss(a, lists), ({a}), 0.41790732359236216, 0.048781030617505494);
  EXPECT_PYTORCHS(F::multilabel_margin_loss(a, lists, "sum"), ({a}), 1.6716292943694486, 0.19512412247002198);
  EXPECT_PYTORCHS(F::multilabel_margin_loss(a[1], lists[0], "none"), ({a}), 0.483702437633848, 0.02025717302734975);
  const Tensor bits = (sides + 1) / 2;
  EXPECT_PYTORCHS(F::multilabel_soft_margin_loss(a, bits, {}, "none"), ({a}), 2.802338040741882, -0.29091716613770985);
  EXPECT_PYTORCHS(F::multilabel_soft_margin_loss(a, bits), ({a}), 0.6263359817933091, -0.06313955776229685);
  EXPECT_PYTORCHS(F::multilabel_soft_margin_loss(a, bits, {}, "sum"), ({a}), 2.5053439271732363, -0.2525582310491874);
  EXPECT_PYTORCHS(F::multilabel_soft_margin_loss(a, bits, weight, "none"), ({a}), 3.3940002185878946,
                  -0.12166704331983685);
}

TEST_F(Losses, Likelihoods) {
  EXPECT_PYTORCHS(F::poisson_nll_loss(a, counts, true, false, 1e-8, "none"), ({a}), 6.555309871038658,
                  0.7339665109801974);
  EXPECT_PYTORCHS(F::poisson_nll_loss(a, counts), ({a}), 1.0739691195864356, -0.048500560489163874);
  EXPECT_PYTORCHS(F::poisson_nll_loss(a, counts, true, false, 1e-8, "sum"), ({a}), 12.887629435037228,
                  -0.5820067258699668);
  EXPECT_PYTORCHS(F::poisson_nll_loss(a, counts, true, true, 1e-8, "none"), ({a}), 7.058407880538184,
                  0.7339665109801974);
  const Tensor mean = a.detach().abs().requires_grad_();
  EXPECT_PYTORCHS(F::poisson_nll_loss(mean, counts, false, true, 1e-3, "none"), ({mean}), 8.158655633542434,
                  -15.910958572753234);
  const Tensor v = variance({4, 3}), rows = variance(4), one = variance({4, 1});
  EXPECT_PYTORCHS(F::gaussian_nll_loss(a, b, v, false, 1e-6, "none"), ({a, b, v}), -0.4651073315502194,
                  2.9555389792169406, -2.9555389792169406, 2.416207700739474);
  EXPECT_PYTORCHS(F::gaussian_nll_loss(a, b, v), ({a, b, v}), 0.18058857800021935, 0.10975351300002066,
                  -0.10975351300002066, 0.13263788109966504);
  EXPECT_PYTORCHS(F::gaussian_nll_loss(a, b, v, false, 1e-6, "sum"), ({a, b, v}), 2.167062936002632, 1.3170421560002477,
                  -1.3170421560002477, 1.5916545731959801);
  EXPECT_PYTORCHS(F::gaussian_nll_loss(a, b, rows, true, 1e-6, "none"), ({a, rows}), 5.193990363713835,
                  2.7754180598044234, 0.14545173442664017);
  EXPECT_PYTORCHS(F::gaussian_nll_loss(a, b, one, false, 0.5, "none"), ({a, one}), 2.3559621891147486,
                  2.737665565811036, 0.1353197883904229);
  EXPECT_PYTORCHS(F::gaussian_nll_loss(a, b, 0.7, false, 1e-6, "none"), ({a}), 0.7593536503462036, 4.681035288085617);
}

// As PyTorch has them: integers, NaN, ties, no elements, no dims.
TEST_F(Losses, StandBesideTheOpsToo) {
  const Tensor a = randn({3, 4}), b = randn({3, 4}), sign = ones({3});
  EXPECT_TRUE(equal(ingot::margin_ranking_loss(a, b, b.sign(), .5), F::margin_ranking_loss(a, b, b.sign(), .5)));
  EXPECT_TRUE(equal(hinge_embedding_loss(a, b.sign()), F::hinge_embedding_loss(a, b.sign())));
  EXPECT_TRUE(equal(cosine_embedding_loss(a, b, sign), F::cosine_embedding_loss(a, b, sign)));
  EXPECT_TRUE(equal(triplet_margin_loss(a, b, a + 1), F::triplet_margin_loss(a, b, a + 1)));
  EXPECT_TRUE(equal(poisson_nll_loss(a, b.abs()), F::poisson_nll_loss(a, b.abs())));
  EXPECT_TRUE(equal(pdist(a), F::pdist(a)));
  EXPECT_TRUE(equal(bilinear(a, b, ones({2, 4, 4})), F::bilinear(a, b, ones({2, 4, 4}))));
}

TEST_F(Losses, AtTheEdges) {
  const Tensor ints = tensor({1, 2, 3}), back = tensor({3, 2, 1}), side = tensor({1, -1, 1});
  expect_numbers(F::margin_ranking_loss(ints, back, side, 0, "none"), {2, 0, 0});
  EXPECT_EQ(F::margin_ranking_loss(ints, back, side).dtype(), kFloat32);
  expect_numbers(F::margin_ranking_loss(ints.narrow(0, 0, 0), ints.narrow(0, 0, 0), ints.narrow(0, 0, 0)), {kNaN});
  EXPECT_EQ(F::hinge_embedding_loss(ints, side, 1, "none").dtype(), kInt64);
  expect_numbers(F::hinge_embedding_loss(ints, side, 1, "none"), {1, 0, 3});
  expect_numbers(F::hinge_embedding_loss(tensor({kNaN, 0.5}), tensor({-1.0, kNaN}), 1, "none"), {kNaN, 1});
  expect_numbers(F::cosine_embedding_loss(zeros({2, 3}), zeros({2, 3}), tensor({1, -1}), 0, "none"), {1, 0});
  expect_numbers(F::cosine_embedding_loss(ones({2, 3}), ones({1, 3}), tensor({0, 2}), 0, "none"), {0, 0});
  expect_numbers(F::triplet_margin_loss(zeros({3}), ones({3}), zeros({3}), 1, 2, 1e-6, false, "none"), {2.7320490});
  // A class that does not beat the target by the margin, and a score that is NaN, have no loss and no gradient.
  const Tensor tie = tensor({{1.0, 2.0, kNaN}}).requires_grad_();
  const Tensor loss = F::multi_margin_loss(tie, tensor({1}), 1, 1, {}, "none");
  expect_numbers(loss, {0});
  loss.sum().backward();
  expect_numbers(tie.grad(), {0, 0, 0});
  expect_numbers(F::multi_margin_loss(tensor(0.5), tensor(0), 1, 1, {}, "none"), {0});
  expect_numbers(F::multi_margin_loss(zeros({0, 4}), zeros({0}, kInt64)), {0});
  EXPECT_EQ(F::multi_margin_loss(zeros({3}), tensor({1}), 1, 1, {}, "none").dim(), 1);
  expect_numbers(F::multilabel_margin_loss(tensor(1.0), tensor(0), "none"), {0});
  expect_numbers(F::multilabel_margin_loss(tensor({0.1, 0.2, 0.4, 0.8}), tensor({3, 0, -1, 1}), "none"), {0.85});
  // A class that is listed twice counts twice.
  expect_numbers(F::multilabel_margin_loss(tensor({1.0, 2.0, 3.0, 4.0}), tensor({1, 1, -1, -1}), "none"), {2.5});
  expect_numbers(F::multilabel_soft_margin_loss(zeros({2, 0}), zeros({2, 0}), {}, "none"), {kNaN, kNaN});
  // Counts of 0 and 1 add nothing, and their gradient is finite.
  const Tensor none = tensor({0.0, 1.0, 2.0}).requires_grad_();
  const Tensor stirling = F::poisson_nll_loss(zeros({3}), none, true, true, 1e-8, "none");
  expect_numbers(stirling, {1, 1, 1.6518065});
  stirling.sum().backward();
  expect_numbers(none.grad(), {0, 0, std::log(2.0) + 0.25});
  // A target of integers changes no dtype.
  EXPECT_EQ(F::poisson_nll_loss(ones({2}, kBFloat16), tensor({1, 2}), true, true).dtype(), kBFloat16);
  // A variance below eps has the gradient of eps.
  const Tensor small = tensor({0.0, 1.0}, kFloat64).requires_grad_();
  F::gaussian_nll_loss(zeros({2}, kFloat64), ones({2}, kFloat64), small, false, 0.5, "sum").backward();
  expect_numbers(small.grad(), {-1, 0});
  EXPECT_NEAR(F::gaussian_nll_loss(ones({2}, kInt64), zeros({2}, kInt64), 0.5).item<float>(), 0.6534264, 1e-6);
  // 16 bits are computed in f32 where the loss is one of PyTorch's loops.
  EXPECT_EQ(F::multi_margin_loss(ones({2, 3}, kBFloat16), tensor({0, 1})).dtype(), kBFloat16);
}

TEST_F(Losses, RefuseWhatIsWrong) {
  EXPECT_REFUSED("margin_ranking_loss: reduction: got \"avg\", expected one of",
                 F::margin_ranking_loss(a, b, sides, 0, "avg"));
  EXPECT_REFUSED("margin_ranking_loss: input2: got 1 dims, expected 2", F::margin_ranking_loss(a, b[0], sides));
  EXPECT_REFUSED("margin_ranking_loss: target: got 1 dims", F::margin_ranking_loss(a, b, sides[0]));
  EXPECT_REFUSED("margin_ranking_loss: input1: got", F::margin_ranking_loss(Tensor(), b, sides));
  EXPECT_REFUSED("cosine_embedding_loss: target: got 2 dims", F::cosine_embedding_loss(a, b, sides));
  EXPECT_REFUSED("cosine_embedding_loss: input1: got 2 dims, expected 1", F::cosine_embedding_loss(a, b, tensor(1)));
  EXPECT_REFUSED("triplet_margin_loss: margin: got 0.0", F::triplet_margin_loss(a, b, c, 0));
  EXPECT_REFUSED("triplet_margin_loss: negative: got 1 dims", F::triplet_margin_loss(a, b, c[0]));
  EXPECT_REFUSED("triplet_margin_with_distance_loss: margin", F::triplet_margin_with_distance_loss(a, b, c, {}, -1));
  EXPECT_REFUSED("multi_margin_loss: p: got 3, expected 1 or 2", F::multi_margin_loss(a, classes, 3));
  EXPECT_REFUSED("multi_margin_loss: target: got 3, expected numbers from 0 to 2",
                 F::multi_margin_loss(a, classes + 1));
  EXPECT_REFUSED("multi_margin_loss: target: got shape [3]", F::multi_margin_loss(a, classes.narrow(0, 0, 3)));
  EXPECT_REFUSED("multi_margin_loss: target: got a tensor of i32", F::multi_margin_loss(a, classes.to(kInt32)));
  EXPECT_REFUSED("multi_margin_loss: weight: got shape [4]",
                 F::multi_margin_loss(a, classes, 1, 1, ones({4}, kFloat64)));
  EXPECT_REFUSED("multi_margin_loss: weight: got a tensor of f32", F::multi_margin_loss(a, classes, 1, 1, ones({3})));
  EXPECT_REFUSED("multi_margin_loss: input: got i64", F::multi_margin_loss(lists, classes));
  EXPECT_REFUSED("multi_margin_loss: input: got shape [2, 0]", F::multi_margin_loss(zeros({2, 0}), tensor({0, 0})));
  EXPECT_REFUSED("multilabel_margin_loss: target: got shape [4]", F::multilabel_margin_loss(a, classes));
  EXPECT_REFUSED("multilabel_margin_loss: target: got 3, expected numbers from -1",
                 F::multilabel_margin_loss(a, lists + 1));
  EXPECT_REFUSED("multilabel_soft_margin_loss: input: got a tensor without dims",
                 F::multilabel_soft_margin_loss(tensor(1.0), tensor(1.0)));
  EXPECT_REFUSED("gaussian_nll_loss: var: got -0.5", F::gaussian_nll_loss(a, b, -0.5));
  EXPECT_REFUSED("gaussian_nll_loss: var: got negative numbers", F::gaussian_nll_loss(a, b, -ones({4, 3}, kFloat64)));
  EXPECT_REFUSED("gaussian_nll_loss: var: got shape [3]", F::gaussian_nll_loss(a, b, ones({3}, kFloat64)));
  EXPECT_REFUSED("gaussian_nll_loss: var: got shape []", F::gaussian_nll_loss(a, b, tensor(1.0)));
  EXPECT_REFUSED("gaussian_nll_loss: var: got shape [1, 1]", F::gaussian_nll_loss(a, b, ones({1, 1}, kFloat64)));
}

TEST_F(Losses, ModulesCallThem) {
  const auto same = [](const Tensor& x, const Tensor& y) { EXPECT_TRUE(equal(x, y)); };
  const Tensor alike = tensor({1, -1, -1, 1});
  same(nn::SoftMarginLoss("sum")(a, sides), F::soft_margin_loss(a, sides, "sum"));
  same(nn::MarginRankingLoss(0.3, "none")(a, b, sides), F::margin_ranking_loss(a, b, sides, 0.3, "none"));
  same(nn::HingeEmbeddingLoss(0.7)(a, sides), F::hinge_embedding_loss(a, sides, 0.7));
  same(nn::CosineEmbeddingLoss(0.2)(a, b, alike), F::cosine_embedding_loss(a, b, alike, 0.2));
  same(nn::TripletMarginLoss({.margin = 2, .p = 1, .swap = true})(a, b, c),
       F::triplet_margin_loss(a, b, c, 2, 1, 1e-6, true));
  same(nn::TripletMarginLoss()(a, b, c), F::triplet_margin_loss(a, b, c));
  const auto l1 = [](const Tensor& x, const Tensor& y) { return (x - y).abs().sum(-1); };
  same(nn::TripletMarginWithDistanceLoss(l1, 2.0, true)(a, b, c),
       F::triplet_margin_with_distance_loss(a, b, c, l1, 2, true));
  same(nn::MultiMarginLoss(2, 0.6, weight)(a, classes), F::multi_margin_loss(a, classes, 2, 0.6, weight));
  same(nn::MultiLabelMarginLoss()(a, lists), F::multilabel_margin_loss(a, lists));
  same(nn::MultiLabelSoftMarginLoss(weight)(a, counts), F::multilabel_soft_margin_loss(a, counts, weight));
  same(nn::PoissonNLLLoss(true, true)(a, counts), F::poisson_nll_loss(a, counts, true, true));
  const Tensor v = variance({4, 3});
  same(nn::GaussianNLLLoss(true)(a, b, v), F::gaussian_nll_loss(a, b, v, true));
  same(nn::GaussianNLLLoss()(a, b, 0.5), F::gaussian_nll_loss(a, b, 0.5));
  EXPECT_EQ(nn::MultiMarginLoss(1, 1.0, weight)->state_dict().count("weight"), 1u);
  EXPECT_TRUE(nn::MultiMarginLoss(1, 1.0, weight)->parameters().empty());
  EXPECT_REFUSED("MultiMarginLoss: p: got 3", nn::MultiMarginLoss(3));
  EXPECT_REFUSED("MultiMarginLoss: weight: got shape [4, 3]", nn::MultiMarginLoss(1, 1.0, a));
  EXPECT_REFUSED("TripletMarginLoss: margin: got 0.0", nn::TripletMarginLoss({.margin = 0}));
  EXPECT_REFUSED("TripletMarginWithDistanceLoss: margin", nn::TripletMarginWithDistanceLoss(l1, 0.0));
}

TEST_F(Losses, GradientsOfSecondOrder) {
  using List = std::vector<Tensor>;
  const Tensor alike = tensor({1, -1, -1, 1}), v = variance({4, 3});
  EXPECT_TRUE(autograd::gradgradcheck(
      [&](const List& x) { return List{F::cosine_embedding_loss(x[0], x[1], alike, 0.2, "none")}; }, {a, b}));
  EXPECT_TRUE(autograd::gradgradcheck([&](const List& x) { return List{F::triplet_margin_loss(x[0], x[1], x[2])}; },
                                      {a, b, c}));
  EXPECT_TRUE(autograd::gradgradcheck(
      [&](const List& x) { return List{F::multi_margin_loss(x[0], classes, 2, 0.6, weight)}; }, {a}));
  EXPECT_TRUE(autograd::gradgradcheck([&](const List& x) { return List{F::gaussian_nll_loss(x[0], x[1], x[2], true)}; },
                                      {a, b, v}));
  EXPECT_TRUE(autograd::gradgradcheck(
      [&](const List& x) { return List{F::multilabel_soft_margin_loss(x[0], counts, weight)}; }, {a}));
}

TEST_F(Losses, LinearCrossEntropy) {
  const Tensor x = tensor({{.1f, .2f, .3f}, {-.4f, .5f, .6f}});
  const Tensor w = tensor({{.3f, -.2f, .1f}, {.4f, .5f, -.6f}, {.7f, .8f, .9f}, {0.f, .1f, .2f}});
  const Tensor bias = tensor({.1f, .2f, .3f, .4f}), target = tensor({2, 0});
  expect_numbers(F::linear_cross_entropy(x, w, target, bias), {1.454246282578});
  EXPECT_TRUE(allclose(F::linear_cross_entropy(x, w, target, bias, tensor({1.f, 2.f, 3.f, 4.f}), "sum", 0, 0.1),
                       cross_entropy(linear(x, w, bias), target, tensor({1.f, 2.f, 3.f, 4.f}), 0, "sum", 0.1)));
  expect_numbers(F::linear_cross_entropy(x, w.reshape({2, 2, 3}), tensor({{1, 0}, {0, 1}}), {}, {}, "none"),
                 {0.481674939394, 0.754946112633, 1.184942841530, 0.497154444456});
  EXPECT_EQ(F::linear_cross_entropy(x.to(kBFloat16), w.to(kBFloat16), target).dtype(), kBFloat16);
  EXPECT_REFUSED("linear_cross_entropy: input: got shape []", F::linear_cross_entropy(x.sum(), w, target));
  EXPECT_REFUSED("linear_cross_entropy: linear_weight: got shape [4]", F::linear_cross_entropy(x, bias, target));
  EXPECT_REFUSED("linear_cross_entropy: linear_weight: got an undefined tensor",
                 F::linear_cross_entropy(x, {}, target));
}

// PyTorch's functions broadcast their operands before they promote.
TEST(LossTypes, AreTheCommonOneOfBothWithDimsOrNot) {
  const Tensor one = tensor(1.5f), narrow = tensor({1.f, 2.f, 3.f}).to(kBFloat16), wide = tensor(1.5).to(kFloat64);
  for (const auto& [x, y] : {std::pair(one, narrow), std::pair(narrow, one)}) {
    const Tensor squares = F::mse_loss(x, y), distances = F::l1_loss(x, y), smooth = F::smooth_l1_loss(x, y);
    for (const Tensor& loss : {squares, distances, smooth}) EXPECT_EQ(loss.dtype(), kFloat32);
    EXPECT_EQ(squares.item<float>(), 0.9166666865348816f);
    EXPECT_EQ(distances.item<float>(), 0.8333333134651184f);
    EXPECT_EQ(smooth.item<float>(), 0.4166666567325592f);
  }
  EXPECT_EQ(F::mse_loss(ones({3}), wide).dtype(), kFloat64);
  const std::string whole = message_of([] { F::mse_loss(tensor(1), tensor({1, 2})); });
  EXPECT_NE(whole.find("a floating point dtype"), std::string::npos) << whole;
  const Tensor x = narrow.clone().requires_grad_(), t = one.clone().requires_grad_();
  F::smooth_l1_loss(x, t, "sum").backward();
  EXPECT_TRUE(equal(x.grad(), tensor({-.5f, .5f, 1.f}).to(kBFloat16)));
  EXPECT_EQ(t.grad().item<float>(), -1.f);
  EXPECT_EQ(t.grad().dtype(), kFloat32);
}

}  // namespace
}  // namespace ingot
