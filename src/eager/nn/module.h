// Modules: what holds parameters and computes with them. A module's state lives in a struct NAMEImpl; NAME is a handle
// to it, and copies of the handle share that state.
//
//   struct NetImpl : nn::Module {
//     nn::Linear fc1{64, 256}, fc2{256, 10};
//     Tensor forward(const Tensor& x) { return fc2(F::gelu(fc1(x))); }
//   };
//   INGOT_MODULE(Net, fc1, fc2);
//
//   Net net;
//   net->eval();
//   Tensor y = net(x);
#pragma once
#include <atomic>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/for_each.h"
#include "eager/autograd/autograd.h"
#include "eager/serialization.h"

namespace ingot {

namespace nn {

class Module;

/// A tensor of a module that is no parameter (running statistics); it is saved and loaded with the others.
struct Buffer : Tensor {
  Buffer() = default;
  Buffer(const Tensor& t) : Tensor(t) {}
};
/// One that is made anew with the module (tables of positions): it follows Module::to and is copied by clone(), and no
/// state dict has it.
struct NonPersistentBuffer : Buffer {
  using Buffer::Buffer;
};

/// One whose dtype is part of what it means: it does not follow Module::to, and is loaded from its own dtype only.
struct FixedBuffer : Buffer {
  using Buffer::Buffer;
};
enum class BufferKind : uint8_t { plain, non_persistent, fixed };

/// Base of all handles to modules: a shared reference, empty or not.
class HandleBase {
 public:
  HandleBase() = default;
  explicit operator bool() const { return module_ != nullptr; }
  const std::shared_ptr<Module>& module() const { return module_; }

 protected:
  friend class Module;  // clones
  explicit HandleBase(std::shared_ptr<Module> module) : module_(std::move(module)) {}
  /// A handle of this type; the module is one of its Impl.
  template <class M>
  static M handle_to(std::shared_ptr<Module> module) {
    M handle(nullptr);
    static_cast<HandleBase&>(handle).module_ = std::move(module);
    return handle;
  }
  std::shared_ptr<Module> module_;
};

/// What a list or an optional holds, as far as its elements are where they were: compared, never followed.
struct Extent {
  const void* data = nullptr;
  size_t size = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};
/// Of a field of this type; elements may be anywhere where there is no function.
using ExtentOf = Extent (*)(const void* field);

struct LoadStateOptions {
  bool strict = true;
  /// Parameters and buffers have the given tensors' memory, and their dtype, instead of copies: weights of a mapped
  /// file are then in memory once. What is written to the one is written to the other. Who required grad still does.
  bool assign = false;
};
/// What load_state_dict, not strict, did not find and did not use; in the order of the module and of the state.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys, unexpected_keys;
};

/// While it lives, what this thread's layers would start with at random has no memory of its own but is NaN, until it
/// is loaded: no number is drawn, and loading peaks at the weights once. What starts as a constant (a norm's weight)
/// does.
///
///   Net net = [] { nn::SkipInit skip; return Net(); }();
///   net->load_state_dict(load("net.safetensors"), {.assign = true});
class INGOT_API SkipInit {
 public:
  SkipInit();
  ~SkipInit();
  SkipInit(const SkipInit&) = delete;
  SkipInit& operator=(const SkipInit&) = delete;
  /// Whether one lives on this thread: for modules that draw numbers of their own.
  static bool active();

