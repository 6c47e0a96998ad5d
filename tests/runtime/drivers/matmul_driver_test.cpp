#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/bound_program.h"
#include "runtime/hand_kernels.h"

namespace ingot::runtime {
namespace {

using namespace testing_kernels;
using canonical::kProductBlock;

struct Shape {
  int64_t batch, m, n, k;
  bool transpose_a = false, transpose_b = false, epilogue = false, weight = false, shared_b = false;
};

struct Product {
  std::shared_ptr<Program> program = std::make_shared<Program>();
  std::shared_ptr<std::atomic<int64_t>> packed = std::make_shared<std::atomic<int64_t>>(0);
  Shape s;

  explicit Product(const Shape& shape) : s(shape) {
    Program& p = *program;
    p.inputs = 3, p.outputs = 1;
    p.buffers = {input(0), input(1), input(2), output(0)};
    MatmulStep mm;
    mm.batch = {s.batch};
    mm.m = s.m, mm.n = s.n, mm.k = s.k;
    mm.a = {0, 0, {s.m * s.k * 4, s.transpose_a ? 4 : s.k * 4, s.transpose_a ? s.m * 4 : 4}, 0};
    mm.b = {1, 0, {s.shared_b ? 0 : s.n * s.k * 4, s.transpose_b ? 4 : s.n * 4, s.transpose_b ? s.k * 4 : 4}, 0};
    ProductKernels kernels = product_kernels(packed.get());
    if (s.transpose_a)
      kernels.pack_a = loop_kernel([](const KernelFrame& f) {
        for (int64_t r = 0; r < f.rows; ++r)
          for (int64_t c = 0; c < f.columns; ++c) element<float>(f, 1, r, c) = element<float>(f, 0, r, c);
      });
    mm.kernels = std::make_shared<const ProductKernels>(std::move(kernels));
    mm.b_is_weight = s.weight;
    Argument c = {3, 0, {s.m * s.n * 4, s.n * 4, 4}, 0};
    if (s.epilogue) {
      // out = tile * scalar + bias[column] + row number + 100 * batch number
      mm.epilogue.kernels.push_back(loop_kernel([](const KernelFrame& f) {
        for (int64_t r = 0; r < f.rows; ++r)
          for (int64_t j = 0; j < f.columns; ++j)
            element<float>(f, 2, r, j) = element<float>(f, 0, r, j) * scalar_f32(f, 0) + element<float>(f, 1, r, j) +
                                         static_cast<float>(f.row_index + r + 100 * f.outer_index[0]);
      }));
      mm.epilogue.arguments = {{2, 0, {0, 0, 4}, 0}, c};
      mm.epilogue.scalars = {{ScalarSource::Kind::call, 0, 0, DType::f32}};
      p.scalars = {Category::floating};
    } else {
      mm.epilogue.arguments = {c};
    }
    p.steps = {costly_step("product", std::move(mm))};
  }

