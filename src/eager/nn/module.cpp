#include "eager/nn/module.h"

#include <algorithm>
#include <atomic>
#include <ostream>
#include <set>
#include <string_view>

#include "base/module_path.h"
#include "base/mutex.h"
#include "base/overlap.h"
#include "eager/call/call.h"
#include "eager/call/script.h"
#include "eager/data.h"
#include "eager/nn/clip_grad.h"
#include "eager/nn/gather.h"
#include "eager/ops/checks.h"
#include "eager/ops/functions.h"

namespace ingot::nn {
namespace {

using detail::Gather;
using detail::Slot;

// Children get their names again once a module has been made since: a field may hold another one now.
std::atomic<uint64_t> modules_made{1};

/// What checkpoints have. Throws Error where two tensors have one name: a checkpoint would have one of them.
std::vector<Slot> persistent(Module& module) {
  std::vector<Slot> slots = Gather(module).slots;
  std::erase_if(slots, [](const Slot& s) { return s.kind == BufferKind::non_persistent; });
  std::set<std::string_view> names;
  for (const Slot& s : slots)
    if (!names.insert(s.name).second)
      eager::fail("state_dict", "module", "two tensors named \"" + s.name + "\"",
                  "a name of its own for each: names in a vector of pairs differ, and have no dots", Location::none());
  return slots;
}

Module::NamedTensors named(Module& module, bool buffers) {
  Module::NamedTensors result;
  for (const Slot& s : Gather(module).slots)
    if (s.buffer == buffers) result.emplace_back(s.name, *s.tensor);
  return result;
}

std::vector<Tensor> values(const Module::NamedTensors& named) {
  std::vector<Tensor> result;
  for (const auto& [name, tensor] : named) result.push_back(tensor);
  return result;
}

std::string text(IntArrayRef sizes) {
  std::string s = "[";
  for (size_t i = 0; i < sizes.size(); ++i) s += (i ? ", " : "") + std::to_string(sizes[i]);
  return s + "]";
}

/// Whether a tensor of this dtype is loaded into the slot: integers that hold it, where integers are asked for.
bool takes(const Slot& slot, DType given) {
  const DType own = slot.tensor->dtype();
  if (slot.kind == BufferKind::fixed) return given == own;
  return is_floating(own) || promote(given, own) == own;
}

/// Ten names at most, and how many more there are.
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 10;
  std::string s;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) s += (i ? ", " : "") + names[i];
  if (names.size() > kMost) s += ", ... and " + std::to_string(names.size() - kMost) + " more";
  return s;
}

thread_local bool skip_init = false;

/// The same elements, as a leaf that gradients go to, or not.
Tensor leaf_of(const Tensor& given, bool tracked) {
  tracked = tracked && is_floating(given.dtype());
  if (given.is_leaf() && given.requires_grad() == tracked) return given;
  return given.detach().requires_grad_(tracked);
}

}  // namespace

SkipInit::SkipInit() : outer_(std::exchange(skip_init, true)) {}
SkipInit::~SkipInit() { skip_init = outer_; }
bool SkipInit::active() { return skip_init; }

void detail::count_module() { modules_made.fetch_add(1, std::memory_order_relaxed); }

void Module::visit(Fields& fields) {
  if (!describe_)
    throw Error(
        "nn::Module: its fields are not known: it was made without its handle, or its constructor asks for them "
        "(with INGOT_MODULE(Net, ...), write `Net net(...)`, which makes a NetImpl)");
  describe_(*this, fields);
}

void Module::train(bool on) {
  for (auto& [name, module] : Gather(*this).modules) module->training_ = on;
}

Module::NamedTensors Module::named_parameters() { return named(*this, false); }
Module::NamedTensors Module::named_buffers() { return named(*this, true); }
std::vector<Tensor> Module::parameters() {
  std::vector<Tensor> result;
  std::set<ingot::detail::TensorImpl*> seen;
  for (const auto& [name, tensor] : named(*this, false))
    if (seen.insert(tensor.impl()).second) result.push_back(tensor);
  return result;
}
std::vector<Tensor> Module::buffers() { return values(named(*this, true)); }
Module::NamedModules Module::named_children() { return Gather(*this).children; }
Module::NamedModules Module::named_modules() { return Gather(*this).modules; }

