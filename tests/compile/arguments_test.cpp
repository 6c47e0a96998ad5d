// Arguments and results of every kind that compile() looks into.
#include "support.h"

namespace shop {
struct Batch {
  ingot::Tensor x;
  std::vector<ingot::Tensor> rest;
  int64_t label = 0;
};
INGOT_FIELDS(Batch, x, rest, label)

struct Output {
  ingot::Tensor mean;
  std::optional<ingot::Tensor> extra;
};
INGOT_FIELDS(Output, mean, extra)
}  // namespace shop

namespace ingot {
namespace {

using test::same_bits;

TEST(Arguments, Structs) {
  auto f = [](const shop::Batch& batch) {
    shop::Output out;
    out.mean = batch.x * static_cast<double>(batch.label);
    for (const Tensor& t : batch.rest) out.mean = out.mean + t;
    if (batch.label > 2) out.extra = out.mean.exp();
    return out;
  };
  auto fast = compile(f);
  for (int64_t label : {1, 2, 3}) {
    shop::Batch batch{randn({3}), {randn({3}), randn({3})}, label};
    shop::Output a = fast(batch), b = f(batch);
    EXPECT_TRUE(same_bits(a.mean, b.mean));
    ASSERT_EQ(a.extra.has_value(), b.extra.has_value());
    if (a.extra) EXPECT_TRUE(same_bits(*a.extra, *b.extra));
  }
  EXPECT_EQ(fast.stats().compilations, 2);
}

TEST(Arguments, ListsTuplesOptionalsAndTexts) {
  auto f = [](const std::vector<Tensor>& list, std::optional<double> scale, std::string_view mode,
              std::pair<Tensor, bool> last) {
    Tensor sum = last.second ? last.first : -last.first;
    for (const Tensor& t : list) sum = sum + t;
    if (scale) sum = sum * *scale;
    return std::tuple(mode == "relu" ? sum.relu() : sum, list.size());
  };
  auto fast = compile(f);
  for (size_t n : {1, 2, 1})
    for (std::optional<double> scale : {std::optional<double>(), std::optional<double>(2.5)})
      for (const char* mode : {"relu", "none"}) {
        std::vector<Tensor> list;
        for (size_t i = 0; i < n; ++i) list.push_back(randn({2, 2}));
        std::pair<Tensor, bool> last{randn({2, 2}), n == 1};
        auto [a, length] = fast(list, scale, mode, last);
        EXPECT_TRUE(same_bits(a, std::get<0>(f(list, scale, mode, last))));
        EXPECT_EQ(length, n);
      }
}

TEST(Arguments, MapsCountWithTheirKeys) {
  using State = std::map<std::string, Tensor>;
  auto step = [](const State& state, const std::map<int, double>& scales) {
    State next;
    for (const auto& [name, t] : state) {
      Tensor sum = t;
      for (const auto& [power, scale] : scales) sum = sum + t.pow(power) * scale;
      next["next." + name] = name == "odd" ? -sum : sum;
    }
    return next;
  };
  const std::vector<State> states{
      {{"a", randn({3})}, {"b", randn({2, 2})}}, {{"a", randn({3})}, {"odd", randn({2, 2})}}, {{"a", randn({3})}}, {}};
  for (bool frozen : {false, true}) {
    auto fast = compile(step, {.mode = frozen ? CompileMode::frozen : CompileMode::checked});
    for (int round = 0; round < 3; ++round)
      for (const State& state : states)
        for (const std::map<int, double>& scales :
             {std::map<int, double>{{2, 0.5}}, {{3, 0.5}}, {{2, 0.5}, {3, 1.0}}, {}}) {
          const State got = fast(state, scales), expected = step(state, scales);
          ASSERT_EQ(got.size(), expected.size());
          for (const auto& [name, t] : expected) {
            ASSERT_TRUE(got.count(name)) << name;
            EXPECT_TRUE(same_bits(got.at(name), t)) << name;
          }
        }
  }
}

TEST(Arguments, AStateOfTensorsMayBeWritten) {
  auto step = compile([](std::map<std::string, Tensor>& cache, const Tensor& x, const Size& at) {
    for (auto& [name, t] : cache) t.narrow(0, at, 1).copy_(x.unsqueeze(0));
    return cache.at("keys").sum();
  });
  std::map<std::string, Tensor> cache{{"keys", zeros({4, 2})}, {"values", zeros({4, 2})}};
  const Tensor x = randn({2});
  for (int64_t at = 0; at < 4; ++at) step(cache, x, Size::of(at));
  for (const auto& [name, t] : cache) EXPECT_TRUE(same_bits(t, x.expand({4, 2}).contiguous())) << name;
}

TEST(Arguments, GenericLambdasAndFunctions) {
  auto fast = compile([](const auto& a, auto b) { return a * b; });
  Tensor x = randn({4});
  EXPECT_TRUE(same_bits(fast(x, 3), x * 3));
  EXPECT_TRUE(same_bits(fast(x, x), x * x));
}

TEST(Arguments, NothingToReturn) {
  auto fast = compile([](const Tensor& x) { x.add_(1); });
  Tensor x = zeros({2});
  fast(x);
  fast(x);
  EXPECT_TRUE(same_bits(x, full({2}, 2.0)));
}

TEST(Arguments, AnArgumentAsTheResult) {
  auto fast = compile([](const Tensor& x, bool negate) { return negate ? -x : x; });
  Tensor x = randn({2});
  EXPECT_TRUE(fast(x, false).is_same(x));
  EXPECT_TRUE(same_bits(fast(x, true), -x));
}

TEST(Arguments, TemporariesMayBeMovedFrom) {
  auto fast = compile([](Tensor x, std::vector<Tensor> list) {
    x = x + list[0];
    list.clear();
    return x;
  });
  Tensor x = randn({2}), y = randn({2});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(fast(Tensor(x), std::vector<Tensor>{y}), x + y));
}

}  // namespace
}  // namespace ingot
