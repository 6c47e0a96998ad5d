// Products of vectors and matrices beside PyTorch's numbers.
#include "eager/ops/products.h"

#include "eager/autograd/autograd.h"
#include "eager/ops/near.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::counting;
using test::message_of;
using test::near;
using Sizes = std::vector<int64_t>;

TEST(Kron, BlocksOfTheOther) {
  const Tensor a = tensor({{1, 2}, {3, 4}}), b = tensor({{0, 5}, {6, 7}});
  EXPECT_TRUE(near(kron(a, b), tensor({{0, 5, 0, 10}, {6, 7, 12, 14}, {0, 15, 0, 20}, {18, 21, 24, 28}})));
  EXPECT_TRUE(near(kron(tensor({1, 2}), a), tensor({{1, 2, 2, 4}, {3, 4, 6, 8}})));
  EXPECT_TRUE(near(kron(tensor(2.f), a), tensor({{2.f, 4.f}, {6.f, 8.f}})));
  EXPECT_EQ(kron(zeros({0}), a).sizes(), (Sizes{2, 0}));
}

TEST(Cross, OfVectors) {
  const Tensor a = tensor({{1.f, 2.f, 3.f}, {4.f, 0.f, -1.f}}), b = tensor({{0.f, 1.f, -2.f}});
  EXPECT_TRUE(near(linalg::cross(a, b), tensor({{-7.f, 2.f, 1.f}, {1.f, 8.f, 4.f}})));
  EXPECT_TRUE(near(cross(a.t(), b.t()), tensor({{-7.f, 1.f}, {2.f, 8.f}, {1.f, 4.f}})));
  EXPECT_TRUE(near(cross(a, b, 1), linalg::cross(a, b)));
  EXPECT_NE(message_of([] {
              linalg::cross(ones({2}), ones({2}));
            }).find("linalg::cross: self: got shape [2], expected size 3"),
            std::string::npos);
  EXPECT_THROW(linalg::cross(a, ones({3})), Error);
  EXPECT_THROW(cross(ones({2, 2}), ones({2, 2})), Error);
}

TEST(MultiDot, InTheCheapestOrder) {
  const Tensor a = counting({2, 3}), b = counting({3, 4}), c = counting({4, 1}), v = tensor({1.f, 2.f});
  EXPECT_TRUE(near(linalg::multi_dot({a, b, c}), matmul(matmul(a, b), c)));
  EXPECT_TRUE(near(chain_matmul({a, b, c}), matmul(matmul(a, b), c)));
  EXPECT_TRUE(near(chain_matmul({a}), a));
  EXPECT_EQ(linalg::multi_dot({v, a, b}).sizes(), (Sizes{4}));
  EXPECT_EQ(linalg::multi_dot({v, a, tensor({1.f, 2.f, 3.f})}).sizes(), (Sizes{}));
  EXPECT_NE(message_of([&] {
              linalg::multi_dot({a, c});
            }).find("linalg::multi_dot: tensors[1]: got shape [4, 1]"),
            std::string::npos);
  EXPECT_THROW(linalg::multi_dot({a}), Error);
  EXPECT_THROW(linalg::multi_dot({a, v, b}), Error);
  EXPECT_THROW(chain_matmul({v, a}), Error);
}

TEST(MatrixPower, OfAllSigns) {
  const Tensor a = tensor({{1, 2}, {3, 4}}), f = a.to(kFloat64);
  EXPECT_TRUE(near(matrix_power(a, 5), tensor({{1069, 1558}, {2337, 3406}})));
  EXPECT_TRUE(near(matrix_power(a, 0), tensor({{1, 0}, {0, 1}})));
  const Tensor tracked = f.clone().requires_grad_();
  matrix_power(tracked, 0).sum().backward();
  EXPECT_TRUE(near(tracked.grad(), zeros({2, 2}, kFloat64)));
  EXPECT_FALSE(matrix_power(a, 1).shares_storage(a));
  EXPECT_TRUE(near(linalg::matrix_power(f, -2), tensor({{5.5, -2.5}, {-3.75, 1.75}}, kFloat64)));
  EXPECT_EQ(matrix_power(ones({5, 2, 2}), 3).sizes(), (Sizes{5, 2, 2}));
  EXPECT_THROW(matrix_power(ones({2, 3}), 2), Error);
  EXPECT_THROW(matrix_power(a, -1), Error);
}