 private:
  bool outer_;
};

/// Visits the fields that INGOT_MODULE lists: tensors, modules, and vectors, maps from names, and optionals of these. A
/// vector of pairs has its names (where empty, the place) in an order of its own: what PyTorch's ModuleDict is.
class INGOT_API Fields {
 public:
  virtual ~Fields() = default;
  template <class T>
  void operator()(const std::string& name, T& field) {
    if constexpr (std::is_base_of_v<Buffer, T>) {
      buffer(name, field,
             std::is_base_of_v<NonPersistentBuffer, T> ? BufferKind::non_persistent
             : std::is_base_of_v<FixedBuffer, T>       ? BufferKind::fixed
                                                       : BufferKind::plain);
    } else if constexpr (std::is_same_v<T, Tensor>) {
      parameter(name, field);
    } else if constexpr (std::is_base_of_v<HandleBase, T>) {
      handle(field);
      if (field) child(name, *field);
    } else if constexpr (requires { field.has_value(); }) {
      holder(&field, [](const void* at) { return Extent{nullptr, static_cast<const T*>(at)->has_value()}; });
      if (field) (*this)(name, *field);
    } else if constexpr (requires { typename T::mapped_type; }) {
      holder(&field, nullptr);
      const std::string prefix = name.empty() ? "" : name + ".";
      for (auto& [key, item] : field) (*this)(prefix + key, item);
    } else if constexpr (requires { field.begin(); }) {
      ExtentOf extent = nullptr;
      if constexpr (requires { field.data() + field.size(); })
        extent = [](const void* at) {
          const T& list = *static_cast<const T*>(at);
          return Extent{list.data(), list.size()};
        };
      holder(&field, extent);
      size_t i = 0;
      const std::string prefix = name.empty() ? "" : name + ".";
      for (auto& item : field) {
        const std::string place = std::to_string(i++);
        if constexpr (requires { item.first + place, item.second; })
          (*this)(prefix + (item.first.empty() ? place : item.first), item.second);
        else
          (*this)(prefix + place, item);
      }
    } else {
      static_assert(
          std::is_same_v<T, Tensor>,
          "ingot: a field of INGOT_MODULE is a Tensor, an nn::Buffer, a module, or a vector, map or optional of these");
    }
  }

 protected:
  virtual void parameter(const std::string& name, Tensor& tensor) = 0;
  virtual void buffer(const std::string& name, Tensor& tensor, BufferKind kind) = 0;
  virtual void child(const std::string& name, Module& module) = 0;
  /// Before what they hold: a handle, and a list or an optional.
  virtual void handle(HandleBase&) {}
  virtual void holder(const void* /*field*/, ExtentOf) {}
};

/// Called before forward with the tensors among a call's arguments; gives as many in their place, or none.
using ForwardPreHook = std::function<std::vector<Tensor>(Module& module, const std::vector<Tensor>& inputs)>;
/// Called after forward; gives a tensor in place of the result, or an undefined one.
using ForwardHook = std::function<Tensor(Module& module, const std::vector<Tensor>& inputs, const Tensor& output)>;
/// Called by backward() with the gradients of the call's inputs and of its result, undefined where there is none; gives
/// as many in place of the first, or none.
using BackwardHook = std::function<std::vector<Tensor>(Module& module, const std::vector<Tensor>& grad_inputs,
                                                       const std::vector<Tensor>& grad_outputs)>;

namespace detail {
struct Hooks;
/// A hook that may also give nothing.
template <class Hook, class F>
Hook hook_of(F f) {
  if constexpr (std::is_constructible_v<Hook, F>)
    return f;
  else
    return [f = std::move(f)](auto&... arguments) mutable {
      static_assert(std::is_void_v<decltype(f(arguments...))>,
                    "ingot: a hook gives nothing, or a Tensor (forward hook), or a std::vector<Tensor> (the others)");
      f(arguments...);
      return typename Hook::result_type();
    };
}
}  // namespace detail

/// Base of all NAMEImpl structs. A module is made without recording gradients; then its own floating-point parameters
/// require them.
class INGOT_API Module {
 public:
  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
  using NamedModules = std::vector<std::pair<std::string, Module*>>;

  Module() = default;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  bool is_training() const { return training_; }
  /// For this module and all below it.
  void train(bool on = true);
  void eval() { train(false); }

