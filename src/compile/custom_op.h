// custom_op(): a function of the user's own as an op, in eager code and inside compiled functions.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compile/leaves.h"
#include "eager/ops/arguments.h"

namespace ingot {

/// What a custom op states of its result.
struct ResultType {
  DType dtype = DType::f32;
  IntList sizes;
};

namespace detail {
/// Throws Error for a name that is empty or one of Ingot's own ops.
INGOT_API void check_custom_name(const std::string& name);
/// Throws Error, naming the op, where a result is undefined or not what the rule states.
INGOT_API void check_custom_result(const std::string& name, const Tensor& result, const ResultType* stated,
                                   Location location);
/// The arguments that gradients go to, if they are recorded.
INGOT_API std::vector<Tensor> tracked_arguments(const LeafList& arguments);
/// Results that did not come over the tape, although an argument is on it: a gradient that reaches them is an Error.
INGOT_API void end_tape(const std::string& name, const std::vector<Tensor>& tracked, const LeafList& result,
                        Location location);
/// Runs the body now: a recording in progress on this thread ends its program before it and begins another after it.
INGOT_API void run_custom(const std::string& name, Location location, const std::function<std::vector<Tensor>()>& body);
}  // namespace detail

template <class Signature>
class CustomOp;

/// Called like the function it holds, with the same result. Opaque to the compiler: inside a compiled function, what
/// was recorded before it runs as a program, then the function, then recording goes on. That is a graph break under the
/// op's name (Statistics::graph_breaks, explain()). The function sees real tensors and may read and write their memory;
/// ops that it calls are eager. It may be called from several threads at once if the function allows it.
template <class Result, class... Args>
class CustomOp<Result(Args...)> {
 public:
  using Function = std::function<Result(Args...)>;
  using Rule = std::function<ResultType(const std::decay_t<Args>&...)>;

  CustomOp(std::string name, Function function, Rule rule = {})
      : name_(std::move(name)), function_(std::move(function)), rule_(std::move(rule)) {
    detail::check_custom_name(name_);
  }

  Result operator()(std::type_identity_t<Args>... args, Location location = Location()) const {
    ResultType stated;
    if (rule_) stated = rule_(args...);
    if constexpr (std::is_void_v<Result>) {
      detail::run_custom(name_, location, [&] {
        function_(std::forward<Args>(args)...);
        return std::vector<Tensor>();
      });
    } else {
      static_assert(detail::Leaves<Result>::known,
                    "ingot::custom_op: a result is a tensor, or numbers, strings, vectors, tuples, optionals of them");
      std::vector<Tensor> tracked;
      if constexpr ((detail::Leaves<std::decay_t<Args>>::known && ...)) {
        detail::LeafList arguments;
        (detail::collect_leaves<std::decay_t<Args>>(args, arguments), ...);
        tracked = detail::tracked_arguments(arguments);
      }
      std::optional<Result> result;
      detail::run_custom(name_, location, [&] {
        result.emplace(function_(std::forward<Args>(args)...));
        detail::LeafList leaves;
        detail::collect_leaves<Result>(*result, leaves);
        if (!tracked.empty()) detail::end_tape(name_, tracked, leaves, location);
        std::vector<Tensor> made;
        for (const detail::Leaf& leaf : leaves.items())
          if (leaf.kind == detail::Leaf::Kind::tensor) {
            if constexpr (std::is_same_v<Result, Tensor>)
              detail::check_custom_result(name_, *leaf.tensor(), rule_ ? &stated : nullptr, location);
            made.push_back(*leaf.tensor());
          }
        return made;
      });
      return *std::move(result);
    }
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Function function_;
  Rule rule_;
};

template <class Result, class... Args>
CustomOp(std::string, std::function<Result(Args...)>) -> CustomOp<Result(Args...)>;
template <class Result, class... Args, class Rule>
CustomOp(std::string, std::function<Result(Args...)>, Rule) -> CustomOp<Result(Args...)>;

/// An op from a function, or from a lambda with plain parameters:
///
///   auto cube = custom_op("cube", [](const Tensor& x) { return my_library_cube(x); });
template <class F>
auto custom_op(std::string name, F&& function) {
  return CustomOp(std::move(name), std::function(std::forward<F>(function)));
}
/// With a rule for dtype and sizes of its result, a tensor. It is called first, with the same arguments, of which it
/// reads no data; an Error that it throws for wrong arguments leaves them as they were. The result is held to it.
template <class F, class Rule>
auto custom_op(std::string name, F&& function, Rule&& rule) {
  return CustomOp(std::move(name), std::function(std::forward<F>(function)), std::forward<Rule>(rule));
}

}  // namespace ingot
