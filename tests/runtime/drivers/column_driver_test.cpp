#include <gtest/gtest.h>

#include <algorithm>

#include "canonical_sum.h"
#include "runtime/hand_kernels.h"

namespace ingot::runtime {
namespace {

using namespace testing_kernels;
using ingot::test::canonical_sum;

// Sum, argmax and any (of negative values) of the rows of buffer 0.
KernelPtr reduce_kernel() {
  return loop_kernel([](const KernelFrame& f) {
    EXPECT_LE(f.rows, 256);
    int64_t n = (f.lanes * f.columns + 15) / 16 * 16;
    float* sum = reinterpret_cast<float*>(f.scratch);
    float* best = sum + n;
    int64_t* index = reinterpret_cast<int64_t*>(best + n);
    uint8_t* any = reinterpret_cast<uint8_t*>(index + n);
    std::fill_n(sum, n, -0.0f);
    std::fill_n(best, n, -INFINITY);
    std::fill_n(index, n, INT64_MAX);
    std::fill_n(any, n, 0);
    for (int64_t r = 0; r < f.rows; ++r)
      for (int64_t c = 0; c < f.columns; ++c) {
        int64_t at = r % f.lanes * f.columns + c;
        float x = element<float>(f, 0, r, c);
        sum[at] += x;
        if (x > best[at] || index[at] == INT64_MAX) best[at] = x, index[at] = f.row_index + r;
        any[at] |= x < -1.9f;
      }
  });
}

void check(int64_t outer, int64_t rows, int64_t columns, int threads) {
  Threads scope(threads);
  auto p = std::make_shared<Program>();
  p->inputs = 1, p->outputs = 3;
  p->buffers = {input(0), output(0), output(1), output(2)};
  Step step = costly_step<ColumnStep>("reduce");
  ColumnStep& reduce = step.as<ColumnStep>();
  reduce.kernel = reduce_kernel();
  reduce.space = {outer, rows, columns};
  reduce.arguments = {{0, 0, {rows * columns * 4, columns * 4, 4}, 0}};
  reduce.results = {{Combiner::sum, DType::f32, {1, 0, {columns * 4, 4}, 0}},
                    {Combiner::argmax, DType::f32, {2, 0, {columns * 8, 8}, 0}},
                    {Combiner::any, DType::bool_, {3, 0, {columns * 2, 2}, 0}}};  // not dense
  reduce.positions = true;
  p->steps = {step};
  LoadedProgram program(p);
  std::vector<float> x = random_floats(outer * rows * columns, 17);
  for (size_t i = 0; i < x.size(); i += 3) x[i] = std::round(x[i]);  // equal extremes
  std::vector<float> sums(outer * columns);
  std::vector<int64_t> firsts(outer * columns);
  std::vector<uint8_t> anys(outer * columns * 2, 9);
  run(program, {}, {x.data()}, {sums.data(), firsts.data(), anys.data()});
  std::vector<float> column(rows);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) column[r] = x[(o * rows + r) * columns + c];
      int64_t at = o * columns + c;
      float expected = canonical_sum(column.data(), rows);
      ASSERT_EQ(std::memcmp(&sums[at], &expected, 4), 0)
          << outer << "x" << rows << "x" << columns << " threads " << threads;
      int64_t first = rows ? std::max_element(column.begin(), column.end()) - column.begin() : INT64_MAX;
      ASSERT_EQ(firsts[at], first) << outer << "x" << rows << "x" << columns << " threads " << threads;
      ASSERT_EQ(anys[2 * at], std::any_of(column.begin(), column.end(), [](float v) { return v < -1.9f; }));
      ASSERT_EQ(anys[2 * at + 1], 9);
    }
}

TEST(ColumnDriver, CanonicalForAnyShapeAndThreads) {
  for (int threads : kThreadCounts) {
    for (int64_t rows : {0, 1, 2, 3, 5, 8, 9, 15, 16, 17, 255, 256, 257, 512, 1000, 1300, 2000})
      for (int64_t columns : {1, 5, 64}) check(2, rows, columns, threads);
    check(1, 20000, 3, threads);  // blocks are divided
    check(1, 256 * 37 + 5, 10, threads);
    check(1, 300, 9000, threads);  // several tiles
    check(1, 1024, 200, threads);  // few blocks, of which each thread has as many
    check(1, 600, 200, threads);   // or not: columns are shared out
    check(1, 1024, 40, threads);
    check(3, 40, 4100, threads);
    check(0, 5, 5, threads);
    check(2, 5, 0, threads);
  }
}