  /// With the names that PyTorch gives: "h.3.mlp_up.weight". What is not floating has no gradient, and is a buffer.
  NamedTensors named_parameters();
  NamedTensors named_buffers();
  /// Tied ones once.
  std::vector<Tensor> parameters();
  std::vector<Tensor> buffers();
  NamedModules named_children();
  /// All modules of the tree; this one comes first, its name is empty.
  NamedModules named_modules();
  /// The tree of modules as text, a line each, as PyTorch prints it: name, type, and the shapes of its own tensors.
  std::string str();
  /// The tensors themselves; gradients do not go through those of the state dict.
  StateDict state_dict();
  /// Copies values into parameters and buffers, or takes the tensors themselves. Throws Error, before anything is
  /// changed, that names every tensor of a wrong shape, every integer one for which there are no integers, or wider
  /// ones, and, if strict, every name that is missing or unknown. Tied tensors stay tied, and a state may have them
  /// once; of several that are given for one, the last counts.
  IncompatibleKeys load_state_dict(const StateDict& state, const LoadStateOptions& options,
                                   Location location = Location());
  /// Checks all of it, strictly, and gives what then copies it.
  [[nodiscard]] std::function<void()> loading(const StateDict& state, Location location = Location());
  IncompatibleKeys load_state_dict(const StateDict& state, bool strict = true, Location location = Location()) {
    return load_state_dict(state, LoadStateOptions{.strict = strict}, location);
  }
  /// Whether gradients go to its floating-point parameters.
  void requires_grad_(bool on = true);
  /// Removes the gradients of its parameters, or makes them zeros.
  void zero_grad(bool set_to_none = true);
  /// Converts floating-point parameters and buffers: they are other tensors from then on, so optimizers are made later.
  void to(DType dtype, Location location = Location());
  /// Itself as what a handle M refers to, null where it is of another type: `module.as<nn::Conv2d>()`.
  template <class M>
  typename M::Impl* as() {
    return dynamic_cast<typename M::Impl*>(this);
  }
  /// Calls f for every module of the tree, children first.
  void apply(const std::function<void(Module&)>& f);
  // Hooks are called where the module is called through its handle, in the order in which they were registered, and
  // where a compiled function is recorded: what they call is part of it. A frozen function is learnt anew when hooks
  // have come or gone. They see the tensors among the arguments. A call whose first argument is no tensor is an Error
  // where there are hooks, and so is a result that is no tensor where they are forward or backward hooks. Each gives a
  // number for remove_hook(). While the module is called by other threads they must stay as they are.
  /// See ForwardPreHook; it may give nothing.
  template <class F>
  int64_t register_forward_pre_hook(F hook) {
    return add_hook(detail::hook_of<ForwardPreHook>(std::move(hook)));
  }
  /// See ForwardHook; it may give nothing.
  template <class F>
  int64_t register_forward_hook(F hook) {
    return add_hook(detail::hook_of<ForwardHook>(std::move(hook)));
  }
  /// See BackwardHook; it may give nothing. Where no input requires grad it is called without gradients of inputs as
  /// soon as that of the result is known.
  template <class F>
  int64_t register_full_backward_hook(F hook) {
    return add_hook(detail::hook_of<BackwardHook>(std::move(hook)));
  }
  void remove_hook(int64_t id);
  /// Those that it has: another object after each change, null where there is none.
  const std::shared_ptr<const detail::Hooks>& hooks() const { return hooks_; }
  /// A module of the same type with parameters, buffers and children of its own: what is tied here is tied there, and
  /// no gradient is copied; hooks are shared. Fields that INGOT_MODULE does not list are copied by the copy
  /// constructor, so a handle or a tensor among them is shared. Throws Error for a module, here or below, that has no
  /// copy constructor. A handle's clone() gives a handle of its type.
  std::shared_ptr<Module> clone(Location location = Location());

  /// Its fields, as its handle describes them.
  void visit(Fields& fields);

 protected:
  /// A first step of clone(): all fields are still the other's.
  Module(const Module& other);

 private:
  class Cloner;
  friend class CallScope;
  friend class HookedCall;
  template <class Self, class Impl>
  friend class Handle;
  IncompatibleKeys check_state(const StateDict& state, bool strict, Location location);
  void take_state(const StateDict& state, bool assign, Location location);
  int64_t add_hook(ForwardPreHook hook);
  int64_t add_hook(ForwardHook hook);
  int64_t add_hook(BackwardHook hook);
  void name_children();
  void track_own_parameters();

  bool training_ = true;
  std::string name_;                   // in the parent that was called last
  std::atomic<uint64_t> named_at_{0};  // count of modules made when the children got their names
  void (*describe_)(Module&, Fields&) = nullptr;
  std::shared_ptr<Module> (*copy_)(const Module&) = nullptr;
  const char* type_ = "module";
  std::shared_ptr<const detail::Hooks> hooks_;
};

INGOT_API std::ostream& operator<<(std::ostream& out, Module& module);
INGOT_API std::ostream& operator<<(std::ostream& out, const HandleBase& handle);

/// Base of the library's own modules: ops inside are said of the line that calls the module.
class INGOT_API Layer : public Module {};

/// For the length of a call of a module: its name stands in the path that every recorded op carries. Who looks on is
/// told of it.
class INGOT_API CallScope {
 public:
  CallScope(const HandleBase& handle, Location caller);
  CallScope(const HandleBase& handle, CallerLine::Own own);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  static size_t enter(const HandleBase& handle);

