// Scans, sorting and search at sizes around vectors, blocks and shares of threads, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "eager/ops/factories.h"
#include "eager/ops/random.h"
#include "eager/ops/selection.h"
#include "eager/ops/sets.h"
#include "runtime/thread_pool.h"
#include "uniform.h"

namespace ingot {
namespace {

constexpr int64_t kSizes[] = {0, 1, 3, 4, 5, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 4095, 4096, 4097, 8195};
constexpr int64_t kLong = (1 << 20) + 3;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_floats(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = ingot::test::uniform<float>(random, -1, 1);
  return values;
}
std::vector<int64_t> random_integers(int64_t n, int64_t limit, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> values(static_cast<size_t>(n));
  for (int64_t& v : values) v = static_cast<int64_t>(random() % static_cast<uint64_t>(2 * limit)) - limit;
  return values;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  Tensor x = a.contiguous(), y = b.contiguous();
  return x.dtype() == y.dtype() && x.sizes() == y.sizes() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), static_cast<size_t>(x.nbytes())) == 0;
}

/// The same values as rows and as columns, dense and with gaps, by any number of threads.
template <class F>
void check_layouts_and_threads(const Tensor& rows, F f) {
  int threads = num_threads();
  set_num_threads(1);
  Tensor expected = f(rows, 1);
  for (int n : {1, 2, 3, 7}) {
    set_num_threads(n);
    EXPECT_TRUE(same_bytes(f(rows, 1), expected)) << n << " threads";
    EXPECT_TRUE(same_bytes(f(rows.t(), 0).t(), expected)) << n << " threads, columns with strides";
    EXPECT_TRUE(same_bytes(f(rows.t().contiguous(), 0).t(), expected)) << n << " threads, columns";
    Tensor wide = stack({rows, rows}, 2);
    EXPECT_TRUE(same_bytes(f(wide.select(2, 1), 1), expected)) << n << " threads, gaps";
    EXPECT_TRUE(same_bytes(f(wide, 1).select(2, 0), expected)) << n << " threads, a dim in the middle";
  }
  set_num_threads(threads);
}

TEST(Extremes, StandWhereTheyStandInRows) {
  for (int64_t n : {1, 15, 17, 100, 255, 256, 257, 700}) {
    Tensor x = from_blob(random_integers(7 * n, 9, 3).data(), {7, n}, kInt64).clone();
    const Tensor floats = where(x == 5, kNan, x.to(kFloat32));
    for (const Tensor& rows : {x, floats, floats.to(kFloat64)}) {
      check_layouts_and_threads(rows, [](const Tensor& t, int64_t dim) { return t.argmax(dim, true); });
      check_layouts_and_threads(rows, [](const Tensor& t, int64_t dim) { return std::get<1>(min(t, dim, true)); });
    }
  }
}

TEST(Scan, SumsOfIntegersAreExact) {
  for (int64_t n : {kSizes[0], kSizes[1], int64_t{5}, int64_t{64}, int64_t{4097}, kLong}) {
    std::vector<int64_t> x = random_integers(n, 1000, 1);
    Tensor sums = tensor(x, kInt64).cumsum(0);
    ASSERT_EQ(sums.numel(), n);
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(sums.data_ptr<int64_t>()[i], sum += x[i]) << n << " at " << i;
  }
}

TEST(Scan, SumsAreNearThoseInExtendedPrecision) {
  for (int64_t n : {int64_t{17}, int64_t{4097}, kLong}) {
    std::vector<float> x = random_floats(n, 2);
    Tensor sums = tensor(x).cumsum(0), wide = tensor(x).cumsum(0, kFloat64);
    long double sum = 0, size = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += x[i], size += std::fabs(x[i]);
      ASSERT_LE(std::fabs(sums.data_ptr<float>()[i] - sum), 2e-6L * size + 1e-6L) << n << " at " << i;
      ASSERT_LE(std::fabs(wide.data_ptr<double>()[i] - sum), 1e-13L * size) << n << " at " << i;
    }
  }
}

