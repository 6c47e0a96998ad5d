// cat: what it passes over, and what is read after it, with eager's bits and strides.
#include <functional>
#include <string>
#include <vector>

#include "support.h"

namespace ingot {
namespace {

using test::error_of;
using test::same_bits;
using test::same_strides;
using test::without_line;

Tensor nothing(DType dtype = kFloat32) { return empty({0}, dtype); }

TEST(Joined, EmptyTensorsArePassedOverAsInEager) {
  auto join = [](const std::vector<Tensor>& parts, int64_t dim) { return cat(parts, dim); };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(join, {.mode = mode, .recompile_limit = 1000});
    for (int i = 0; i < 4; ++i)
      for (int64_t rows : {0, 1, 3}) {
        const Tensor x = randn({rows, 2, 4}), y = x.transpose(0, 2);
        for (int64_t dim = -4; dim < 4; ++dim)
          for (const auto& parts : std::vector<std::vector<Tensor>>{{nothing(), x},
                                                                    {x, nothing(), x},
                                                                    {nothing(), y},
                                                                    {nothing(kFloat64), x, nothing()},
                                                                    {nothing()},
                                                                    {nothing(), nothing(kInt64)}}) {
            Tensor expected, got;
            const std::string eager = error_of([&] { expected = join(parts, dim); });
            const std::string compiled = error_of([&] { got = fast(parts, dim); });
            ASSERT_EQ(without_line(eager), without_line(compiled)) << dim;
            if (!eager.empty()) continue;
            EXPECT_TRUE(same_bits(got, expected)) << dim;
            EXPECT_TRUE(same_strides(got, expected)) << dim;
          }
      }
  }
}

// Which tensor is the empty one changes from call to call.
TEST(Joined, ATensorThatBecomesEmptyIsPassedOver) {
  auto grow = [](const Tensor& cache, const Tensor& x) { return cat({cache, x}, -1).sum(0) * 2; };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(grow, {.mode = mode});
    for (int i = 0; i < 3; ++i) {
      Tensor cache = nothing(), plain = nothing();
      for (int64_t step = 1; step < 5; ++step) {
        const Tensor x = randn({3, step});
        EXPECT_TRUE(same_bits(fast(cache, x), grow(plain, x)));
        plain = cache = cat({cache, x}, -1);
      }
    }
  }
}

TEST(Joined, IsRowMajorWhereItIsReadAndWhereItIsReturned) {
  const Tensor weight = randn({8}), bias = randn({8}), matrix = randn({8, 8});
  const std::function<Tensor(const Tensor&, const Tensor&)> functions[] = {
      [](const Tensor& a, const Tensor& b) {
        return cat({a, b}, 1);
      },
      [](const Tensor& a, const Tensor& b) {
        return cat({b, a}, 1) + 1;
      },
      [=](const Tensor& a, const Tensor& b) {
        return layer_norm(cat({a, b}, 1), {8}, weight, bias);
      },
      [=](const Tensor& a, const Tensor& b) {
        const Tensor x = cat({a, b}, 1);
        return layer_norm(x + matmul(x, matrix), {8}, weight, bias) + x;
      },
  };
  for (int64_t n : {1, 2, 5}) {
    const Tensor plain = randn({n, 6, 8}), turned = randn({n, 8, 6}).transpose(1, 2), token = randn({1, 1, 8});
    const Tensor expanded = token.expand({n, 1, 8}), sliced = randn({n, 6, 16}).slice(2, 4, 12);
    for (const auto& function : functions) {
      auto fast = compile(function, {.recompile_limit = 100});
      for (const Tensor& a : {expanded, plain, sliced})
        for (const Tensor& b : {plain, turned, sliced}) {
          const Tensor expected = function(a, b), got = fast(a, b);
          EXPECT_TRUE(same_bits(got, expected));
          EXPECT_TRUE(got.is_contiguous() && expected.is_contiguous());
        }
    }
  }
}

TEST(Functions, SoftminNegatesBeforeItCasts) {
  for (DType dtype : {kUInt8, kInt8, kInt32, kInt64, kFloat32, kFloat16})
    for (DType of : {kFloat32, kFloat64, kBFloat16}) {
      const Tensor x = tensor({{0, 1, 3}, {5, 200, 128}}, kInt64).to(dtype);
      auto fast = compile([&](const Tensor& t) { return softmin(t, 1, of); });
      EXPECT_TRUE(same_bits(fast(x), softmin(x, 1, of)));
      EXPECT_TRUE(same_bits(softmin(x, 1, of), neg(x).softmax(1, of))) << name_of(dtype) << name_of(of);
    }
  EXPECT_THROW(softmin(tensor({true}), 0, kFloat32), Error);
  EXPECT_THROW(softmin(tensor({1, 2}), 0), Error);
}

// Of PyTorch: division gives floats; an empty tensor is given back.
TEST(Functions, LocalResponseNormOfIntegers) {
  auto norm = [](const Tensor& x) { return F::local_response_norm(x, 2); };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen})
    for (DType dtype : {kInt64, kInt32, kUInt8, kFloat32, kFloat64}) {
      auto fast = compile(norm, {.mode = mode});
      for (int i = 0; i < 3; ++i)
        for (int64_t n : {2, 0, 3, 1}) {
          const Tensor x = randint(0, 5, {n, 4, 3}).to(dtype), expected = norm(x);
          EXPECT_EQ(expected.dtype(), n == 0 || is_floating(dtype) ? dtype : kFloat32);
          EXPECT_TRUE(same_bits(fast(x), expected)) << n;
        }
    }
}

TEST(Functions, NonzeroAsATupleIsAGraphBreak) {
  auto pick = [](const Tensor& x) { return x.index({nonzero(x > 0, as_tuple)[0]}) + where(x)[1].sum(); };
  auto fast = compile(pick);
  for (int64_t n : {3, 5, 0}) {
    const Tensor x = randn({n, 4});
    EXPECT_TRUE(same_bits(fast(x), pick(x)));
  }
  EXPECT_GT(fast.stats().graph_breaks, 0);
}

}  // namespace
}  // namespace ingot