std::string Module::str() {
  class Printer : public Fields {
   public:
    std::string own, children;

   protected:
    void parameter(const std::string& name, Tensor& tensor) override { add(name, tensor); }
    void buffer(const std::string& name, Tensor& tensor, BufferKind) override { add(name, tensor); }
    void child(const std::string& name, Module& module) override {
      std::string text = module.str();
      for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3) text.insert(at + 1, "  ");
      children += "\n  (" + name + "): " + text;
    }

   private:
    void add(const std::string& name, const Tensor& tensor) {
      if (tensor.defined()) own += (own.empty() ? "" : ", ") + name + " " + eager::text(tensor.sizes());
    }
  } printer;
  visit(printer);
  std::string text = type_;
  if (printer.children.empty()) return text + "(" + printer.own + ")";
  if (!printer.own.empty())
    text += "(\n  " + printer.own;
  else
    text += "(";
  return text + printer.children + "\n)";
}
std::ostream& operator<<(std::ostream& out, Module& module) { return out << module.str(); }
std::ostream& operator<<(std::ostream& out, const HandleBase& handle) {
  return handle ? out << handle.module()->str() : out << "None";
}

StateDict Module::state_dict() {
  const NoGradGuard no_grad;
  StateDict state;
  for (const Slot& s : persistent(*this)) state[s.name] = s.tensor->requires_grad() ? s.tensor->detach() : *s.tensor;
  return state;
}

IncompatibleKeys Module::load_state_dict(const StateDict& state, const LoadStateOptions& options, Location location) {
  IncompatibleKeys keys = check_state(state, options.strict, location);
  take_state(state, options.assign, location);
  return keys;
}

std::function<void()> Module::loading(const StateDict& state, Location location) {
  check_state(state, true, location);
  return [this, state, location] { take_state(state, false, location); };
}

IncompatibleKeys Module::check_state(const StateDict& state, bool strict, Location location) {
  IncompatibleKeys keys;
  std::vector<std::string> wrong, dtypes;
  const std::vector<Slot> slots = persistent(*this);
  std::set<std::string_view> own;
  std::set<ingot::detail::TensorImpl*> filled;  // one of several that are tied fills the others
  for (const Slot& s : slots)
    if (state.count(s.name)) filled.insert(s.tensor->impl());
  for (const Slot& s : slots) {
    own.insert(s.name);
    auto given = state.find(s.name);
    if (given == state.end()) {
      if (!filled.count(s.tensor->impl())) keys.missing_keys.push_back(s.name);
    } else if (const Tensor& t = given->second; !t.defined()) {
      wrong.push_back(s.name + ": undefined");
    } else if (t.sizes(location) != s.tensor->sizes()) {
      wrong.push_back(s.name + ": " + text(t.sizes()) + " for " + text(s.tensor->sizes()));
    } else if (!takes(s, t.dtype())) {
      dtypes.push_back(s.name + ": " + std::string(name_of(t.dtype())) + " for " +
                       std::string(name_of(s.tensor->dtype())));
    }
  }
  for (const auto& [name, tensor] : state)
    if (!own.count(name)) keys.unexpected_keys.push_back(name);

  std::string got;
  auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) got += (got.empty() ? "" : "; ") + std::string(what) + " " + listed(names);
  };
  if (strict) add("no tensor for", keys.missing_keys);
  if (strict) add("tensors that the module does not have:", keys.unexpected_keys);
  add("wrong shapes:", wrong);
  add("wrong dtypes:", dtypes);
  if (!got.empty())
    eager::fail(
        "load_state_dict", "state", got,
        std::string(strict ? "one tensor for each parameter and buffer, of its shape" : "tensors of the same shapes") +
            (dtypes.empty() ? "" : " and dtype"),
        location);
  return keys;
}

void Module::take_state(const StateDict& state, bool assign, Location location) {
  const NoGradGuard no_grad;
  // What tied tensors become, all of them, whether each has a name in the state or not.
  struct Became {
    Tensor before, now;
  };
  std::map<ingot::detail::TensorImpl*, Became> became;
  std::map<ingot::detail::TensorImpl*, Tensor> assigned;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const Slot& s : persistent(*this)) {
    auto given = state.find(s.name);
    if (given == state.end()) continue;
    const bool tracked = s.tensor->requires_grad();
    ingot::detail::TensorImpl& own = *s.tensor->impl();
    if (assign) {
      Tensor& leaf = assigned[given->second.impl()];
      if (!leaf.defined() || leaf.requires_grad() != tracked) leaf = leaf_of(given->second, tracked);
      became[&own] = {*s.tensor, leaf};
      continue;
    }
    // Memory for what SkipInit left without.
    if (elements_overlap(own.sizes, own.strides) && !became.count(&own))
      became[&own] = {*s.tensor, empty(own.sizes, TensorOptions(own.dtype).requires_grad(tracked), location)};
    const auto made = became.find(&own);
    copies.emplace_back(made == became.end() ? *s.tensor : made->second.now, given->second);
  }
  for (const Slot& s : Gather(*this).slots)
    if (auto it = became.find(s.tensor->impl()); it != became.end()) *s.tensor = it->second.now;
  for (const auto& [to, from] : copies) to.copy_(from, location);
}

