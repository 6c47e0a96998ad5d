// The gradient of a table of rows: each row is the sum of its segment in the order of the positions, to the bit,
// whatever the threads.
#include "support.h"

namespace ingot {
namespace {

using test::error_of;
using test::same_bits;

/// One position after the other, in the order of memory.
template <class T>
Tensor added_one_by_one(const Tensor& positions, const Tensor& rows, int64_t count, int64_t padding) {
  const int64_t width = rows.size(-1), n = positions.numel();
  Tensor table = zeros({count, width}, rows.dtype());
  T* to = table.mutable_data_ptr<T>();
  const auto* at = positions.data_ptr<int64_t>();
  const T* from = rows.data_ptr<T>();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < width && at[i] != padding; ++k) to[at[i] * width + k] += from[i * width + k];
  return table;
}

Tensor expected_of(const Tensor& positions, const Tensor& rows, int64_t count, int64_t padding) {
  if (rows.dtype() == kFloat64) return added_one_by_one<double>(positions, rows, count, padding);
  return added_one_by_one<float>(positions, rows.to(kFloat32), count, padding).to(rows.dtype());
}

void check(const Tensor& positions, int64_t count, int64_t width, DType dtype, int64_t padding) {
  SCOPED_TRACE(std::to_string(count) + " rows of " + std::to_string(width) + " " + std::string(name_of(dtype)) + ", " +
               std::to_string(positions.numel()) + " positions, padding " + std::to_string(padding));
  const Tensor table = randn({count, width}).to(dtype).requires_grad_();
  const Tensor rows = randn({positions.numel(), width}).to(dtype);
  auto gradient = [padding](const Tensor& table, const Tensor& at, const Tensor& rows) {
    const Tensor looked_up = embedding(table, at, padding);
    return autograd::grad({looked_up}, {table}, {rows.reshape(looked_up.sizes())})[0];
  };
  const Tensor expected = expected_of(positions, rows, count, padding);
  EXPECT_TRUE(same_bits(gradient(table, positions, rows), expected)) << "eager";
  auto fast = compile(gradient);
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(fast(table, positions, rows), expected)) << "compiled";
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(EmbeddingGradient, SegmentsInTheOrderOfPositions) {
  test::on_every_target({1, 2, 3}, [] {
    manual_seed(7);
    for (const DType dtype : {kFloat32, kFloat64, kBFloat16, kFloat16})
      for (const int64_t width : {1, 15, 16, 33}) {
        check(randint(0, 9, {40}), 9, width, dtype, -1);
        check(randint(0, 9, {4, 5}), 9, width, dtype, 3);
        check(full({30}, int64_t{4}), 6, width, dtype, -1);
        check(arange(5), 5, width, dtype, 0);
        check(zeros({0}, kInt64), 5, width, dtype, -1);
        check(zeros({1}, kInt64), 1, width, dtype, -1);
      }
  });
}

TEST(EmbeddingGradient, ByHowOftenARowIsAskedFor) {
  auto gradient = [](const Tensor& table, const Tensor& at, const Tensor& rows) {
    return autograd::grad({embedding(table, at, 2, true)}, {table}, {rows})[0];
  };
  for (const DType dtype : {kFloat32, kFloat64, kBFloat16})
    for (const Tensor& at : {randint(0, 9, {40}), zeros({0}, kInt64)}) {
      const Tensor table = randn({9, 5}, dtype).requires_grad_(), rows = randn({at.size(0), 5}, dtype);
      const Tensor often =
          zeros({9}, kFloat64).index_add(0, at, ones({at.size(0)}, kFloat64)).clamp_min(1).unsqueeze(1);
      const Tensor sums = zeros({9, 5}, kFloat64).index_add(0, at, rows.to(kFloat64)) / often;
      const Tensor eager = gradient(table, at, rows), expected = sums.index_fill(0, tensor({2}), 0).to(dtype);
      EXPECT_TRUE(allclose(eager, expected, dtype == kBFloat16 ? 1e-2 : 1e-5, 1e-5)) << dtype;
      auto fast = compile(gradient);
      for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(fast(table, at, rows), eager)) << dtype;
    }
}

