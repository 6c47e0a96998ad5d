// Writing to positions: against plain loops, duplicates in order, whatever the threads; refused input changes nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "eager/ops/factories.h"
#include "eager/ops/lists.h"
#include "eager/ops/random.h"
#include "eager/ops/selection.h"
#include "runtime/thread_pool.h"
#include "support.h"

namespace ingot {
namespace {
using namespace test;

bool same_bytes(const Tensor& a, const Tensor& b) {
  Tensor x = a.contiguous(), y = b.contiguous();
  return x.dtype() == y.dtype() && x.sizes() == y.sizes() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), static_cast<size_t>(x.nbytes())) == 0;
}

TEST(Scatter, ElementsThatMeetAreAddedInTheOrderOfTheIndex) {
  constexpr int64_t kPlaces = 37, kElements = 20000;
  Tensor index = randint(0, kPlaces, {kElements}), x = randn({kElements});
  std::vector<float> expected(kPlaces, 1.f);
  for (int64_t i = 0; i < kElements; ++i) expected[index.data_ptr<int64_t>()[i]] += x.data_ptr<float>()[i];
  int threads = num_threads();
  for (int n : {1, 2, 3, 7}) {
    set_num_threads(n);
    Tensor y = ones({kPlaces}).scatter_add(0, index, x), z = ones({kPlaces}).index_add(0, index, x);
    EXPECT_EQ(std::memcmp(y.data_ptr(), expected.data(), sizeof(float) * kPlaces), 0) << n << " threads";
    EXPECT_TRUE(same_bytes(y, z));
  }
  set_num_threads(threads);
}

// Few lines of many places, of which few are written to.
TEST(Scatter, PlacesAreCopiedByAnyThreads) {
  constexpr int64_t kPlaces = 20'011;
  const int threads = num_threads();
  for (int64_t columns : {1, 16, 100}) {
    const Tensor base = randn({kPlaces + 3, columns + 2}), index = randint(0, kPlaces, {70}),
                 src = randn({70, columns});
    const Tensor dense = randn({kPlaces, columns}), part = base.narrow(0, 2, kPlaces).narrow(1, 1, columns);
    for (const Tensor& self : {dense, part, dense.t().contiguous().t(), ones({1, 1}).expand({kPlaces, columns}),
                               base.narrow(1, 0, 1).narrow(0, 1, kPlaces).expand({kPlaces, columns})}) {
      std::vector<float> expected(static_cast<size_t>(kPlaces * columns));
      std::memcpy(expected.data(), self.contiguous().data_ptr(), expected.size() * sizeof(float));
      for (int64_t i = 0; i < src.numel(); ++i)
        expected[index.data_ptr<int64_t>()[i / columns] * columns + i % columns] += src.data_ptr<float>()[i];
      for (int n : {1, 2, 7}) {
        set_num_threads(n);
        const Tensor y = self.index_add(0, index, src), z = self.clone().index_add_(0, index, src);
        EXPECT_EQ(std::memcmp(y.contiguous().data_ptr(), expected.data(), expected.size() * sizeof(float)), 0)
            << columns << " columns, " << n << " threads";
        EXPECT_TRUE(same_bytes(y, z));
      }
    }
    EXPECT_EQ(randn({0, columns}).index_add(0, index.narrow(0, 0, 0), src.narrow(0, 0, 0)).size(0), 0);
  }
  EXPECT_EQ(randn({kPlaces, 0}).index_add(0, randint(0, kPlaces, {70}), randn({70, 0})).numel(), 0);
  set_num_threads(threads);
}

