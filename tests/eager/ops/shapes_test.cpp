// Reshaping, cutting and joining by further names, beside PyTorch's results; second names of functions.
#include "eager/ops/shapes.h"

#include "eager/ops/aliases.h"
#include "eager/ops/near.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::counting;
using test::message_of;
using test::near;
using Sizes = std::vector<int64_t>;

TEST(Shapes, AtLeastSoManyDims) {
  const Tensor one = tensor(1.f), line = tensor({1.f, 2.f}), plane = counting({3, 2});
  EXPECT_EQ(atleast_1d(one).sizes(), (Sizes{1}));
  EXPECT_EQ(atleast_2d(one).sizes(), (Sizes{1, 1}));
  EXPECT_EQ(atleast_3d(one).sizes(), (Sizes{1, 1, 1}));
  EXPECT_EQ(atleast_2d(line).sizes(), (Sizes{1, 2}));
  EXPECT_EQ(atleast_3d(line).sizes(), (Sizes{1, 2, 1}));
  EXPECT_EQ(atleast_3d(plane).sizes(), (Sizes{3, 2, 1}));
  EXPECT_TRUE(atleast_2d(plane).shares_storage(plane));
  const std::vector<Tensor> all = atleast_2d({one, plane});
  EXPECT_EQ(all[0].sizes(), (Sizes{1, 1}));
  EXPECT_EQ(all[1].sizes(), (Sizes{3, 2}));
  EXPECT_TRUE(near(ravel(plane.t()), tensor({0.f, 2.f, 4.f, 1.f, 3.f, 5.f})));
}

TEST(Shapes, CombinationsAreCountedFirst) {
  const Tensor five = counting({5});
  EXPECT_EQ(combinations(five, 3).sizes(), (Sizes{10, 3}));
  EXPECT_EQ(combinations(five, 3, true).sizes(), (Sizes{35, 3}));
  EXPECT_EQ(combinations(five, 5).sizes(), (Sizes{1, 5}));
  EXPECT_EQ(combinations(five, 6).sizes(), (Sizes{0, 6}));
  EXPECT_EQ(combinations(counting({0}), 2, true).sizes(), (Sizes{0, 2}));
  for (bool again : {false, true}) EXPECT_THROW(combinations(counting({1000}), 10, again), Error);
  EXPECT_THROW(combinations(counting({60}), 30), Error);
  EXPECT_THROW(combinations(five, int64_t{1} << 62, true), Error);
  EXPECT_THROW(combinations(counting({1}), int64_t{1} << 62, true), Error);
}

TEST(Shapes, SplitsByName) {
  const Tensor line = counting({6}), cube = counting({2, 4, 6});
  EXPECT_EQ(hsplit(line, 3)[1].sizes(), (Sizes{2}));
  EXPECT_EQ(hsplit(cube, 2)[1].sizes(), (Sizes{2, 2, 6}));
  EXPECT_EQ(vsplit(cube, 2)[1].sizes(), (Sizes{1, 4, 6}));
  EXPECT_EQ(dsplit(cube, {1, 5})[1].sizes(), (Sizes{2, 4, 4}));
  EXPECT_EQ(hsplit(line, {2, 9}).size(), 3u);
  EXPECT_NE(message_of([&] { hsplit(line, 4); }).find("hsplit: sections: got 4, expected a divisor of 6"),
            std::string::npos);
  EXPECT_THROW(hsplit(line, 0), Error);
  EXPECT_THROW(hsplit(tensor(1), 1), Error);
  EXPECT_THROW(vsplit(line, 2), Error);
  EXPECT_THROW(dsplit(counting({2, 2}), 2), Error);
}