  CallerLine line_;
  size_t length_;
};

/// A call of a module that has hooks.
class INGOT_API HookedCall {
 public:
  /// Calls the pre-hooks. `gives_tensor`: whether the result is one.
  HookedCall(const std::shared_ptr<Module>& module, std::vector<Tensor> inputs, bool gives_tensor, Location location);
  /// What forward gets.
  const Tensor& input(size_t i) const { return inputs_[i]; }
  /// What the call gives where forward gave this.
  Tensor result_of(Tensor output);
  /// Of one tensor.
  static Tensor call(const std::shared_ptr<Module>& module, const TensorArg& x,
                     Tensor (*forward)(Module& module, const TensorArg& x));
  /// A call without tensors is refused.
  [[noreturn]] static void refuse(const Module& module, Location location);

 private:
  struct Backward;
  const std::shared_ptr<Module> module_;
  const std::shared_ptr<const detail::Hooks> hooks_;
  std::vector<Tensor> inputs_;
  std::shared_ptr<Backward> backward_;
};

namespace detail {
template <class T>
inline constexpr bool is_tensor = std::is_convertible_v<const std::remove_cvref_t<T>&, const Tensor&>;
template <class... Rest>
std::vector<Tensor> tensors_of(const TensorArg& first, const Rest&... rest) {
  std::vector<Tensor> tensors{first.get()};
  [[maybe_unused]] auto add = [&tensors]([[maybe_unused]] const auto& argument) {
    if constexpr (is_tensor<decltype(argument)>) tensors.push_back(argument);
  };
  (add(rest), ...);
  return tensors;
}
INGOT_API void count_module();
template <class T>
concept ModuleHandle = std::is_base_of_v<HandleBase, std::remove_cvref_t<T>>;
/// forward takes these.
template <class Impl, class... Args>
concept Forwards = requires(Impl& impl, Args&&... args) {
  impl.forward(std::forward<Args>(args)...);
};
/// forward takes a tensor, and the caller's line with it or not, and these.
template <class Impl, class... Rest>
concept ForwardsTensor = Forwards<Impl, const TensorArg&, Rest...> || Forwards<Impl, const Tensor&, Rest...>;
template <class Impl, class... Args>
inline constexpr bool tensor_first = false;
template <class Impl, class First, class... Rest>
inline constexpr bool tensor_first<Impl, First, Rest...> =
    std::is_convertible_v<First, const TensorArg&>&& ForwardsTensor<Impl, Rest...>;
/// Throws Error: an empty module of this type was used at this line.
[[noreturn]] INGOT_API void fail_empty(const char* type, Location location);
}  // namespace detail

namespace detail {
/// The line that makes a module, as the last parameter of a constructor. Nothing but a Location converts to it.
struct MadeAt {
  Location line;
  constexpr MadeAt(Location l = Location()) : line(l) {}
};
/// Whether a handle is made from these; from one of its own type it is a copy.
template <class Self, class Impl, class... Args>
concept Makes = !(sizeof...(Args) == 1 && (std::is_base_of_v<Self, std::remove_cvref_t<Args>> && ...)) &&
                std::is_constructible_v<Impl, Args...>;
}  // namespace detail

/// A shared reference to an Impl. Constructed as the Impl is; nullptr gives an empty one, which modules that hold it
/// pass over, as PyTorch does with None; calling it, or reaching into it, throws Error.
template <class Self, class Implementation>
class Handle : public HandleBase {
 public:
  using Impl = Implementation;
  Handle(std::nullptr_t) {}
  // A pack leaves no room for the line: a constructor for each number of arguments, up to four.
  Handle(detail::MadeAt at = detail::MadeAt()) requires detail::Makes<Handle, Impl> : HandleBase(made(at)) {}
  template <class A>
  requires detail::Makes<Handle, Impl, A> Handle(A&& a, detail::MadeAt at = detail::MadeAt())
      : HandleBase(made(at, std::forward<A>(a))) {}
  template <class A, class B>
  requires detail::Makes<Handle, Impl, A, B> Handle(A&& a, B&& b, detail::MadeAt at = detail::MadeAt())
      : HandleBase(made(at, std::forward<A>(a), std::forward<B>(b))) {}
  template <class A, class B, class C>
  requires detail::Makes<Handle, Impl, A, B, C> Handle(A&& a, B&& b, C&& c, detail::MadeAt at = detail::MadeAt())
      : HandleBase(made(at, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c))) {}
  template <class A, class B, class C, class D>
  requires detail::Makes<Handle, Impl, A, B, C, D> Handle(A&& a, B&& b, C&& c, D&& d,
                                                          detail::MadeAt at = detail::MadeAt())
      : HandleBase(made(at, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d))) {}
  template <class... Args>
  requires(sizeof...(Args) > 4 && detail::Makes<Handle, Impl, Args...>) Handle(Args&&... args)
      : HandleBase(made(Location::none(), std::forward<Args>(args)...)) {
    static_assert(!std::is_base_of_v<Layer, Impl>,
                  "a layer says of which line it is, so it takes four arguments at most");
  }

  Impl* operator->() const { return &held(Location::none()); }
  Impl& operator*() const { return held(Location::none()); }
  std::shared_ptr<Impl> ptr() const { return std::static_pointer_cast<Impl>(module_); }
  /// See Module::clone.
  Self clone(Location location = Location()) const {
    return HandleBase::handle_to<Self>(static_cast<Module&>(held(location)).clone(location));
  }

  /// Runs forward.
  template <class... Rest>
  requires detail::ForwardsTensor<Impl, Rest...>
  auto operator()(const TensorArg& x, Rest&&... rest) const {
    Impl& impl = held(x.location);
    CallScope scope(*this, line_of(x.location));
    if (static_cast<Module&>(impl).hooks_) return call_with_hooks(impl, x, std::forward<Rest>(rest)...);
    return run(impl, x, std::forward<Rest>(rest)...);
  }
  template <class First>
  requires(!detail::tensor_first<Impl, First> && detail::Forwards<Impl, First>) auto operator()(
      First&& first, Location caller = Location()) const {
    Impl& impl = without_hooks(caller);
    CallScope scope(*this, line_of(Location::none()));
    return impl.forward(std::forward<First>(first));
  }
  auto operator()(Location caller = Location()) const requires detail::Forwards<Impl> {
    Impl& impl = without_hooks(caller);
    CallScope scope(*this, line_of(Location::none()));
    return impl.forward();
  }
  /// Of several arguments, the first of which is no tensor, none tells the caller's line.
  template <class... Args>
  requires(sizeof...(Args) > 1 && !detail::tensor_first<Impl, Args...> && detail::Forwards<Impl, Args...>) auto
  operator()(Args&&... args) const {
    Impl& impl = without_hooks(Location::none());
    CallScope scope(*this, line_of(Location::none()));
    return impl.forward(std::forward<Args>(args)...);
  }

 private:
  /// What a layer refuses is said of the line that makes it; a module of the user's has lines of its own.
  template <class... Args>
  static std::shared_ptr<Impl> made(detail::MadeAt at, Args&&... args) {
    const CallerLine line(line_of(at.line));
    const NoGradGuard no_grad;
    std::shared_ptr<Impl> impl = std::make_shared<Impl>(std::forward<Args>(args)...);
    Module& module = *impl;
    module.describe_ = [](Module& m, Fields& fields) { Self::fields(static_cast<Impl&>(m), fields); };
    module.type_ = Self::module_type();
    if constexpr (std::is_copy_constructible_v<Impl>)
      module.copy_ = [](const Module& m) -> std::shared_ptr<Module> {
        return std::make_shared<Impl>(static_cast<const Impl&>(m));
      };
    module.track_own_parameters();
    detail::count_module();
    return impl;
  }
  template <class... Rest>
  static auto run(Impl& impl, const TensorArg& x, Rest&&... rest) {
    if constexpr (detail::Forwards<Impl, const TensorArg&, Rest...>)
      return impl.forward(x, std::forward<Rest>(rest)...);
    else
      return impl.forward(x.get(), std::forward<Rest>(rest)...);
  }
  template <class... Rest>
  auto call_with_hooks(Impl& impl, const TensorArg& x, Rest&&... rest) const {
    constexpr bool gives_tensor = std::is_same_v<decltype(run(impl, x, std::forward<Rest>(rest)...)), Tensor>;
    if constexpr (gives_tensor && sizeof...(Rest) == 0) {
      return HookedCall::call(
          module_, x, [](Module& m, const TensorArg& with) -> Tensor { return run(static_cast<Impl&>(m), with); });
    } else {
      HookedCall call(module_, detail::tensors_of(x, rest...), gives_tensor, x.location);
      [[maybe_unused]] size_t next = 0;
      auto in_place_of = [&]([[maybe_unused]] auto&& argument) -> decltype(auto) {
        if constexpr (detail::is_tensor<decltype(argument)>)
          return call.input(++next);
        else
          return std::forward<decltype(argument)>(argument);
      };
      auto forward = [&](auto&&... with) {
        return run(impl, TensorArg(call.input(0), x.location), std::forward<decltype(with)>(with)...);
      };
      // In braces they are taken in their order.
      std::tuple<decltype(in_place_of(std::forward<Rest>(rest)))...> with{in_place_of(std::forward<Rest>(rest))...};
      if constexpr (gives_tensor)
        return call.result_of(std::apply(forward, std::move(with)));
      else
        return std::apply(forward, std::move(with));
    }
  }
  Impl& held(Location caller) const {
    if (!module_) detail::fail_empty(Self::module_type(), caller);
    return static_cast<Impl&>(*module_);
  }
  Impl& without_hooks(Location caller) const {
    Impl& impl = held(caller);
    if (static_cast<Module&>(impl).hooks_) HookedCall::refuse(impl, caller);
    return impl;
  }
  static auto line_of([[maybe_unused]] Location caller) {
    if constexpr (std::is_base_of_v<Layer, Impl>)
      return caller;
    else
      return CallerLine::Own();
  }
};