// Few columns of dense rows come sixteen rows side by side, as far as blocks are made of them.
TEST(ColumnDriver, NarrowRowsAreSummedSideBySide) {
  for (int threads : kThreadCounts)
    for (int64_t columns : {2, 3, 16, 127, 128})
      for (int64_t gap : {0, 1})
        for (int64_t rows : {1, 16, 250, 256, 1000, 4500}) {
          Threads scope(threads);
          std::atomic<int64_t> wide{0}, kept{0};
          auto p = std::make_shared<Program>();
          p->inputs = 1, p->outputs = 1;
          p->buffers = {input(0), output(0)};
          Step step = costly_step<ColumnStep>("sum");
          ColumnStep& reduce = step.as<ColumnStep>();
          reduce.kernel = loop_kernel([&](const KernelFrame& f) {
            (f.columns == 16 * columns ? wide : kept) += f.rows * f.columns;
            EXPECT_EQ(f.lanes, f.columns == 16 * columns || rows == 1 ? 1 : 16);
            EXPECT_LE(f.rows, 256);
            float* sum = reinterpret_cast<float*>(f.scratch);
            std::fill_n(sum, f.lanes * f.columns, -0.0f);
            for (int64_t r = 0; r < f.rows; ++r)
              for (int64_t c = 0; c < f.columns; ++c) sum[r % f.lanes * f.columns + c] += element<float>(f, 0, r, c);
          });
          const int64_t row = columns + gap;
          reduce.space = {rows, columns};
          reduce.arguments = {{0, 0, {row * 4, 4}, 0}};
          reduce.results = {{Combiner::sum, DType::f32, {1, 0, {4}, 0}}};
          p->steps = {step};
          LoadedProgram program(p);
          std::vector<float> x = random_floats(static_cast<size_t>(rows * row), 18), sums(static_cast<size_t>(columns));
          run(program, {}, {x.data()}, {sums.data()});
          const int64_t ragged = rows % 256 % 16 ? rows % 256 : 0;  // of a last block
          EXPECT_EQ(kept, (gap || columns == 128 ? rows : ragged) * columns);
          EXPECT_EQ(wide + kept, rows * columns);
          std::vector<float> column(static_cast<size_t>(rows));
          for (int64_t c = 0; c < columns; ++c) {
            for (int64_t r = 0; r < rows; ++r) column[static_cast<size_t>(r)] = x[static_cast<size_t>(r * row + c)];
            ASSERT_EQ(sums[static_cast<size_t>(c)], canonical_sum(column.data(), rows)) << rows << "x" << columns;
          }
        }
}

// A kernel that sums in registers is asked to join the lanes where one block of rows is all; else the blocks are joined
// first.
TEST(ColumnDriver, LanesInRegistersAreJoinedByTheKernel) {
  for (int threads : kThreadCounts)
    for (int64_t outer : {0, 1, 3, 64})
      for (int64_t rows : {0, 1, 16, 17, 256, 257, 2000})
        for (int64_t columns : {0, 1, 5, 64}) {
          Threads scope(threads);
          std::atomic<int64_t> joined{0}, apart{0};
          auto p = std::make_shared<Program>();
          p->inputs = 1, p->outputs = 2;
          p->buffers = {input(0), output(0), output(1)};
          Step step = costly_step<ColumnStep>("sums");
          ColumnStep& reduce = step.as<ColumnStep>();
          reduce.kernel = loop_kernel([&](const KernelFrame& f) {
            ++(f.lanes == 1 ? joined : apart);
            for (int64_t result = 0; result < 2; ++result) {
              float* sum = reinterpret_cast<float*>(f.scratch) + result * 16 * f.columns;
              std::fill_n(sum, 16 * f.columns, -0.0f);
              for (int64_t r = 0; r < f.rows; ++r)
                for (int64_t c = 0; c < f.columns; ++c)
                  sum[r % 16 * f.columns + c] += element<float>(f, 0, r, c) * (result ? 2 : 1);
              for (int64_t half = f.lanes == 1 ? 8 : 0; half; half /= 2)
                for (int64_t i = 0; i < half * f.columns; ++i) sum[i] += sum[half * f.columns + i];
            }
          });
          reduce.space = {outer, rows, columns};
          reduce.arguments = {{0, 0, {rows * columns * 4, columns * 4, 4}, 0}};
          reduce.results = {{Combiner::sum, DType::f32, {1, 0, {columns * 4, 4}, 0}},
                            {Combiner::sum, DType::f32, {2, 0, {columns * 8, 8}, 0}}};  // not dense
          reduce.in_registers = true;
          p->steps = {step};
          LoadedProgram program(p);
          std::vector<float> x = random_floats(static_cast<size_t>(outer * rows * columns), 19),
                             sums(static_cast<size_t>(outer * columns)),
                             twice(static_cast<size_t>(outer * columns * 2));
          run(program, {}, {x.data()}, {sums.data(), twice.data()});
          EXPECT_EQ(joined > 0, outer > 0 && columns > 0 && rows > 0 && rows <= 256);
          EXPECT_EQ(apart > 0, outer > 0 && columns > 0 && rows > 256);
          std::vector<float> column(static_cast<size_t>(rows));
          for (int64_t o = 0; o < outer; ++o)
            for (int64_t c = 0; c < columns; ++c) {
              for (int64_t r = 0; r < rows; ++r)
                column[static_cast<size_t>(r)] = x[static_cast<size_t>((o * rows + r) * columns + c)];
              const auto at = static_cast<size_t>(o * columns + c);
              const float expected = canonical_sum(column.data(), rows);
              ASSERT_EQ(sums[at], expected) << outer << "x" << rows << "x" << columns << ", " << threads << " threads";
              ASSERT_EQ(twice[2 * at], 2 * expected);
            }
        }
}

