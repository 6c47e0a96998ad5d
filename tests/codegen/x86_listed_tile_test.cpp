// Tiles whose A is listed: runs of addresses, windows along lines, channels, with and without B beside them.
#include "codegen/x86_tile_support.h"

namespace ingot::codegen::test {
namespace {

class X86ListedTile : public X86 {};
INGOT_X86_SUITE(X86ListedTile);

/// Tiles whose rows of A are listed: runs of different lengths, rows in any order, each at the end of what may be read.
template <class T>
void listed_tiles(DType d, const Target& target, RowsOfA rows_of_a) {
  std::mt19937_64 random(9);
  const bool each = rows_of_a == RowsOfA::channels;
  const int64_t size = sizeof(T);
  for (int rows = 1; rows <= max_tile_rows(target, d); ++rows)
    for (int vectors = 1; vectors <= max_tile_vectors(target, d); ++vectors) {
      const TileSpec spec{.a = d, .b = d, .rows = rows, .vectors = vectors, .rows_of_a = rows_of_a};
      KernelPtr source = generate(spec, target);
      Code code(*source);
      for (std::vector<int64_t> steps : std::vector<std::vector<int64_t>>{{1}, {3}, {4}, {1, 9, 2}, {21, 21, 21}})
        for (int64_t columns : {1, 15, 16 * vectors - 1, 16 * vectors})
          for (int64_t a_offset : {int64_t(0), 3 * size}) {
            const int64_t width = 16 * vectors;
            if (columns > width) continue;
            std::vector<TileRun> runs;
            std::vector<std::unique_ptr<Guarded>> lines;
            std::vector<const char*> addresses;
            int64_t k = 0;
            for (int64_t s : steps) {
              if (each) s = 1;
              runs.push_back({2 * size, s});
              k += s;
              for (int i = 0; i < 8; ++i) {
                const int64_t bytes = 2 * size + a_offset + (each ? columns : s) * size;
                lines.push_back(std::make_unique<Guarded>(static_cast<size_t>(bytes), true));
                for (int64_t at = 0; at < bytes; at += size) put(lines.back()->data() + at, d, random);
                addresses.push_back(lines.back()->data());
              }
            }
            Guarded b(static_cast<size_t>(k * width * size), true);
            for (int64_t i = 0; i < k * width; ++i) put(b.data() + i * size, d, random);
            std::vector<T> c(static_cast<size_t>(rows * width), T(1.5));
            for (int64_t accumulate : {0, 1}) {
              const std::vector<T> expected = summed(c, rows, columns, width, accumulate, [&](int i, int64_t j) {
                T sum = 0;
                for (size_t r = 0, kk = 0; r < runs.size(); ++r)
                  for (int64_t s = 0; s < runs[r].steps; ++s, ++kk)
                    sum = std::fma(element<T>(addresses[r * 8 + static_cast<size_t>(i)] + runs[r].offset + a_offset +
                                                  (each ? j : s) * size,
                                              d),
                                   element<T>(b.data() + (static_cast<int64_t>(kk) * width + j) * size, d), sum);
                return sum;
              });
              TileFrame f = tile_frame(addresses.data(), b.data(), c.data(), k, 64, width * size, accumulate, columns);
              f.runs = runs.data(), f.run_count = static_cast<int64_t>(runs.size()), f.a_offset = a_offset;
              code.entry()(&f);
              ASSERT_EQ(first_difference(expected, c, d), -1)
                  << print(spec) << " k " << k << " columns " << columns << " accumulate " << accumulate;
            }
          }
    }
}

/// Windows along lines: the first and last pixels lie anywhere, those between evenly apart or all at one place, and no
/// more than `columns` of any of them may be read.
template <class T>
void window_tiles(DType d, const Target& target) {
  std::mt19937_64 random(13);
  const int64_t size = sizeof(T), lines = 3, a_offset = 2 * size;
  for (int taps : {2, 3, 4, 5, 7})
    for (int rows = 1; rows <= max_tile_rows(target, d, RowsOfA::windows); ++rows)
      for (int vectors = 1; vectors <= max_tile_vectors(target, d); ++vectors) {
        const int window_stride = 1 + (rows + taps) % 2;
        const TileSpec spec{.a = d,
                            .b = d,
                            .rows = rows,
                            .vectors = vectors,
                            .rows_of_a = RowsOfA::windows,
                            .taps = taps,
                            .window_stride = window_stride};
        const KernelPtr sources[] = {generate(spec, target), generate(spec, Target{Isa::none})};
        const Code code(*sources[0]);
        for (int64_t columns : {1, 15, 16 * vectors - 1, 16 * vectors}) {
          const int64_t width = 16 * vectors, k = lines * taps, bytes = a_offset + columns * size;
          std::vector<std::unique_ptr<Guarded>> memory;
          auto some = [&](int64_t length) {
            memory.push_back(std::make_unique<Guarded>(static_cast<size_t>(length), true));
            for (int64_t at = 0; at < length; at += size) put(memory.back()->data() + at, d, random);
            return static_cast<const char*>(memory.back()->data());
          };
          const int pixels = spec.window_pixels(), edge = taps - 1, between = std::max(pixels - 2 * edge, 0);
          std::vector<const char*> list, pixel_at;
          for (int64_t line = 0; line < lines; ++line) {
            const int64_t step = line == 1 ? 0 : bytes + (line == 0 ? 3 * size : 0);
            const char* middle = some(bytes + std::max(between - 1, 0) * step);
            std::vector<const char*> at(static_cast<size_t>(pixels));
            for (int i = 0; i < pixels; ++i)
              at[static_cast<size_t>(i)] = i < edge || i >= pixels - edge ? some(bytes) : middle + (i - edge) * step;
            list.push_back(reinterpret_cast<const char*>(step)), list.push_back(middle);
            list.insert(list.end(), at.begin(), at.begin() + edge);
            for (int i = pixels - edge; i < pixels; ++i) list.push_back(at[static_cast<size_t>(i)]);
            pixel_at.insert(pixel_at.end(), at.begin(), at.end());
          }
          const char* b = some(k * width * size);
          std::vector<T> c(static_cast<size_t>(rows * width), T(1.5));
          for (int64_t accumulate : {0, 1}) {
            std::vector<T> interpreted = c;
            const std::vector<T> expected = summed(c, rows, columns, width, accumulate, [&](int i, int64_t j) {
              T sum = 0;
              for (int64_t kk = 0; kk < k; ++kk) {
                const int64_t pixel = kk / taps * pixels + i * window_stride + kk % taps;
                sum = std::fma(element<T>(pixel_at[static_cast<size_t>(pixel)] + a_offset + j * size, d),
                               element<T>(b + (kk * width + j) * size, d), sum);
              }
              return sum;
            });
            TileFrame f = tile_frame(list.data(), b, c.data(), k, 0, width * size, accumulate, columns);
            f.run_count = lines, f.a_offset = a_offset;
            code.entry()(&f);
            f.c = reinterpret_cast<char*>(interpreted.data()), f.context = sources[1]->context.get();
            sources[1]->interpret(&f);
            for (const std::vector<T>* results : {&c, &interpreted})
              ASSERT_EQ(first_difference(expected, *results, d), -1)
                  << print(spec) << " columns " << columns << " accumulate " << accumulate;
          }
        }
      }
}

/// Tiles that are told where A and B are for each k; both end where nothing more may be read.
template <class T>
void tiles_with_b(DType d, const Target& target) {
  std::mt19937_64 random(10);
  const int64_t size = sizeof(T);
  for (int rows = 1; rows <= max_tile_rows(target, d); ++rows)
    for (int vectors = 1; vectors <= max_tile_vectors(target, d); ++vectors) {
      const TileSpec spec{.a = d, .b = d, .rows = rows, .vectors = vectors, .rows_of_a = RowsOfA::with_b};
      KernelPtr source = generate(spec, target);
      Code code(*source);
      for (int64_t k : {0, 1, 3, 4, 9})
        for (int64_t columns : {1, 15, 16 * vectors - 1, 16 * vectors}) {
          if (columns > 16 * vectors) continue;
          const int64_t a_offset = 3 * size, b_offset = size, width = 16 * vectors;
          std::vector<std::unique_ptr<Guarded>> lines;
          std::vector<const char*> list;
          for (int64_t kk = 0; kk < k; ++kk)
            for (int64_t elements : {3 + rows, 1 + static_cast<int>(columns)}) {
              lines.push_back(std::make_unique<Guarded>(static_cast<size_t>(elements * size), true));
              for (int64_t i = 0; i < elements; ++i) put(lines.back()->data() + i * size, d, random);
              list.push_back(lines.back()->data());
            }
          std::vector<T> c(static_cast<size_t>(rows * width), T(1.5));
          for (int64_t accumulate : {0, 1}) {
            const std::vector<T> expected = summed(c, rows, columns, width, accumulate, [&](int i, int64_t j) {
              T sum = 0;
              for (size_t kk = 0; kk < static_cast<size_t>(k); ++kk)
                sum = std::fma(element<T>(list[2 * kk] + a_offset + i * size, d),
                               element<T>(list[2 * kk + 1] + b_offset + j * size, d), sum);
              return sum;
            });
            TileFrame f = tile_frame(list.data(), nullptr, c.data(), k, 0, width * size, accumulate, columns);
            f.a_offset = a_offset, f.b_offset = b_offset;
            code.entry()(&f);
            ASSERT_EQ(first_difference(expected, c, d), -1)
                << print(spec) << " k " << k << " columns " << columns << " accumulate " << accumulate;
          }
        }
    }
}

/// Tiles that multiply elements, and are told where each row of A and B's are for each k; all end where nothing more
/// may be read.
template <class T>
void channel_tiles_with_b(DType d, const Target& target) {
  std::mt19937_64 random(12);
  const int64_t size = sizeof(T);
  for (int rows = 1; rows <= max_tile_rows(target, d); ++rows)
    for (int vectors = 1; vectors <= max_tile_vectors(target, d); ++vectors) {
      const TileSpec spec{.a = d, .b = d, .rows = rows, .vectors = vectors, .rows_of_a = RowsOfA::channels_with_b};
      KernelPtr source = generate(spec, target), interpreted = generate(spec, Target{Isa::none});
      Code code(*source);
      for (int64_t k : {0, 1, 5})
        for (int64_t columns : {1, 15, 16 * vectors - 1, 16 * vectors})
          for (int64_t accumulate : {0, 1}) {
            const int64_t offset = 3 * size;
            std::vector<std::unique_ptr<Guarded>> lines;
            std::vector<const char*> list;
            for (int64_t i = 0; i < k * (1 + rows); ++i) {
              lines.push_back(std::make_unique<Guarded>(static_cast<size_t>(offset + columns * size), true));
              for (size_t at = 0; at < lines.back()->size(); at += sizeof(T)) put(lines.back()->data() + at, d, random);
              list.push_back(lines.back()->data());
            }
            std::vector<T> c(static_cast<size_t>(rows * columns), T(1.5)), expected = c;
            TileFrame f =
                tile_frame(list.data(), nullptr, nullptr, k, 8 * (1 + rows), columns * size, accumulate, columns);
            f.a_offset = offset;
            for (auto [to, entry] : {std::pair(&c, code.entry()), {&expected, interpreted->interpret}}) {
              f.c = reinterpret_cast<char*>(to->data());
              f.context = interpreted->context.get();
              entry(&f);
            }
            for (size_t i = 0; i < c.size(); ++i) {
              T sum = 0;
              for (int64_t kk = 0; kk < k; ++kk) {
                const auto at = [&](int64_t line) {
                  return element<T>(list[static_cast<size_t>(kk * (1 + rows) + line)] + offset +
                                        static_cast<int64_t>(i) % columns * size,
                                    d);
                };
                sum = std::fma(at(1 + static_cast<int64_t>(i) / columns), at(0), sum);
              }
              if (accumulate) sum = T(1.5) + sum;
              for (const T& got : {c[i], expected[i]})
                ASSERT_TRUE(same(reinterpret_cast<const char*>(&sum), reinterpret_cast<const char*>(&got), d))
                    << print(spec) << " k " << k << " columns " << columns << " at " << i;
            }
          }
    }
}

TEST_P(X86ListedTile, ListedFloats) { listed_tiles<float>(DType::f32, target(), RowsOfA::listed); }
TEST_P(X86ListedTile, ListedDoubles) { listed_tiles<double>(DType::f64, target(), RowsOfA::listed); }
TEST_P(X86ListedTile, FloatsByChannels) { listed_tiles<float>(DType::f32, target(), RowsOfA::channels); }
TEST_P(X86ListedTile, DoublesByChannels) { listed_tiles<double>(DType::f64, target(), RowsOfA::channels); }
TEST_P(X86ListedTile, FloatsByWindows) { window_tiles<float>(DType::f32, target()); }
TEST_P(X86ListedTile, DoublesByWindows) { window_tiles<double>(DType::f64, target()); }
TEST_P(X86ListedTile, FloatsWithB) { tiles_with_b<float>(DType::f32, target()); }
TEST_P(X86ListedTile, DoublesWithB) { tiles_with_b<double>(DType::f64, target()); }
TEST_P(X86ListedTile, FloatsByChannelsWithB) { channel_tiles_with_b<float>(DType::f32, target()); }
TEST_P(X86ListedTile, DoublesByChannelsWithB) { channel_tiles_with_b<double>(DType::f64, target()); }

}  // namespace
}  // namespace ingot::codegen::test