TEST(Scan, LayoutsAndThreadsChangeNoBit) {
  for (int64_t n : kSizes) {
    SCOPED_TRACE(n);
    Tensor rows = tensor(random_floats(3 * n, 3)).view({3, n});
    check_layouts_and_threads(rows, [](const Tensor& x, int64_t d) { return x.cumsum(d); });
    check_layouts_and_threads(rows, [](const Tensor& x, int64_t d) { return x.mul(2).cumprod(d); });
    check_layouts_and_threads(rows, [](const Tensor& x, int64_t d) { return x.to(kInt32).cumsum(d); });
    check_layouts_and_threads(rows, [](const Tensor& x, int64_t d) { return std::get<1>(x.cummax(d)); });
    check_layouts_and_threads(rows, [](const Tensor& x, int64_t d) { return std::get<0>(x.cummin(d)); });
    if (n < 1000) check_layouts_and_threads(rows, [](const Tensor& x, int64_t d) { return x.logcumsumexp(d); });
  }
  Tensor line = tensor(random_floats(kLong, 4)).view({1, kLong});
  check_layouts_and_threads(line, [](const Tensor& x, int64_t d) { return x.cumsum(d); });
}

TEST(Scan, ExtremesKeepTheLastOfEqualsAndNan) {
  Tensor x = tensor({1.f, 3.f, 3.f, 2.f, kNan, 9.f, kNan});
  auto [top, at] = x.cummax(0);
  EXPECT_EQ(at.str(), tensor({0, 1, 2, 2, 4, 4, 6}).str());
  EXPECT_EQ(top.str(), tensor({1.f, 3.f, 3.f, 3.f, kNan, kNan, kNan}).str());
  auto [low, where] = tensor({2, 1, 1, 5}).cummin(0);
  EXPECT_EQ(low.str(), tensor({2, 1, 1, 1}).str());
  EXPECT_EQ(where.str(), tensor({0, 1, 2, 2}).str());
}

TEST(Scan, LogOfSumsAtTheEdges) {
  Tensor y = tensor({-kInf, -kInf, 0.f, 1000.f, kInf, 0.f, kNan, 0.f}).logcumsumexp(0);
  EXPECT_EQ(y.str(), tensor({-kInf, -kInf, 0.f, 1000.f, kInf, kInf, kNan, kNan}).str());
  EXPECT_NEAR(zeros({1000}).logcumsumexp(0)[999].item<double>(), std::log(1000.0), 1e-5);
}

TEST(Scan, InPlaceWritesOverWhatItReads) {
  Tensor x = tensor(random_floats(3 * 5000, 5)).view({3, 5000}), expected = x.cumsum(1), across = x.cumsum(0);
  Tensor y = x.clone(), z = x.clone(), half = x.to(kBFloat16);
  y.cumsum_(1), z.cumsum_(0);
  EXPECT_TRUE(same_bytes(y, expected));
  EXPECT_TRUE(same_bytes(z, across));
  Tensor rounded = half.cumsum(1);
  EXPECT_TRUE(same_bytes(half.cumsum_(1), rounded));
}

void check_sorted(const Tensor& x, bool descending) {
  auto [values, indices] = x.sort(0, descending, true);
  int64_t n = x.numel();
  Tensor dense = x.contiguous();
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  std::vector<double> numbers;
  Tensor wide = dense.to(kFloat64);
  for (int64_t i = 0; i < n; ++i) numbers.push_back(wide.data_ptr<double>()[i]);
  auto before = [&](double a, double b) { return a < b || (a == a && b != b); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return descending ? before(numbers[b], numbers[a]) : before(numbers[a], numbers[b]);
  });
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(indices.data_ptr<int64_t>()[i], order[i]) << n << " at " << i;
  EXPECT_TRUE(same_bytes(values, x.index_select(0, indices)));
}

