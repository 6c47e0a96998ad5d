// A/B comparison of two callables on the same inputs: first whether their results are equal, then what each takes.
#pragma once
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "compile/compile.h"

namespace ingot {

/// Times of one contender, in microseconds a call.
struct Timing {
  double median = 0, low = 0, high = 0;  // low and high: 10th and 90th percentile of the samples
};

/// Runs the contenders in turns for about `seconds` in all, after a warm-up. A sample is one call, or a batch of calls
/// where a call is too short for the clock (then their mean).
INGOT_API std::vector<Timing> interleave(const std::vector<std::function<void()>>& contenders, double seconds);
/// A clock for differences.
INGOT_API double now_us();

/// True if shapes, dtypes and every bit agree; all NaNs are equal.
INGOT_API bool bitwise_equal(const Tensor& a, const Tensor& b);
/// Largest difference of two elements; infinite where the shapes differ.
INGOT_API double max_abs_difference(const Tensor& a, const Tensor& b);

struct CompareOptions {
  double seconds = 1;     // of measurement, both together
  int checked_calls = 4;  // whose results are compared before anything is timed
};

struct INGOT_API Comparison {
  Timing eager, compiled;
  /// Of the first call of each, microseconds: with what is made for it. Eager's comes before.
  double first_eager = 0, first_compiled = 0;
  bool bitwise_equal = true;  // every result of every checked call
  double max_abs_error = 0;   // over all tensors of the results
  double speedup() const { return compiled.median > 0 ? eager.median / compiled.median : 0; }
  /// "eager 12.3 us (12.1 to 12.9), compiled 4.5 us (4.4 to 4.7): 2.73 times as fast, the same bits"
  std::string str() const;
};

/// "123.4 us", "1.23 ms".
INGOT_API std::string duration(double microseconds);

namespace detail {
INGOT_API void compare_results(const LeafList& expected, const LeafList& got, Comparison& comparison);
INGOT_API void compare_times(const std::function<void()>& eager, const std::function<void()>& compiled,
                             const CompareOptions& options, Comparison& comparison);
template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
}  // namespace detail

/// Calls both with the same inputs (one value, or a tuple of arguments) and compares what they return, then times them
/// in turns. For callables that leave their inputs as they are.
///
///   Comparison c = compare(model, compile(model), x);
template <class Eager, class Compiled, class Inputs>
Comparison compare(Eager&& eager, Compiled&& compiled, const Inputs& inputs, const CompareOptions& options = {}) {
  auto call = [&](auto& f) -> decltype(auto) {
    auto with = [&](const auto&... in) -> decltype(auto) { return detail::invoke_captured(f, in...); };
    if constexpr (detail::is_tuple<Inputs>)
      return std::apply(with, inputs);
    else
      return with(inputs);
  };
  using Result = std::decay_t<decltype(call(eager))>;
  static_assert(!std::is_void_v<Result>, "ingot::compare: the callables return what is to be compared");
  Comparison comparison;
  for (int n = 0; n < options.checked_calls; ++n) {
    const double start = now_us();
    const Result expected = call(eager);
    const double between = now_us();
    const Result got = call(compiled);
    if (n == 0) comparison.first_eager = between - start, comparison.first_compiled = now_us() - between;
    detail::LeafList a, b;
    detail::collect_leaves<Result>(expected, a);
    detail::collect_leaves<Result>(got, b);
    detail::compare_results(a, b, comparison);
  }
  detail::compare_times([&] { (void)call(eager); }, [&] { (void)call(compiled); }, options, comparison);
  return comparison;
}

}  // namespace ingot
