// Copies with a part replaced, beside PyTorch's results.
#include "eager/ops/replacements.h"

#include "eager/autograd/autograd.h"
#include "eager/ops/near.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::counting;
using test::message_of;
using test::near;

TEST(Replacements, OfViews) {
  const Tensor x = counting({2, 3}), row = tensor({7.f, 8.f, 9.f});
  EXPECT_TRUE(near(select_scatter(x, row, 0, 1), tensor({{0.f, 1.f, 2.f}, {7.f, 8.f, 9.f}})));
  EXPECT_TRUE(near(select_scatter(x, tensor({7, 8}), 1, -1), tensor({{0.f, 1.f, 7.f}, {3.f, 4.f, 8.f}})));
  EXPECT_TRUE(near(slice_scatter(x, tensor({{7.f}, {8.f}}), 1, 1, 2), tensor({{0.f, 7.f, 2.f}, {3.f, 8.f, 5.f}})));
  EXPECT_TRUE(near(slice_scatter(x, zeros({2, 2}), 1, 0, {}, 2), tensor({{0.f, 1.f, 0.f}, {0.f, 4.f, 0.f}})));
  EXPECT_TRUE(near(diagonal_scatter(x, tensor({7.f, 8.f}), 1), tensor({{0.f, 7.f, 2.f}, {3.f, 4.f, 8.f}})));
  EXPECT_TRUE(near(x, counting({2, 3}))) << "a copy is written to";
  EXPECT_NE(message_of([&] {
              select_scatter(x, tensor({7.f}), 0, 1);
            }).find("select_scatter: src: got shape [1], expected [3]"),
            std::string::npos);
  EXPECT_THROW(select_scatter(x, row, 0, 2), Error);
  EXPECT_THROW(slice_scatter(x, row, 0), Error);
  EXPECT_THROW(diagonal_scatter(x, row), Error);
}

TEST(Replacements, OfPositions) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(near(put(x, tensor({0, -1}), tensor({7.f, 8.f})), tensor({{7.f, 1.f, 2.f}, {3.f, 4.f, 8.f}})));
  EXPECT_TRUE(
      near(put(x.t(), tensor({1, 1}), tensor({7.f, 8.f}), true), tensor({{0.f, 18.f}, {1.f, 4.f}, {2.f, 5.f}})));
  EXPECT_TRUE(near(put(tensor(1), tensor(0), tensor(5)), tensor(5)));
  EXPECT_NE(message_of([&] { put(x, tensor({6}), tensor({1.f})); }).find("put: index: got 6"), std::string::npos);
  EXPECT_THROW(put(x, tensor({1}), tensor({1})), Error);
  EXPECT_THROW(put(x, tensor({1}).to(kInt32), tensor({1.f})), Error);
  EXPECT_THROW(put(x, tensor({1}), tensor({1.f, 2.f})), Error);
  EXPECT_THROW(put(zeros({0}), tensor({0}), tensor({1.f})), Error);
}

TEST(Replacements, ReducedSlices) {
  const Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}), index = tensor({2, 0, 2}),
               source = tensor({{2.f, 3.f}, {4.f, 5.f}, {6.f, 9.f}});
  EXPECT_TRUE(near(index_reduce(x, 0, index, source, "prod"), tensor({{4.f, 10.f}, {3.f, 4.f}, {60.f, 162.f}})));
  EXPECT_TRUE(near(index_reduce(x, 0, index, source, "mean"), tensor({{2.5f, 3.5f}, {3.f, 4.f}, {4.3333335f, 6.f}})));
  EXPECT_TRUE(near(index_reduce(x, 0, index, source, "amax", false), tensor({{4.f, 5.f}, {3.f, 4.f}, {6.f, 9.f}})));
  EXPECT_TRUE(
      near(index_reduce(x.t(), 1, index.to(kInt32), source.t(), "amin"), tensor({{1.f, 3.f, 2.f}, {2.f, 4.f, 3.f}})));
  EXPECT_TRUE(near(index_reduce(tensor({1, 2}), 0, tensor({0, 0}), tensor({5, 6}), "mean"), tensor({4, 2})));
  EXPECT_NE(message_of([&] { index_reduce(x, 0, index, source, "sum"); }).find("index_reduce: reduce: got \"sum\""),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              index_reduce(x, 0, tensor({0, 3, 0}), source, "prod");
            }).find("index_reduce: index: got 3"),
            std::string::npos);
  EXPECT_THROW(index_reduce(x, 1, index, source, "prod"), Error);
  EXPECT_THROW(index_reduce(x, 0, index, source.to(kFloat64), "prod"), Error);
  EXPECT_THROW(index_reduce(x, 0, tensor({0.f, 1.f, 2.f}), source, "prod"), Error);
}

TEST(Replacements, HaveGradients) {
  const Tensor x = counting({3, 2}).to(kFloat64).requires_grad_(), s = tensor({{1., 2.}}, kFloat64).requires_grad_();
  const auto all = [](const std::vector<Tensor>& v) {
    const Tensor row = v[1].select(0, 0);
    return std::vector<Tensor>{select_scatter(v[0], row, 0, 1).square(), slice_scatter(v[0], v[1], 0, 2).square(),
                               diagonal_scatter(v[0], row).square(), put(v[0], tensor({1, 4}), row, true).square(),
                               index_reduce(v[0] + 1, 0, tensor({2}), v[1], "prod")};
  };
  EXPECT_TRUE(autograd::gradcheck(all, {x, s}));
  EXPECT_TRUE(autograd::gradgradcheck(all, {x, s}));
}

}  // namespace
}  // namespace ingot
