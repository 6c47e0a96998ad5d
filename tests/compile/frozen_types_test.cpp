// Frozen mode sees the type of every argument, and every bit of its value: an answer never serves another type.
#include <cmath>
#include <limits>
#include <type_traits>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

enum Plain : unsigned char { kPlain0, kPlain1 };
enum class Narrow : int8_t { zero, one };
enum class Wide : int64_t { zero, one };
enum class AlsoWide : int64_t { zero, one };

template <class... T>
struct Types {};
using Numbers = Types<bool, char, signed char, unsigned char, wchar_t, char8_t, char16_t, char32_t, short,
                      unsigned short, int, unsigned, long, unsigned long, long long, unsigned long long, float, double,
                      long double, Plain, Narrow, Wide, AlsoWide, std::byte>;

template <class T, class... All>
constexpr int position_in(Types<All...>) {
  int position = 0, at = 0;
  ((std::is_same_v<T, All> ? void(at = position) : void(), ++position), ...);
  return at;
}
template <class T>
constexpr int position = position_in<T>(Numbers());

template <class T>
T number(int n) {
  return static_cast<T>(n);
}

/// What two types could have in common: lengths, and the bits of their numbers.
template <class T>
struct Box {
  T value;
  friend auto ingot_fields(Box& b) { return std::tie(b.value); }
  friend auto ingot_fields(const Box& b) { return std::tie(b.value); }
};
template <class T>
struct OtherBox {
  T value;
  friend auto ingot_fields(OtherBox& b) { return std::tie(b.value); }
  friend auto ingot_fields(const OtherBox& b) { return std::tie(b.value); }
};

/// Which of the types below an argument is, told by overloads as a callable can.
struct Kind {
  template <class T>
  double operator()(const T&) const {
    return 100 + position<T>;
  }
  template <class T>
  double operator()(const std::optional<T>& v) const {
    return 200 + (v ? (*this)(*v) : 0);
  }
  template <class T>
  double operator()(const std::vector<T>& v) const {
    return 1000 + (v.empty() ? 0 : position<T>);
  }
  template <class T, size_t N>
  double operator()(const std::array<T, N>& v) const {
    return 2000 + (*this)(v[0]);
  }
  template <class A, class B>
  double operator()(const std::pair<A, B>& v) const {
    return 3000 + (*this)(v.first) + 100000 * (*this)(v.second);
  }
  template <class A, class B>
  double operator()(const std::tuple<A, B>& v) const {
    return 4000 + (*this)(std::get<0>(v)) + 100000 * (*this)(std::get<1>(v));
  }
  template <class T>
  double operator()(const Box<T>& v) const {
    return 5000 + (*this)(v.value);
  }
  template <class T>
  double operator()(const OtherBox<T>& v) const {
    return 6000 + (*this)(v.value);
  }
};

/// Its result follows the type of its second argument, in the tensor and in C++.
struct Follows {
  template <class T>
  std::pair<Tensor, T> operator()(const Tensor& x, const T& v) const {
    return {x * Kind()(v), v};
  }
};

template <class T>
bool same_object(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, long double>)
    return std::memcmp(&a, &b, 10) == 0;
  else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
    return std::memcmp(&a, &b, sizeof a) == 0;
  else
    return Kind()(a) == Kind()(b);
}

class Judge {
 public:
  template <class T>
  void operator()(const T& v) {
    for (int call = 0; call < 3; ++call) {  // the third is frozen
      auto [y, same] = fast_(x_, v);
      static_assert(std::is_same_v<decltype(same), T>);
      EXPECT_TRUE(same_bits(y, x_ * Kind()(v))) << Kind()(v);
      EXPECT_TRUE(same_object(same, v)) << Kind()(v);
    }
    ++judged_;
  }
  int judged() const { return judged_; }
  auto& fast() { return fast_; }

 private:
  Tensor x_ = ones({3});
  int judged_ = 0;
  CompiledFunction<Follows> fast_ = compile(Follows(), {.mode = CompileMode::frozen});
};

template <class Visit, class... T>
void each_type(Visit visit, Types<T...>) {
  (visit(T()), ...);
}

TEST(FrozenTypes, NumbersOfEveryTypeAreTold) {
  for (int n : {0, 1}) {
    Judge judge;
    // Each type is frozen while the others of the same value are, and asked for again when all are.
    for (int round = 0; round < 2; ++round) each_type([&]<class T>(T) { judge(number<T>(n)); }, Numbers());
    EXPECT_EQ(judge.judged(), 2 * 24);
    EXPECT_EQ(judge.fast().explain().frozen.find("24 frozen"), 0u) << judge.fast().explain().frozen;
  }
}

TEST(FrozenTypes, WhatHoldsNumbersIsToldByTheirTypes) {
  Judge judge;
  for (int round = 0; round < 2; ++round)
    each_type(
        [&]<class T>(T) {
          const T one = number<T>(1);
          judge(one);
          judge(std::optional<T>(one));
          judge(std::optional<T>());
          judge(std::optional<std::optional<T>>(std::optional<T>()));
          judge(std::vector<T>{one});
          judge(std::vector<T>());
          judge(std::array<T, 1>{one});
          judge(std::array<T, 2>{one, one});
          judge(std::pair<T, int>(one, 1));
          judge(std::pair<int, T>(1, one));
          judge(std::tuple<T, int>(one, 1));
          judge(Box<T>{one});
          judge(OtherBox<T>{one});
        },
        Types<bool, int, unsigned, int64_t, float, double, long double, Narrow, Wide>());
  EXPECT_EQ(judge.judged(), 2 * 9 * 13);
}