TEST(Sort, EveryDtypeIsStableInBothDirections) {
  for (int64_t n : {0, 1, 2, 17, 49, 129, 4097})
    for (DType d : {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kInt16, kInt8, kUInt8, kBool}) {
      SCOPED_TRACE(std::string(name_of(d)) + " " + std::to_string(n));
      // Few values, many equals; zeros of both signs.
      Tensor x = tensor(random_integers(n, 40, 6), kInt64).to(kFloat32).mul(n % 2 ? 1e30f : -0.25f).to(d);
      for (bool descending : {false, true}) check_sorted(x, descending);
    }
}

// Long keys are sorted by their upper digits, where these are spread; what these leave together is compared.
TEST(Sort, LongKeysThatAreAlikeInUpperDigits) {
  std::mt19937_64 random(9);
  for (int64_t n : {129, 5000, 70000})
    for (uint64_t lower : {~uint64_t{0}, uint64_t{0xffffffff}, uint64_t{0xff00ff}, uint64_t{3} << 62, uint64_t{0}}) {
      std::vector<int64_t> x(static_cast<size_t>(n)), order(x.size());
      std::vector<uint64_t> upper(static_cast<size_t>(n / 3));
      for (uint64_t& u : upper) u = random();
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<int64_t>((upper[random() % upper.size()] & ~lower) | (random() & lower));
        order[i] = static_cast<int64_t>(i);
      }
      for (bool descending : {false, true}) {
        std::stable_sort(order.begin(), order.end());
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          return descending ? x[static_cast<size_t>(b)] < x[static_cast<size_t>(a)]
                            : x[static_cast<size_t>(a)] < x[static_cast<size_t>(b)];
        });
        auto [values, indices] = tensor(x, kInt64).sort(0, descending, true);
        EXPECT_TRUE(same_bytes(indices, tensor(order, kInt64))) << n << " " << lower;
        EXPECT_TRUE(same_bytes(values, tensor(x, kInt64).index_select(0, indices))) << n << " " << lower;
      }
    }
}

TEST(Sort, NanIsLastAndZerosAreEqual) {
  Tensor x = tensor({kNan, 1.f, -0.f, kInf, 0.f, -kInf, -kNan, -0.f});
  for (DType d : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    EXPECT_EQ(x.to(d).argsort(0, false, true).str(), tensor({5, 2, 4, 7, 1, 3, 0, 6}).str());
    EXPECT_EQ(x.to(d).argsort(0, true, true).str(), tensor({0, 6, 3, 1, 2, 4, 7, 5}).str());
  }
  Tensor sorted = std::get<0>(x.sort());
  EXPECT_TRUE(sorted.signbit()[1].item<bool>());
  EXPECT_FALSE(sorted.signbit()[2].item<bool>());
}

TEST(Sort, LongLinesSharedByThreads) {
  std::vector<float> x = random_floats(200003, 7);
  std::vector<float> sorted = x;
  std::sort(sorted.begin(), sorted.end());
  int threads = num_threads();
  for (int n : {1, 2, 3, 7}) {
    set_num_threads(n);
    auto [values, indices] = tensor(x).sort();
    EXPECT_EQ(std::memcmp(values.data_ptr(), sorted.data(), sorted.size() * sizeof(float)), 0) << n << " threads";
    EXPECT_TRUE(same_bytes(tensor(x).index_select(0, indices), values));
    EXPECT_TRUE(same_bytes(std::get<0>(tensor(x).to(kFloat64).sort()).to(kFloat32), values));
  }
  set_num_threads(threads);
}

TEST(Sort, LayoutsAndThreadsChangeNoBit) {
  for (int64_t n : {0, 1, 16, 129, 40000}) {
    Tensor rows = tensor(random_integers(2 * n, 50, 8), kInt64).to(kFloat32).view({2, n});
    check_layouts_and_threads(rows, [](const Tensor& x, int64_t d) { return std::get<1>(x.sort(d, true)); });
    int64_t k = std::min<int64_t>(n, 9);
    check_layouts_and_threads(rows, [k](const Tensor& x, int64_t d) { return std::get<1>(x.topk(k, d)); });
  }
}