TEST(Scatter, AnyDimAndLayoutByAnyThreads) {
  int threads = num_threads();
  for (const IntList& sizes : {IntList({5, 70, 3}), IntList({1, 9, 130}), IntList({300, 4, 2}), IntList({2, 3, 1})})
    for (int64_t dim = 0; dim < 3; ++dim) {
      Tensor self = randn(sizes), src = randn(sizes), index = randint(0, self.size(dim), sizes);
      Tensor expected = self.clone();
      float* to = expected.mutable_data_ptr<float>();
      for (int64_t i = 0; i < self.numel(); ++i) {
        int64_t place = index.data_ptr<int64_t>()[i], at = i / self.stride(dim) % self.size(dim);
        to[i + (place - at) * self.stride(dim)] += src.data_ptr<float>()[i];
      }
      auto turned = [](const Tensor& t) { return t.permute({2, 1, 0}).contiguous().permute({2, 1, 0}); };
      for (int n : {1, 2, 7}) {
        set_num_threads(n);
        EXPECT_TRUE(same_bytes(self.scatter_add(dim, index, src), expected));
        EXPECT_TRUE(same_bytes(turned(self).scatter_add(dim, turned(index), turned(src)), expected));
        Tensor target = turned(self);
        EXPECT_TRUE(same_bytes(target.scatter_add_(dim, index.to(kInt32), src), expected));
      }
    }
  set_num_threads(threads);
}

TEST(Scatter, ReductionsWithAndWithoutSelf) {
  Tensor self = tensor({10.f, 20.f, 30.f}), index = tensor({0, 0, 2}), src = tensor({1.f, 4.f, NAN});
  auto run = [&](const char* reduce, bool with) { return self.scatter_reduce(0, index, src, reduce, with).str(); };
  EXPECT_EQ(run("sum", true), tensor({15.f, 20.f, NAN}).str());
  EXPECT_EQ(run("sum", false), tensor({5.f, 20.f, NAN}).str());
  EXPECT_EQ(run("prod", false), tensor({4.f, 20.f, NAN}).str());
  EXPECT_EQ(run("mean", true), tensor({5.f, 20.f, NAN}).str());
  EXPECT_EQ(run("mean", false), tensor({2.5f, 20.f, NAN}).str());
  EXPECT_EQ(run("amax", true), tensor({10.f, 20.f, NAN}).str());
  EXPECT_EQ(run("amin", false), tensor({1.f, 20.f, NAN}).str());
  Tensor whole = tensor({-7, 1}).scatter_reduce(0, tensor({0, 0}), tensor({1, -1}), "mean");
  EXPECT_EQ(whole.str(), tensor({-3, 1}).str());
}

TEST(Scatter, SmallIntegersWrapAndBoolsJoin) {
  Tensor y = tensor({100}, kInt8).scatter_add(0, tensor({0, 0}), tensor({100, 100}, kInt8));
  EXPECT_EQ(y.item<int64_t>(), 300 - 256);
  Tensor b = zeros({2}, kBool).index_add(0, tensor({1, 1}), ones({2}, kBool));
  EXPECT_EQ(b.str(), tensor({0, 1}).to(kBool).str());
}

TEST(Scatter, InPlaceFormsWriteIntoViewsAndReadWhatTheyOverwriteFirst) {
  Tensor base = zeros({4, 6}), part = base.slice(1, 1, 6, 2);
  part.index_fill_(0, tensor({1, 3}), 2.5).index_add_(1, tensor({0}), ones({4, 1}));
  EXPECT_EQ(base.sum().item<float>(), 6 * 2.5f + 4);
  EXPECT_EQ(base.select(1, 0).sum().item<float>(), 0);
  Tensor x = tensor({1.f, 2.f, 3.f, 4.f}), expected = x.scatter(0, tensor({1, 2, 3, 0}), x);
  EXPECT_TRUE(same_bytes(x.scatter_(0, tensor({1, 2, 3, 0}), x), expected));
  Tensor i = tensor({2, 0, 1}), moved = i.scatter(0, i, i);
  EXPECT_TRUE(same_bytes(i.scatter_(0, i, i), moved));
}

