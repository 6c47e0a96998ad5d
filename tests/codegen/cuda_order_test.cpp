// The GPU's canonical order of reductions: one result for one logical shape, whatever the form, layout, launch and
// memory of the device.
#include <cmath>

#include "codegen/cuda/cuda.h"
#include "cuda_unit.h"
#include "uniform.h"
#include "x86_harness.h"

namespace ingot::codegen::test {
namespace {

const Target kCuda{.cuda_arch = 90};

/// The definition, word by word.
template <class T, class Join>
T gpu_reduce(std::vector<T> x, T none, T empty, Join join) {
  if (x.empty()) return empty;
  for (bool last = false; !last;) {
    last = x.size() <= 1024;
    std::vector<T> results;
    for (size_t chunk = 0; chunk < x.size(); chunk += 1024) {
      std::vector<T> lanes(256, none);
      for (size_t i = 0; i < std::min<size_t>(1024, x.size() - chunk); ++i)
        lanes[i % 256] = join(lanes[i % 256], x[chunk + i]);
      while (lanes.size() > 1) {
        for (size_t i = 0; i < lanes.size() / 2; ++i) lanes[i] = join(lanes[2 * i], lanes[2 * i + 1]);
        lanes.resize(lanes.size() / 2);
      }
      results.push_back(lanes[0]);
    }
    x = results;
  }
  return x[0];
}
template <class T>
T gpu_sum(const std::vector<T>& x) {
  return gpu_reduce<T>(x, T(-0.0), T(0), [](T a, T b) { return a + b; });
}
template <class T>
T gpu_prod(const std::vector<T>& x) {
  return gpu_reduce<T>(x, T(1), T(1), [](T a, T b) { return a * b; });
}

/// Sum and product of one dtype, along rows and along columns.
struct Kernels {
  explicit Kernels(DType d) : dtype(d) {
    for (bool columns : {false, true}) {
      KernelBuilder k;
      if (columns) k.kernel.form = Form::columns;
      Expr x = k.input(d);
      Expr sum = k.reduce(Combiner::sum, x), product = k.reduce(Combiner::prod, x);
      DType result = memory_type(x.type());
      if (!columns) {
        k.row_output(result, sum);
        k.row_output(result, product);
      }
      verify(k.kernel);
      (columns ? by_columns : by_rows) = generate(k.kernel, kCuda, columns ? "columns" : "rows");
    }
  }
  DType dtype;
  KernelPtr by_rows, by_columns;
};

template <class T>
void check_order(const CudaUnit& unit, const Kernels& kernels, int64_t n, int64_t lines, const CudaDevice& device,
                 bool columns = true) {
  SCOPED_TRACE(std::to_string(n) + " elements, " + std::to_string(lines) + " lines");
  std::mt19937_64 random(static_cast<uint64_t>(n));
  auto size = static_cast<size_t>(n * lines);
  CudaVector<T> x(size + 1), turned(size + 1);
  for (T& v : x) v = static_cast<T>(ingot::test::uniform<double>(random, -1, 1) * std::exp2(random() % 8));
  if (n > 2) x[1] = T(-0.0);
  for (int64_t l = 0; l < lines; ++l)
    for (int64_t i = 0; i < n; ++i) turned[static_cast<size_t>(i * lines + l)] = x[static_cast<size_t>(l * n + i)];
  const auto bytes = static_cast<int64_t>(sizeof(T));
  CudaVector<T> sums(static_cast<size_t>(lines)), products = sums, column_sums = sums, column_products = sums;
  unit.run(*kernels.by_rows,
           {lines,
            n,
            {},
            {{x.data(), n * bytes, bytes, 0, {}}, {sums.data(), bytes, 0, 0, {}}, {products.data(), bytes, 0, 0, {}}},
            {},
            {}},
           device);
  if (columns)
    unit.run(*kernels.by_columns,
             {n,
              lines,
              {},
              {{turned.data(), lines * bytes, bytes, 0, {}}},
              {{column_sums.data(), 0, bytes, 0, {}}, {column_products.data(), 0, bytes, 0, {}}},
              {}},
             device);
  for (int64_t l = 0; l < lines; ++l) {
    std::vector<T> line(x.begin() + l * n, x.begin() + (l + 1) * n);
    auto expect_bits = [&](T got, T expected, const char* what) {
      EXPECT_TRUE(std::memcmp(&got, &expected, sizeof(T)) == 0 || (std::isnan(got) && std::isnan(expected)))
          << what << " of line " << l << ": " << got << ", expected " << expected;
    };
    auto at = static_cast<size_t>(l);
    expect_bits(sums[at], gpu_sum(line), "sum along the row");
    expect_bits(products[at], gpu_prod(line), "product along the row");
    if (!columns) continue;
    expect_bits(column_sums[at], gpu_sum(line), "sum along the column");
    expect_bits(column_products[at], gpu_prod(line), "product along the column");
  }
}

class CudaOrder : public testing::Test {
 protected:
  CudaOrder()
      : f32(DType::f32), f64(DType::f64), unit(cuda_unit({f32.by_rows, f32.by_columns, f64.by_rows, f64.by_columns})) {}
  Kernels f32, f64;
  std::unique_ptr<CudaUnit> unit;
};

TEST_F(CudaOrder, FollowsFromTheLogicalShapeAlone) {
  for (int64_t n : {0, 1, 7, 8, 9, 255, 256, 257, 1023, 1024, 1025, 2048, 5000}) {
    check_order<float>(*unit, f32, n, 3, {});
    check_order<double>(*unit, f64, n, 1, {});
  }
}

TEST_F(CudaOrder, DoesNotDependOnTheDevice) {
  // Few blocks that each go on; many multiprocessors: a row is divided over blocks, in two launches.
  for (int multiprocessors : {1, 2, 400})
    for (int64_t n : {700, 3000, 70000})
      check_order<float>(*unit, f32, n, 2, {multiprocessors, 40 * 1024, 2}, multiprocessors == 1);
  for (int64_t n : {700, 3000}) check_order<float>(*unit, f32, n, 7, {1, 40 * 1024, 1}, false);
}

TEST_F(CudaOrder, ChunksOfChunks) {
  // More chunks than one: a level more, for which shared memory has no room.
  check_order<float>(*unit, f32, 1024 * 1024 + 1500, 1, {4, 24 * 1024}, false);
  check_order<float>(*unit, f32, 1024 * 1024 + 1500, 3, {4, 24 * 1024}, false);  // not divided over blocks
}

/// Rows of millions, thousands of lines, and more lines than a grid's second dim.
TEST_F(CudaOrder, OfMillions) {
  if (!on_device()) GTEST_SKIP() << "takes minutes on the processor; INGOT_CUDA_DEVICE=1 runs it on a device";
  check_order<float>(*unit, f32, 3'000'017, 2, {132, 227 * 1024});
  check_order<double>(*unit, f64, 1'200'007, 2, {132, 227 * 1024});
  check_order<float>(*unit, f32, 70'001, 50, {132, 227 * 1024});
  check_order<float>(*unit, f32, 20, 70'001, {132, 227 * 1024});
}

}  // namespace
}  // namespace ingot::codegen::test