  std::vector<float> expected(const std::vector<float>& a, const std::vector<float>& b,
                              const std::vector<float>& bias) const {
    std::vector<float> c(s.batch * s.m * s.n);
    for (int64_t q = 0; q < s.batch; ++q)
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
          float total = 0;
          for (int64_t block = 0; block < s.k; block += kProductBlock) {
            float sum = 0;
            for (int64_t k = block; k < std::min(block + kProductBlock, s.k); ++k) {
              float x = a[q * s.m * s.k + (s.transpose_a ? k * s.m + i : i * s.k + k)];
              float y = b[(s.shared_b ? 0 : q * s.n * s.k) + (s.transpose_b ? j * s.k + k : k * s.n + j)];
              sum = std::fma(x, y, sum);
            }
            total = block ? total + sum : sum;
          }
          float& out = c[(q * s.m + i) * s.n + j];
          out = total;
          if (s.epilogue) out = total * 0.5f + bias[j] + static_cast<float>(i + 100 * q);
        }
    return c;
  }
};

// On every number of threads; weights three times, since they are packed once and read again.
void check(const Shape& s) {
  Product product(s);
  std::vector<float> a = random_floats(s.batch * s.m * s.k, 1), b = random_floats(s.batch * s.n * s.k, 2);
  std::vector<float> bias = random_floats(s.n, 3);
  std::vector<uint64_t> scalars;
  if (s.epilogue) scalars = {std::bit_cast<uint64_t>(0.5)};
  const std::vector<float> expected = product.expected(a, b, bias);
  for (int threads : kThreadCounts) {
    Threads scope(threads);
    LoadedProgram program(product.program);
    StoragePtr kept = storage_of(b);
    for (int round = 0; round < (s.weight ? 3 : 1); ++round) {
      std::vector<float> c(expected.size(), 7);
      run(program, {}, {a.data(), b.data(), bias.data()}, {c.data()}, scalars, {{}, InputIdentity::of(*kept), {}});
      for (size_t i = 0; i < c.size(); ++i)
        ASSERT_EQ(c[i], expected[i]) << s.batch << "x" << s.m << "x" << s.n << "x" << s.k << " threads " << threads;
    }
  }
}

TEST(MatmulDriver, SameBitsForAnyShapeAndThreads) {
  for (int64_t m : {1, 4, 5, 13})
    for (int64_t n : {1, 16, 33, 100})
      for (int64_t k : {int64_t{1}, kProductBlock, int64_t{1100}}) check({1, m, n, k});
  check({1, 300, 40, 1030});  // several blocks of rows
  check({1, 5, 0, 7});
  check({1, 0, 5, 7});
  check({2, 3, 20, 0});
  check({0, 3, 20, 5});
}

TEST(MatmulDriver, TransposedBatchedEpilogue) {
  for (int options = 0; options < 32; ++options) {
    Shape s{3, 9, 50, 530};
    s.transpose_a = options & 1, s.transpose_b = options & 2, s.epilogue = options & 4;
    s.weight = options & 8, s.shared_b = options & 16;
    check(s);
    s.batch = 1, s.k = 40;
    check(s);
  }
  Shape none{2, 3, 5, 0};
  none.epilogue = true;
  check(none);
}

// Kept panels are taken in turns from the first and from the last.
TEST(MatmulDriver, WeightsHaveTheSameBitsTimeAndAgain) {
  for (auto [m, n] : {std::pair{1, 33}, {1, 200}, {4, 100}, {4, 200}, {300, 100}})
    for (bool epilogue : {false, true}) {
      Shape s{1, m, n, kProductBlock + 18};
      s.weight = true, s.epilogue = epilogue;
      check(s);
    }
}

// A segment whose B is the same for all slices, another one in each run.
TEST(MatmulDriver, WhatStaysIsPackedByTheFirstSlice) {
  for (auto [m, n, k] : {std::tuple{1, 33, 40}, {4, 100, 274}, {13, 200, 40}, {2, 16, 2000}, {3, 16, 0}})
    for (bool epilogue : {false, true})
      for (bool backwards : {false, true}) {
        constexpr int64_t kSlices = 5;
        Shape s{1, m, n, k};
        s.epilogue = epilogue, s.transpose_b = backwards;
        Product product(s);
        product.program->steps[0].as<MatmulStep>().b_stays = true;
        product.program->segments = {{0, 1, kSlices, backwards, {{0, m * k * 4}, {3, m * n * 4}}}};
        const std::vector<uint64_t> scalars(epilogue, std::bit_cast<uint64_t>(0.5));
        std::vector<float> a = random_floats(kSlices * m * k, 1), bias = random_floats(n, 3);
        for (int threads : kThreadCounts) {
          Threads scope(threads);
          LoadedProgram program(product.program);
          for (unsigned round = 0; round < 3; ++round) {
            std::vector<float> b = random_floats(n * k, 10 + round);
            std::vector<float> c(kSlices * m * n, 7);
            const int64_t before = product.packed->load();
            run(program, {}, {a.data(), b.data(), bias.data()}, {c.data()}, scalars);
            EXPECT_EQ(product.packed->load() - before, n * k);
            for (int64_t slice = 0; slice < kSlices; ++slice) {
              const auto from = a.begin() + slice * m * k;
              const std::vector<float> expected = product.expected({from, from + m * k}, b, bias);
              for (int64_t i = 0; i < m * n; ++i)
                ASSERT_EQ(c[slice * m * n + i], expected[i]) << m << "x" << n << "x" << k;
            }
          }
        }
      }
}

// Split along k, where tiles are few: the partial accumulators of its blocks still add up in order.
TEST(MatmulDriver, LongKIsSharedByThreads) {
  for (int64_t k : {kProductBlock * 32, kProductBlock * 70 + 5}) {
    Shape s{1, 5, 60, k};
    Product product(s);
    for (int threads : kThreadCounts) {
      Threads scope(threads);
      LoadedProgram program(product.program);
      // A second phase adds; too few blocks of k for the threads are not cut.
      EXPECT_EQ(program.bind({})->schedule->phases.size(),
                threads == 1 || (threads == 7 && k < kProductBlock * 50) ? 1u : 2u)
          << threads;
    }
    check(s);
    check({2, 9, 33, k, true, false, true});
    check({1, 3, 16, k, false, true, true, true});
  }
}

TEST(MatmulDriver, WeightsArePackedOnceAVersionWhileTheyRest) {
  Shape s{2, 5, 40, 30};
  s.weight = s.shared_b = true;
  Product product(s);
  LoadedProgram program(product.program);
  std::vector<float> a = random_floats(2 * 5 * 30, 1), b = random_floats(40 * 30, 2), c(2 * 5 * 40);
  StoragePtr weight = storage_of(b);
  auto right = [&] {
    run(program, {}, {a.data(), b.data(), nullptr}, {c.data()}, {}, {{}, InputIdentity::of(*weight), {}});
    return c == product.expected(a, b, {});
  };
  auto write = [&](bool announced) {
    for (float& x : b) x += 1;
    if (announced) weight->bump_version();
  };
  EXPECT_TRUE(right());
  EXPECT_TRUE(right());
  EXPECT_EQ(program.weight_packs(), 1);
  write(false);  // behind our back: the panels are the old ones
  EXPECT_FALSE(right());
  write(true);  // what was used again is packed again at once
  EXPECT_TRUE(right());
  EXPECT_EQ(program.weight_packs(), 2);
  for (int i = 0; i < 5; ++i) {  // what changes from call to call is not
    write(true);
    EXPECT_TRUE(right());
  }
  EXPECT_EQ(program.weight_packs(), 2);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(right());  // and taken up again when it rests
  EXPECT_EQ(program.weight_packs(), 3);
}

TEST(MatmulDriver, ProgramsShareOnePackingOfAWeight) {
  Shape s{2, 5, 40, 30};
  s.weight = s.shared_b = true;
  Product product(s);
  LoadedProgram first(product.program), second(product.program);
  std::vector<float> a = random_floats(2 * 5 * 30, 1), b = random_floats(40 * 30, 2), c(2 * 5 * 40);
  StoragePtr weight = storage_of(b);
  for (const LoadedProgram* program : {&first, &second, &first}) {
    run(*program, {}, {a.data(), b.data(), nullptr}, {c.data()}, {}, {{}, InputIdentity::of(*weight), {}});
    EXPECT_EQ(c, product.expected(a, b, {}));
  }
  EXPECT_EQ(first.weight_packs() + second.weight_packs(), 1);
  EXPECT_EQ(*product.packed, 40 * 30);
}

TEST(MatmulDriver, UnknownIdentityIsNeverKept) {
  Shape s{1, 5, 40, 30};
  s.weight = true;
  Product product(s);
  LoadedProgram program(product.program);
  std::vector<float> a = random_floats(5 * 30, 1), b = random_floats(40 * 30, 2), c(5 * 40);
  for (int round = 0; round < 3; ++round) {
    for (float& x : b) x += 1;
    run(program, {}, {a.data(), b.data(), nullptr}, {c.data()});
    EXPECT_EQ(c, product.expected(a, b, {}));
  }
  EXPECT_EQ(program.weight_packs(), 0);
}

}  // namespace
}  // namespace ingot::runtime
