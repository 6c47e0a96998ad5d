// Ops executed at once: elementwise kernels over any layout, in-place forms, programs of one op.
#include "eager/execute/execute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/support.h"

namespace ingot {
namespace {
using namespace test;

template <class T = float>
std::vector<T> values(const Tensor& t) {
  std::vector<T> result;
  std::function<void(const Tensor&)> walk = [&](const Tensor& x) {
    if (x.dim() == 0) return result.push_back(x.item<T>());
    for (int64_t i = 0; i < x.size(0); ++i) walk(x[i]);
  };
  walk(t);
  return result;
}

TEST(Pointwise, BroadcastsAndPromotes) {
  Tensor a = counting({2, 3}), row = tensor({10, 20, 30}), column = tensor({{100.f}, {200.f}});
  EXPECT_EQ(values(a + row), (std::vector<float>{10, 21, 32, 13, 24, 35}));
  EXPECT_EQ((a + row).dtype(), kFloat32);
  EXPECT_EQ(values(a + column), (std::vector<float>{100, 101, 102, 203, 204, 205}));
  EXPECT_EQ((row + 1).dtype(), kInt64);
  EXPECT_EQ((row + 1.5).dtype(), kFloat32);
  EXPECT_EQ((row.to(kInt8) + 1).dtype(), kInt8);
  EXPECT_EQ((tensor({1.f}) + tensor(1.0, kFloat64)).dtype(), kFloat32);
  EXPECT_EQ(values(2 - a), (std::vector<float>{2, 1, 0, -1, -2, -3}));
  EXPECT_EQ(values<int64_t>(5 - row), (std::vector<int64_t>{-5, -15, -25}));
  EXPECT_EQ(values(a.add(row, 2)), (std::vector<float>{20, 41, 62, 23, 44, 65}));
}

TEST(Pointwise, AnyIntegerOrFloatTypeIsAScalar) {
  Tensor a = tensor({1.f});
  EXPECT_EQ((a + 1u).item<float>(), 2);
  EXPECT_EQ((a + 1l).item<float>(), 2);
  EXPECT_EQ((a + static_cast<short>(1)).item<float>(), 2);
  EXPECT_EQ((a + static_cast<size_t>(1)).item<float>(), 2);
  EXPECT_EQ((a + 1.0f).item<float>(), 2);
  EXPECT_EQ((a + 1.0).item<float>(), 2);
  EXPECT_EQ((a + true).item<float>(), 2);
}

TEST(Pointwise, AnyLayoutGivesTheSameValues) {
  Tensor a = counting({5, 7, 3}), b = counting({3, 5, 7}).permute({1, 2, 0});
  std::vector<float> expected = values(a + b.contiguous());
  EXPECT_EQ(values(a + b), expected);
  Tensor wide = counting({5, 14, 6}).slice(1, 0, 14, 2).slice(2, 1, 6, 2);
  EXPECT_EQ(values(a + wide), values(a + wide.contiguous()));
  EXPECT_EQ(values(a.transpose(0, 2) * 2), values(a.transpose(0, 2).contiguous() * 2));
  EXPECT_TRUE((a + b).is_contiguous());
  EXPECT_TRUE(a.transpose(0, 2).clone().is_contiguous());
  Tensor expanded = counting({7, 1}).expand({5, 7, 3});
  EXPECT_EQ(values(a - expanded), values(a - expanded.contiguous()));
}

TEST(Pointwise, WhatIsDenseAlongTheRowsIsReadInTiles) {
  for (DType dtype : {kFloat32, kFloat64, kInt64, kInt32, kBFloat16, kBool})
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{16, 16}, {17, 40}, {255, 33}, {300, 257}, {16, 600}}) {
      Tensor x = arange(2 * rows * columns).reshape({2, columns, rows}), whole = x.to(dtype);
      Tensor turned = whole.transpose(1, 2),
             same =
                 index_select(x.reshape({2, -1}), 1, (arange(rows).unsqueeze(1) + arange(columns) * rows).reshape({-1}))
                     .reshape({2, rows, columns})
                     .to(dtype);
      EXPECT_TRUE(equal(turned.contiguous(), same)) << rows << " x " << columns;
      if (dtype == kBool) continue;
      EXPECT_TRUE(equal(turned * 2 + same, same * 2 + same)) << rows << " x " << columns;
      Tensor into = zeros({2, rows, columns}, dtype);
      into.add_(turned);
      EXPECT_TRUE(equal(into, same));
    }
}