TEST(Scatter, WhatIsRefusedChangesNothing) {
  Tensor x = zeros({3, 2});
  EXPECT_NE(message_of([&] {
              x.scatter_(0, tensor({{0, 3}}), ones({1, 2}));
            }).find("scatter: index: got the position 3"),
            std::string::npos);
  EXPECT_THROW(x.index_add_(0, tensor({-1}), ones({1, 2})), Error);
  EXPECT_THROW(x.index_add_(0, tensor({0, 1}), ones({1, 2})), Error);
  EXPECT_THROW(x.index_copy_(2, tensor({0}), ones({1, 2})), Error);
  EXPECT_THROW(x.index_copy_(0, tensor({0}), ones({1, 2}, kFloat64)), Error);
  EXPECT_THROW(x.index_fill_(0, tensor({0.5f}), 1), Error);
  EXPECT_THROW(x.scatter_reduce_(0, tensor({{0, 0}}), ones({1, 2}), "median"), Error);
  EXPECT_THROW(x.scatter_(0, zeros({1, 3}, kInt64), ones({1, 3})), Error);
  EXPECT_THROW(x.scatter_(0, zeros({2, 2}, kInt64), ones({1, 2})), Error);
  EXPECT_THROW(x.masked_scatter_(ones({3, 2}, kBool), ones({5})), Error);
  EXPECT_THROW(x.index_put_({tensor({3})}, 1), Error);
  EXPECT_EQ(x.abs().sum().item<float>(), 0);
}

// The check looks at signs of differences, which must not wrap into the range.
TEST(Scatter, PositionsFarOutsideAreRefused) {
  constexpr int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  const Tensor x = zeros({3, 2});
  for (int64_t place : {low, low + 1, low + 2, low + 3, low + 4, high, high - 1, high - 2, high - 3, int64_t{1} << 62,
                        -(int64_t{1} << 62), int64_t{3}, int64_t{-4}}) {
    const Tensor index = tensor({int64_t{0}, place, int64_t{2}});
    EXPECT_THROW(x.index_fill(0, index, 2), Error) << place;  // counts from the end
    EXPECT_THROW(x.index_add(0, index, ones({3, 2})), Error) << place;
    EXPECT_THROW(x.index_select(0, index), Error) << place;
    EXPECT_THROW(x.slice(0, 0, 0).index_select(0, index), Error) << place;
  }
  EXPECT_EQ(x.slice(0, 0, 0).index_select(0, zeros({0}, kInt64)).numel(), 0);
}

TEST(Scatter, OfAllIndexOpsFillCountsFromTheEnd) {
  const Tensor x = zeros({3, 2}), place = tensor({-1, -3});
  EXPECT_TRUE(same_bytes(x.index_fill(0, place, 2), tensor({{2.f, 2.f}, {0.f, 0.f}, {2.f, 2.f}})));
  EXPECT_TRUE(same_bytes(zeros({}).index_fill(0, tensor({-1}), 2), tensor(2.f)));
  EXPECT_TRUE(same_bytes(x.index_fill(1, tensor({-2}, kInt32), 2), x.index_fill(1, tensor({0}), 2)));
  for (int64_t beyond : {-4, 3}) EXPECT_THROW(x.index_fill(0, tensor({beyond}), 2), Error);
  EXPECT_THROW(x.index_copy(0, place, ones({2, 2})), Error);
  EXPECT_THROW(x.index_add(0, place, ones({2, 2})), Error);
}

// As PyTorch casts them, towards zero; tensors must have the dtype.
TEST(Scatter, FloatingScalarsAreCastToIntegers) {
  const Tensor index = tensor({{1, 0}});
  for (DType dtype : {kInt64, kInt32, kInt16, kInt8, kUInt8, kBool})
    for (double value : {2.9, 0.5, -0.5, -2.9}) {
      if (dtype == kUInt8 && value < -1) continue;
      const Tensor x = tensor({{3, 4}, {5, 6}}, dtype), cast = tensor(value, kFloat64).to(dtype);
      const Tensor whole = cast.expand({1, 2}), one = tensor({1});
      EXPECT_TRUE(same_bytes(x.scatter(0, index, value), x.scatter(0, index, whole))) << name_of(dtype) << value;
      EXPECT_TRUE(same_bytes(x.index_fill(1, one, value), x.index_fill(1, one, cast))) << name_of(dtype) << value;
      if (dtype != kBool) EXPECT_TRUE(same_bytes(x.scatter(0, index, value, "add"), x.scatter(0, index, whole, "add")));
      EXPECT_TRUE(same_bytes(x.clone().scatter_(0, index, value), x.scatter(0, index, whole)));
    }
  EXPECT_THROW(zeros({2, 2}, kInt64).scatter(0, index, tensor({{2.9, 1.0}})), Error);
}

