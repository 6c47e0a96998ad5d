#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "canonical_sum.h"
#include "codegen/builder.h"
#include "codegen/scalar/executor.h"
#include "codegen/scalar/lanes.h"
#include "run_scalar.h"
#include "uniform.h"

namespace ingot::codegen {
namespace {

using ingot::test::canonical_sum;
using test::Call;

constexpr int64_t kSizes[] = {0, 1, 2, 15, 16, 17, 255, 256, 257, 511, 513, 1792, 2047, 2048, 2049, 5000};

template <class T>
std::vector<T> random_values(int64_t n, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<T> x(static_cast<size_t>(n));
  for (T& v : x) {
    if constexpr (std::is_floating_point_v<T>) {
      v = static_cast<T>(std::ldexp(ingot::test::uniform<double>(rng, -1, 1), static_cast<int>(rng() % 20)));
    } else {
      v = static_cast<T>(static_cast<int64_t>(rng() % 41) - 20);
    }
  }
  return x;
}

// out[row] = combiner over x[row][:].
Kernel row_reduction(DType d, Combiner c, DType out) {
  Kernel k;
  k.buffers = {{d}, {out, Access::uniform, true}};
  Builder b(k);
  k.reductions = {{c, b.load(0).value}};
  Phase p;
  p.reductions = {0};
  p.row_stores = {{1, b.reduced(0).value}};
  k.phases = {p};
  return k;
}

template <class R, class T>
std::vector<R> reduce_rows(DType d, Combiner c, DType out_type, const std::vector<T>& x, int64_t rows) {
  std::vector<R> out(static_cast<size_t>(rows));
  Call call;
  call.rows = rows;
  call.columns = rows ? static_cast<int64_t>(x.size()) / rows : 0;
  call.buffers = {const_cast<T*>(x.data()), out.data()};
  call.row_strides = {call.columns * static_cast<int64_t>(sizeof(T)), sizeof(R)};
  call.run(row_reduction(d, c, out_type));
  return out;
}

template <class T>
void expect_same(T a, T b) {
  EXPECT_EQ(std::memcmp(&a, &b, sizeof a), 0) << a << " and " << b;
}

TEST(ScalarReduction, SumsHaveTheCanonicalOrder) {
  for (int64_t n : kSizes) {
    auto x = random_values<float>(3 * n, 1);
    auto y = random_values<double>(n, 2);
    auto sums = reduce_rows<float>(DType::f32, Combiner::sum, DType::f32, x, 3);
    for (int r = 0; r < 3; ++r) expect_same(sums[r], canonical_sum(x.data() + r * n, n));
    expect_same(reduce_rows<double>(DType::f64, Combiner::sum, DType::f64, y, 1)[0], canonical_sum(y.data(), n));
  }
}

TEST(ScalarReduction, SumOfNegativeZerosIsNegativeZero) {
  expect_same(reduce_rows<float>(DType::f32, Combiner::sum, DType::f32, std::vector<float>(5, -0.0f), 1)[0], -0.0f);
}

TEST(ScalarReduction, IntegersWrap) {
  auto x = random_values<int32_t>(1000, 3);
  x.insert(x.end(), 3, std::numeric_limits<int32_t>::max());
  uint32_t sum = 0, product = 1;
  for (int32_t v : x) sum += static_cast<uint32_t>(v);
  EXPECT_EQ(static_cast<uint32_t>(reduce_rows<int32_t>(DType::i32, Combiner::sum, DType::i32, x, 1)[0]), sum);
  std::vector<int32_t> odd(40, 3);
  for (int32_t v : odd) product *= static_cast<uint32_t>(v);
  EXPECT_EQ(static_cast<uint32_t>(reduce_rows<int32_t>(DType::i32, Combiner::prod, DType::i32, odd, 1)[0]), product);
}

TEST(ScalarReduction, ExtremesAndTheirFirstIndex) {
  for (int64_t n : kSizes) {
    if (n == 0) continue;
    auto x = random_values<int64_t>(n, 4);
    auto high = std::max_element(x.begin(), x.end()), low = std::min_element(x.begin(), x.end());
    EXPECT_EQ(reduce_rows<int64_t>(DType::i64, Combiner::max, DType::i64, x, 1)[0], *high);
    EXPECT_EQ(reduce_rows<int64_t>(DType::i64, Combiner::min, DType::i64, x, 1)[0], *low);
    EXPECT_EQ(reduce_rows<int64_t>(DType::i64, Combiner::argmax, DType::i64, x, 1)[0], high - x.begin());
    EXPECT_EQ(reduce_rows<int64_t>(DType::i64, Combiner::argmin, DType::i64, x, 1)[0], low - x.begin());
  }
}

TEST(ScalarReduction, NanWinsInExtremes) {
  std::vector<float> x(300, 1.0f);
  x[70] = INFINITY;
  x[131] = NAN;
  x[132] = NAN;
  EXPECT_TRUE(std::isnan(reduce_rows<float>(DType::f32, Combiner::max, DType::f32, x, 1)[0]));
  EXPECT_TRUE(std::isnan(reduce_rows<float>(DType::f32, Combiner::min, DType::f32, x, 1)[0]));
  EXPECT_EQ(reduce_rows<int64_t>(DType::f32, Combiner::argmax, DType::i64, x, 1)[0], 131);
  EXPECT_EQ(reduce_rows<int64_t>(DType::f32, Combiner::argmin, DType::i64, x, 1)[0], 131);
  std::vector<float> zeros = {0.0f, -0.0f, 0.0f};
  expect_same(reduce_rows<float>(DType::f32, Combiner::min, DType::f32, zeros, 1)[0], -0.0f);
  expect_same(reduce_rows<float>(DType::f32, Combiner::max, DType::f32, zeros, 1)[0], 0.0f);
  EXPECT_EQ(reduce_rows<int64_t>(DType::f32, Combiner::argmin, DType::i64, zeros, 1)[0], 0);
}

TEST(ScalarReduction, AnyAndAll) {
  std::vector<uint8_t> x(260, 0);
  EXPECT_EQ(reduce_rows<uint8_t>(DType::bool_, Combiner::any, DType::bool_, x, 1)[0], 0);
  x[259] = 255;  // any byte but 0 is true
  EXPECT_EQ(reduce_rows<uint8_t>(DType::bool_, Combiner::any, DType::bool_, x, 1)[0], 1);
  EXPECT_EQ(reduce_rows<uint8_t>(DType::bool_, Combiner::all, DType::bool_, x, 1)[0], 0);
  EXPECT_EQ(reduce_rows<uint8_t>(DType::bool_, Combiner::all, DType::bool_, std::vector<uint8_t>(17, 1), 1)[0], 1);
}

TEST(ScalarReduction, NothingGivesTheIdentity) {
  std::vector<float> none;
  expect_same(reduce_rows<float>(DType::f32, Combiner::sum, DType::f32, none, 2)[1], 0.0f);
  expect_same(reduce_rows<float>(DType::f32, Combiner::prod, DType::f32, none, 2)[1], 1.0f);
  expect_same(reduce_rows<float>(DType::f32, Combiner::max, DType::f32, none, 2)[1], -INFINITY);
}

TEST(ScalarReduction, ColumnsKeepLaneByRow) {
  constexpr int64_t rows = 37, columns = 21;
  auto x = random_values<float>(rows * columns, 5);
  Kernel k;
  k.form = Form::columns;
  k.buffers = {{DType::f32}};
  Builder b(k);
  Value v = b.load(0).value;
  k.reductions = {{Combiner::sum, v}, {Combiner::argmax, v}};
  Phase p;
  p.reductions = {0, 1};
  k.phases = {p};
  Call call;
  call.rows = rows;
  call.columns = columns;
  call.row_index = 1000;
  call.buffers = {x.data()};
  call.row_strides = {columns * 4};
  call.run(k);
  auto* sums = reinterpret_cast<const float*>(call.aligned_scratch());
  auto* values = sums + 16 * columns;
  auto* indices = reinterpret_cast<const int64_t*>(values + 16 * columns);
  for (int lane = 0; lane < 16; ++lane)
    for (int c = 0; c < columns; ++c) {
      float sum = -0.0f, best = -INFINITY;
      int64_t at = std::numeric_limits<int64_t>::max();
      for (int64_t r = lane; r < rows; r += 16) {
        sum += x[r * columns + c];
        if (x[r * columns + c] > best) {
          best = x[r * columns + c];
          at = 1000 + r;
        }
      }
      expect_same(sums[lane * columns + c], sum);
      expect_same(values[lane * columns + c], best);
      EXPECT_EQ(indices[lane * columns + c], at);
    }
}

TEST(ScalarExecutor, PhasesOfARowSeeItsReductions) {
  // y = x - max(x), through a local row buffer.
  constexpr int64_t rows = 3, columns = 33;
  auto x = random_values<float>(rows * columns, 6);
  std::vector<float> y(x.size());
  Kernel k;
  k.buffers = {{DType::f32}, {DType::f32, Access::dense, true}};
  k.locals = {Type::mask, Type::f32};
  Builder b(k);
  Expr value = b.load(0), positive = value > 0.0;
  k.reductions = {{Combiner::max, value.value}};
  Phase first, second;
  first.local_stores = {{0, positive.value}, {1, value.value}};
  first.reductions = {0};
  second.stores = {{1, select(b.local(0), b.local(1) - b.reduced(0), 7.0).value}};
  k.phases = {first, second};
  Call call;
  call.rows = rows;
  call.columns = columns;
  call.buffers = {x.data(), y.data()};
  call.row_strides = {columns * 4, columns * 4};
  call.run(k);
  for (int64_t r = 0; r < rows; ++r) {
    float high = *std::max_element(x.begin() + r * columns, x.begin() + (r + 1) * columns);
    for (int64_t c = 0; c < columns; ++c) {
      float v = x[r * columns + c];
      EXPECT_EQ(y[r * columns + c], v > 0 ? v - high : 7.0f);
    }
  }
}

TEST(ScalarExecutor, EveryDTypeLoadsAndStoresStrided) {
  constexpr DType types[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                             DType::i32, DType::i16, DType::i8,  DType::u8,   DType::bool_};
  for (DType d : types) {
    const int64_t bytes = size_of(d), n = 21;
    std::vector<char> from(static_cast<size_t>(3 * n * bytes)), to(static_cast<size_t>(n * bytes + 1), 0x55);
    std::mt19937 rng(7);
    for (char& c : from) c = static_cast<char>(d == DType::bool_ ? rng() % 2 : rng() % 120);
    Kernel k;
    k.buffers = {{d, Access::strided}, {d, Access::dense, true}};
    Builder b(k);
    Phase p;
    p.stores = {{1, b.load(0).value}};
    k.phases = {p};
    Call call;
    call.columns = n;
    call.buffers = {from.data(), to.data()};
    call.column_strides = {3 * bytes, 0};
    call.run(k);
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(std::memcmp(&to[i * bytes], &from[3 * i * bytes], bytes), 0) << name_of(d);
    EXPECT_EQ(to.back(), 0x55);  // the tail is left alone
  }
}

TEST(ScalarExecutor, IndexedLoadsAddTheirParts) {
  std::vector<float> table = random_values<float>(40, 8), out(10);
  std::vector<int64_t> rows = {3, 0, 1, 3, 2, 2, 0, 1, 3, 0};
  Kernel k;
  k.buffers = {{DType::i64}, {DType::f32, Access::dense}, {DType::f32, Access::dense, true}};
  Builder b(k);
  Phase p;
  p.stores = {{2, b.load(1, b.load(0)).value}};
  k.phases = {p};
  Call call;
  call.columns = 10;
  call.buffers = {rows.data(), table.data(), out.data()};
  call.index_strides = {0, 40, 0};  // out[c] = table[rows[c]][c]
  call.run(k);
  for (int c = 0; c < 10; ++c) EXPECT_EQ(out[c], table[rows[c] * 10 + c]);
}

TEST(ScalarExecutor, IndexCountsFromTheFrame) {
  std::vector<int64_t> out(2 * 20);
  Kernel k;
  k.buffers = {{DType::i64, Access::dense, true}};
  Builder b(k);
  Phase p;
  p.stores = {{0, (b.index(0) + b.index(1) * 100 + b.index(2) * 10000).value}};
  k.phases = {p};
  Call call;
  call.rows = 2;
  call.columns = 20;
  call.row_index = 5;
  call.column_index = 7;
  call.outer_index = {3};
  call.buffers = {out.data()};
  call.row_strides = {160};
  call.run(k);
  for (int r = 0; r < 2; ++r)
    for (int c = 0; c < 20; ++c) EXPECT_EQ(out[r * 20 + c], 30000 + (5 + r) * 100 + 7 + c);
}

TEST(ScalarExecutor, RareIsASelect) {
  constexpr int64_t n = 64;
  std::vector<float> x(n, 1.0f), y(n);
  x[3] = -4.0f;  // one lane of the first group only
  Kernel k;
  k.scalars = 1;
  k.buffers = {{DType::f32}, {DType::f32, Access::dense, true}};
  Builder b(k);
  Expr v = b.load(0);
  Expr r = b.rare(v < 0.0, v + b.scalar(Type::f32, 0), [&] { return b.rare(v < -2.0, v, [&] { return sqrt(-v); }); });
  Phase p;
  p.stores = {{1, r.value}};
  k.phases = {p};
  Call call;
  call.columns = n;
  call.scalars = {std::bit_cast<uint32_t>(0.5f)};
  call.buffers = {x.data(), y.data()};
  call.run(k);
  for (int i = 0; i < n; ++i) EXPECT_EQ(y[i], i == 3 ? 2.0f : 1.5f);
}

// C = A x B over k in order with fma, from zero, added to C where asked.
template <class T>
void check_tile(DType d) {
  constexpr int64_t rows = 3, vectors = 2, width = 32, k = 37, columns = 29;
  auto a = random_values<T>(rows * k, 9), b = random_values<T>(k * columns, 10), c = random_values<T>(rows * width, 11);
  auto got = c;
  for (bool transposed : {false, true}) {
    std::vector<T> from = b;
    if (transposed)
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < columns; ++j) from[j * k + i] = b[i * columns + j];
    std::vector<T> panel(k * width, T(5));
    KernelPtr pack = scalar::interpret(PackSpec{d, vectors, transposed});
    constexpr int64_t e = sizeof(T);
    PackFrame pf{reinterpret_cast<char*>(from.data()),
                 reinterpret_cast<char*>(panel.data()),
                 k,
                 columns,
                 transposed ? e : columns * e,
                 transposed ? k * e : e,
                 pack->context.get()};
    pack->interpret(&pf);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < width; ++j) ASSERT_EQ(panel[i * width + j], j < columns ? b[i * columns + j] : T(0));
    for (bool accumulate : {false, true}) {
      got = c;
      KernelPtr tile = scalar::interpret(TileSpec{d, d, rows, vectors});
      TileFrame tf{reinterpret_cast<char*>(a.data()),
                   reinterpret_cast<char*>(panel.data()),
                   reinterpret_cast<char*>(got.data()),
                   k,
                   k * e,
                   width * e,
                   accumulate,
                   columns,
                   tile->context.get()};
      tile->interpret(&tf);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < width; ++j) {
          T sum = 0;
          for (int64_t kk = 0; kk < k; ++kk) sum = std::fma(a[i * k + kk], panel[kk * width + j], sum);
          expect_same(got[i * width + j], j >= columns ? c[i * width + j] : accumulate ? c[i * width + j] + sum : sum);
        }
    }
  }
}