TEST(Shapes, BlocksAlongADiagonal) {
  EXPECT_TRUE(near(block_diag({tensor({1, 2}), tensor(3), tensor({{1}, {2}})}),
                   tensor({{1, 2, 0, 0}, {0, 0, 3, 0}, {0, 0, 0, 1}, {0, 0, 0, 2}})));
  EXPECT_TRUE(near(block_diag({zeros({0}), tensor({3})}), tensor({{0.f}, {3.f}})));
  EXPECT_TRUE(near(diagflat(tensor({{1, 2}, {3, 4}}), -1).diagonal(-1), tensor({1, 2, 3, 4})));
  EXPECT_NE(message_of([] {
              block_diag({zeros({1, 1, 1})});
            }).find("block_diag: tensors[0]: got shape [1, 1, 1]"),
            std::string::npos);
  EXPECT_THROW(block_diag(std::vector<Tensor>()), Error);
  EXPECT_NE(message_of([] { block_diag({}); }).find("shapes_test.cpp:"), std::string::npos);
  const Tensor a = counting({1, 2}).requires_grad_();
  (block_diag({tensor(1.f), a}) * counting({2, 3})).sum().backward();
  EXPECT_TRUE(near(a.grad(), tensor({{4.f, 5.f}})));
}

TEST(Shapes, WaysToChoose) {
  const Tensor x = tensor({1, 2, 3});
  EXPECT_TRUE(near(cartesian_prod({tensor({1, 2}), tensor({3, 4})}), tensor({{1, 3}, {1, 4}, {2, 3}, {2, 4}})));
  EXPECT_TRUE(near(cartesian_prod({x}), x));
  EXPECT_THROW(cartesian_prod({x, tensor({1.f})}), Error);
  EXPECT_THROW(cartesian_prod({x, tensor({{1}})}), Error);
  EXPECT_TRUE(near(combinations(x), tensor({{1, 2}, {1, 3}, {2, 3}})));
  EXPECT_TRUE(near(combinations(x, 2, true), tensor({{1, 1}, {1, 2}, {1, 3}, {2, 2}, {2, 3}, {3, 3}})));
  EXPECT_TRUE(near(combinations(x, 3), tensor({{1, 2, 3}})));
  EXPECT_EQ(combinations(x, 4).sizes(), (Sizes{0, 4}));
  EXPECT_EQ(combinations(zeros({0}), 2, true).sizes(), (Sizes{0, 2}));
  EXPECT_EQ(combinations(x, 0).sizes(), (Sizes{0}));
  EXPECT_THROW(combinations(x, -1), Error);
  EXPECT_THROW(combinations(tensor({{1}})), Error);
}

TEST(Shapes, PositionsOfEachDim) {
  const std::vector<Tensor> at = unravel_index(tensor({5, 0, 2}), {2, 3});
  EXPECT_TRUE(near(at[0], tensor({1, 0, 0})));
  EXPECT_TRUE(near(at[1], tensor({2, 0, 2})));
  EXPECT_THROW(unravel_index(tensor({1.f}), {2}), Error);
  EXPECT_THROW(unravel_index(tensor({1}), {0}), Error);
}

TEST(Aliases, AreWhatTheyName) {
  const Tensor x = counting({2, 3, 4}), p = tensor({.25f, .5f});
  EXPECT_TRUE(near(swapaxes(x, 0, -1), x.transpose(0, 2)));
  EXPECT_TRUE(near(swapdims(x, 0, 1), x.transpose(0, 1)));
  EXPECT_TRUE(near(moveaxis(x, 0, 2), x.movedim(0, 2)));
  EXPECT_TRUE(near(concatenate({x, x}, 1), cat({x, x}, 1)));
  EXPECT_TRUE(near(row_stack({p, p}), vstack({p, p})));
  EXPECT_TRUE(near(vdot(p, p), dot(p, p)));
  EXPECT_TRUE(near(special::expit(p), sigmoid(p)));
  EXPECT_TRUE(near(special::gammaln(p), lgamma(p)));
  EXPECT_TRUE(near(special::logit(p, 0.3), logit(p, 0.3)));
  EXPECT_TRUE(near(special::xlogy(2, p), xlogy(2, p)));
  EXPECT_TRUE(near(special::softmax(x, 1), softmax(x, 1)));
  EXPECT_TRUE(near(linalg::vector_norm(x, 2, {1, 2}), vector_norm(x, 2, {1, 2})));
  EXPECT_EQ(linalg::diagonal(x).sizes(), (Sizes{2, 3}));
}

}  // namespace
}  // namespace ingot
