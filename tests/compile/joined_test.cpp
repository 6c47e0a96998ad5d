// cat: what it passes over, and what is read after it, with eager's bits and strides.
#include <functional>
#include <random>
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

/// Tensors joined of joined ones, along any dims, with ops between; some of the parts are results themselves.
class Nested {
 public:
  explicit Nested(unsigned seed) : random_(seed) {}

  std::vector<Tensor> operator()(const Tensor& x, const Tensor& y) {
    inputs_ = {x, y};
    Tensor all = joined({any(1, 6), any(2, 6), any(2, 6)}, 3);
    results_.push_back(any(0, 1) ? all.relu().sum({any(0, 2)}) : all);
    return std::move(results_);
  }

 private:
  int64_t any(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random_); }

  Tensor leaf(const Ints& shape) {
    Tensor t = inputs_[static_cast<size_t>(any(0, 1))];
    if (any(0, 3) == 0) t = t.transpose(0, any(1, 2));
    for (int64_t d = 0; d < 3; ++d)
      t = t.narrow(d, any(0, 6 - shape[static_cast<size_t>(d)]), shape[static_cast<size_t>(d)]);
    return any(0, 6) == 0 ? full(shape, 3.5) : t;
  }

  Tensor joined(const Ints& shape, int depth) {
    const size_t dim = static_cast<size_t>(any(0, 2));
    if (depth == 0 || shape[dim] < 2 || any(0, 4) == 0) return changed(leaf(shape));
    std::vector<Tensor> parts;
    for (int64_t left = shape[dim]; left > 0;) {
      Ints part = shape;
      part[dim] = any(1, left);
      left -= part[dim];
      parts.push_back(joined(part, depth - 1));
      if (any(0, 9) == 0) parts.push_back(nothing());
    }
    return changed(cat(parts, static_cast<int64_t>(dim)));
  }

  Tensor changed(Tensor t) {
    switch (any(0, 9)) {
      case 0:
        return t * 2 - 1;
      case 1:
        return t.relu();
      case 2:
        return maximum(t, t.flip({1}));
      case 3:
        return t + t.narrow(1, 0, 1);
      case 4:
        results_.push_back(t);
        return t.neg();
      default:
        return t;
    }
  }

  std::mt19937 random_;
  std::vector<Tensor> inputs_, results_;
};

TEST(Joined, OfJoinedTensorsIsWrittenOnceOrNotAtAll) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    auto fast = compile([&](const Tensor& x, const Tensor& y) { return Nested(seed)(x, y); });
    for (int call = 0; call < 2; ++call) {
      const Tensor x = randn({6, 6, 6}), y = call ? randn({6, 6, 6}).transpose(0, 2) : randn({6, 6, 6});
      const std::vector<Tensor> expected = Nested(seed)(x, y), got = fast(x, y);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(same_bits(got[i], expected[i])) << "seed " << seed << ", result " << i;
        ASSERT_TRUE(same_strides(got[i], expected[i])) << "seed " << seed << ", result " << i;
      }
    }
    EXPECT_EQ(fast.stats().fallbacks, 0);
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