TEST(ScalarTile, PanelsOfBf16HoldPairsOfK) {
  constexpr int64_t rows = 2, k = 5, columns = 18, width = 32;
  std::mt19937 rng(12);
  auto values = [&](int64_t n) {
    std::vector<uint16_t> v(static_cast<size_t>(n));
    for (uint16_t& x : v) x = scalar::to_half(DType::bf16, static_cast<float>(rng() % 201) / 16 - 6);
    return v;
  };
  auto value = [](uint16_t bits) { return scalar::from_half(DType::bf16, bits); };
  auto a = values(rows * k), b = values(k * columns);
  std::vector<uint16_t> panel((k + 1) / 2 * width * 2, 0x1234);
  KernelPtr pack = scalar::interpret(PackSpec{DType::bf16, 2, false}),
            tile = scalar::interpret(TileSpec{DType::bf16, DType::bf16, rows, 2});
  PackFrame pf{reinterpret_cast<char*>(b.data()),
               reinterpret_cast<char*>(panel.data()),
               k,
               columns,
               columns * 2,
               2,
               pack->context.get()};
  pack->interpret(&pf);
  for (int64_t i = 0; i < k + 1; ++i)
    for (int64_t j = 0; j < width; ++j)
      ASSERT_EQ(panel[(i / 2 * width + j) * 2 + i % 2], i < k && j < columns ? b[i * columns + j] : 0);
  std::vector<float> c(rows * width, 7.0f);
  TileFrame tf{reinterpret_cast<char*>(a.data()),
               reinterpret_cast<char*>(panel.data()),
               reinterpret_cast<char*>(c.data()),
               k,
               k * 2,
               width * 4,
               0,
               columns,
               tile->context.get()};
  tile->interpret(&tf);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j) {
      float sum = 0;
      for (int64_t kk = 0; kk < k && j < columns; ++kk)
        sum = std::fma(value(a[i * k + kk]), value(b[kk * columns + j]), sum);
      expect_same(c[i * width + j], j < columns ? sum : 7.0f);
    }
}

TEST(ScalarTile, AccumulatesInOrderWithFma) {
  check_tile<float>(DType::f32);
  check_tile<double>(DType::f64);
}

}  // namespace
}  // namespace ingot::codegen