// Long enough for several threads; most positions at few rows, as the words of a text are.
TEST(EmbeddingGradient, OnThreads) {
  const test::RestoredSettings restored;
  for (const int threads : {1, 2, 3, 4}) {
    set_num_threads(threads);
    manual_seed(8);
    const Tensor text = (rand({6000}).pow(4) * 3000).to(kInt64);
    for (const DType dtype : {kFloat32, kFloat64, kBFloat16}) check(text, 3000, 64, dtype, 0);
    check(full({6000}, int64_t{2999}), 3000, 48, kFloat32, -1);
    check(randint(0, 20, {20000}), 20, 100, kFloat32, 7);
  }
}

// The sum is taken from what is there, in another memory or in place; the index may lie in any order.
TEST(EmbeddingGradient, IndexAddOfTheSameRows) {
  const test::RestoredSettings restored;
  manual_seed(9);
  const Tensor at = randint(0, 500, {2000}), rows = randn({2000, 96}), table = randn({500, 96});
  auto added = [](const Tensor& t, const Tensor& at, const Tensor& rows) { return t.index_add(0, at, rows); };
  auto written = [](const Tensor& t, const Tensor& at, const Tensor& rows) {
    Tensor own = t * 1;
    own.index_add_(0, at, rows, 0.5);
    return own;
  };
  set_num_threads(1);
  const Tensor a = added(table, at, rows), b = written(table, at, rows);
  const Tensor strided = at.repeat_interleave(2).view({2000, 2}).select(1, 0), wide = randn({2000, 200});
  wide.narrow(1, 3, 96).copy_(rows);
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    auto fast_added = compile(added);
    auto fast_written = compile(written);
    for (const Tensor& index : {at, strided})
      for (const Tensor& source : {rows, wide.narrow(1, 3, 96)}) {
        EXPECT_TRUE(same_bits(added(table, index, source), a));
        EXPECT_TRUE(same_bits(fast_added(table, index, source), a));
        EXPECT_TRUE(same_bits(fast_written(table, index, source), b));
        EXPECT_TRUE(same_bits(fast_added(table.t().contiguous().t(), index, source), a));
      }
  }
}

TEST(EmbeddingGradient, PositionsOutOfRangeAreRefused) {
  const Tensor table = randn({10, 16}).requires_grad_();
  auto gradient = [](const Tensor& table, const Tensor& at) {
    return autograd::grad({embedding(table, at).sum()}, {table})[0];
  };
  auto fast = compile(gradient);
  for (const int64_t wrong : {10, -1, -11}) {
    const Tensor at = tensor({int64_t{0}, wrong, int64_t{3}});
    const std::string eager = error_of([&] { gradient(table, at); });
    EXPECT_NE(eager.find("embedding"), std::string::npos) << eager;
    EXPECT_EQ(error_of([&] { fast(table, at); }), eager);
  }
  const Tensor fine = tensor({int64_t{0}, int64_t{9}, int64_t{0}});
  EXPECT_TRUE(same_bits(fast(table, fine), gradient(table, fine)));
}

TEST(EmbeddingRenorm, RowsThatAreNotThereAreRefused) {
  const Tensor table = randn({10, 16}), before = table.clone();
  const auto scaled = [](const Tensor& table, const Tensor& at) {
    return nn::functional::embedding_renorm_(table.clone(), at, 0.5) + 0;
  };
  auto fast = compile(scaled);
  const Tensor fine = tensor({9, 0, 9});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(fast(table, fine), scaled(table, fine)));
  EXPECT_NE(error_of([&] { fast(table, tensor({3, 10, 0})); }), error_of([] {}));
  EXPECT_TRUE(same_bits(table, before));
}

}  // namespace
}  // namespace ingot
