// Different elements and slices, and membership, beside PyTorch's results.
#include "eager/ops/sets.h"

#include <limits>

#include "eager/ops/near.h"
#include "eager/ops/selection.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;
using test::near;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor rows() { return tensor({{5, 2, 2}, {1, 2, 5}, {5, 2, 2}, {5, 2, 2}, {1, 3, 0}}); }

TEST(Isin, TensorsAndNumbers) {
  const Tensor x = tensor({{3, 1}, {4, 1}});
  EXPECT_TRUE(near(isin(x, tensor({1, 3, 9})), tensor({{true, true}, {false, true}})));
  EXPECT_TRUE(near(isin(x, tensor({1, 3}), true, true), tensor({{false, false}, {true, false}})));
  EXPECT_TRUE(near(isin(x, 4), tensor({{false, false}, {true, false}})));
  EXPECT_TRUE(near(isin(4, x), tensor(true)));
  EXPECT_TRUE(near(isin(7, x, false, true), tensor(true)));
  EXPECT_TRUE(near(isin(x, zeros({0})), tensor({{false, false}, {false, false}})));
  EXPECT_TRUE(near(isin(tensor({1, 2}), tensor({1.5f, 2.f})), tensor({false, true})));
  EXPECT_TRUE(near(isin(tensor({1.f, kNan}), tensor({kNan, 1.f})), tensor({true, false})));
  EXPECT_EQ(isin(zeros({2, 0}), x).sizes(), (std::vector<int64_t>{2, 0}));
  EXPECT_NE(message_of([] { isin(tensor({true}), tensor({1})); }).find("isin: elements: got a tensor of bool"),
            std::string::npos);
  EXPECT_THROW(isin(1, 2), Error);
}

TEST(UniqueDim, SlicesInLexicographicOrder) {
  auto [slices, inverse, counts] = unique_dim(rows(), 0, true, true, true);
  EXPECT_TRUE(near(slices, tensor({{1, 2, 5}, {1, 3, 0}, {5, 2, 2}})));
  EXPECT_TRUE(near(inverse, tensor({2, 0, 2, 2, 1})));
  EXPECT_TRUE(near(counts, tensor({1, 1, 3})));
  auto [columns, places, often] = unique_dim(rows().slice(0, 2, 4), -1);
  EXPECT_TRUE(near(columns, tensor({{2, 5}, {2, 5}})));
  EXPECT_EQ(places.numel() + often.numel(), 0) << "not asked for";
  const Tensor cubes = stack({rows(), rows(), rows() + 1});
  EXPECT_TRUE(near(std::get<2>(unique_dim(cubes, 0, true, false, true)), tensor({2, 1})));
  EXPECT_EQ(std::get<0>(unique_dim(zeros({0, 3}), 0)).sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(near(std::get<0>(unique_dim(tensor({true, false, true}), 0)), tensor({false, true})));
  EXPECT_THROW(unique_dim(zeros({2, 0}), 0), Error);
  EXPECT_THROW(unique_dim(tensor(1), 0), Error);
  EXPECT_THROW(unique_dim(rows(), 2), Error);
}

TEST(UniqueConsecutive, ElementsAndSlices) {
  auto [values, inverse, counts] = unique_consecutive(tensor({{1, 1, 2}, {2, 1, 1}}), true, true);
  EXPECT_TRUE(near(values, tensor({1, 2, 1})));
  EXPECT_TRUE(near(inverse, tensor({{0, 0, 1}, {1, 2, 2}})));
  EXPECT_TRUE(near(counts, tensor({2, 2, 2})));
  EXPECT_EQ(std::get<1>(unique_consecutive(tensor({1, 1}))).numel(), 0) << "not asked for";
  EXPECT_TRUE(near(std::get<2>(unique_consecutive(tensor({kNan, kNan}), false, true)), tensor({1, 1})));
  EXPECT_TRUE(near(std::get<0>(unique_consecutive(tensor(3.f))), tensor({3.f})));
  EXPECT_EQ(std::get<1>(unique_consecutive(zeros({2, 0}), true)).sizes(), (std::vector<int64_t>{2, 0}));
  auto [slices, of_each, often] = unique_consecutive(rows(), true, true, 0);
  EXPECT_TRUE(near(slices, tensor({{5, 2, 2}, {1, 2, 5}, {5, 2, 2}, {1, 3, 0}})));
  EXPECT_TRUE(near(of_each, tensor({0, 1, 2, 2, 3})));
  EXPECT_TRUE(near(often, tensor({1, 1, 2, 1})));
  EXPECT_THROW(unique_consecutive(zeros({2, 0}), false, false, 0), Error);
  EXPECT_THROW(unique_consecutive(tensor(1), false, false, 0), Error);
}

TEST(Argwhere, IsNonzero) {
  EXPECT_TRUE(near(argwhere(tensor({{0, 1}, {2, 0}})), tensor({{0, 1}, {1, 0}})));
  EXPECT_EQ(argwhere(tensor(1)).sizes(), (std::vector<int64_t>{1, 0}));
}

}  // namespace
}  // namespace ingot
