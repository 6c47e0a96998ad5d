// Handles that become views of their tensor.
#include <gtest/gtest.h>

#include "eager/autograd/autograd.h"
#include "eager/ops/shapes.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::counting;
using test::message_of;

TEST(ShapesInPlace, BecomeTheView) {
  const Tensor first = counting({2, 1, 3});
  Tensor x = first;
  EXPECT_EQ(x.squeeze_().sizes(), IntArrayRef(Ints{2, 3}));
  EXPECT_EQ(first.sizes(), IntArrayRef(Ints{2, 1, 3}));
  EXPECT_TRUE(x.shares_storage(first));
  EXPECT_EQ(x.t_().unsqueeze_(0).sizes(), IntArrayRef(Ints{1, 3, 2}));
  EXPECT_EQ(x.transpose_(0, -1).sizes(), IntArrayRef(Ints{2, 3, 1}));
  EXPECT_EQ(x.swapdims_(0, 1).swapaxes_(1, 2).sizes(), IntArrayRef(Ints{3, 1, 2}));
  EXPECT_EQ(x.squeeze_(1).sizes(), IntArrayRef(Ints{3, 2}));
  x.fill_(7);
  EXPECT_TRUE(equal(first, full({2, 1, 3}, 7)));
}

TEST(ShapesInPlace, GradientsPass) {
  const Tensor leaf = counting({2, 3}).requires_grad_();
  Tensor x = leaf * 2;
  x.t_();
  (x * counting({3, 2})).sum().backward();
  EXPECT_TRUE(equal(leaf.grad(), counting({3, 2}).t() * 2));
  Tensor same = leaf;
  EXPECT_NE(message_of([&] { same.t_(); }).find("t_: self: got a leaf that requires grad"), std::string::npos);
  EXPECT_EQ(same.sizes(), leaf.sizes());
}

TEST(SumToSize, IsTheGradientOfExpand) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_TRUE(equal(x.sum_to_size({3, 1}), x.sum(0).sum(1, true)));
  EXPECT_TRUE(equal(x.sum_to_size({1, 3, 4}), x.sum(0, true)));
  EXPECT_TRUE(x.sum_to_size({2, 3, 4}).is_same(x));
  EXPECT_EQ(tensor(3, kInt32).sum_to_size(IntList(Ints{})).dtype(), kInt64);  // as a sum of one
  EXPECT_NE(message_of([&] {
              x.sum_to_size({2, 4});
            }).find("sum_to_size: size: got [2, 4], expected sizes that "),
            std::string::npos);
}

TEST(FillDiagonal, OfMatricesAndCubes) {
  const Tensor tall = zeros({7, 3}).fill_diagonal_(5, true);
  EXPECT_EQ(tall.sum().item<float>(), 30);
  EXPECT_EQ(tall[3].sum().item<float>(), 0);
  EXPECT_EQ(tall[6][2].item<float>(), 5);
  EXPECT_EQ(zeros({7, 3}).fill_diagonal_(5).sum().item<float>(), 15);
  const Tensor cube = zeros({2, 2, 2}).fill_diagonal_(5);
  EXPECT_EQ(cube.sum().item<float>(), 10);
  EXPECT_EQ(cube[1][1][1].item<float>(), 5);
  EXPECT_NE(message_of([] { zeros({3}).fill_diagonal_(1); }).find("fill_diagonal_: self: got shape [3]"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              zeros({3, 3, 2}).fill_diagonal_(1);
            }).find("expected dims of one size"),
            std::string::npos);
}

}  // namespace
}  // namespace ingot