TEST(Topk, IsTheHeadOfTheSortedLine) {
  for (int64_t n : {1, 17, 64, 65, 1000, 30000})
    for (int64_t k : {0, 1, 3, 64, 500}) {
      if (k > n) continue;
      Tensor x = tensor(random_floats(n, 9));
      for (bool largest : {true, false}) {
        auto [values, indices] = x.topk(k, 0, largest);
        auto [sorted, order] = x.sort(0, largest, true);
        EXPECT_TRUE(same_bytes(values, sorted.slice(0, 0, k))) << n << " " << k;
        EXPECT_TRUE(same_bytes(indices, order.slice(0, 0, k))) << n << " " << k;
      }
      if (k) EXPECT_EQ(std::get<0>(x.kthvalue(k)).item<float>(), x.msort()[k - 1].item<float>());
    }
  EXPECT_THROW(ones({3}).topk(4), Error);
  EXPECT_THROW(ones({3}).kthvalue(0), Error);
}

TEST(Search, CountsWhatIsBelow) {
  std::vector<float> edges = random_floats(1000, 10), x = random_floats(kSizes[18], 11);
  std::sort(edges.begin(), edges.end());
  x[5] = edges[17], x[6] = kNan;
  Tensor left = searchsorted(tensor(edges), tensor(x)), right = bucketize(tensor(x), tensor(edges), true, true);
  EXPECT_EQ(right.dtype(), kInt32);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] != x[i]) continue;
    ASSERT_EQ(left.data_ptr<int64_t>()[i], std::lower_bound(edges.begin(), edges.end(), x[i]) - edges.begin());
    ASSERT_EQ(right.data_ptr<int32_t>()[i], std::upper_bound(edges.begin(), edges.end(), x[i]) - edges.begin());
  }
  EXPECT_EQ(left[6].item<int64_t>(), 1000);
  EXPECT_EQ(searchsorted(tensor({1, 3, 5}), 2.5).item<int64_t>(), 1);
  EXPECT_TRUE(equal(bucketize(tensor({1.5f, 2.f}), tensor({1, 2})), tensor({1, 1})));
  EXPECT_TRUE(equal(searchsorted(tensor({1, 3}).to(kUInt8), tensor({-1, 2}).to(kInt8)), tensor({0, 1})));
  EXPECT_TRUE(equal(searchsorted(tensor({1.f, 3.f}).to(kFloat16), tensor({1.0001f, 2.f})), tensor({1, 1})));
}

TEST(Search, ASorterIsCheckedAndFollowed) {
  Tensor x = tensor({5.f, 1.f, 3.f});
  Tensor found = searchsorted(x, tensor({2.f, 9.f}), false, false, "none", x.argsort());
  EXPECT_EQ(found.str(), tensor({1, 3}).str());
  EXPECT_THROW(searchsorted(x, x, false, false, "none", tensor({0, 1, 3})), Error);
  EXPECT_THROW(searchsorted(x, x, false, true, "left"), Error);
}

TEST(Unique, ValuesPlacesAndCounts) {
  Tensor x = tensor({3, 1, 3, 2, 1, 3}).view({2, 3});
  auto [values, inverse, counts] = unique(x);
  EXPECT_EQ(values.str(), tensor({1, 2, 3}).str());
  EXPECT_EQ(inverse.str(), tensor({2, 0, 2, 1, 0, 2}).view({2, 3}).str());
  EXPECT_EQ(counts.str(), tensor({2, 1, 3}).str());
  EXPECT_EQ(std::get<0>(unique(tensor({7.f}))).numel(), 1);
  EXPECT_EQ(std::get<2>(unique(zeros({0}))).numel(), 0);
}

