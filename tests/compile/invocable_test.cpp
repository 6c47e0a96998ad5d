// Whether a compiled function takes some arguments is a question that the compiler can be asked.
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "support.h"

namespace ingot {
namespace {

struct NetImpl : nn::Module {
  nn::Linear fc{4, 4};
  Tensor forward(const Tensor& x) { return fc(x); }
};
INGOT_MODULE(Net, fc);
struct MixImpl : nn::Module {
  Tensor forward(const Tensor& x, double factor, const Tensor& y) { return x * factor + y; }
};
INGOT_MODULE(Mix);
struct Plain {
  Tensor forward(const Tensor& x, int64_t n) { return x + n; }
};
struct Overloaded {
  Tensor operator()(const Tensor& x) const { return x + 1; }
  int operator()(int x) const { return x; }
};
struct Pair {
  template <class... T>
  requires(sizeof...(T) == 2) Tensor operator()(const T&... x) const { return (x + ...); }
};
[[maybe_unused]] Tensor function(const Tensor& x, float y) { return x * y; }

template <class F, class... Args>
constexpr bool takes = std::is_invocable_v<const decltype(compile(std::declval<F>()))&, Args...>;
template <class F, class... Args>
using ResultOf = std::invoke_result_t<const decltype(compile(std::declval<F>()))&, Args...>;

TEST(Invocable, AnswersAsTheCallableDoes) {
  auto one = [](const Tensor& x) { return x + 1; };
  auto two = [](const Tensor& x, const std::vector<Tensor>& more) { return std::tuple(x, more); };
  auto none = [] { return 3; };
  auto quiet = [](Tensor& x) { x.add_(1); };
  const Pair any;
  auto reference = [](Tensor& x) -> Tensor& { return x; };
  using One = decltype(one);
  static_assert(takes<One, Tensor> && takes<One, Tensor&> && takes<One, const Tensor&>);
  static_assert(!takes<One> && !takes<One, Tensor, Tensor> && !takes<One, std::string> && !takes<One, double>);
  static_assert(takes<decltype(two), Tensor, std::vector<Tensor>> && !takes<decltype(two), Tensor, Tensor*>);
  static_assert(takes<decltype(none)> && !takes<decltype(none), Tensor>);
  static_assert(takes<decltype(quiet), Tensor&> && !takes<decltype(quiet), Tensor>);
  static_assert(takes<Pair, Tensor, Tensor> && !takes<Pair, Tensor>);
  static_assert(takes<decltype(&function), Tensor, float> && !takes<decltype(&function), float, Tensor>);
  static_assert(takes<Overloaded, Tensor> && takes<Overloaded, int> && !takes<Overloaded, std::string>);
  static_assert(takes<Net, Tensor> && !takes<Net> && !takes<Net, Tensor, Tensor> && !takes<Net, std::string>);
  static_assert(takes<Mix, Tensor, double, Tensor> && !takes<Mix, Tensor, double> && !takes<Mix, double, Tensor>);
  static_assert(takes<Plain, Tensor, int> && !takes<Plain, Tensor> && !takes<Plain, Tensor, std::string>);
  static_assert(takes<nn::Sequential, Tensor> && !takes<nn::Sequential, Tensor, int>);

  static_assert(std::is_same_v<ResultOf<One, Tensor>, Tensor>);
  static_assert(std::is_same_v<ResultOf<decltype(none)>, int>);
  static_assert(std::is_same_v<ResultOf<decltype(quiet), Tensor&>, void>);
  static_assert(std::is_same_v<ResultOf<decltype(reference), Tensor&>, Tensor&>);
  static_assert(std::is_same_v<ResultOf<Overloaded, int>, int>);
  static_assert(std::is_same_v<ResultOf<Net, Tensor>, Tensor>);

  const Tensor x = randn({3, 4});
  EXPECT_TRUE(test::same_bits(compile(Plain())(x, 2), x + 2));
  EXPECT_TRUE(test::same_bits(compile(any)(x, x), x + x));
  EXPECT_EQ(compile(Overloaded())(7), 7);
}

}  // namespace
}  // namespace ingot
