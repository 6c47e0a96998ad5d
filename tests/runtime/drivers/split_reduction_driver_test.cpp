// Long rows that threads reduce together. The order of sums is for kernels and for tests/eager/long_rows_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/hand_kernels.h"

namespace ingot::runtime {
namespace {

using namespace testing_kernels;

constexpr int64_t kLanes = 16;

struct Counts {
  std::atomic<int64_t> pieces{0}, finished{0};
};

// Phase 0: the sum of a row. Phase 1: its largest element; what is stored at each column is the element plus the sum,
// by way of a local. Once a row: the sum plus the largest.
KernelPtr two_phases(Counts& counts) {
  return loop_kernel([&counts](const KernelFrame& f) {
    const bool pieces = f.accumulators != nullptr;
    if (pieces) {
      EXPECT_EQ(f.rows, 1);
      EXPECT_EQ(f.column_index % 256, 0);
    }
    int64_t own[2 * kLanes];
    int64_t* sums = pieces ? reinterpret_cast<int64_t*>(f.accumulators) : own;
    int64_t *most = sums + kLanes, *local = reinterpret_cast<int64_t*>(f.scratch);
    for (int64_t r = 0; r < f.rows; ++r) {
      if (f.first_phase == 0) {
        std::fill_n(sums, kLanes, 0);
        for (int64_t c = 0; c < f.columns; ++c) {
          sums[c % kLanes] += element<int64_t>(f, 0, r, c);
          local[c] = -element<int64_t>(f, 0, r, c);
        }
        if (f.last_phase == 0) {
          ++counts.pieces;
          return;
        }
      }
      const int64_t sum = std::accumulate(sums, sums + kLanes, int64_t{0});
      if (f.first_phase <= 1) {
        std::fill_n(most, kLanes, INT64_MIN);
        for (int64_t c = 0; c < f.columns; ++c) {
          most[c % kLanes] = std::max(most[c % kLanes], element<int64_t>(f, 0, r, c));
          element<int64_t>(f, 1, r, c) = sum - local[c];
        }
        if (f.last_phase == 1) return;
      }
      element<int64_t>(f, 2, r, 0) = sum + *std::max_element(most, most + kLanes);
      ++counts.finished;
    }
  });
}

void check(int64_t outer, int64_t rows, int64_t columns, int threads, bool in_pieces) {
  SCOPED_TRACE(testing::Message() << outer << "x" << rows << "x" << columns << " threads " << threads);
  Threads scope(threads);
  Counts counts;
  auto p = std::make_shared<Program>();
  p->inputs = 1, p->outputs = 2;
  p->buffers = {input(0), output(0), output(1)};
  Step step = costly_step<LoopStep>("rows");
  LoopStep& loop = step.as<LoopStep>();
  loop.kernel = two_phases(counts);
  loop.space = {outer, rows, columns};
  const int64_t gap = columns + 3;
  loop.arguments = {
      {0, 0, {rows * gap * 8, gap * 8, 8}, 0}, {1, 0, {rows * gap * 8, gap * 8, 8}, 0}, {2, 0, {rows * 8, 8, 0}, 0}};
  loop.rows_whole = true;
  loop.local_bytes = {8};
  loop.split = {{{0, Combiner::sum, DType::i64}, {1, Combiner::max, DType::i64}}, 2, true};
  p->steps = {step};
  LoadedProgram program(p);
  std::vector<int64_t> x(static_cast<size_t>(outer * rows * gap)), out(x.size(), 5);
  std::mt19937_64 random(3);
  for (int64_t& v : x) v = static_cast<int64_t>(random() >> 20);
  std::vector<int64_t> once(static_cast<size_t>(outer * rows));
  run(program, {}, {x.data()}, {out.data(), once.data()});
  EXPECT_EQ(counts.pieces > 0, in_pieces);
  EXPECT_EQ(counts.finished, outer * rows);
  for (int64_t row = 0; row < outer * rows; ++row) {
    const int64_t* from = x.data() + row * gap;
    const int64_t sum = std::accumulate(from, from + columns, int64_t{0});
    ASSERT_EQ(once[static_cast<size_t>(row)], sum + *std::max_element(from, from + columns));
    for (int64_t c = 0; c < gap; ++c)
      ASSERT_EQ(out[static_cast<size_t>(row * gap + c)], c < columns ? sum + from[c] : 5);
  }
}

TEST(SplitReductionDriver, FewLongRowsAreSharedByThreads) {
  for (int threads : kThreadCounts) {
    const bool several = threads > 1;
    check(1, 1, 4097, threads, several);
    check(1, 1, 100'000, threads, several);
    check(1, 1, 1 << 16, threads, several);
    check(1, 1, 4096, threads, false);
    check(1, 1, 300, threads, false);
    check(1, 5, 20'000, threads, several);
    check(2, 2, 9'001, threads, several && threads != 2);
    check(1, 7, 9'001, threads, several && threads != 7);
    check(1, 40, 5'000, threads, false);
    check(0, 3, 5'000, threads, false);
  }
}

}  // namespace
}  // namespace ingot::runtime