// Large results go past the caches where their rows begin at whole lines.
TEST(Pointwise, LargeTurnedCopies) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{4112, 2064}, {4112, 2051}, {4100, 2064}}) {
    Tensor x = arange(rows * columns, kInt32).view({rows, columns}), whole = x.t().contiguous();
    for (int64_t begin = 0; begin < rows; begin += rows / 4)
      EXPECT_TRUE(equal(whole.narrow(1, begin, rows / 4), x.narrow(0, begin, rows / 4).t().contiguous()))
          << rows << " x " << columns;
    Tensor y = x.t() + x.t().contiguous();
    EXPECT_TRUE(equal(y, whole * 2)) << rows << " x " << columns;
    // Lines of other lengths.
    for (DType dtype : {kInt64, kInt8, kFloat64})
      EXPECT_TRUE(equal(x.to(dtype).t().contiguous(), whole.to(dtype))) << rows << " x " << columns;
    EXPECT_TRUE(equal(x.to(kInt16).t().to(kInt32), whole.to(kInt16).to(kInt32))) << rows << " x " << columns;
  }
}

TEST(Pointwise, ManyDimsThatDoNotJoin) {
  Tensor a = counting({2, 3, 2, 3, 2}), b = counting({2, 3, 2, 3, 2}).permute({4, 3, 2, 1, 0}).contiguous();
  Tensor c = b.permute({4, 3, 2, 1, 0});
  EXPECT_EQ(values(a + c), values(a * 2));
}

TEST(Pointwise, LargeTensorsOnSeveralThreads) {
  int64_t n = 300007;
  std::vector<float> x(n), y(n);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 1000), y[i] = static_cast<float>(i % 777);
  Tensor sum = tensor(x) + tensor(y);
  const float* data = sum.data_ptr<float>();
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(data[i], x[i] + y[i]) << i;
  Tensor tall = tensor(x).slice(0, 0, 300000).view({3000, 100}), row = tensor(y).slice(0, 0, 100);
  Tensor product = tall * row;
  for (int64_t i = 0; i < 300000; ++i) ASSERT_EQ(product.data_ptr<float>()[i], x[i] * y[i % 100]) << i;
}