TEST(ColumnDriver, ExtremesOfEveryTypeWithNaNAndSignedZero) {
  auto reduce = [](Combiner combiner, std::vector<double> values) {
    auto p = std::make_shared<Program>();
    p->inputs = p->outputs = 1;
    p->buffers = {input(0), output(0)};
    Step step = costly_step<ColumnStep>("extreme");
    ColumnStep& reduce = step.as<ColumnStep>();
    bool indexed = combiner == Combiner::argmax || combiner == Combiner::argmin;
    bool high = combiner == Combiner::max || combiner == Combiner::argmax;
    // Extremes come in one lane, here of one value a block: the combination is all the runtime's. Without positions
    // sixteen rows of one column are one row.
    constexpr int64_t kBlock = 256;
    std::vector<double> elements(values.size() * kBlock);
    for (size_t i = 0; i < values.size(); ++i) elements[i * kBlock] = values[i];
    int64_t rows = static_cast<int64_t>(elements.size());
    reduce.space = {rows, 1};
    reduce.arguments = {{0, 0, {8, 8}, 0}};
    reduce.results = {{combiner, DType::f64, {1, 0, {8}, 0}}};
    reduce.positions = indexed;
    reduce.kernel = loop_kernel([=](const KernelFrame& f) {
      double* value = reinterpret_cast<double*>(f.scratch);
      EXPECT_EQ(f.lanes, 1);
      EXPECT_EQ(f.columns, indexed ? 1 : 16);
      std::fill_n(value, 16, high ? -INFINITY : INFINITY);
      value[0] = element<double>(f, 0, 0, 0);
      if (indexed) *reinterpret_cast<int64_t*>(value + 16) = f.row_index / kBlock;
    });
    p->steps = {step};
    LoadedProgram program(p);
    uint64_t result = 0;
    run(program, {}, {elements.data()}, {&result});
    return result;
  };
  auto bits = [](double x) {
    uint64_t b;
    std::memcpy(&b, &x, 8);
    return b;
  };
  double nan = std::nan("");
  EXPECT_EQ(reduce(Combiner::max, {-0.0, 0.0, -0.0}), bits(0.0));
  EXPECT_EQ(reduce(Combiner::min, {0.0, -0.0, 0.0}), bits(-0.0));
  EXPECT_TRUE(std::isnan(std::bit_cast<double>(reduce(Combiner::max, {1, nan, INFINITY}))));
  EXPECT_TRUE(std::isnan(std::bit_cast<double>(reduce(Combiner::min, {nan, -INFINITY}))));
  EXPECT_EQ(reduce(Combiner::argmax, {-0.0, 0.0, -1.0}), 0u);
  EXPECT_EQ(reduce(Combiner::argmax, {1, 5, nan, 7, nan}), 2u);
  EXPECT_EQ(reduce(Combiner::argmin, {4, 3, 3, 9, 3}), 1u);
  EXPECT_EQ(reduce(Combiner::argmax, {-INFINITY, -INFINITY}), 0u);
  EXPECT_EQ(reduce(Combiner::max, {}), bits(-INFINITY));
}

}  // namespace
}  // namespace ingot::runtime