TEST(IndexPut, WhatIsWrittenMayHaveDimsOfOneInFront) {
  Tensor x = zeros({3, 2});
  const Tensor row = tensor({{1.f, 2.f}});
  x.index_put_({1}, row);
  x.index_put_({1}, row.unsqueeze(0), true);
  x.index_put_({tensor({0, 2})}, row.view({1, 1, 1, 2}));
  EXPECT_TRUE(equal(x, tensor({{1.f, 2.f}, {2.f, 4.f}, {1.f, 2.f}})));
  x.index_put_({0, 1}, ones({1, 1}));
  EXPECT_EQ(x.index({0, 1}).item<float>(), 1);
  Tensor leaf = row.clone().requires_grad_();
  x.index_put_({2}, leaf);
  x.sum().backward();
  EXPECT_TRUE(equal(leaf.grad(), ones({1, 2})));
  EXPECT_THROW(x.index_put_({1}, ones({2, 2})), Error);
}

TEST(IndexPut, PositionsMasksAndViews) {
  Tensor x = zeros({3, 4});
  x.index_put_({tensor({0, 0, 2}), tensor({1, 1, 3})}, tensor({1.f, 2.f, 3.f}), true);
  EXPECT_EQ(x.index({0, 1}).item<float>(), 3);
  x.index_put_({tensor({0, 0}), tensor({1, 1})}, tensor({7.f, 8.f}));
  EXPECT_EQ(x.index({0, 1}).item<float>(), 8);  // the last one written stays
  Tensor y = zeros({2, 3, 4});
  y.index_put_({Ellipsis, tensor({-1})}, ones({2, 3, 1}));
  EXPECT_EQ(y.select(2, 3).sum().item<float>(), 6);
  y.index_put_({1, y.select(0, 1) > 0}, 5);
  EXPECT_EQ(y.sum().item<float>(), 3 + 15);
  y.index_put_({tensor({1, 0}) > 0}, tensor({9.f}));
  EXPECT_EQ(y.select(0, 0).sum().item<float>(), 9 * 12);
  y.index_put_({Slice(), tensor({0, 1, 0}) > 0, Slice(0, 2)}, -1);
  EXPECT_EQ(y.slice(1, 1, 2).slice(2, 0, 2).sum().item<float>(), -4);
  Tensor columns = zeros({4, 3}).t();
  columns.index_put_({tensor({2, 1}), tensor({0, 3})}, tensor({1.f, 2.f}));
  EXPECT_EQ(columns.index({1, 3}).item<float>(), 2);
  EXPECT_EQ(index_put(columns, {tensor({0})}, tensor({4.f}), false).index({0, 2}).item<float>(), 4);
  EXPECT_EQ(columns.index({0, 2}).item<float>(), 0);
}

