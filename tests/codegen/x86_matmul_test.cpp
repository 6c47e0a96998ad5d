#include "codegen/x86_tile_support.h"

namespace ingot::codegen::test {
namespace {

class X86Matmul : public X86 {};
INGOT_X86_SUITE(X86Matmul);

template <class T>
void tiles(DType d, const Target& target, bool a_across = false) {
  std::mt19937_64 random(5);
  const DType wide = sizeof(T) == 8 ? DType::f64 : DType::f32;  // of A and C
  for (int rows = 1; rows <= max_tile_rows(target, d); ++rows)
    for (int vectors = 1; vectors <= max_tile_vectors(target, d); ++vectors) {
      TileSpec spec{.a = wide,
                    .b = d,
                    .rows = rows,
                    .vectors = vectors,
                    .rows_of_a = a_across ? RowsOfA::across : RowsOfA::along};
      KernelPtr source = generate(spec, target);
      Code code(*source);
      std::vector<int64_t> lengths = {1, 2, 3, 4, 5, 7, 8, 63, 256};
      if (takes_whole_k(spec, target)) lengths.insert(lengths.end(), {257, 512, 700});
      for (int64_t k : lengths)
        for (int64_t columns : {1, 15, 16 * vectors - 1, 16 * vectors}) {
          const int64_t width = 16 * vectors, size = sizeof(T), c_row = (columns + 5) * size;
          // From row to row, or from k to k.
          const int64_t a_stride = ((a_across ? rows : k) + 3) * size;
          const int64_t a_row = a_across ? size : a_stride, a_column = a_across ? a_stride : size;
          if (columns > width) continue;
          for (bool flush_end : {true, false}) {
            Guarded a(static_cast<size_t>((rows - 1) * a_row + (k - 1) * a_column + size), flush_end),
                b(static_cast<size_t>(panel_bytes(d, k, width)), flush_end),
                c(static_cast<size_t>((rows - 1) * c_row) + static_cast<size_t>(columns) * sizeof(T), flush_end);
            for (int64_t i = 0; i < static_cast<int64_t>(a.size()) / size; ++i) put(a.data() + i * size, wide, random);
            for (int64_t i = 0; i < static_cast<int64_t>(b.size()) / size_of(d); ++i)
              put(b.data() + i * size_of(d), d, random);
            if (d == DType::bf16 && k % 2)
              for (int64_t j = 0; j < width; ++j) std::memset(b.data() + panel_offset(d, k, j, width), 0, 2);
            for (size_t i = 0; i < c.size() / sizeof(T); ++i) put(c.data() + i * sizeof(T), wide, random);
            for (int64_t accumulate : {0, 1}) {
              std::vector<char> expected(c.data(), c.data() + c.size());
              for (int64_t i = 0; i < rows; ++i)
                for (int64_t j = 0; j < columns; ++j) {
                  char* to = &expected[static_cast<size_t>(i * c_row) + static_cast<size_t>(j) * sizeof(T)];
                  for (int64_t block = 0; block < k; block += 256) {
                    T sum = 0;
                    for (int64_t kk = block; kk < std::min<int64_t>(block + 256, k); ++kk)
                      sum = std::fma(element<T>(a.data() + i * a_row + kk * a_column, wide),
                                     element<T>(b.data() + panel_offset(d, kk, j, width), d), sum);
                    if (accumulate || block) sum = element<T>(to, wide) + sum;
                    std::memcpy(to, &sum, sizeof(T));
                  }
                }
              TileFrame f = tile_frame(a.data(), b.data(), c.data(), k, a_stride, c_row, accumulate, columns);
              code.entry()(&f);
              for (size_t i = 0; i < c.size(); i += sizeof(T))
                ASSERT_TRUE(same(&expected[i], c.data() + i, wide))
                    << print(spec) << " k " << k << " columns " << columns << " accumulate " << accumulate << " byte "
                    << i;
            }
          }
        }
    }
}

TEST_P(X86Matmul, TilesOfFloats) { tiles<float>(DType::f32, target()); }
TEST_P(X86Matmul, TilesOfDoubles) { tiles<double>(DType::f64, target()); }
TEST_P(X86Matmul, TilesOfFloatsAcross) { tiles<float>(DType::f32, target(), true); }
TEST_P(X86Matmul, TilesOfDoublesAcross) { tiles<double>(DType::f64, target(), true); }
TEST_P(X86Matmul, TilesOfBfloats) { tiles<float>(DType::bf16, target()); }
TEST_P(X86Matmul, TilesOfHalves) { tiles<float>(DType::f16, target()); }
TEST_P(X86Matmul, TilesOfBytes) { tiles<float>(DType::i8, target()); }

/// relu(sum * b1 + b2 + b3), and the sum itself, of rows of 16 * vectors columns.
Kernel epilogue(int64_t columns, bool same_rows) {
  Kernel kernel;
  kernel.known_columns = columns;
  kernel.buffers = {{DType::f32},
                    {DType::f32},
                    {DType::f32},
                    {DType::f32},
                    {DType::f32, Access::dense, true},
                    {DType::f32, Access::dense, true}};
  kernel.buffers[1].same_rows = kernel.buffers[2].same_rows = same_rows;
  Builder b(kernel);
  const Expr sum = b.load(0), y = fma(sum, b.load(1), b.load(2)) + b.load(3);
  kernel.phases.push_back({{{4, select(y < 0.0, y - y, y).value}, {5, sum.value}}, {}, {}, {}});
  return kernel;
}

// Panels side by side give what they give one by one; what lies between them is not read, nor what lies behind them in
// C written.
TEST_P(X86Matmul, TilesOfPanelsSideBySide) {
  std::mt19937_64 random(13);
  int tried = 0;
  for (auto [wide, d] : {std::pair{DType::f32, DType::f32},
                         {DType::f64, DType::f64},
                         {DType::f32, DType::f16},
                         {DType::f32, DType::bf16},
                         {DType::f32, DType::i8}})
    for (int rows = 1; rows <= kFewRows; ++rows)
      for (int panels = 2; panels <= max_tile_panels(target(), wide, rows); ++panels) {
        ++tried;
        TileSpec spec{.a = wide, .b = d, .rows = rows};
        KernelPtr one_source = generate(spec, target());
        spec.panels = panels;
        KernelPtr source = generate(spec, target());
        Code one(*one_source), code(*source);
        const int64_t size = size_of(wide);
        for (int64_t k : {1, 4, 7, 256, 257, 700})
          for (int64_t accumulate : {0, 1}) {
            const int64_t a_stride = (k + 3) * size, c_row = (16 * panels + 5) * size, panel = panel_bytes(d, k, 16),
                          apart = panel + 64;
            Guarded a(static_cast<size_t>((rows - 1) * a_stride + k * size), true),
                b(static_cast<size_t>((panels - 1) * apart + panel), true),
                c(static_cast<size_t>((rows - 1) * c_row + 16 * panels * size), true);
            for (int64_t i = 0; i < static_cast<int64_t>(a.size()) / size; ++i) put(a.data() + i * size, wide, random);
            std::memset(b.data(), 0x7f, b.size());
            for (int64_t p = 0; p < panels; ++p)
              for (int64_t i = 0; i < panel / size_of(d); ++i) put(b.data() + p * apart + i * size_of(d), d, random);
            for (int64_t i = 0; i < static_cast<int64_t>(c.size()) / size; ++i) put(c.data() + i * size, wide, random);
            const std::vector<char> before(c.data(), c.data() + c.size());
            TileFrame f = tile_frame(a.data(), b.data(), c.data(), k, a_stride, c_row, accumulate, 16);
            f.ahead = f.b, f.results = f.c;
            for (int64_t p = 0; p < panels; ++p, f.b += apart, f.c += 16 * size) one.entry()(&f);
            const std::vector<char> expected(c.data(), c.data() + c.size());
            std::memcpy(c.data(), before.data(), before.size());
            f.b = b.data(), f.c = c.data(), f.b_stride = apart, f.columns = 16 * panels;
            code.entry()(&f);
            ASSERT_EQ(std::memcmp(expected.data(), c.data(), c.size()), 0)
                << print(spec) << " k " << k << " accumulate " << accumulate;
          }
      }
  if (tried == 0) GTEST_SKIP() << "one panel at a time for this instruction set";
}

/// Rows of a matrix between guards, with room behind each row.
struct GuardedRows {
  GuardedRows(int64_t rows, int64_t columns, std::mt19937_64& random)
      : stride((columns + 3) * 4), memory(static_cast<size_t>((rows - 1) * stride + columns * 4), true) {
    for (size_t i = 0; i < memory.size(); i += 4) put(memory.data() + i, DType::f32, random);
  }
  int64_t stride;
  Guarded memory;
};

// A tile that finishes its sums gives what a plain one and its epilogue give, in all columns or those that exist; the
// factors of all rows are one row.
TEST_P(X86Matmul, TilesThatFinishTheirSums) {
  const bool finishes = may_finish(target(), epilogue(16, true));
  std::mt19937_64 random(11);
  for (RowsOfA form : {RowsOfA::along, RowsOfA::listed, RowsOfA::channels, RowsOfA::windows})
    for (int rows = 1; rows <= max_tile_rows(target(), DType::f32, form); ++rows)
      for (int64_t columns : {1, 7, 8, 9, 16, 23, 24, 31, 32, 40, 47, 48}) {
        const int vectors = static_cast<int>((columns + 15) / 16);
        if (vectors > max_tile_vectors(target(), DType::f32)) continue;
        const bool windows = form == RowsOfA::windows, by_channels = windows || form == RowsOfA::channels;
        const int taps = windows ? 3 : 0;
        TileSpec spec{.rows = rows, .vectors = vectors, .rows_of_a = form, .taps = taps};
        KernelPtr plain_source = generate(spec, target());
        KernelPtr after_source = generate(epilogue(columns, false), target(), "after");
        KernelPtr once_source = generate(epilogue(columns, true), target(), "once");
        spec.finish = std::make_shared<Kernel>(epilogue(columns, true));
        KernelPtr finishing_source = finishes ? generate(spec, target()) : plain_source;
        Code plain(*plain_source), after(*after_source), once(*once_source), finishing(*finishing_source);
        for (int64_t k : {1, 4, 9}) {
          if (windows) k *= taps;
          GuardedRows a(8 * k, by_channels ? columns : k, random), b(1, k * 16 * vectors, random),
              factors(2, columns, random), residual(rows, columns, random), raw(rows, columns, random);
          const int64_t runs_of_k = windows ? k / taps : by_channels ? k : 1;
          std::vector<const char*> addresses;
          for (int64_t i = 0; i < 8 * runs_of_k; ++i) addresses.push_back(a.memory.data() + i * a.stride);
          // All pixels of a window's line at one place, but those at its edges.
          for (int64_t i = 0; windows && i < runs_of_k; ++i) addresses[static_cast<size_t>(2 * taps * i)] = nullptr;
          const std::vector<TileRun> runs(static_cast<size_t>(runs_of_k), {0, k / runs_of_k});
          TileFrame f = tile_frame(addresses.data(), b.memory.data(), raw.memory.data(), k, 64, raw.stride, 0, columns);
          if (form == RowsOfA::along) f.a = a.memory.data(), f.a_stride = a.stride;
          f.runs = runs.data(), f.run_count = runs_of_k;
          std::vector<std::unique_ptr<GuardedRows>> results;
          auto frame_over = [&](std::vector<char*>& at, std::vector<int64_t>& strides) {
            for (int i = 0; i < 2; ++i) results.push_back(std::make_unique<GuardedRows>(rows, columns, random));
            const auto& y = results[results.size() - 2];
            const auto& sums = results.back();
            at = {raw.memory.data(),      factors.memory.data(), factors.memory.data() + factors.stride,
                  residual.memory.data(), y->memory.data(),      sums->memory.data()};
            strides = {raw.stride, 0, 0, residual.stride, y->stride, sums->stride};
            KernelFrame frame{};
            frame.buffers = at.data(), frame.row_strides = strides.data();
            frame.rows = rows, frame.columns = columns;
            return frame;
          };
          std::vector<char*> at;
          std::vector<int64_t> strides;
          plain.entry()(&f);
          for (const Code* code : {&after, &once}) {
            const KernelFrame frame = frame_over(at, strides);
            code->entry()(&frame);
          }
          if (finishes) {
            const KernelFrame frame = frame_over(at, strides);
            at[0] = f.c = nullptr;  // the sums have no memory
            f.finish = &frame;
            finishing.entry()(&f);
          }
          for (size_t i = 2; i < results.size(); ++i)
            for (int64_t row = 0; row < rows; ++row)
              ASSERT_EQ(
                  std::memcmp(results[i % 2]->memory.data() + row * results[i % 2]->stride,
                              results[i]->memory.data() + row * results[i]->stride, static_cast<size_t>(columns * 4)),
                  0)
                  << print(spec) << " k " << k << " result " << i << " row " << row;
        }
      }
}

// One call for tiles one below the other gives what a call for each gives, whether it stores its sums, adds them to
// what is there or finishes them; and the frame stays as it was.
TEST_P(X86Matmul, TilesThatGoOn) {
  std::mt19937_64 random(12);
  int tried = 0;
  for (RowsOfA form : {RowsOfA::along, RowsOfA::across, RowsOfA::listed, RowsOfA::channels, RowsOfA::windows})
    for (int rows = 1; rows <= max_tile_rows(target(), DType::f32, form); ++rows)
      for (int64_t columns : {3, 8, 11, 16})
        for (bool finishes : {false, true}) {
          const bool windows = form == RowsOfA::windows, by_channels = windows || form == RowsOfA::channels;
          const int taps = windows ? 3 : 0;
          TileSpec spec{.rows = rows, .rows_of_a = form, .taps = taps};
          if (finishes) spec.finish = std::make_shared<Kernel>(epilogue(columns, true));
          if (!goes_on(spec, target()) || (finishes && form == RowsOfA::across)) continue;
          ++tried;
          KernelPtr source = generate(spec, target());
          Code code(*source);
          for (int64_t k : windows ? std::vector<int64_t>{3, 18} : std::vector<int64_t>{1, 6})
            for (int64_t tiles : {1, 2, 5}) {
              const bool across = form == RowsOfA::across, listed = !across && form != RowsOfA::along;
              const int64_t all = tiles * rows, runs_of_k = windows ? k / taps : by_channels ? k : 1;
              GuardedRows a(across   ? k
                            : listed ? 32
                                     : all,
                            across        ? all
                            : by_channels ? columns
                                          : k,
                            random),
                  b(1, k * 16, random), factors(2, columns, random), residual(all, columns, random),
                  before(all, columns, random);
              const int64_t listed_each = runs_of_k * (windows ? 2 * taps : 8);
              std::vector<const char*> addresses;
              for (int64_t i = 0; i < tiles * listed_each; ++i) {
                const bool step = windows && i % (2 * taps) == 0;
                addresses.push_back(step ? nullptr : a.memory.data() + static_cast<int64_t>(random() % 32) * a.stride);
                if (!listed) addresses.back() = nullptr;
              }
              const std::vector<TileRun> runs(static_cast<size_t>(runs_of_k), {0, k / runs_of_k});
              auto run = [&](bool at_once, char* y, char* sums) {
                const char* a_at = listed ? reinterpret_cast<const char*>(addresses.data()) : a.memory.data();
                TileFrame f = tile_frame(a_at, b.memory.data(), y, k, listed ? 64 : a.stride, before.stride,
                                         finishes ? 0 : 1, columns);
                f.runs = runs.data(), f.run_count = runs_of_k;
                f.ahead = f.b, f.results = y;
                f.a_tile = across ? rows * 4 : listed ? listed_each * 8 : rows * a.stride;
                f.c_tile = rows * f.c_stride;
                std::vector<char*> at = {
                    nullptr, factors.memory.data(), factors.memory.data() + factors.stride, residual.memory.data(), y,
                    sums};
                const std::vector<int64_t> strides = {0, 0, 0, residual.stride, before.stride, before.stride};
                KernelFrame frame{};
                frame.buffers = at.data(), frame.row_strides = strides.data();
                frame.rows = rows, frame.columns = columns;
                if (finishes) f.finish = &frame, f.c = nullptr;
                if (at_once) {
                  f.tiles = tiles;
                  const TileFrame given = f;
                  code.entry()(&f);
                  EXPECT_EQ(std::memcmp(&given, &f, sizeof f), 0);
                  return;
                }
                for (int64_t tile = 0; tile < tiles; ++tile) {
                  code.entry()(&f);
                  f.a += f.a_tile, f.c += finishes ? 0 : f.c_tile;
                  for (size_t i = 3; i < at.size(); ++i) at[i] += rows * strides[i];
                }
              };
              std::vector<std::unique_ptr<Guarded>> results;  // of one call, then of many: y, sums
              for (int i = 0; i < 4; ++i) {
                results.push_back(std::make_unique<Guarded>(before.memory.size(), true));
                std::memcpy(results.back()->data(), before.memory.data(), before.memory.size());
              }
              run(true, results[0]->data(), results[1]->data());
              run(false, results[2]->data(), results[3]->data());
              for (size_t i = 0; i < 2; ++i)
                ASSERT_EQ(std::memcmp(results[i]->data(), results[i + 2]->data(), before.memory.size()), 0)
                    << print(spec) << " k " << k << " tiles " << tiles;
            }
        }
  if (tried == 0) GTEST_SKIP() << "no tile goes on for this instruction set";
}

TEST_P(X86Matmul, Panels) {
  std::mt19937_64 random(6);
  for (DType d : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i8})
    for (int vectors = 1; vectors <= max_tile_vectors(target(), d); ++vectors)
      for (bool transposed : {false, true}) {
        PackSpec spec{d, vectors, transposed};
        KernelPtr source = generate(spec, target());
        Code code(*source);
        const int64_t width = 16 * vectors, size = size_of(d);
        for (int64_t k : {1, 2, 7, 15, 16, 17, 31, 32, 33, 100})
          for (int64_t columns : {int64_t(1), int64_t(3), int64_t(15), int64_t(16), width - 7, width - 1, width})
            for (int contiguous : {1, 2})  // 2: neither direction is
              for (bool flush_end : {true, false}) {
                if (columns > width) continue;
                int64_t inner = contiguous * size, outer = inner * ((transposed ? k : columns) + 1);
                int64_t k_stride = transposed ? inner : outer, n_stride = transposed ? outer : inner;
                Guarded b(static_cast<size_t>((k - 1) * k_stride + (columns - 1) * n_stride + size), flush_end),
                    panel(static_cast<size_t>(panel_bytes(d, k, width)), flush_end);
                for (int64_t i = 0; i < static_cast<int64_t>(b.size()) / size; ++i) put(b.data() + i * size, d, random);
                std::memset(panel.data(), 0x55, panel.size());
                std::vector<char> expected(panel.size());
                for (int64_t kk = 0; kk < k; ++kk)
                  for (int64_t j = 0; j < columns; ++j)
                    std::memcpy(&expected[static_cast<size_t>(panel_offset(d, kk, j, width))],
                                b.data() + kk * k_stride + j * n_stride, static_cast<size_t>(size));
                PackFrame f{b.data(), panel.data(), k, columns, k_stride, n_stride, nullptr};
                code.entry()(&f);
                ASSERT_EQ(std::memcmp(expected.data(), panel.data(), expected.size()), 0)
                    << print(spec) << " k " << k << " columns " << columns << " step " << contiguous;
              }
      }
}

void transposed_tile(const Target& target, DType d) {
  std::mt19937_64 random(8);
  KernelPtr source = generate(TileSpec{DType::f32, d, 1, 1, true}, target);
  Code code(*source);
  const int64_t size = size_of(d);
  for (int64_t k : {1, 2, 7, 8, 9, 15, 16, 17, 33, 256})
    for (bool flush_end : {true, false}) {
      const int64_t column = (k + 3) * size;
      Guarded a(static_cast<size_t>(k * 4), flush_end), b(static_cast<size_t>(15 * column + k * size), flush_end),
          c(16 * 4, flush_end);
      for (Guarded* m : {&a, &c})
        for (size_t i = 0; i < m->size(); i += 4) put(m->data() + i, DType::f32, random);
      for (int64_t i = 0; i < static_cast<int64_t>(b.size()) / size; ++i) put(b.data() + i * size, d, random);
      for (int64_t accumulate : {0, 1}) {
        std::vector<float> expected;
        for (int64_t j = 0; j < 16; ++j) {
          float sum = 0;
          for (int64_t kk = 0; kk < k; ++kk)
            sum = std::fma(element<float>(a.data() + kk * 4, DType::f32),
                           element<float>(b.data() + j * column + kk * size, d), sum);
          expected.push_back(accumulate ? element<float>(c.data() + j * 4, DType::f32) + sum : sum);
        }
        TileFrame f{a.data(), b.data(), c.data(), k, 0, 0, accumulate, 16, nullptr, column};
        code.entry()(&f);
        for (size_t j = 0; j < 16; ++j)
          ASSERT_TRUE(same(reinterpret_cast<const char*>(&expected[j]), c.data() + j * 4, DType::f32))
              << target.str() << " " << name_of(d) << " k " << k << " column " << j << " accumulate " << accumulate;
      }
    }
}

TEST(X86TransposedTile, MultipliesColumnsAsTheyLieWithAvx2) { transposed_tile(Target{Isa::avx2}, DType::f32); }

TEST(X86TransposedTile, MultipliesColumnsAsTheyLie) {
  if (!cpu_has(Isa::avx512)) GTEST_SKIP() << "this processor has no AVX-512";
  for (DType d : {DType::f32, DType::bf16, DType::f16, DType::i8}) transposed_tile(Target{Isa::avx512}, d);
}

TEST(X86Bf16Dot, AddsPairsOfProducts) {
  if (!cpu_has(Isa::avx512) || !__builtin_cpu_supports("avx512bf16")) GTEST_SKIP() << "this processor has no vdpbf16ps";
  const Target target{Isa::avx512, true};
  std::mt19937_64 random(7);
  for (int rows : {1, 5, 8})
    for (int64_t k : {1, 2, 5, 8, 64, 511}) {
      TileSpec spec{DType::bf16, DType::bf16, rows, 3};
      KernelPtr source = generate(spec, target);
      Code code(*source);
      Guarded a(static_cast<size_t>(rows * k * 2), true), b(static_cast<size_t>(panel_bytes(DType::bf16, k, 48)), true),
          c(static_cast<size_t>(rows * 48 * 4), true);
      auto small = [&](char* p) {  // integers: every sum is exact
        uint16_t bits = bf16_from_f32(static_cast<float>(static_cast<int>(random() % 17) - 8));
        std::memcpy(p, &bits, 2);
      };
      for (size_t i = 0; i < a.size(); i += 2) small(a.data() + i);
      for (size_t i = 0; i < b.size(); i += 2) small(b.data() + i);
      for (int64_t j = 0; j < 48 && k % 2; ++j) std::memset(b.data() + panel_offset(DType::bf16, k, j, 48), 0, 2);
      TileFrame f = tile_frame(a.data(), b.data(), c.data(), k, k * 2, 48 * 4, 0, 48);
      code.entry()(&f);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < 48; ++j) {
          float sum = 0;
          for (int64_t kk = 0; kk < k; ++kk)
            sum += element<float>(a.data() + (i * k + kk) * 2, DType::bf16) *
                   element<float>(b.data() + panel_offset(DType::bf16, kk, j, 48), DType::bf16);
          ASSERT_EQ(sum, element<float>(c.data() + (i * 48 + j) * 4, DType::f32)) << rows << " " << k;
        }
    }
}

}  // namespace
}  // namespace ingot::codegen::test
