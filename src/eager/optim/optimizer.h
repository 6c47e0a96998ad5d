// What all optimizers share: parameters in groups with options of their own, steps, and state that is saved and loaded.
// Names, defaults and formulas are PyTorch's.
//
//   optim::AdamW opt(model->parameters(), {.lr = 3e-4});
//   optim::SGD opt({{backbone, {.lr = 1e-3}}, {head, {.lr = 1e-2, .momentum = 0.9}}});
//
//   opt.zero_grad();
//   loss.backward();
//   opt.step();
//
// A step is made of in-place ops. What changes from step to step (rates, corrections of a bias) are numbers that the
// ops are given, so a compiled step is not compiled again for them.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "eager/serialization.h"

namespace ingot::optim {

using Betas = std::array<double, 2>;

/// A named number, flag or tensor of an optimizer: an option of a group, or what is kept of a parameter.
struct Entry {
  std::string name;
  std::variant<double*, bool*, int64_t*, Betas*, Tensor*> at;
};

class INGOT_API Optimizer {
 public:
  using Closure = std::function<Tensor()>;
  /// Neither copied nor moved: schedulers, and compiled calls that may be refused, refer to it. A function may return a
  /// new one, and a std::optional or std::unique_ptr hold one.
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// Updates every parameter that has a gradient.
  virtual void step(Location location = Location());
  /// Calls `closure`, which computes the gradients and gives the loss, before. Returns the loss.
  virtual Tensor step(const Closure& closure, Location location = Location());
  /// Removes the gradients of all parameters, or makes them zeros.
  void zero_grad(bool set_to_none = true, Location location = Location());

  size_t num_groups() const { return initial_lr_.size(); }
  std::vector<Tensor> params(size_t group = 0) const;
  /// Of a group: its number is checked by all that take one.
  double lr(size_t group = 0) { return *option<double>("lr", group); }
  void set_lr(double lr, size_t group = 0) { *option<double>("lr", group) = lr; }
  /// The rate that a scheduler began with; it is saved with the options.
  std::optional<double>& initial_lr(size_t group = 0) { return initial_lr_[checked(group)]; }
  /// An option by its name; null where there is none of this name and type.
  template <class T>
  T* option(std::string_view name, size_t group) {
    for (const Entry& e : options_of(checked(group)))
      if (T* const* at = std::get_if<T*>(&e.at); at && e.name == name) return *at;
    return nullptr;
  }

  /// "state.I.NAME" of parameter I, counted through all groups, and "param_groups.G.NAME" of the options. Tensors are
  /// the optimizer's own, not copies.
  StateDict state_dict();
  /// Throws Error, before anything is changed, that names what is missing, unknown or of a wrong shape.
  void load_state_dict(const StateDict& state, Location location = Location()) { loading(state, location)(); }
  /// Checks all of it, and gives what then does it.
  [[nodiscard]] virtual std::function<void()> loading(const StateDict& state, Location location = Location()) = 0;
  /// Of its type: "AdamW".
  virtual const char* name() const = 0;

 protected:
  struct Param {
    Tensor tensor;
    size_t group;
  };
  Optimizer() = default;
  /// The number of a group that there is.
  size_t checked(size_t group) const;
  void check_params(const std::vector<Tensor>& params, Location location) const;
  /// Throws Error unless these are the numbers of the group's parameters.
  void check_group(const std::vector<double>& numbers, size_t group, Location location) const;
  /// A group of its own.
  void add_params(const std::vector<Tensor>& params);
  /// How many rows (of dim 0) of a parameter are updated at a time, op after op: pieces that stay in the caches are
  /// read from memory once. What is recorded, or looked on, is whole.
  static int64_t rows_at_once(const Tensor& parameter);
  /// The loss of a closure, which records gradients. Throws Error for an empty one.
  Tensor evaluated(const Closure& closure, Location location) const;
  /// Gives a parameter's state back what it has now if the compiled call in which it is changed is refused.
  void restore_if_refused(size_t param);

  virtual std::vector<Entry> options_of(size_t group) = 0;
  virtual std::vector<Entry> state_of(size_t param) = 0;
  virtual void update(size_t param, const Tensor& gradient) = 0;
  /// What gives a parameter's state back its counters, and the tensors that it has now: updates write these in place.
  virtual std::function<void()> restoring(size_t param) = 0;

  std::vector<Param> params_;
  std::vector<std::optional<double>> initial_lr_;  // of each group

 private:
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // a compiled call may end after the optimizer
};

/// An optimizer is its options and the state of a parameter, which knows how to follow a gradient
/// (eager/optim/optimizers.h).
template <class Options, class State>
class OptimizerOf final : public Optimizer {
 public:
  struct ParamGroup {
    std::vector<Tensor> params;
    Options options = {};
  };
  /// Those that do not require grad are left alone for as long as they do not. Throws Error for options out of range,
  /// no parameters, one that is there twice, and one that an op made.
  explicit OptimizerOf(const std::vector<Tensor>& params, const Options& options = {}, Location location = Location()) {
    add_param_group({params, options}, location);
  }
  explicit OptimizerOf(const std::vector<ParamGroup>& groups, Location location = Location());
  void add_param_group(const ParamGroup& group, Location location = Location());
  /// May be changed between steps.
  Options& options(size_t group = 0) { return options_[checked(group)]; }

  [[nodiscard]] std::function<void()> loading(const StateDict& state, Location location = Location()) override;
  const char* name() const override { return Options::kName; }

 private:
  std::vector<Entry> options_of(size_t group) override;
  std::vector<Entry> state_of(size_t param) override;
  void update(size_t param, const Tensor& gradient) override;
  std::function<void()> restoring(size_t param) override {
    return [this, param, state = states_[param]] { states_[param] = state; };
  }

  std::vector<Options> options_;
  std::vector<State> states_;
};

}  // namespace ingot::optim