// Of words of eight elements those without a true one are left out; lines of other layouts are read one by one.
TEST(Selection, NonzeroOfAllLayouts) {
  manual_seed(11);
  for (const Ints& sizes : {Ints{1}, Ints{7}, Ints{8}, Ints{17}, Ints{511}, Ints{1031}, Ints{3, 9}, Ints{2, 700},
                            Ints{2, 3, 20}, Ints{5, 1, 8}})
    for (const double share : {0., 0.01, 0.5, 1.}) {
      const Tensor dense = rand(sizes) < share;
      for (const Tensor& x : {dense, cat({dense, dense}, -1).slice(-1, 0, sizes.back()), dense.movedim(-1, 0),
                              stack({dense, dense}, -1).select(-1, 1)}) {
        std::vector<int64_t> expected;
        const Tensor flat = x.contiguous().reshape({-1});
        for (int64_t i = 0; i < flat.numel(); ++i) {
          if (!flat.data_ptr<bool>()[i]) continue;
          for (int64_t d = 0, rest = flat.numel(), at = i; d < x.dim(); ++d) {
            rest /= x.size(d);
            expected.push_back(at / rest), at %= rest;
          }
        }
        const int64_t rows = static_cast<int64_t>(expected.size()) / x.dim();
        EXPECT_TRUE(equal(nonzero(x), tensor(expected).view({rows, x.dim()})));
        expected.resize(static_cast<size_t>((rows + 2) * x.dim()), -1);
        EXPECT_TRUE(equal(x.nonzero_static(rows + 2), tensor(expected).view({rows + 2, x.dim()})));
        EXPECT_TRUE(equal(x.nonzero_static(rows / 2), nonzero(x).narrow(0, 0, rows / 2)));
      }
    }
}

