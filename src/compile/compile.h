// compile(): the same callable, recorded, fused and run as generated code.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/counted_ptr.h"
#include "base/read_epoch.h"
#include "compile/explain.h"
#include "compile/leaves.h"
#include "eager/execute/numerics.h"
#include "eager/tensor.h"
#include "trace/lent_recorder.h"

namespace ingot {

namespace ir {
struct Graph;
}
namespace nn {
class HandleBase;
class Fields;
}  // namespace nn

// What compile() relies on. The ops of a call are computed when a value is asked for, or at its end; the callable must
// not be able to tell (but for an error that only data tells, as a position out of range: it is thrown where the ops
// are computed, which may be inside a try around a later op), so what it and others do to memory meanwhile is watched:
//  - In-place ops of this thread, through any tensor, view or from_blob over the same addresses, take effect in order.
//  - A pointer that the callable asks for (data_ptr, mutable_data_ptr) ends what was recorded; from then on the ops of
//    this call that touch its memory run one by one, so that writes and reads through the pointer keep their place.
//  - A tensor that another thread writes, by an op or by asking for a pointer, between the op that reads it and the
//    moment that computes it, is an Error, not a result. (Of a storage written in parts, the latest 16 writes count.)
// What cannot be seen is for the caller to keep: memory must not be written through a pointer that is older than the
// call while the call runs, nor through one (or a from_blob over it) that was asked for before a compiled function used
// the tensor as a captured weight, unless mutable_data_ptr() is asked for again (it says that the tensor changes).
// Memory of from_blob may change between calls.

enum class CompileMode : uint8_t {
  checked,  // the callable runs at each call and is compared with what was recorded: sound for any callable
  frozen    // after two checked calls that agree it is not run again; only the arguments are checked. For functions of
            // arguments and tensors, which they may write
};

struct CompileOptions {
  CompileMode mode = CompileMode::checked;
  std::string name = {};                  // in logs and errors; a number by default
  int recompile_limit = 8;                // programs for one stretch of code; beyond it, new paths run eagerly, and
                                          // 512 calls that did are followed by one more
  std::vector<std::string> disable = {};  // passes and stages of lowering, by name, to bisect a fault
  bool background = false;                // calls run eagerly until their program is ready
  std::optional<Numerics> numerics = {};  // the level of this function; absent: the global one
  bool pack_weights_only = false;         // the pages of weights in mapped files go once these are packed
};

namespace detail {

class CompiledCore;
struct CallKey;
struct GeneralCall;
struct Arguments;
struct ThreadLeaves;

/// One call of a compiled function. Frozen: the program has run, results() is to be read; else the callable is to be
/// run, then finish() or abandon().
class INGOT_API CompiledCall {
 public:
  /// `signature` stands for the types of arguments and result; null: such a call is never frozen.
  CompiledCall(CompiledCore& core, const LeafList& arguments, const void* signature);
  ~CompiledCall();
  CompiledCall(const CompiledCall&) = delete;
  bool frozen() const { return done_; }
  /// The next tensor of a frozen call's result.
  Tensor operator()();
  /// The result to copy and fill in: what an earlier call returned.
  const void* frozen_result() const;
  /// True if finish wants the result's leaves, and a copy of the result.
  bool wants_result() const { return wants_result_; }
  void finish(const LeafList* result, std::shared_ptr<const void> copy);
  void abandon();

 private:
  bool run_frozen(const LeafList& arguments, const CallKey& key);
  bool repeat(std::shared_ptr<const GeneralCall> call);

  CompiledCore& core_;
  const void* signature_;
  std::optional<ReadSection> reading_;    // keeps what `form_` is part of
  std::unique_ptr<Arguments> arguments_;  // while the call is observed
  trace::LentRecorder recorder_;
  bool done_ = false;           // the program has run
  const void* form_ = nullptr;  // of the result
  std::shared_ptr<const GeneralCall> general_;
  Tensor few_results_[4];
  std::vector<Tensor> many_results_;
  size_t next_result_ = 0;
  bool wants_result_ = false;
  bool hopeless_ = false;  // it will hardly ever be frozen

  /// While it lives, the thread is in a frozen function of this name. A member: gone also where the constructor throws.
  class InFrozen {
   public:
    void enter(const std::string& name);
    ~InFrozen();

