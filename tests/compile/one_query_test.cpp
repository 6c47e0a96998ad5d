// Attention of a single query, as in generation: keys and values are read as they lie.
#include <gtest/gtest.h>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask) {
  if (!mask) return nn::functional::scaled_dot_product_attention(q, k, v);
  return nn::functional::scaled_dot_product_attention(q, k, v, *mask);
}

// Among more queries they are packed; a row's result does not depend on its neighbours.
void like_a_row_among_more(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask = {}) {
  std::optional<Tensor> masks;
  if (mask) masks = cat({*mask, *mask}, -2);
  const Tensor alone = attention(q, k, v, mask), among = attention(cat({q, q * 0.5}, -2), k, v, masks);
  ASSERT_TRUE(same_bits(alone, among.narrow(-2, 0, 1)));
  auto compiled = compile([](const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask) {
    return attention(q, k, v, mask);
  });
  for (int call = 0; call < 2; ++call) ASSERT_TRUE(same_bits(compiled(q, k, v, mask), alone));
}

TEST(OneQuery, HasTheBitsOfItsRowAmongMore) {
  struct Sizes {
    int64_t keys, depth, width;
  };
  const Sizes all[] = {{1, 8, 8},     {15, 8, 5},    {16, 1, 1},   {17, 7, 64},    {31, 9, 16},
                       {100, 64, 64}, {255, 15, 33}, {257, 16, 8}, {515, 64, 300}, {40, 300, 12}};
  test::on_every_target({1, 3}, [&] {
    for (const Sizes& s : all)
      for (DType dtype : {kFloat32, kFloat64, kBFloat16}) {
        SCOPED_TRACE(std::to_string(s.keys) + " keys of " + std::to_string(s.depth) + ", " +
                     std::string(name_of(dtype)));
        manual_seed(5);
        const Tensor q = randn({2, 3, 1, s.depth}).to(dtype), k = randn({2, 3, s.keys, s.depth}).to(dtype),
                     v = randn({2, 3, s.keys, s.width}).to(dtype);
        like_a_row_among_more(q, k, v);
        like_a_row_among_more(q, k, v, randn({2, 1, 1, s.keys}).to(dtype));
        like_a_row_among_more(q, k, v, randn({1, 3, 1, s.keys}) > -0.5);
      }
  });
}

TEST(OneQuery, OfNothing) {
  for (const auto& [keys, depth, width] : {std::tuple{20, 0, 8}, {20, 8, 0}, {0, 8, 8}, {1, 0, 4}})
    like_a_row_among_more(randn({2, 3, 1, depth}), randn({2, 3, keys, depth}), randn({2, 3, keys, width}));
}

TEST(OneQuery, KeysAndValuesAreViewsOfACache) {
  manual_seed(6);
  const Tensor q = randn({2, 3, 1, 24});
  const Tensor places = randn({2, 70, 3, 24}), rows = randn({2, 3, 70, 40});
  for (int64_t length : {16, 33, 64}) {
    like_a_row_among_more(q, places.transpose(1, 2).narrow(2, 3, length), rows.narrow(2, 1, length).narrow(3, 5, 24));
    like_a_row_among_more(q, rows.narrow(3, 1, 24).narrow(2, 0, length), places.transpose(1, 2).narrow(2, 0, length));
    like_a_row_among_more(q, rows.narrow(2, 2, 1).narrow(3, 0, 24).expand({2, 3, length, 24}),
                          rows.transpose(2, 3).narrow(2, 0, 40).narrow(3, 0, length).transpose(2, 3));
  }
}

TEST(OneQuery, NothingIsReadBeyondWhatIsSeen) {
  // A key that is hidden by the mask, NaN or not, takes no part; a row that sees nothing is zero.
  manual_seed(7);
  const Tensor q = randn({1, 2, 1, 16}), k = randn({1, 2, 40, 16}), v = randn({1, 2, 40, 16});
  Tensor seen = full({1, 1, 1, 40}, true);
  seen.narrow(3, 20, 20).fill_(false);
  const Tensor expected = attention(q, k.narrow(2, 0, 20), v.narrow(2, 0, 20), {});
  EXPECT_TRUE(allclose(attention(q, k, v, seen), expected, 1e-5, 1e-6));
  EXPECT_TRUE(same_bits(attention(q, k, v, full({1, 1, 1, 40}, false)), zeros({1, 2, 1, 16})));
  like_a_row_among_more(q, k, v, seen);
}

}  // namespace
}  // namespace ingot