TEST(Selection, MasksCountsAndRepeats) {
  Tensor x = arange(6).view({2, 3});
  EXPECT_EQ(nonzero(x > 2).str(), tensor({{1, 0}, {1, 1}, {1, 2}}).str());
  EXPECT_EQ(nonzero(zeros({0, 3})).sizes(), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(masked_select(x, tensor({1, 0, 1}) > 0).str(), tensor({0, 2, 3, 5}).str());
  EXPECT_EQ(masked_scatter(x, x > 3, tensor({-1, -2})).str(), tensor({{0, 1, 2}, {3, -1, -2}}).str());
  EXPECT_EQ(masked_scatter(x, x > 9, zeros({0}, kInt64)).str(), x.str());
  EXPECT_EQ(take(x, tensor({-1, 0})).str(), tensor({5, 0}).str());
  EXPECT_THROW(take(x, tensor({6})), Error);
  EXPECT_THROW(take(x, tensor({-7})), Error);
  EXPECT_EQ(x.repeat_interleave(2, 1).str(), tensor({{0, 0, 1, 1, 2, 2}, {3, 3, 4, 4, 5, 5}}).str());
  EXPECT_EQ(repeat_interleave(x, tensor({2, 0}), 0).str(), tensor({{0, 1, 2}, {0, 1, 2}}).str());
  EXPECT_EQ(repeat_interleave(tensor({0, 3, 1})).str(), tensor({1, 1, 1, 2}).str());
  EXPECT_EQ(repeat_interleave(tensor({0, 3, 0, 1, 0}), std::optional<int64_t>(4)).str(), tensor({1, 1, 1, 3}).str());
  EXPECT_EQ(repeat_interleave(tensor({0, 0})).str(), empty({0}, kInt64).str());
  EXPECT_THROW(repeat_interleave(x, tensor({2, -1}), 0), Error);
  EXPECT_THROW(repeat_interleave(x, tensor({1, 1, 1}), 0), Error);
  EXPECT_EQ(one_hot(tensor({2, 0})).str(), tensor({{0, 0, 1}, {1, 0, 0}}).str());
  EXPECT_THROW(one_hot(tensor({2, 0}), 2), Error);
  EXPECT_THROW(one_hot(tensor({-1})), Error);
}

// They are written over other ops, which their errors do not name.
TEST(Selection, ErrorsNameTheFunction) {
  namespace F = nn::functional;
  auto begins = [](const std::function<void()>& f, const std::string& text) {
    const std::string message = message_of(f);
    EXPECT_EQ(message.substr(0, text.size()), text);
  };
  begins([] { one_hot(tensor({2, 0}), 2); }, "one_hot: self: got 2, expected numbers from 0 to 1");
  begins([] { take(ones({3}), tensor({-4})); }, "take: index: got -4, expected numbers from -3 to 2");
  begins([] { masked_scatter(zeros({3}), ones({3}, kBool), ones({2})); },
         "masked_scatter: source: got 2 elements, expected at least 3");
  const Tensor weight = randn({4, 2}), indices = tensor({0, 1, 2});
  begins(
      [&] {
        F::embedding_bag(indices, weight, tensor({1, 2}));
      },
      "embedding_bag: offsets: got a first offset that is not 0, expected 0");
  begins(
      [&] {
        F::embedding_bag(indices + 2, weight, tensor({0, 2}));
      },
      "embedding_bag: indices: got 4, expected numbers from 0 to 3");
  begins(
      [&] {
        F::embedding_bag(indices, weight, tensor({0, 4}));
      },
      "embedding_bag: offsets: got 4, expected numbers from 0 to 3");
  begins(
      [&] {
        F::embedding_bag(indices, weight, tensor({0, -1}));
      },
      "embedding_bag: offsets: got -1, expected numbers from 0 to 3");
  begins(
      [&] {
        F::embedding_bag(indices, weight, tensor({0, 2, 1}));
      },
      "embedding_bag: offsets: got one that is smaller than the one before");
  const Tensor none = zeros({0}, kInt64);
  begins([&] { F::embedding_bag(indices, weight, none); }, "embedding_bag: offsets: got none, expected at least one");
  begins([&] { F::embedding_bag(none, weight, none, "sum", {}, true); },
         "embedding_bag: offsets: got none, expected at least one");
  EXPECT_EQ(F::embedding_bag(none, weight, none).sizes(), (std::vector<int64_t>{0, 2}));
}

// With include_last_offset what lies behind the last one is in no bag.
TEST(Selection, BagsEndWhereTheLastOffsetSays) {
  const Tensor weight = arange(12, kFloat32).view({6, 2}).requires_grad_(), indices = tensor({1, 2, 3, 4});
  auto bags = [&](const Tensor& offsets, const char* mode) {
    return nn::functional::embedding_bag(indices, weight, offsets, mode, {}, true);
  };
  EXPECT_TRUE(equal(bags(tensor({0, 2, 4}), "sum"), tensor({{6.f, 8.f}, {14.f, 16.f}})));
  EXPECT_TRUE(equal(bags(tensor({0, 2, 3}), "mean"), tensor({{3.f, 4.f}, {6.f, 7.f}})));
  EXPECT_TRUE(equal(bags(tensor({0, 0, 3}), "max"), tensor({{0.f, 0.f}, {6.f, 7.f}})));
  bags(tensor({0, 2, 3}), "sum").sum().backward();
  EXPECT_TRUE(equal(weight.grad().sum(1), tensor({0.f, 2.f, 2.f, 2.f, 0.f, 0.f})));
}

TEST(Selection, OfEqualElementsOfABagTheFirstHasTheGradient) {
  Tensor weight = tensor({{1.f, 5.f}, {3.f, 5.f}, {3.f, 2.f}}).requires_grad_();
  const Tensor bag = nn::functional::embedding_bag(tensor({{0, 1, 2}}), weight, {}, "max");
  EXPECT_TRUE(equal(bag, tensor({{3.f, 5.f}})));
  bag.sum().backward();
  EXPECT_TRUE(equal(weight.grad(), tensor({{0.f, 1.f}, {1.f, 0.f}, {0.f, 0.f}})));
}

// A NaN is the largest where it comes first, and else of no account.
TEST(Selection, NaNInABagIsPyTorchs) {
  const float nan = std::nanf("");
  const auto check = [&](const Tensor& indices, const Tensor& largest, const Tensor& gradient) {
    const Tensor weight = tensor({{1.f, nan, 3.f}, {4.f, 5.f, nan}, {7.f, 8.f, 2.f}, {nan, 1.f, 1.f}});
    weight.requires_grad_();
    const Tensor bag = nn::functional::embedding_bag(indices, weight, {}, "max");
    EXPECT_EQ(bag.str(), largest.str());
    bag.sum().backward();
    EXPECT_TRUE(equal(weight.grad(), gradient)) << weight.grad();
  };
  const Tensor none = zeros({3});
  check(tensor({{1, 0, 2}}), tensor({{7.f, 8.f, nan}}),
        stack({none, tensor({0.f, 0.f, 1.f}), tensor({1.f, 1.f, 0.f}), none}));
  check(tensor({{0, 1, 2}}), tensor({{7.f, nan, 3.f}}),
        stack({tensor({0.f, 1.f, 1.f}), none, tensor({1.f, 0.f, 0.f}), none}));
  check(tensor({{3, 3}}), tensor({{nan, 1.f, 1.f}}), stack({none, none, none, ones({3})}));
}

TEST(Selection, ProductsOfABagAreRoundedOnce) {
  for (DType dtype : {kFloat16, kBFloat16}) {
    const Tensor weight = tensor({{1.015625f}, {-1.f}}).to(dtype), scale = tensor({1.0078125f, 1.f}).to(dtype);
    const Tensor rows = nn::functional::embedding_bag(tensor({{0, 1}}), weight, {}, "sum", scale.unsqueeze(0));
    const Tensor bags = nn::functional::embedding_bag(tensor({0, 1}), weight, tensor({0}), "sum", scale);
    for (const Tensor& sum : {rows, bags}) {
      EXPECT_EQ(sum.dtype(), dtype);
      EXPECT_EQ(sum.item<double>(), 0.0235595703125);
    }
  }
}

TEST(Selection, NonzeroAsATupleIndexesAgain) {
  const Tensor cube = randint(0, 2, {3, 4, 5});
  const Tensor lines = randint(0, 2, {3, 1100});
  for (const Tensor& x : {cube, cube.to(kFloat32), cube.transpose(0, 2), cube[1], cube[0][0], cube > 0, zeros({0, 3}),
                          zeros({2, 3}), tensor(7), tensor(0.f), lines, lines.t(), lines > 0, ones({2, 513})}) {
    const std::vector<Tensor> tuple = nonzero(x, as_tuple), same = x.nonzero(as_tuple);
    ASSERT_EQ(tuple.size(), static_cast<size_t>(std::max<int64_t>(x.dim(), 1)));
    const Tensor table = x.dim() ? nonzero(x) : nonzero(x.view({1}));
    for (size_t d = 0; d < tuple.size(); ++d) {
      EXPECT_EQ(tuple[d].dim(), 1);
      EXPECT_EQ(tuple[d].dtype(), kInt64);
      EXPECT_TRUE(equal(tuple[d], table.select(1, static_cast<int64_t>(d))));
      EXPECT_TRUE(equal(tuple[d], same[d]));
      EXPECT_TRUE(equal(tuple[d], where(x)[d]));
    }
    if (x.dim() == 0) continue;
    std::vector<TensorIndex> indices(tuple.begin(), tuple.end());
    EXPECT_TRUE(equal(x.index(indices), masked_select(x, x != 0)));
  }
  EXPECT_THROW(nonzero(Tensor(), as_tuple), Error);
  EXPECT_THROW(where(Tensor()), Error);
}

TEST(Movement, EdgesAndErrors) {
  Tensor x = arange(6).view({2, 3});
  EXPECT_EQ(x.roll(-1, 1).str(), tensor({{1, 2, 0}, {4, 5, 3}}).str());
  EXPECT_EQ(x.roll({7}).str(), x.roll({1}).str());
  EXPECT_EQ(x.roll({1, 1, 1}, {0, 1, 0}).str(), x.roll(1, 1).str());
  EXPECT_EQ(x.rot90(-1).str(), x.rot90(3).str());
  EXPECT_EQ(x.flip({0, 1}).str(), x.rot90(2).str());
  EXPECT_EQ(zeros({0, 3}).flip({0}).numel(), 0);
  EXPECT_THROW(x.flip({0, 0}), Error);
  EXPECT_THROW(x.flip({2}), Error);
  EXPECT_THROW(x.roll({1, 2}, {0}), Error);
  EXPECT_THROW(x.roll({1, 2}), Error);
  EXPECT_THROW(x.rot90(1, {0, 0}), Error);
  EXPECT_THROW(x.select(0, 0).fliplr(), Error);
  EXPECT_THROW(ones({2, 2, 2}).diag(), Error);
  EXPECT_THROW(ones({2}).trace(), Error);
  EXPECT_THROW(ones({2}).diag_embed(0, 0, 0), Error);
  EXPECT_THROW(tril_indices(-1, 2), Error);
  EXPECT_EQ(x.diag(5).numel(), 0);
  EXPECT_THROW(x.diag(INT64_MIN), Error);
  EXPECT_THROW(ones({2}).diag_embed(INT64_MAX), Error);
  EXPECT_THROW(tril_indices(int64_t{1} << 40, int64_t{1} << 40), Error);
  EXPECT_THROW(ones({2}).repeat_interleave(INT64_MAX), Error);
  EXPECT_EQ(tril_indices(int64_t{1} << 50, 3, -(int64_t{1} << 50)).numel(), 0);
  for (int64_t rows : {0, 1, 3, 5})
    for (int64_t columns : {0, 1, 4})
      for (int64_t offset = -7; offset <= 7; ++offset) {
        Tensor whole = ones({rows, columns});
        EXPECT_EQ(tril_indices(rows, columns, offset).str(), nonzero(whole.tril(offset)).t().contiguous().str());
        EXPECT_EQ(triu_indices(rows, columns, offset).str(), nonzero(whole.triu(offset)).t().contiguous().str());
      }
  EXPECT_EQ(triu_indices(2, 2).str(), tensor({{0, 0, 1}, {0, 1, 1}}).str());
}

TEST(Index, ATensorOfU8IsAMask) {
  const Tensor x = arange(12).view({4, 3}), rows = tensor({1, 0, 1, 1}, kUInt8);
  EXPECT_TRUE(same_bytes(x.index({rows}), x.index({rows.to(kBool)})));
  EXPECT_EQ(x.index({rows}).size(0), 3);
  const Tensor large = x.remainder(2).to(kUInt8) * 200;  // any number but 0 is true; takes as many dims as it has
  EXPECT_TRUE(same_bytes(x.index({large}), x.masked_select(large.to(kBool))));
  EXPECT_TRUE(same_bytes(x.index({Slice(), tensor({0, 1, 1}, kUInt8)}), x.narrow(1, 1, 2)));
  EXPECT_THROW(x.index({tensor({0, 1}, kUInt8)}), Error);
  for (const Tensor& value : {tensor({7}), tensor({7, 8, 9})}) {  // one value, or slices, whether added or not
    for (bool add : {false, true}) {
      Tensor y = x.clone(), z = x.clone();
      y.index_put_({rows}, value, add), z.index_put_({rows.to(kBool)}, value, add);
      EXPECT_TRUE(same_bytes(y, z));
      EXPECT_FALSE(same_bytes(y, x));
    }
  }
}

TEST(Index, TakesSizesAsNumbers) {
  const Tensor x = arange(12).view({4, 3});
  EXPECT_TRUE(same_bytes(x.index({x.size(0) - 1}), x.select(0, 3)));
  EXPECT_TRUE(same_bytes(x.index({Slice(), x.size(1) - 1}), x.select(1, 2)));
  EXPECT_TRUE(same_bytes(x.index({Slice(x.size(0) - 2, x.size(0)), 0}), x.narrow(0, 2, 2).select(1, 0)));
  EXPECT_TRUE(same_bytes(x.index({Slice(None, x.size(1))}), x.narrow(0, 0, 3)));
}

}  // namespace
}  // namespace ingot
