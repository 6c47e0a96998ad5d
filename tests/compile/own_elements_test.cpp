// A value used with elements of itself from elsewhere (h * h[3]): what stores it ends before what reads them.
#include <functional>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

TEST(OwnElements, AreReadWhereTheyAreStored) {
  Tensor w = randn({6, 6}), kernel = randn({6, 6, 1, 1}), b = randn({6});
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> makers{
      {"linear", [&](const Tensor& x) { return nn::functional::linear(x, w, b); }},
      {"matmul", [&](const Tensor& x) { return x.matmul(w); }},
      {"bmm",
       [&](const Tensor& x) {
         return x.reshape({1, -1, 6}).matmul(w.reshape({1, 6, 6})).squeeze(0);
       }},
      {"conv2d",
       [&](const Tensor& x) {
         return nn::functional::conv2d(x.reshape({1, 6, -1, 1}), kernel).reshape({-1, 6});
       }},
      {"mul", [&](const Tensor& x) { return x * 3; }},
      {"exp", [&](const Tensor& x) { return x.exp(); }},
      {"sum",
       [&](const Tensor& x) {
         return x.reshape({-1, 6, 2}).expand({-1, 6, 2}).sum(2).repeat({2, 1});
       }},
      {"softmax", [&](const Tensor& x) { return x.softmax(1); }},
      {"cumsum", [&](const Tensor& x) { return x.cumsum(0); }},
      {"cat",
       [&](const Tensor& x) {
         return cat({x.slice(0, 0, 2), x.slice(0, 2) * 2}, 0);
       }},
  };
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&, int64_t)>>> elements{
      {"flatten and select", [](const Tensor& h, int64_t i) { return h.reshape({-1}).select(0, i); }},
      {"row", [](const Tensor& h, int64_t i) { return h.select(0, i % h.size(0)); }},
      {"column", [](const Tensor& h, int64_t i) { return h.slice(1, i % 6, i % 6 + 1); }},
      {"other shape",
       [](const Tensor& h, int64_t) {
         return h.reshape({6, -1}).t();
       }},
      {"turned and flat", [](const Tensor& h, int64_t i) { return h.t().reshape({-1}).slice(0, i, i + 6).flip({0}); }},
      {"as_strided", [](const Tensor& h, int64_t i) { return h.as_strided({6}, {1}, i); }},
      {"looked up", [](const Tensor& h, int64_t i) { return h.index_select(0, full({1}, i % h.size(0), kInt64)); }},
      {"flat and looked up",
       [](const Tensor& h, int64_t i) { return h.reshape({-1}).index_select(0, full({1}, i, kInt64)); }},
  };
  int judged = 0;
  for (const auto& [maker, make] : makers)
    for (const auto& [element, take] : elements)
      for (bool keep : {false, true}) {
        auto f = [&w, &make = make, &take = take, keep](const Tensor& x, int64_t i) {
          Tensor h = make(x), y = (h - take(h, i)) * 0.5;
          std::vector<Tensor> all{y.matmul(w), y};
          if (keep) all.push_back(h);
          return all;
        };
        auto fast = compile(f);
        for (auto [rows, i] : std::vector<std::pair<int64_t, int64_t>>{{6, 0}, {6, 3}, {6, 29}, {36, 7}, {36, 0}}) {
          Tensor x = randn({rows, 6});
          const std::vector<Tensor> got = fast(x, i), expected = f(x, i);
          for (size_t k = 0; k < expected.size(); ++k)
            EXPECT_TRUE(same_bits(got[k], expected[k])) << maker << ", " << element << ", rows " << rows << ", " << i;
          ++judged;
        }
      }
  EXPECT_EQ(judged, 10 * 8 * 2 * 5);
}

}  // namespace
}  // namespace ingot