TEST(Pointwise, EmptyAndZeroDimTensors) {
  Tensor nothing = counting({0, 3});
  EXPECT_EQ((nothing + 1).sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ((nothing + counting({1, 1})).sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ((tensor(2.f) * tensor(3.f)).item<float>(), 6);
  EXPECT_EQ((tensor(2.f) * tensor(3.f)).dim(), 0);
  EXPECT_EQ((tensor(2.f) * counting({1, 1})).dim(), 2);
}

TEST(Pointwise, ScalarsOfACallAreNotPartOfTheKernel) {
  Tensor a = tensor({1.f, 2.f});
  a * 1.25;
  int64_t before = eager::eager_statistics().pointwise_kernels;
  for (int i = 0; i < 20; ++i) EXPECT_EQ((a * (i + 0.5))[1].item<float>(), 2 * (i + 0.5f));
  EXPECT_EQ(eager::eager_statistics().pointwise_kernels, before);
}

// The processor's own division traps there.
TEST(Pointwise, TheLeastIntegerByMinusOneWraps) {
  auto judge = [](auto least, DType dtype) {
    using T = decltype(least);
    const std::vector<T> numbers{least, -7, 0, 7, std::numeric_limits<T>::max()};
    for (size_t n : {1u, 5u}) {
      const Tensor x = tensor(std::vector<T>(numbers.begin(), numbers.begin() + static_cast<int64_t>(n)));
      ASSERT_EQ(x.dtype(), dtype);
      const Tensor minus = full_like(x, -1);
      std::vector<T> negated, nothing(n);
      for (size_t i = 0; i < n; ++i) negated.push_back(numbers[i] == least ? least : static_cast<T>(-numbers[i]));
      EXPECT_EQ(values<T>(x.floor_divide(minus)), negated);
      EXPECT_EQ(values<T>(x.floor_divide(-1)), negated);
      EXPECT_EQ(values<T>(x.div(minus, "trunc")), negated);
      EXPECT_EQ(values<T>(x.remainder(minus)), nothing);
      EXPECT_EQ(values<T>(x.remainder(-1)), nothing);
      EXPECT_EQ(values<T>(x.fmod(minus)), nothing);
    }
  };
  judge(std::numeric_limits<int64_t>::min(), kInt64);
  judge(std::numeric_limits<int32_t>::min(), kInt32);
}

TEST(Inplace, WritesThroughTheView) {
  Tensor a = counting({3, 4});
  a.select(0, 1).add_(10);
  EXPECT_EQ(values(a), (std::vector<float>{0, 1, 2, 3, 14, 15, 16, 17, 8, 9, 10, 11}));
  a.t().mul_(2);
  EXPECT_EQ(values(a[2]), (std::vector<float>{16, 18, 20, 22}));
  a.slice(1, 1, 4, 2) -= 1;
  EXPECT_EQ(values(a[2]), (std::vector<float>{16, 17, 20, 21}));
  a.select(1, 0).fill_(0);
  EXPECT_EQ(values(a.select(1, 0)), (std::vector<float>{0, 0, 0}));
  a.copy_(tensor({1, 2, 3, 4}));
  EXPECT_EQ(values(a[1]), (std::vector<float>{1, 2, 3, 4}));
  a[0] += a[1];
  EXPECT_EQ(values(a[0]), (std::vector<float>{2, 4, 6, 8}));
}

TEST(Inplace, SourceIsReadFirstWhereItOverlaps) {
  Tensor a = counting({8});
  a.slice(0, 1, 8).copy_(a.slice(0, 0, 7));
  EXPECT_EQ(values(a), (std::vector<float>{0, 0, 1, 2, 3, 4, 5, 6}));
  Tensor b = counting({3, 3});
  b.copy_(b.t());
  EXPECT_EQ(values(b), (std::vector<float>{0, 3, 6, 1, 4, 7, 2, 5, 8}));
  Tensor c = counting({4});
  c.add_(c);
  EXPECT_EQ(values(c), (std::vector<float>{0, 2, 4, 6}));
}

TEST(Inplace, KeepsTheDtypeAndRefusesWhatItCannotHold) {
  Tensor a = tensor({1, 2, 3});
  a.mul_(2);
  EXPECT_EQ(a.dtype(), kInt64);
  EXPECT_THROW(a.add_(1.5), Error);
  EXPECT_THROW(a.add_(counting({3})), Error);
  EXPECT_EQ(values<int64_t>(a), (std::vector<int64_t>{2, 4, 6}));
  EXPECT_THROW(a.add_(counting({2, 3})), Error);
  Tensor f = counting({3});
  f.add_(a);
  EXPECT_EQ(values(f), (std::vector<float>{2, 5, 8}));
  std::string text = message_of([] { counting({3}).unsqueeze(0).expand({2, 3}).add_(1); });
  EXPECT_NE(text.find("one place in memory"), std::string::npos) << text;
}

TEST(Inplace, CountsAsAWrite) {
  Tensor a = counting({4}), view = a.slice(0, 0, 2);
  uint64_t before = a.version();
  view.add_(1);
  EXPECT_EQ(a.version(), before + 1);
}

TEST(Errors, ShapesNameTheArgumentAndTheLine) {
  Tensor a = counting({2, 3}), b = counting({4});
  int line = __LINE__ + 1;
  std::string text = message_of([&] { a + b; });
  EXPECT_NE(text.find("add: other: got"), std::string::npos) << text;
  EXPECT_NE(text.find("execute_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  line = __LINE__ + 1;
  text = message_of([&] { 2.0 * a.add(b); });
  EXPECT_NE(text.find("execute_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  line = __LINE__ + 1;
  text = message_of([&] { matmul(a, b); });
  EXPECT_NE(text.find("execute_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  EXPECT_THROW(a + Tensor(), Error);
}

TEST(Errors, ValuesAreCheckedBeforeAnythingIsWritten) {
  Tensor table = counting({3, 2});
  EXPECT_THROW(embedding(table, tensor({0, 3})), Error);
  EXPECT_THROW(table.index_select(0, tensor({-1})), Error);
  EXPECT_THROW(tensor({1, 2}).floor_divide(tensor({1, 0})), Error);
  EXPECT_THROW(tensor({1, 2}).remainder(0), Error);
  Tensor a = tensor({7, 8});
  EXPECT_THROW(a.div_(tensor({1, 0}), "floor"), Error);
  EXPECT_EQ(values<int64_t>(a), (std::vector<int64_t>{7, 8}));
}

TEST(Programs, ReductionsAndProducts) {
  Tensor a = counting({4, 5});
  EXPECT_EQ(a.sum().item<float>(), 190);
  EXPECT_EQ(values(a.sum(1)), (std::vector<float>{10, 35, 60, 85}));
  EXPECT_EQ(values(a.sum(0, true)), (std::vector<float>{30, 34, 38, 42, 46}));
  EXPECT_EQ(a.sum(0, true).dim(), 2);
  EXPECT_EQ(values(a.t().sum(0)), (std::vector<float>{10, 35, 60, 85}));
  EXPECT_EQ(a.max().item<float>(), 19);
  EXPECT_EQ(values(matmul(a, a.t())[0]), (std::vector<float>{30, 80, 130, 180}));
  EXPECT_EQ(counting({0, 3}).sum().item<float>(), 0);
  EXPECT_EQ(values(zeros({2, 2})), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(values<int64_t>(arange(2, 11, 3)), (std::vector<int64_t>{2, 5, 8}));
  EXPECT_EQ(values(cat({a[0], a[1].slice(0, 0, 2)})), (std::vector<float>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Programs, OneProgramServesManySizes) {
  counting({40, 50}).sum(1);
  int64_t before = eager::eager_statistics().programs;
  for (int64_t n = 41; n < 60; ++n) {
    Tensor rows = ones({n, 60}).sum(1);
    EXPECT_EQ(rows.numel(), n);
    EXPECT_EQ(rows[n - 1].item<float>(), 60);
  }
  EXPECT_LE(eager::eager_statistics().programs, before + 2);
}

TEST(Indexing, TensorsOfPositions) {
  Tensor a = counting({3, 4});
  EXPECT_EQ(values(a.index({tensor({2, 0})})), (std::vector<float>{8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(values(a.index({Slice(), tensor({-1, 0})})), (std::vector<float>{3, 0, 7, 4, 11, 8}));
  EXPECT_EQ(values(a.index({tensor({0, 2}), tensor({1, -1})})), (std::vector<float>{1, 11}));
  EXPECT_EQ(values(a.index({a > 8})), (std::vector<float>{9, 10, 11}));
  EXPECT_THROW(a.index({tensor({0, 2}), tensor({1, 4})}), Error);
  a.index_put_({tensor({0, 1}), tensor({0, 0})}, tensor({-1.f, -2.f}));
  EXPECT_EQ(values(a.select(1, 0)), (std::vector<float>{-1, -2, 8}));
  a.index_put_({Slice(), 1}, 5);
  EXPECT_EQ(values(a.select(1, 1)), (std::vector<float>{5, 5, 5}));
  a.index_put_({a < 0}, 0);
  EXPECT_EQ(values(a.select(1, 0)), (std::vector<float>{0, 0, 8}));
}

}  // namespace
}  // namespace ingot
