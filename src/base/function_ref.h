// A callable that lives elsewhere, behind one type: for functions that are compiled once for all that they call.
#pragma once
#include <memory>
#include <type_traits>
#include <utility>

namespace ingot {

template <class Signature>
class FunctionRef;
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(F&& function)
      : function_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* at, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(at))(std::forward<Arguments>(arguments)...);
        }) {}
  Result operator()(Arguments... arguments) const { return call_(function_, std::forward<Arguments>(arguments)...); }

 private:
  void* function_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace ingot
