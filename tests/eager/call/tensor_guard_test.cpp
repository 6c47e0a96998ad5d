// Guards on tensors: each fact is one that a guard tells apart, and says.
#include "eager/call/tensor_guard.h"

#include <gtest/gtest.h>

#include <functional>

#include "eager/data.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot::eager {
namespace {

Tensor wanting_grad(const Tensor& t) {
  Tensor other = t.clone();
  other.impl()->requires_grad = true;
  return other;
}

TEST(TensorGuard, EachFactIsToldApartAndSaid) {
  const Tensor t = ones({4, 3});
  const TensorGuard guard(*t.impl());
  struct Case {
    Tensor other;
    const char *fact, *before, *after;
  };
  const Case cases[] = {
      {ones({4, 3}, kFloat64), "dtype", "f32", "f64"},
      {ones({4, 3}, kInt32), "dtype", "f32", "i32"},
      {ones({12}), "rank", "2", "1"},
      {ones({1, 4, 3}), "rank", "2", "3"},
      {ones({}), "rank", "2", "0"},
      {wanting_grad(t), "requires_grad", "false", "true"},
      {ones({3, 4}).t(), "strides", "f32[4, 3]", "f32[4, 3] strides [1, 4]"},
      {ones({4, 6}).slice(1, 0, 3), "strides", "f32[4, 3]", "f32[4, 3] strides [6, 1]"},
      {ones({1, 3}).expand({4, 3}), "strides", "f32[4, 3]", "f32[4, 3] strides [0, 1]"},
  };
  for (const Case& c : cases) {
    EXPECT_FALSE(guard.holds(*c.other.impl())) << c.after;
    EXPECT_FALSE(guard.equals(*c.other.impl())) << c.after;
    const std::optional<Mismatch> m = guard.why_not(*c.other.impl());
    ASSERT_TRUE(m.has_value()) << c.after;
    EXPECT_STREQ(m->fact, c.fact);
    EXPECT_EQ(m->before, c.before);
    EXPECT_EQ(m->after, c.after);
    EXPECT_TRUE(TensorGuard(*c.other.impl()).holds(*c.other.impl()));
    EXPECT_TRUE(TensorGuard(*c.other.impl()).equals(*c.other.impl()));
  }
}

TEST(TensorGuard, SizesMayBeOthersWhereStridesFollow) {
  const TensorGuard dense(*ones({4, 3}).impl());
  for (const Tensor& same : {ones({4, 3}), ones({1, 3}), ones({7, 1}), ones({9, 9}), ones({2, 4, 3})[1]}) {
    EXPECT_TRUE(dense.holds(*same.impl()));
    EXPECT_EQ(dense.equals(*same.impl()), same.size(0) == 4 && same.size(1) == 3);
    EXPECT_FALSE(dense.why_not(*same.impl()).has_value());
  }
  const TensorGuard transposed(*ones({3, 4}).t().impl());
  EXPECT_TRUE(transposed.holds(*ones({5, 6}).t().impl()));
  EXPECT_FALSE(transposed.holds(*ones({5, 6}).impl()));
}

TEST(TensorGuard, NoTensorAndOneThatIsNotComputed) {
  EXPECT_FALSE(TensorFacts().tensor());
  EXPECT_TRUE(TensorFacts(DType::f32, 0).tensor()) << "the first dtype, no dims, is a tensor all the same";
  EXPECT_FALSE(TensorFacts() == TensorFacts(DType::f32, 0));
  EXPECT_STREQ(mismatch(TensorFacts(), TensorFacts(DType::f32, 0))->fact, "tensor");
  const Tensor t = ones({2}), pending = make_tensor(DType::f32, Ints{2}, Ints{1}, 0, nullptr);
  const TensorGuard guard(*t.impl());
  EXPECT_FALSE(guard.holds(*pending.impl()));
  EXPECT_FALSE(guard.equals(*pending.impl()));
  EXPECT_EQ(guard.why_not(*pending.impl())->after, "still being recorded");
}

TEST(TensorGuard, FactsComeBack) {
  for (DType dtype : {DType::bool_, DType::u8, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64})
    for (size_t rank : {0u, 1u, 8u, 300u})
      for (bool grad : {false, true}) {
        const TensorFacts facts(dtype, rank, grad);
        EXPECT_EQ(facts.dtype(), dtype);
        EXPECT_EQ(facts.rank(), rank);
        EXPECT_EQ(facts.requires_grad(), grad);
        EXPECT_FALSE(mismatch(facts, facts).has_value());
      }
}

}  // namespace
}  // namespace ingot::eager
