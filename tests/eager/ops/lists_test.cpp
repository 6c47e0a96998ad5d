// Lists of tensors joined, cut and broadcast; differences; evenly spaced numbers.
#include "eager/ops/lists.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "eager/ops/factories.h"

namespace ingot {
namespace {

TEST(Lists, StacksGiveMissingDims) {
  Tensor line = tensor({1, 2, 3}), table = tensor({{4, 5}, {6, 7}, {8, 9}});
  EXPECT_TRUE(equal(column_stack({line, table}), tensor({{1, 4, 5}, {2, 6, 7}, {3, 8, 9}})));
  EXPECT_TRUE(equal(column_stack({tensor(1), tensor({{2, 3}})}), tensor({{1, 2, 3}})));
  EXPECT_EQ(dstack({line, line}).sizes(), (std::vector<int64_t>{1, 3, 2}));
  EXPECT_EQ(dstack({table, table}).sizes(), (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(dstack({tensor(1), tensor(2)}).sizes(), (std::vector<int64_t>{1, 1, 2}));
  EXPECT_THROW(column_stack({line, tensor({1, 2})}), Error);
  EXPECT_THROW(dstack(std::vector<Tensor>()), Error);
}

// PyTorch passes over tensors of shape [0], and judges the dim by the others.
TEST(Lists, CatPassesOverEmptyTensorsOfOneDim) {
  const Tensor nothing = empty({0}), table = tensor({{1.f, 2.f}, {3.f, 4.f}});
  const Tensor cube = table.view({2, 1, 2}).expand({2, 3, 2});
  for (const Tensor& part : {tensor({5.f, 6.f}), table, table.t(), cube, cube.transpose(0, 2), zeros({0, 3})})
    for (int64_t dim = -part.dim(); dim < part.dim(); ++dim) {
      const Tensor once = part.contiguous(), twice = cat({part, part}, dim);
      EXPECT_TRUE(equal(cat({nothing, part}, dim), once)) << dim;
      EXPECT_TRUE(equal(cat({part, nothing}, dim), once)) << dim;
      EXPECT_TRUE(equal(cat({nothing, nothing, part, nothing, part, nothing}, dim), twice)) << dim;
      EXPECT_EQ(cat({empty({0}, kInt64), part.to(kInt32)}, dim).dtype(), kInt64) << "they count for the dtype";
    }
  for (int64_t dim : {-3, 2}) EXPECT_THROW(cat({nothing, table}, dim), Error) << dim;
  // Nothing but empty ones: any dim.
  for (int64_t dim : {-7, -1, 0, 1, 5}) EXPECT_EQ(cat({nothing, nothing}, dim).sizes(), std::vector<int64_t>{0});
  // Empty tensors of other ranks, and zero-dim ones, are none of these.
  EXPECT_THROW(cat({empty({0, 2}), tensor({1.f})}), Error);
  EXPECT_THROW(cat({nothing, tensor(1.f)}), Error);
  EXPECT_THROW(cat({nothing, tensor(1.f), table}, 1), Error);
}

TEST(Lists, BroadcastTogether) {
  std::vector<Tensor> all = broadcast_tensors({tensor({1, 2, 3}), tensor({{4}, {5}}), tensor(6)});
  for (const Tensor& t : all) EXPECT_EQ(t.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(all[1][1][2].item<int64_t>(), 5);
  EXPECT_THROW(broadcast_tensors({tensor({1, 2}), tensor({1, 2, 3})}), Error);
}

TEST(Lists, GridsInBothOrders) {
  Tensor x = tensor({1, 2, 3}), y = tensor({4, 5});
  std::vector<Tensor> ij = meshgrid({x, y}), xy = meshgrid({x, y}, "xy");
  EXPECT_TRUE(equal(ij[0], tensor({{1, 1}, {2, 2}, {3, 3}})));
  EXPECT_TRUE(equal(ij[1], tensor({{4, 5}, {4, 5}, {4, 5}})));
  EXPECT_TRUE(equal(xy[0], ij[0].t()));
  EXPECT_TRUE(equal(xy[1], ij[1].t()));
  EXPECT_THROW(meshgrid({x, y}, "yx"), Error);
  EXPECT_THROW(meshgrid({ij[0], y}), Error);
}

TEST(Lists, SplitsBySectionsIndicesAndTensors) {
  Tensor x = arange(7);
  auto sizes = [](const std::vector<Tensor>& pieces) {
    std::vector<int64_t> result;
    for (const Tensor& t : pieces) result.push_back(t.numel());
    return result;
  };
  EXPECT_EQ(sizes(tensor_split(x, 3)), (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(sizes(tensor_split(x, 9)), (std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(sizes(tensor_split(x, {2, 5})), (std::vector<int64_t>{2, 3, 2}));
  EXPECT_EQ(sizes(tensor_split(x, {-3, 20})), (std::vector<int64_t>{4, 3, 0}));
  EXPECT_EQ(sizes(tensor_split(x, tensor({1, 3}))), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(sizes(tensor_split(x, tensor(2))), (std::vector<int64_t>{4, 3}));
  EXPECT_THROW(tensor_split(x, 0), Error);
  EXPECT_THROW(tensor_split(x, tensor({1.f})), Error);
  EXPECT_THROW(tensor_split(tensor(1), 1), Error);
}

TEST(Lists, Differences) {
  Tensor x = tensor({1, 4, 9, 16});
  EXPECT_TRUE(equal(diff(x), tensor({3, 5, 7})));
  EXPECT_TRUE(equal(diff(x, 2), tensor({2, 2})));
  EXPECT_EQ(diff(x, 9).numel(), 0);
  EXPECT_TRUE(equal(diff(x, 1, 0, tensor({0}), tensor({20, 21})), tensor({1, 3, 5, 7, 4, 1})));
  EXPECT_TRUE(equal(diff(tensor({true, true, false})), tensor({false, true})));
  EXPECT_THROW(diff(x, -1), Error);
  EXPECT_THROW(diff(tensor(1)), Error);
}

TEST(Lists, EvenlySpacedNumbersMeetBothEnds) {
  for (DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16})
    for (int64_t steps : {2, 3, 50}) {
      Tensor x = linspace(-1.5, 4.25, steps, dtype);
      EXPECT_EQ(x.dtype(), dtype);
      EXPECT_EQ(x[0].item<double>(), -1.5);
      EXPECT_EQ(x[-1].item<double>(), 4.25);
    }
  EXPECT_TRUE(equal(linspace(0, 10, 5, kInt64), tensor({0, 2, 5, 7, 10})));
  EXPECT_TRUE(equal(linspace(3, 9, 1), tensor({3.f})));
  EXPECT_EQ(linspace(3, 9, 0).numel(), 0);
  EXPECT_TRUE(equal(linspace(tensor(1.f), tensor(2), 3), tensor({1.f, 1.5f, 2.f})));
  EXPECT_TRUE(allclose(logspace(0, 3, 4), tensor({1.f, 10.f, 100.f, 1000.f}), 1e-6));
  EXPECT_TRUE(equal(logspace(0, 3, 4, 2), tensor({1.f, 2.f, 4.f, 8.f})));
  // A zero-dim tensor at either end, of any dtype.
  for (DType dtype : {kFloat64, kFloat32, kInt32, kInt64, kUInt8, kBFloat16}) {
    const Tensor one = tensor(1, dtype), three = tensor(3, dtype);
    for (DType of : {kFloat64, kFloat32, kInt64}) {
      const Tensor lines = linspace(1, 3, 5, of), powers = logspace(1, 3, 5, 2, of);
      EXPECT_TRUE(equal(linspace(one, three, 5, of), lines));
      EXPECT_TRUE(equal(linspace(one, 3, 5, of), lines));
      EXPECT_TRUE(equal(linspace(1, three, 5, of), lines));
      EXPECT_TRUE(equal(logspace(one, three, 5, 2, of), powers));
      EXPECT_TRUE(equal(logspace(one, 3, 5, 2, of), powers));
      EXPECT_TRUE(equal(logspace(1, three, 5, 2, of), powers));
    }
  }
  // Integers have whole exponents at both ends.
  EXPECT_TRUE(equal(logspace(0.9, tensor(2.9), 3, 10, kInt64), tensor({1, 10, 100})));
  EXPECT_THROW(logspace(tensor({1.f}), 2, 3), Error);
  EXPECT_THROW(logspace(0, tensor({1.f}), 3), Error);
  EXPECT_THROW(linspace(0, 1, -1), Error);
  EXPECT_THROW(linspace(tensor({1.f}), 2, 3), Error);
}

}  // namespace
}  // namespace ingot