   private:
    const std::string* outer_ = nullptr;
    bool entered_ = false;
  } outer_frozen_;
};

/// A function that is a module, and what visits its fields; none: it is no module, and nothing is seen of it.
struct WatchedFunction {
  void* object = nullptr;
  void (*show)(void* object, nn::Fields& fields) = nullptr;
};
template <class F, class Fields = nn::Fields>
WatchedFunction watched(F& function) {
  if constexpr (std::is_base_of_v<nn::HandleBase, F>)
    return {&function, [](void* object, nn::Fields& fields) {
              static_cast<Fields&>(fields)(std::string(), *static_cast<F*>(object));
            }};
  else
    return {};
}

class INGOT_API CompiledHandle {
 public:
  explicit CompiledHandle(const CompileOptions& options);
  /// Frozen calls hold for the tensors and modules that it holds; it lives as long as this.
  void watch(WatchedFunction function);
  Explanation explain() const;
  Explanation profile(const std::function<void()>& calls) const;
  Statistics stats() const;
  CompiledCore& core() const { return *core_; }
  /// True if this call is to run eagerly, as learnt from those before it, whatever its arguments are.
  bool eager_at_once() const;

 private:
  std::shared_ptr<CompiledCore> core_;
};

/// What copies of a compiled function share, apart from the callable.
class CompiledState {
 public:
  explicit CompiledState(const CompileOptions& options) : handle(options) {}
  virtual ~CompiledState() = default;
  CompiledState(const CompiledState&) = delete;
  CompiledHandle handle;

 private:
  friend void add_reference(CompiledState& state) { state.references_.add(); }
  friend void drop_reference(CompiledState& state) {
    if (state.references_.drop()) delete &state;
  }
  ReferenceCount references_;
};
using CompiledStatePtr = CountedPtr<CompiledState>;

/// For the length of a call of a frozen function's callable: nothing is put on the tape.
class INGOT_API FrozenScope {
 public:
  explicit FrozenScope(const CompiledHandle& handle);
  ~FrozenScope();
  FrozenScope(const FrozenScope&) = delete;

 private:
  const std::string* outer_;
};

/// Leaves of the arguments of the calls in progress on this thread, one list a nesting level, reused.
class INGOT_API ArgumentLeaves {
 public:
  ArgumentLeaves();
  ~ArgumentLeaves();
  ArgumentLeaves(const ArgumentLeaves&) = delete;
  explicit ArgumentLeaves(ThreadLeaves& mine);
  LeafList& list() { return list_; }

 private:
  size_t& depth_;
  LeafList& list_;
};

/// F is a module that is told its caller's line beside these.
template <class F, class... Args>
concept ToldTheLine = std::is_base_of_v<nn::HandleBase, F> && std::is_invocable_v<F&, Args..., Location>;
template <class F, class... Args>
decltype(auto) invoke_captured(F& f, Args&&... args) {
  if constexpr (ToldTheLine<F, Args...>)
    return f(std::forward<Args>(args)..., Location::none());  // this line is not the caller's
  else if constexpr (std::is_invocable_v<F&, Args...>)
    return f(std::forward<Args>(args)...);
  else
    return f.forward(std::forward<Args>(args)...);
}

/// What compile() wraps takes these: by its own call, or by its forward.
template <class F, class... Args>
concept Takes = ToldTheLine<F, Args...> || std::is_invocable_v<F&, Args...> || requires(F& f, Args&&... args) {
  f.forward(std::forward<Args>(args)...);
};
template <class F, class... Args>
requires Takes<F, Args...>
using Result = decltype(invoke_captured(std::declval<F&>(), std::declval<Args>()...));

/// F is a module that is called with a tensor, and the caller's line with it, and these.
template <class F, class... Rest>
concept TensorModule = std::is_base_of_v<nn::HandleBase, F> && std::is_invocable_v<F&, const TensorArg&, Rest...>;
template <class F, class... Args>
inline constexpr bool tensor_module = false;
template <class F, class First, class... Rest>
inline constexpr bool tensor_module<F, First, Rest...> =
    std::is_convertible_v<First, const TensorArg&>&& TensorModule<F, Rest...>;

/// A callable that has one signature, whatever it is called with: it cannot tell an lvalue from an rvalue.
template <class F>
concept OneSignature = std::is_pointer_v<F> || requires {
  &F::operator();
};

/// Stands for the types of a call of F: frozen, it answers calls of these types only. Null where it returns a
/// reference, which nothing but the callable can give.
template <class F, class R, class... Args>
const void* call_signature() {
  if constexpr (std::is_reference_v<R>)
    return nullptr;
  else if constexpr (OneSignature<F>)
    return &signature_of<std::decay_t<R>, std::decay_t<Args>...>;
  else
    return &signature_of<std::decay_t<R>, Args&&...>;
}

}  // namespace detail

/// What compile() returns: called like the callable itself. Copies share everything; may be called from many threads.
/// Another function may be assigned to it, or it may be destroyed, while calls are in progress, also from inside them:
/// they end with the function that they began with.
template <class F>
class CompiledFunction {
 public:
  CompiledFunction(F f, const CompileOptions& options)
      : state_(detail::CompiledStatePtr::take(new State(options, std::move(f)))) {}
  // A move is a copy, so what is moved from may be called.
  CompiledFunction(const CompiledFunction&) = default;
  CompiledFunction& operator=(const CompiledFunction&) = default;