/// What a handle is made from: one of the lists of HandleFrom.
template <class... Args>
struct From;
/// A handle that is also made from exactly these, any of which may be a list in braces. As a template it costs nothing
/// until it is used.
template <class Self, class Impl, class... Lists>
class HandleFrom : public Handle<Self, Impl> {
 public:
  using Handle<Self, Impl>::Handle;
};
template <class Self, class Impl, class... Args, class... Lists>
class HandleFrom<Self, Impl, From<Args...>, Lists...> : public HandleFrom<Self, Impl, Lists...> {
 public:
  using HandleFrom<Self, Impl, Lists...>::HandleFrom;
  HandleFrom(Args... args, detail::MadeAt at = detail::MadeAt())
      : HandleFrom<Self, Impl, Lists...>(std::forward<Args>(args)..., at) {}
};

/// Any module that takes one tensor and gives one.
class AnyModule : public HandleBase {
 public:
  template <class M>
  requires(detail::ModuleHandle<M> && !std::is_same_v<M, AnyModule>) AnyModule(M module)
      : HandleBase(module.module()),
        type_(M::module_type()),
        call_([](const std::shared_ptr<Module>& held, const TensorArg& x) -> Tensor { return handle_to<M>(held)(x); }) {
  }
  Module* operator->() const { return &held(Location::none()); }
  Module& operator*() const { return held(Location::none()); }
  const std::shared_ptr<Module>& ptr() const { return module_; }
  Tensor operator()(const TensorArg& x) const {
    held(x.location);
    return call_(module_, x);
  }

