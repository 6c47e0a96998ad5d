// Reductions of few, long rows, which threads do together: the order of sums shows neither threads nor instruction set.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "canonical_sum.h"
#include "eager/execute/numerics.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "lacks.h"
#include "runtime/cpu.h"
#include "runtime/thread_pool.h"
#include "uniform.h"

namespace ingot {
namespace {

using Function = std::function<Tensor(const Tensor& x, const Tensor& y)>;

bool same_bytes(const Tensor& a, const Tensor& b) {
  Tensor x = a.contiguous(), y = b.contiguous();
  return x.dtype() == y.dtype() && x.sizes() == y.sizes() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), static_cast<size_t>(x.nbytes())) == 0;
}

Tensor random_floats(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = ingot::test::uniform<float>(random, -1, 1);
  return tensor(values);
}

class LongRows : public testing::Test {
 protected:
  void TearDown() override {
    set_num_threads(threads_);
    set_numerics(level_);
    runtime::set_host_target(std::nullopt);
  }
  /// The same bits on each instruction set by 1, 2, 3 and 7 threads; interpreted, which is slow, by 1 and 3.
  void check(const char* name, const Function& f, const Tensor& x, const Tensor& y) {
    SCOPED_TRACE(testing::Message() << name << " " << x.numel());
    Tensor expected;
    for (Isa isa : {Isa::avx512, Isa::avx2, Isa::none}) {
      if (test::lacks(isa)) continue;
      runtime::set_host_target(runtime::target_of(isa));
      for (int threads : {1, 2, 3, 7}) {
        if (isa == Isa::none && threads != 3) continue;
        set_num_threads(threads);
        Tensor got = f(x, y);
        if (!expected.defined()) expected = got;
        EXPECT_TRUE(same_bytes(got, expected)) << runtime::target_of(isa).str() << ", threads " << threads;
      }
    }
  }

 private:
  int threads_ = num_threads();
  Numerics level_ = numerics();
};

TEST_F(LongRows, SumsAreCanonical) {
  for (int64_t n : {(1 << 18) - 1, 1 << 18, (1 << 18) + 1, (1 << 20) + 259}) {
    Tensor x = random_floats(n, 1);
    const float expected = test::canonical_sum(x.data_ptr<float>(), n);
    for (int threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      EXPECT_EQ(x.sum().item<float>(), expected) << n << " by " << threads;
      EXPECT_EQ(x.view({1, n}).sum(IntList{1}).item<float>(), expected) << n << " by " << threads;
    }
  }
}

TEST_F(LongRows, ReductionsKeepTheirBits) {
  const std::pair<const char*, Function> functions[] = {
      {"sum", [](const Tensor& x, const Tensor&) { return x.sum(); }},
      {"f64 mean", [](const Tensor& x, const Tensor&) { return x.to(kFloat64).mean(); }},
      {"bf16 sum", [](const Tensor& x, const Tensor&) { return x.to(kBFloat16).sum(); }},
      {"i32 sum", [](const Tensor& x, const Tensor&) { return x.mul(1000).to(kInt32).sum(); }},
      {"prod", [](const Tensor& x, const Tensor&) { return x.mul(1e-3).add(1).prod(); }},
      {"amax", [](const Tensor& x, const Tensor&) { return x.amax(); }},
      {"argmax of equals", [](const Tensor& x, const Tensor&) { return x.mul(50).round().argmax(); }},
      {"argmin of integers", [](const Tensor& x, const Tensor&) { return x.mul(50).to(kInt64).argmin(); }},
      {"any", [](const Tensor& x, const Tensor&) { return x.gt(0.99999).any(); }},
      {"all", [](const Tensor& x, const Tensor&) { return x.gt(-0.5).all(); }},
      {"var", [](const Tensor& x, const Tensor&) { return x.var(); }},
      {"logsumexp", [](const Tensor& x, const Tensor&) { return x.logsumexp({-1}); }},
      {"softmax", [](const Tensor& x, const Tensor&) { return x.softmax(-1); }},
      {"layer_norm", [](const Tensor& x, const Tensor&) { return layer_norm(x, {x.size(0)}); }},
      {"mse_loss", [](const Tensor& x, const Tensor& y) { return mse_loss(x, y); }},
      {"five rows",
       [](const Tensor& x, const Tensor&) {
         return x.slice(0, 0, 299995).view({5, 59999}).softmax(1);
       }},
      {"strided rows",
       [](const Tensor& x, const Tensor&) {
         return x.slice(0, 0, 300000).view({150000, 2}).t().sum(1);
       }},
  };
  Tensor x = random_floats(300'003, 2), y = random_floats(300'003, 3);
  for (const auto& [name, f] : functions) check(name, f, x, y);
}

