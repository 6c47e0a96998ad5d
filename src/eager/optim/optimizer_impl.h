// The part of an optimizer that depends on its type; for the file that instantiates it.
#pragma once
#include "eager/autograd/autograd.h"
#include "eager/call/call.h"
#include "eager/optim/optimizer.h"
#include "eager/optim/state_reader.h"

namespace ingot::optim {

template <class T>
std::vector<Entry> entries_of(T& described) {
  std::vector<Entry> entries;
  for_each_field(described, [&](std::string_view name, auto& field) {
    entries.push_back({std::string(name), &field});
  });
  return entries;
}

template <class Options, class State>
OptimizerOf<Options, State>::OptimizerOf(const std::vector<ParamGroup>& groups, Location location) {
  if (groups.empty()) eager::fail(name(), "params", "no groups", "at least one", location);
  for (const ParamGroup& group : groups) add_param_group(group, location);
}

template <class Options, class State>
void OptimizerOf<Options, State>::add_param_group(const ParamGroup& group, Location location) {
  group.options.check(location);
  check_params(group.params, location);
  if constexpr (requires { State::kDims; })
    for (const Tensor& p : group.params)
      if (p.dim() != State::kDims)
        eager::fail(name(), "params", std::to_string(p.dim()) + " dims", std::to_string(State::kDims), location);
  add_params(group.params);
  options_.push_back(group.options);
  states_.resize(params_.size());
}

template <class Options, class State>
std::vector<Entry> OptimizerOf<Options, State>::options_of(size_t group) {
  return entries_of(options_[group]);
}
template <class Options, class State>
std::vector<Entry> OptimizerOf<Options, State>::state_of(size_t param) {
  return entries_of(states_[param]);
}

template <class Options, class State>
void OptimizerOf<Options, State>::update(size_t param, const Tensor& gradient) {
  const Param& p = params_[param];
  const Options& o = options_[p.group];
  State& state = states_[param];
  state.prepare(p.tensor, o);
  ++state.step;
  constexpr bool kWhole = requires { State::kWhole; };
  const int64_t rows = kWhole ? INT64_MAX : rows_at_once(p.tensor);
  const int64_t all = p.tensor.dim() ? p.tensor.sizes()[0] : 1;
  auto update_rows = [&](int64_t first) {
    auto part = [&](const Tensor& t) { return t.slice(0, first, std::min(first + rows, all)); };
    State states = state;
    for_each_field(states, [&](std::string_view, auto& field) {
      if constexpr (std::is_same_v<std::decay_t<decltype(field)>, Tensor>)
        if (field.defined()) field = part(field);
    });
    states.update(part(p.tensor), part(gradient), o);
  };
  if (rows >= all)
    state.update(p.tensor, gradient, o);
  else
    for (int64_t first = 0; first < all; first += rows) update_rows(first);
  if constexpr (requires { state.advance(o); }) state.advance(o);
}

template <class Options, class State>
std::function<void()> OptimizerOf<Options, State>::loading(const StateDict& state, Location location) {
  const NoGradGuard no_grad;
  StateReader reader(name(), state, location);
  std::vector<Options> options(options_.size());
  std::vector<State> states(states_.size());
  std::vector<std::optional<double>> initial_lr(options.size());
  for (size_t g = 0; g < options.size(); ++g) {
    const std::string prefix = group_name(g);
    reader.read(prefix, entries_of(options[g]));
    options[g].check(location);
    check_group(reader.numbers(prefix + ".params"), g, location);
    if (reader.has(prefix + ".initial_lr")) initial_lr[g] = reader.number(prefix + ".initial_lr");
  }
  for (size_t i = 0; i < states.size(); ++i) {
    if (!reader.has(state_name(i) + ".")) continue;
    states[i].prepare(params_[i].tensor, options[params_[i].group]);
    reader.read(state_name(i), entries_of(states[i]));
  }
  reader.finish();
  return [this, options, states, initial_lr] {
    options_ = options;
    states_ = states;
    initial_lr_ = initial_lr;
  };
}

}  // namespace ingot::optim