  template <class... Args>
  requires(!detail::tensor_module<F, Args...> && detail::Takes<F, Args...>) detail::Result<F, Args...>
  operator()(Args&&... args) const { return invoke(std::forward<Args>(args)...); }
  template <class... Rest>
  requires detail::TensorModule<F, Rest...> detail::Result<F, const TensorArg&, Rest...>
  operator()(const TensorArg& x, Rest&&... rest) const { return invoke(x, std::forward<Rest>(rest)...); }

  /// What was recorded and compiled, and why.
  Explanation explain() const { return state_->handle.explain(); }
  /// The same after `calls`, which call this function, with what each step took in them.
  Explanation profile(const std::function<void()>& calls) const {
    const detail::CompiledStatePtr state = state_;
    return state->handle.profile(calls);
  }
  Statistics stats() const { return state_->handle.stats(); }
  F& function() const { return function_of(state_); }

 private:
  struct State : detail::CompiledState {
    State(const CompileOptions& options, F f) : CompiledState(options), function(std::move(f)) {
      handle.watch(detail::watched(function));
    }
    F function;
  };
  static F& function_of(const detail::CompiledStatePtr& state) { return static_cast<State&>(*state).function; }

  template <class... Args>
  decltype(auto) invoke(Args&&... args) const {
    (void(detail::Capture<std::decay_t<Args>>()), ...);
    using R = decltype(detail::invoke_captured(std::declval<F&>(), std::forward<Args>(args)...));
    using Value = std::decay_t<R>;
    const detail::CompiledStatePtr state = state_;
    F& function = function_of(state);
    if (state->handle.eager_at_once()) {
      const detail::FrozenScope scope(state->handle);
      return detail::invoke_captured(function, std::forward<Args>(args)...);
    }
    detail::ArgumentLeaves leaves;
    (detail::collect_leaves<std::decay_t<Args>>(args, leaves.list()), ...);
    detail::CompiledCall call(state->handle.core(), leaves.list(), detail::call_signature<F, R, Args...>());
    if constexpr (std::is_void_v<R>) {
      if (call.frozen()) return;
      run(call, [&] { detail::invoke_captured(function, std::forward<Args>(args)...); });
      call.finish(nullptr, nullptr);
    } else {
      (void)detail::Capture<Value>();
      if constexpr (std::is_reference_v<R>) {
        R result = run(call, [&]() -> R { return detail::invoke_captured(function, std::forward<Args>(args)...); });
        call.finish(nullptr, nullptr);
        return static_cast<R>(result);
      } else {
        if (call.frozen()) {
          Value result(*static_cast<const Value*>(call.frozen_result()));
          detail::Leaves<Value>::assign(result, call);
          return result;
        }
        R result = run(call, [&]() -> R { return detail::invoke_captured(function, std::forward<Args>(args)...); });
        if (call.wants_result()) {
          detail::LeafList result_leaves;
          detail::collect_leaves<Value>(result, result_leaves);
          // What is kept of the result is its form: lengths, numbers and texts.
          void (*destroy)(const void*) = [](const void* value) { delete static_cast<const Value*>(value); };
          auto* form = new Value(result);
          std::shared_ptr<const void> copy(static_cast<const void*>(form), destroy);
          auto nothing = [] { return Tensor(); };
          detail::Leaves<Value>::assign(*form, nothing);
          call.finish(&result_leaves, std::move(copy));
        } else {
          call.finish(nullptr, nullptr);
        }
        return result;
      }
    }
  }

  template <class Body>
  static decltype(auto) run(detail::CompiledCall& call, Body&& body) {
    try {
      return body();
    } catch (...) {
      call.abandon();
      throw;
    }
  }

  detail::CompiledStatePtr state_;
};

/// Wraps any callable, generic lambdas too, or a module (its forward).
template <class F>
auto compile(F&& f, const CompileOptions& options = {}) {
  if constexpr (std::is_function_v<std::remove_reference_t<F>>)
    return CompiledFunction<std::decay_t<F>>(&f, options);
  else
    return CompiledFunction<std::decay_t<F>>(std::forward<F>(f), options);
}

}  // namespace ingot
