#include <algorithm>
#include <set>

#include "base/float_environment.h"
#include "eager/autograd/autograd.h"
#include "eager/call/call.h"
#include "eager/data.h"
#include "eager/nn/clip_grad.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/optim/state_reader.h"
#include "runtime/cpu.h"

namespace ingot::optim {
int64_t Optimizer::rows_at_once(const Tensor& parameter) {
  constexpr int64_t kArrays = 8;  // parameter, gradient, states, intermediate results
  const runtime::CacheSizes& caches = runtime::cache_sizes();
  const int64_t numel = parameter.numel();
  const int64_t most = std::max(caches.l3 / 8, 2 * caches.l2) / (kArrays * parameter.itemsize());
  if (eager::intercepted() || numel <= 2 * most) return INT64_MAX;
  return std::max<int64_t>(most / (numel / parameter.sizes()[0]), 1);
}

void Optimizer::step(Location location) {
  const NoGradGuard no_grad;
  const CallerLine line(location);
  const FloatEnvironment environment;
  for (size_t i = 0; i < params_.size(); ++i) {
    const Tensor gradient = params_[i].tensor.grad();
    if (!gradient.defined()) continue;
    restore_if_refused(i);
    update(i, gradient);
  }
}
void Optimizer::restore_if_refused(size_t param) {
  if (eager::Interceptor* recorder = eager::interceptor(eager::Stage::record))
    recorder->on_refusal([alive = std::weak_ptr(alive_), restore = restoring(param)] {
      if (!alive.expired()) restore();
    });
}

Tensor Optimizer::evaluated(const Closure& closure, Location location) const {
  if (!closure) eager::fail(name(), "closure", "an empty function", "one that computes gradients and loss", location);
  const EnableGradGuard enable_grad;
  return closure();
}
Tensor Optimizer::step(const Closure& closure, Location location) {
  Tensor loss = evaluated(closure, location);
  step(location);
  return loss;
}

void Optimizer::zero_grad(bool set_to_none, Location location) {
  for (const Param& p : params_) nn::detail::clear_gradient(p.tensor, set_to_none, location);
}

size_t Optimizer::checked(size_t group) const {
  if (group < num_groups()) return group;
  eager::fail("Optimizer", "group", std::to_string(group),
              "the number of one of " + std::to_string(num_groups()) + " groups, from 0 on", Location::none());
}

std::vector<Tensor> Optimizer::params(size_t group) const {
  checked(group);
  std::vector<Tensor> params;
  for (const Param& p : params_)
    if (p.group == group) params.push_back(p.tensor);
  return params;
}

void Optimizer::check_params(const std::vector<Tensor>& params, Location location) const {
  auto refuse = [&](size_t i, const std::string& got, const char* expected) {
    eager::fail(name(), "params", "at position " + std::to_string(i) + " " + got, expected, location);
  };
  if (params.empty()) eager::fail(name(), "params", "none", "at least one tensor", location);
  std::set<const ingot::detail::TensorImpl*> seen;
  for (const Param& p : params_) seen.insert(p.tensor.impl());
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    if (!p.defined()) refuse(i, "an undefined tensor", "leaves of the tape");
    if (!p.is_leaf()) refuse(i, "a tensor that an op made", "leaves of the tape");
    if (!seen.insert(p.impl()).second) refuse(i, "a tensor that is there already", "each tensor once");
  }
}

void Optimizer::add_params(const std::vector<Tensor>& params) {
  for (const Tensor& p : params) params_.push_back({p, num_groups()});
  initial_lr_.emplace_back();
}

StateDict Optimizer::state_dict() {
  StateDict state;
  auto put = [&](const std::string& prefix, const std::vector<Entry>& entries) {
    for (const Entry& e : entries)
      if (Tensor t = stored(e); t.defined()) state[prefix + "." + e.name] = t;
  };
  for (size_t g = 0; g < num_groups(); ++g) {
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < params_.size(); ++i)
      if (params_[i].group == g) numbers.push_back(static_cast<int64_t>(i));
    put(group_name(g), options_of(g));
    state[group_name(g) + ".params"] = tensor(numbers);
    if (initial_lr_[g]) state[group_name(g) + ".initial_lr"] = tensor(*initial_lr_[g], kFloat64);
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    const std::vector<Entry> entries = state_of(i);
    const bool stepped = std::any_of(entries.begin(), entries.end(), [](const Entry& e) {
      const auto* step = std::get_if<int64_t*>(&e.at);
      return step && **step > 0;
    });
    if (stepped) put(state_name(i), entries);
  }
  return state;
}

void Optimizer::check_group(const std::vector<double>& numbers, size_t group, Location location) const {
  std::vector<double> own;
  for (size_t i = 0; i < params_.size(); ++i)
    if (params_[i].group == group) own.push_back(static_cast<double>(i));
  if (numbers != own)
    eager::fail(name(), "state", group_name(group) + ".params with " + std::to_string(numbers.size()) + " parameters",
                "the " + std::to_string(own.size()) + " parameters of this group", location);
}

}  // namespace ingot::optim