TEST_F(LongRows, ProductsKeepTheirBits) {
  set_numerics(Numerics::strict);  // the default lets a processor with bf16 products use them
  const std::pair<const char*, Function> functions[] = {
      {"dot", [](const Tensor& x, const Tensor& y) { return dot(x, y); }},
      {"mv",
       [](const Tensor& x, const Tensor& y) {
         return mv(x.view({3, 100'001}), y.slice(0, 0, 100'001));
       }},
      {"vector on the left",
       [](const Tensor& x, const Tensor& y) {
         return matmul(y.slice(0, 0, 100'001), x.view({100'001, 3}));
       }},
      {"matmul",
       [](const Tensor& x, const Tensor& y) {
         return matmul(x.view({3, 100'001}), y.view({100'001, 3}));
       }},
      {"transposed",
       [](const Tensor& x, const Tensor& y) {
         return relu(matmul(x.view({100'001, 3}).t(), y.view({3, 100'001}).t()) + 1);
       }},
      {"f64",
       [](const Tensor& x, const Tensor& y) {
         return matmul(x.to(kFloat64).view({3, 100'001}), y.to(kFloat64).view({100'001, 3}));
       }},
      {"bf16",
       [](const Tensor& x, const Tensor& y) {
         return matmul(x.to(kBFloat16).view({3, 100'001}), y.to(kBFloat16).view({100'001, 3}));
       }},
  };
  Tensor x = random_floats(300'003, 6), y = random_floats(300'003, 7);
  for (const auto& [name, f] : functions) check(name, f, x, y);
  Tensor expected = x.to(kFloat64).mul(y.to(kFloat64)).sum();
  EXPECT_NEAR(dot(x, y).item<double>(), expected.item<double>(), 1e-2);
}

// A vector longer than the cache: its pieces meet all rows in turn.
TEST_F(LongRows, RowsThatShareAVectorKeepTheirBits) {
  constexpr int64_t kColumns = 700'001;
  Tensor x = random_floats(2 * kColumns, 10), y = random_floats(kColumns, 11);
  check(
      "mv",
      [](const Tensor& a, const Tensor& b) {
        return mv(a.view({2, kColumns}), b);
      },
      x, y);
  Tensor products = x.view({2, kColumns}) * y, sums = mv(x.view({2, kColumns}), y);
  for (int64_t row = 0; row < 2; ++row)
    EXPECT_EQ(sums[row].item<float>(), test::canonical_sum(products[row].data_ptr<float>(), kColumns));
}

TEST_F(LongRows, ManyNarrowRowsKeepTheirBits) {
  for (int64_t columns : {2, 3, 7, 16, 33}) {
    Tensor x = random_floats(9'001 * columns, 8), y = random_floats(columns, 9);
    check(
        "sum",
        [=](const Tensor& a, const Tensor&) {
          return a.view({9'001, columns}).sum(0);
        },
        x, y);
    check(
        "of products",
        [=](const Tensor& a, const Tensor& b) {
          return (a.view({9'001, columns}) * b).sum(0);
        },
        x, y);
    check(
        "f64",
        [=](const Tensor& a, const Tensor&) {
          return a.to(kFloat64).view({9'001, columns}).sum(0);
        },
        x, y);
    check(
        "of bf16",
        [=](const Tensor& a, const Tensor&) {
          return a.to(kBFloat16).view({9'001, columns}).sum(0);
        },
        x, y);
    check(
        "largest",
        [=](const Tensor& a, const Tensor&) {
          return a.view({9'001, columns}).amax(IntList{0});
        },
        x, y);
    check(
        "where",
        [=](const Tensor& a, const Tensor&) {
          return a.view({9'001, columns}).argmax(0);
        },
        x, y);
    check(
        "any",
        [=](const Tensor& a, const Tensor&) {
          return a.view({9'001, columns}).gt(0.9999).any(0);
        },
        x, y);
    Tensor sums = x.view({9'001, columns}).sum(0), turned = x.view({9'001, columns}).t().contiguous();
    for (int64_t c = 0; c < columns; ++c)
      EXPECT_EQ(sums[c].item<float>(), test::canonical_sum(turned[c].data_ptr<float>(), 9'001));
  }
}

TEST_F(LongRows, NanWinsFromAnyPiece) {
  for (int64_t at : {0, 70'000, 299'999}) {
    Tensor x = random_floats(300'000, 4), y = x.clone();
    x.mutable_data_ptr<float>()[at] = NAN;
    if (at) x.mutable_data_ptr<float>()[299'999] = NAN;
    check(
        "amin", [](const Tensor& a, const Tensor&) { return a.amin().isnan(); }, x, y);
    check(
        "argmax", [](const Tensor& a, const Tensor&) { return a.argmax(); }, x, y);
    EXPECT_TRUE(std::isnan(x.amin().item<float>()));
    EXPECT_EQ(x.argmax().item<int64_t>(), at);
  }
}

TEST_F(LongRows, ResultsMayTakeThePlaceOfOperands) {
  Tensor x = random_floats(300'000, 5), expected = (x - x.mean()).mul(x.sum());
  Tensor z = x.clone();
  z.copy_((z - z.mean()).mul(z.sum()));
  EXPECT_TRUE(same_bytes(z, expected));
}

}  // namespace
}  // namespace ingot