 private:
  Module& held(Location caller) const {
    if (!module_) detail::fail_empty(type_, caller);
    return *module_;
  }

  const char* type_;
  Tensor (*call_)(const std::shared_ptr<Module>& held, const TensorArg& x);
};

}  // namespace nn
}  // namespace ingot

#define INGOT_MODULE_FIELD(field) visit(#field, self.field)
/// The fields of NAMEImpl that are parameters, buffers and modules; stands inside the handle's class.
#define INGOT_MODULE_FIELDS(NAME, ...)                                                                 \
  static constexpr const char* module_type() { return #NAME; }                                         \
  static void fields([[maybe_unused]] NAME##Impl& self, [[maybe_unused]] ::ingot::nn::Fields& visit) { \
    static_cast<void>(0) __VA_OPT__(, INGOT_FOR_EACH(INGOT_MODULE_FIELD, __VA_ARGS__));                \
  }
/// Makes NAME, the handle to NAMEImpl, and lists its fields.
#define INGOT_MODULE(NAME, ...)                               \
  class NAME : public ::ingot::nn::Handle<NAME, NAME##Impl> { \
   public:                                                    \
    using ::ingot::nn::Handle<NAME, NAME##Impl>::Handle;      \
    INGOT_MODULE_FIELDS(NAME __VA_OPT__(, ) __VA_ARGS__)      \
  }
