// Copies of views, and PyTorch's names of pieces.
#include "eager/ops/copies.h"

#include "eager/ops/aliases.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::counting;

/// The elements of the view, row-major, in other memory.
void expect_copy(const Tensor& x, const Tensor& copy, const Tensor& view) {
  EXPECT_TRUE(equal(copy, view));
  EXPECT_FALSE(copy.shares_storage(x));
  EXPECT_TRUE(copy.is_contiguous());
}

TEST(Copies, AreThoseOfTheViews) {
  const Tensor x = counting({2, 3, 4});
  expect_copy(x, alias_copy(x), x);
  expect_copy(x, detach_copy(x), x);
  expect_copy(x, as_strided_copy(x, {2, 2}, {1, 5}, 3), x.as_strided({2, 2}, {1, 5}, 3));
  expect_copy(x, diagonal_copy(x, 1, 1, 2), x.diagonal(1, 1, 2));
  expect_copy(x, expand_copy(x.select(1, 0), {3, 2, 4}), x.select(1, 0).expand({3, 2, 4}));
  expect_copy(x, narrow_copy(x, 2, 1, 2), x.narrow(2, 1, 2));
  expect_copy(x, permute_copy(x, {2, 0, 1}), x.permute({2, 0, 1}));
  expect_copy(x, select_copy(x, 1, -1), x.select(1, -1));
  expect_copy(x, slice_copy(x, 2, 0, 4, 3), x.slice(2, 0, 4, 3));
  expect_copy(x, squeeze_copy(x.unsqueeze(1)), x);
  expect_copy(x, squeeze_copy(x.unsqueeze(1), 1), x);
  expect_copy(x, t_copy(x[0]), x[0].t());
  expect_copy(x, transpose_copy(x, 0, 2), x.transpose(0, 2));
  expect_copy(x, unfold_copy(x, 2, 2, 1), x.unfold(2, 2, 1));
  expect_copy(x, unsqueeze_copy(x, -1), x.unsqueeze(-1));
  expect_copy(x, view_copy(x, {6, 4}), x.view({6, 4}));
  expect_copy(x, view_copy(x.transpose(0, 1), {24}), x.transpose(0, 1).reshape({24}));
  const auto expect_copies = [&](const std::vector<Tensor>& copies, const std::vector<Tensor>& views) {
    ASSERT_EQ(copies.size(), views.size());
    for (size_t i = 0; i < views.size(); ++i) expect_copy(x, copies[i], views[i]);
  };
  expect_copies(split_copy(x, 2, 1), x.split(2, 1));
  expect_copies(split_with_sizes_copy(x, {1, 3}, 2), x.split_with_sizes({1, 3}, 2));
  expect_copies(unbind_copy(x, 1), x.unbind(1));
  expect_copy(x, expand_copy(zeros({0, 1}), {0, 3}), zeros({0, 3}));
}

TEST(Copies, OfPieces) {
  const Tensor x = counting({5, 2});
  const std::vector<std::vector<Tensor>> pieces = {unsafe_chunk(x, 2), unsafe_split(x, 3),
                                                   unsafe_split_with_sizes(x, {3, 2})};
  for (const std::vector<Tensor>& both : pieces) {
    ASSERT_EQ(both.size(), 2u);
    EXPECT_TRUE(equal(both[0], x.narrow(0, 0, 3)) && equal(both[1], x.narrow(0, 3, 2)));
  }
}

}  // namespace
}  // namespace ingot