void Module::to(DType dtype, Location location) {
  if (!is_floating(dtype)) eager::fail("to", "dtype", std::string(name_of(dtype)), "a floating-point dtype", location);
  const NoGradGuard no_grad;
  std::map<ingot::detail::TensorImpl*, Tensor> converted;  // tied parameters stay tied
  for (const Slot& s : Gather(*this).slots) {
    if (!s.tensor->is_floating_point() || s.kind == BufferKind::fixed) continue;
    auto [it, fresh] = converted.try_emplace(s.tensor->impl());
    if (fresh) it->second = leaf_of(s.tensor->to(dtype, location), s.tensor->requires_grad());
    *s.tensor = it->second;
  }
}

void Module::requires_grad_(bool on) {
  for (const Tensor& p : parameters())
    if (p.is_floating_point()) p.requires_grad_(on);
}

void Module::zero_grad(bool set_to_none) {
  for (const Tensor& p : parameters()) detail::clear_gradient(p, set_to_none, Location::none());
}

void Module::track_own_parameters() {
  class Tracker : public Fields {
   protected:
    void parameter(const std::string&, Tensor& tensor) override {
      if (tensor.defined() && tensor.is_floating_point() && tensor.is_leaf()) tensor.requires_grad_();
    }
    void buffer(const std::string&, Tensor&, BufferKind) override {}
    void child(const std::string&, Module&) override {}
  } tracker;
  visit(tracker);
}

void Module::apply(const std::function<void(Module&)>& f) {
  NamedModules modules = named_modules();
  for (size_t i = modules.size(); i-- > 0;) f(*modules[i].second);
}

Module::Module(const Module& other)
    : training_(other.training_),
      describe_(other.describe_),
      copy_(other.copy_),
      type_(other.type_),
      hooks_(other.hooks_) {}

/// Gives the fields of a copied module tensors and modules of their own. What was met before has its copy already.
class Module::Cloner : public Fields {
 public:
  explicit Cloner(Location location) : location_(location) {}
  std::shared_ptr<Module> clone(Module& module) {
    std::shared_ptr<Module>& copy = modules_[&module];
    if (copy) return copy;
    if (!module.copy_)
      eager::fail("clone", "self", std::string("a ") + module.type_ + " without a copy constructor",
                  "modules that can be copied", location_);
    const std::shared_ptr<Module> made = copy = module.copy_(module);
    made->visit(*this);
    return made;
  }

 protected:
  void parameter(const std::string&, Tensor& tensor) override {
    if (!tensor.defined()) return;
    Tensor& copy = tensors_[tensor.impl()];
    if (!copy.defined()) copy = leaf_of(tensor.detach(location_).clone(location_), tensor.requires_grad());
    tensor = copy;
  }
  void buffer(const std::string& name, Tensor& tensor, BufferKind) override { parameter(name, tensor); }
  void handle(HandleBase& handle) override {
    if (handle) handle.module_ = clone(*handle.module_);
  }
  void child(const std::string&, Module&) override {}  // its handle came first

 private:
  Location location_;
  std::map<const Module*, std::shared_ptr<Module>> modules_;
  std::map<const ingot::detail::TensorImpl*, Tensor> tensors_;
};

std::shared_ptr<Module> Module::clone(Location location) {
  const NoGradGuard no_grad;
  std::shared_ptr<Module> result = Cloner(location).clone(*this);
  detail::count_module();
  return result;
}

void Module::name_children() {
  uint64_t made = modules_made.load(std::memory_order_relaxed);
  if (named_at_.load(std::memory_order_acquire) == made) return;
  static constinit Mutex mutex;  // a module may be called by several threads at once
  std::lock_guard lock(mutex);
  if (named_at_.load(std::memory_order_relaxed) == made) return;
  class Namer : public Fields {
   protected:
    void parameter(const std::string&, Tensor&) override {}
    void buffer(const std::string&, Tensor&, BufferKind) override {}
    void child(const std::string& name, Module& module) override {
      if (module.name_ != name) module.name_ = name;
    }
  } namer;
  visit(namer);
  named_at_.store(made, std::memory_order_release);
}

void detail::fail_empty(const char* type, Location location) {
  eager::fail(type, "self", "an empty module", std::string("one that holds a ") + type, location);
}

size_t CallScope::enter(const HandleBase& handle) {
  Module& module = *handle.module();
  module.name_children();
  if (eager::ScriptWriter* writer = eager::ScriptWriter::current()) writer->module(handle.module());
  return push_module(module.name_);
}
CallScope::CallScope(const HandleBase& handle, Location caller) : line_(caller), length_(enter(handle)) {}
CallScope::CallScope(const HandleBase& handle, CallerLine::Own own) : line_(own), length_(enter(handle)) {}
CallScope::~CallScope() { pop_module(length_); }

}  // namespace ingot::nn