TEST(Order, ModeTakesTheSmallestOfEquallyFrequentOnesAtItsFirstPosition) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto of = [](const std::vector<double>& values) {
    auto [value, index] = mode(tensor(values, kFloat64), 0);
    return std::pair(value.item<double>(), index.item<int64_t>());
  };
  EXPECT_EQ(of({3, 1, 2, 3, 1}), std::pair(1.0, int64_t{1}));
  EXPECT_EQ(of({5, 7, 7}), std::pair(7.0, int64_t{1}));
  EXPECT_EQ(of({nan, nan, 4}), std::pair(4.0, int64_t{2}));  // a NaN equals no other
  EXPECT_EQ(of({0.0, 1, -0.0, 1, 0.0}).second, 0);
  EXPECT_TRUE(std::isnan(of({nan, nan}).first));
  const Tensor x = arange(3000).remainder(7).reshape({2, 1500}).t();
  auto [value, index] = mode(x, 0, true);
  EXPECT_EQ(value.size(0), 1);
  EXPECT_EQ(value[0][1].item<int64_t>(), 2);  // 1500 = 7 * 214 + 2 begins its column
  EXPECT_EQ(index[0][1].item<int64_t>(), 0);
  EXPECT_THROW(mode(zeros({0, 3}), 0), Error);
}

// LibTorch's order of arguments: a flag in front is never a dim.
TEST(Order, StableMayComeFirst) {
  const Tensor x = tensor({{3, 1}, {2, 5}});
  const Tensor ascending = tensor({{2, 1}, {3, 5}}), descending = tensor({{3, 5}, {2, 1}});
  EXPECT_EQ(std::get<0>(x.sort(true, 0, false)).str(), ascending.str());
  EXPECT_EQ(std::get<0>(x.sort(true, 0, true)).str(), descending.str());
  EXPECT_EQ(std::get<0>(x.sort(std::nullopt, 0, true)).str(), descending.str());
  EXPECT_EQ(std::get<0>(sort(x, std::optional<bool>(true), 0)).str(), ascending.str());
  EXPECT_EQ(x.argsort(true, 0, false).str(), tensor({{1, 0}, {0, 1}}).str());
  EXPECT_EQ(argsort(x, false, 0, true).str(), tensor({{0, 1}, {1, 0}}).str());
  EXPECT_EQ(std::get<0>(x.sort(0, true, true)).str(), descending.str());
  EXPECT_EQ(std::get<0>(x.sort(0, true)).str(), descending.str());
}

// Lines of all lengths at which the way to find it changes; many equal elements, zeros of both signs and NaNs.
TEST(Order, KthIsThatOfTheSortedLine) {
  manual_seed(5);
  for (DType dtype : {kFloat32, kFloat64, kBFloat16, kInt64, kInt32, kInt8, kUInt8})
    for (int64_t n : {1, 7, 128, 129, 3000}) {
      Tensor x = (randn({2, n, 3}) * 20).to(dtype);
      if (is_floating(dtype)) {
        x = where(x.abs() < 2, x * 0, x);
        x.index({1, Slice(0, n / 3)}) = std::numeric_limits<float>::quiet_NaN();
      }
      const auto [values, places] = x.sort(1, false, true);
      for (int64_t k : {int64_t{1}, (n + 1) / 2, n}) {
        const auto [value, place] = x.kthvalue(k, 1);
        EXPECT_TRUE(equal(place, places.select(1, k - 1))) << dtype << " " << n << " " << k;
        EXPECT_TRUE(same_bytes(value, values.select(1, k - 1).contiguous())) << dtype << " " << n << " " << k;
        const Tensor line = x.select(2, 0).select(0, 0);
        EXPECT_TRUE(equal(std::get<1>(line.kthvalue(k, 0, true)), places.select(2, 0).select(0, 0).slice(0, k - 1, k)));
      }
    }
}

}  // namespace
}  // namespace ingot