TEST(Vander, PowersAsColumns) {
  EXPECT_TRUE(near(vander(tensor({1, 2, 3})), tensor({{1, 1, 1}, {4, 2, 1}, {9, 3, 1}})));
  EXPECT_TRUE(near(vander(tensor({2.f, 3.f}), 4, true), tensor({{1.f, 2.f, 4.f, 8.f}, {1.f, 3.f, 9.f, 27.f}})));
  EXPECT_EQ(vander(tensor({2.f, 3.f}), 0).sizes(), (Sizes{2, 0}));
  EXPECT_TRUE(
      near(linalg::vander(tensor({{1, 2}, {3, 4}}), 3), tensor({{{1, 1, 1}, {1, 2, 4}}, {{1, 3, 9}, {1, 4, 16}}})));
  // Powers of small integers do not wrap.
  EXPECT_TRUE(near(vander(tensor({16, 3}, kUInt8), 3), tensor({{256, 16, 1}, {9, 3, 1}})));
  EXPECT_TRUE(near(linalg::vander(tensor({16, 3}, kUInt8), 3), tensor({{1, 16, 256}, {1, 3, 9}})));
  EXPECT_TRUE(near(linalg::vander(tensor(2.f), 3), tensor({{1.f, 2.f, 4.f}})));
  EXPECT_THROW(vander(ones({2, 2})), Error);
  EXPECT_THROW(vander(ones({2}), -1), Error);
  EXPECT_THROW(linalg::vander(ones({2}), 1), Error);
  EXPECT_THROW(linalg::vander(tensor({true})), Error);
}

TEST(Norms, OfDifferencesAndSlices) {
  const Tensor x = tensor({{3.f, 4.f}, {.3f, .4f}});
  EXPECT_TRUE(near(dist(x, tensor({0.f, 0.f})), tensor(5.0249376f)));
  EXPECT_TRUE(near(dist(x, x + 1, 1), tensor(4.f)));
  EXPECT_TRUE(near(renorm(x, 2, 0, 1), tensor({{0.60000002f, 0.80000001f}, {0.30000001f, 0.40000001f}})));
  EXPECT_EQ(renorm(x.to(kFloat16), 1, -1, 1).dtype(), kFloat16);
  EXPECT_THROW(renorm(tensor({1.f}), 2, 0, 1), Error);
  EXPECT_THROW(renorm(x, 0, 0, 1), Error);
  EXPECT_THROW(renorm(x, 2, 0, -1), Error);
  EXPECT_THROW(dist(tensor({1}), tensor({1})), Error);
}

TEST(Products, HaveGradients) {
  const Tensor a = tensor({{1., -2., .5}, {.25, 3., 1.}, {2., 1., -1.}}, kFloat64).requires_grad_(),
               b = tensor({{.5, 1., 2.}}, kFloat64).requires_grad_();
  const auto all = [](const std::vector<Tensor>& v) {
    return std::vector<Tensor>{kron(v[0], v[1]),      linalg::cross(v[0], v[1]), linalg::multi_dot({v[1], v[0], v[0]}),
                               matrix_power(v[0], 3), matrix_power(v[0], -2),    vander(v[1].select(0, 0), 4),
                               renorm(v[0], 2, 0, 1), dist(v[0], v[1])};
  };
  EXPECT_TRUE(autograd::gradcheck(all, {a, b}));
  EXPECT_TRUE(autograd::gradgradcheck(all, {a, b}));
}

}  // namespace
}  // namespace ingot