template <class T>
void every_value_is_told(std::vector<T> values) {
  auto f = [](const Tensor& x, T v) { return std::tuple(x / static_cast<double>(v), v); };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  Tensor x = ones({3});
  for (int round = 0; round < 2; ++round)
    for (const T& v : values)
      for (int i = 0; i < 3; ++i) {
        auto [y, same] = fast(x, v);
        EXPECT_TRUE(same_object(same, v));
        EXPECT_TRUE(same_bits(y, x / static_cast<double>(v)));
      }
  EXPECT_EQ(fast.explain().frozen.find(std::to_string(values.size()) + " frozen"), 0u) << fast.explain().frozen;
}
template <class T>
void every_float_is_told() {
  using Limits = std::numeric_limits<T>;
  every_value_is_told<T>({T(0), -T(0), T(1), T(2), T(4), -T(1), T(1) + Limits::epsilon(), Limits::max(), Limits::min(),
                          Limits::denorm_min(), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()});
}
template <class T>
void every_integer_is_told() {
  using Limits = std::numeric_limits<T>;
  every_value_is_told<T>({T(1), T(2), T(3), Limits::max(), T(Limits::max() - 1), T(Limits::max() / 2)});
}

TEST(FrozenTypes, EveryBitOfANumberIsSeen) {
  every_float_is_told<float>();
  every_float_is_told<double>();
  every_float_is_told<long double>();
  every_integer_is_told<int8_t>();
  every_integer_is_told<uint8_t>();
  every_integer_is_told<int16_t>();
  every_integer_is_told<uint16_t>();
  every_integer_is_told<int32_t>();
  every_integer_is_told<uint32_t>();
  every_integer_is_told<int64_t>();
  every_integer_is_told<uint64_t>();
}

TEST(FrozenTypes, ScalarsAreToldByCategoryAndByBothTheirValues) {
  auto f = [](const Tensor& x, const Scalar& s) { return x * s.to_double() + s; };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  Tensor x = ones({3});
  for (int round = 0; round < 4; ++round)
    for (const Scalar& s : {Scalar(true), Scalar(1), Scalar(1.0), Scalar(false), Scalar(0), Scalar(0.0), Scalar(-0.0),
                            Scalar(int64_t{-1}), Scalar(UINT64_MAX)})
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(fast(x, s), f(x, s)));
}

TEST(FrozenTypes, TextsAreToldByTheirTypes) {
  struct {
    Tensor operator()(const Tensor& x, const char* text) const { return text ? x * 2 : x * 3; }
    Tensor operator()(const Tensor& x, const std::string&) const { return x * 4; }
    Tensor operator()(const Tensor& x, std::string_view) const { return x * 5; }
  } f;
  auto fast = compile(f, {.mode = CompileMode::frozen});
  Tensor x = ones({3});
  const char* none = nullptr;
  for (int round = 0; round < 4; ++round) {
    EXPECT_TRUE(same_bits(fast(x, "text"), x * 2));
    EXPECT_TRUE(same_bits(fast(x, none), x * 3));
    EXPECT_TRUE(same_bits(fast(x, std::string("text")), x * 4));
    EXPECT_TRUE(same_bits(fast(x, std::string_view("text")), x * 5));
    EXPECT_TRUE(same_bits(fast(x, std::string()), x * 4));
  }
}

TEST(FrozenTypes, OverloadsForWhatIsGivenAwayAreTold) {
  struct {
    Tensor operator()(Tensor&& x) const { return x * 2; }
    Tensor operator()(const Tensor& x) const { return x * 3; }
    Tensor operator()(Tensor& x) const { return x * 4; }
  } f;
  auto fast = compile(f, {.mode = CompileMode::frozen});
  Tensor x = ones({3});
  const Tensor& constant = x;
  for (int round = 0; round < 4; ++round) {
    EXPECT_TRUE(same_bits(fast(ones({3})), x * 2));
    EXPECT_TRUE(same_bits(fast(constant), x * 3));
    EXPECT_TRUE(same_bits(fast(x), x * 4));
  }
}

TEST(FrozenTypes, AResultThatIsAReferenceIsTheCallables) {
  Tensor kept = ones({3});
  int runs = 0;
  auto fast = compile(
      [&](const Tensor& x) -> const Tensor& {
        ++runs;
        kept = x * 2;
        return kept;
      },
      {.mode = CompileMode::frozen});
  for (int i = 0; i < 4; ++i) {
    Tensor x = randn({3});
    const Tensor& y = fast(x);
    EXPECT_EQ(&y, &kept);
    EXPECT_TRUE(same_bits(y, x * 2));
  }
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(fast.explain().frozen, "refused: the callable returns a reference");
}

}  // namespace
}  // namespace ingot
