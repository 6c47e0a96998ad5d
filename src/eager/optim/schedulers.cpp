#include "eager/optim/schedulers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/float_environment.h"
#include "eager/ops/factories.h"
#include "eager/optim/optimizer_impl.h"

namespace ingot::optim {

using std::numbers::pi;

LRScheduler::LRScheduler(const char* name, Optimizer& optimizer) : name_(name), optimizer_(&optimizer) {
  for (size_t g = 0; g < optimizer.num_groups(); ++g)
    if (!optimizer.initial_lr(g)) optimizer.initial_lr(g) = optimizer.lr(g);
}

void LRScheduler::step(Location) {
  const FloatEnvironment environment;
  ++last_epoch_;
  for (size_t g = 0; g < optimizer_->num_groups(); ++g) {
    // A group that was added since begins with its own rate.
    std::optional<double>& base = optimizer_->initial_lr(g);
    if (!base) base = optimizer_->lr(g);
    optimizer_->set_lr(rate(g, optimizer_->lr(g), *base), g);
  }
}

void LRScheduler::restart(Location location) {
  for (size_t g = 0; g < optimizer_->num_groups(); ++g)
    optimizer_->set_lr(optimizer_->initial_lr(g).value_or(optimizer_->lr(g)), g);
  last_epoch_ = -1;
  step(location);
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (size_t g = 0; g < optimizer_->num_groups(); ++g) rates.push_back(optimizer_->lr(g));
  return rates;
}

StateDict LRScheduler::state_dict() const { return {{"last_epoch", tensor(last_epoch_)}}; }

std::function<void()> LRScheduler::loading(const StateDict& state, Location location) {
  StateReader reader(name_, state, location);
  const auto epoch = static_cast<int64_t>(reader.number("last_epoch"));
  reader.finish();
  return [this, epoch] { last_epoch_ = epoch; };
}

void LRScheduler::refuse(const char* setting, const std::string& got, const char* expected, Location location) const {
  eager::fail(name_, setting, got, expected, location);
}
void LRScheduler::check(bool good, const char* setting, double got, const char* expected, Location location) const {
  if (!good) refuse(setting, short_text(got), expected, location);
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma, Location location)
    : LRScheduler("StepLR", optimizer), step_size_(step_size), gamma_(gamma) {
  check(step_size > 0, "step_size", static_cast<double>(step_size), "a positive number", location);
  StepLR::step();
}
double StepLR::rate(size_t, double lr, double) const {
  return last_epoch_ == 0 || last_epoch_ % step_size_ != 0 ? lr : lr * gamma_;
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma, Location)
    : LRScheduler("MultiStepLR", optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  MultiStepLR::step();
}
double MultiStepLR::rate(size_t, double lr, double) const {
  const auto times = std::count(milestones_.begin(), milestones_.end(), last_epoch_);
  return times ? lr * std::pow(gamma_, static_cast<double>(times)) : lr;
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma, Location)
    : LRScheduler("ExponentialLR", optimizer), gamma_(gamma) {
  ExponentialLR::step();
}
double ExponentialLR::rate(size_t, double lr, double) const { return last_epoch_ == 0 ? lr : lr * gamma_; }

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min, Location location)
    : LRScheduler("CosineAnnealingLR", optimizer), t_max_(T_max), eta_min_(eta_min) {
  check(T_max > 0, "T_max", static_cast<double>(T_max), "a positive number", location);
  CosineAnnealingLR::step();
}
double CosineAnnealingLR::rate(size_t, double lr, double base) const {
  if (last_epoch_ == 0) return lr;
  const auto whole = static_cast<double>(t_max_);
  // From the lowest point there is no ratio to go up by.
  if ((last_epoch_ - 1 - t_max_) % (2 * t_max_) == 0) return lr + (base - eta_min_) * (1 - std::cos(pi / whole)) / 2;
  auto height = [&](int64_t epoch) { return 1 + std::cos(pi * static_cast<double>(epoch) / whole); };
  return height(last_epoch_) / height(last_epoch_ - 1) * (lr - eta_min_) + eta_min_;
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters, Location location)
    : LRScheduler("LinearLR", optimizer), start_(start_factor), end_(end_factor), total_(total_iters) {
  check(start_ > 0 && start_ <= 1, "start_factor", start_, "a number above 0, to 1", location);
  check(end_ >= 0 && end_ <= 1, "end_factor", end_, "a number from 0 to 1", location);
  check(total_ > 0, "total_iters", static_cast<double>(total_), "a positive number", location);
  LinearLR::step();
}
double LinearLR::rate(size_t, double lr, double) const {
  if (last_epoch_ == 0) return lr * start_;
  if (last_epoch_ > total_) return lr;
  const double span = end_ - start_;
  return lr * (1 + span / (static_cast<double>(total_) * start_ + static_cast<double>(last_epoch_ - 1) * span));
}

LambdaLR::LambdaLR(Optimizer& optimizer, Lambda lr_lambda, Location location)
    : LambdaLR(optimizer, std::vector<Lambda>(optimizer.num_groups(), lr_lambda), location) {}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Lambda> lr_lambdas, Location location)
    : LRScheduler("LambdaLR", optimizer), lambdas_(std::move(lr_lambdas)) {
  check(lambdas_.size() == optimizer.num_groups(), "lr_lambdas", static_cast<double>(lambdas_.size()),
        "one function for each group", location);
  LambdaLR::step();
}
double LambdaLR::rate(size_t group, double lr, double base) const {
  return group < lambdas_.size() ? base * lambdas_[group](last_epoch_) : lr;
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options, Location location)
    : LRScheduler("OneCycleLR", optimizer), options_(options) {
  check(options.max_lr > 0, "max_lr", options.max_lr, "a positive number", location);
  check(options.total_steps > 0, "total_steps", static_cast<double>(options.total_steps), "a positive number",
        location);
  check(options.pct_start >= 0 && options.pct_start <= 1, "pct_start", options.pct_start, "a number from 0 to 1",
        location);
  for (size_t g = 0; g < optimizer.num_groups(); ++g) {
    if (options.cycle_momentum && !optimizer.option<double>("momentum", g) && !optimizer.option<Betas>("betas", g))
      refuse("cycle_momentum", optimizer.name(), "an optimizer with a momentum or betas, or false", location);
    optimizer.initial_lr(g) = options.max_lr / options.div_factor;
  }
  OneCycleLR::step(location);
}
double OneCycleLR::along(double low, double high, double last) const {
  struct Phase {
    double end, from, to;
  };
  const auto total = static_cast<double>(options_.total_steps);
  const double up = options_.pct_start * total - 1;
  const std::vector<Phase> phases =
      options_.three_phase
          ? std::vector<Phase>{{up, low, high}, {2 * options_.pct_start * total - 2, high, low}, {total - 1, low, last}}
          : std::vector<Phase>{{up, low, high}, {total - 1, high, last}};
  const auto now = static_cast<double>(last_epoch_);
  double start = 0;
  size_t i = 0;
  for (; i + 1 < phases.size() && now > phases[i].end; ++i) start = phases[i].end;
  const double share = (now - start) / (phases[i].end - start);
  if (options_.linear) return (phases[i].to - phases[i].from) * share + phases[i].from;
  return phases[i].to + (phases[i].from - phases[i].to) / 2 * (std::cos(pi * share) + 1);
}
double OneCycleLR::rate(size_t, double, double base) const {
  return along(base, options_.max_lr, base / options_.final_div_factor);
}
void OneCycleLR::step(Location location) {
  check(last_epoch_ < options_.total_steps, "step", static_cast<double>(last_epoch_ + 1),
        "no more steps than total_steps", location);
  LRScheduler::step(location);
  if (!options_.cycle_momentum) return;
  const double momentum = along(options_.max_momentum, options_.base_momentum, options_.max_momentum);
  for (size_t g = 0; g < optimizer().num_groups(); ++g) {
    if (Betas* betas = optimizer().option<Betas>("betas", g)) (*betas)[0] = momentum;
    if (double* own = optimizer().option<double>("momentum", g)) *own = momentum;
  }
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options, Location location)
    : LRScheduler("ReduceLROnPlateau", optimizer), options_(options) {
  check(options.factor < 1, "factor", options.factor, "a number below 1", location);
  ReduceLROnPlateau::restart(location);
}
void ReduceLROnPlateau::restart(Location) {
  const double worst = std::numeric_limits<double>::infinity();
  state_ = {.best = options_.maximize ? -worst : worst};
  last_epoch_ = 0;
}
bool ReduceLROnPlateau::is_better(double metric) const {
  const double sign = options_.maximize ? 1 : -1;
  const double bar =
      options_.threshold_abs ? state_.best + sign * options_.threshold : state_.best * (1 + sign * options_.threshold);
  return options_.maximize ? metric > bar : metric < bar;
}
void ReduceLROnPlateau::step(double metric) {
  ++last_epoch_;
  if (is_better(metric)) {
    state_.best = metric;
    state_.num_bad_epochs = 0;
  } else {
    ++state_.num_bad_epochs;
  }
  if (state_.cooldown_counter > 0) {
    --state_.cooldown_counter;
    state_.num_bad_epochs = 0;
  }
  if (state_.num_bad_epochs <= options_.patience) return;
  for (size_t g = 0; g < optimizer().num_groups(); ++g) {
    const double before = optimizer().lr(g), lr = std::max(before * options_.factor, options_.min_lr);
    if (before - lr > options_.eps) optimizer().set_lr(lr, g);
  }
  state_.cooldown_counter = options_.cooldown;
  state_.num_bad_epochs = 0;
}
void ReduceLROnPlateau::step(Location location) { refuse("metric", "nothing", "the value to be watched", location); }
StateDict ReduceLROnPlateau::state_dict() const {
  return {{"best", tensor(state_.best, kFloat64)},
          {"num_bad_epochs", tensor(state_.num_bad_epochs)},
          {"cooldown_counter", tensor(state_.cooldown_counter)},
          {"last_epoch", tensor(last_epoch_)}};
}
std::function<void()> ReduceLROnPlateau::loading(const StateDict& state, Location location) {
  StateReader reader("ReduceLROnPlateau", state, location);
  State loaded;
  loaded.best = reader.number("best");
  loaded.num_bad_epochs = static_cast<int64_t>(reader.number("num_bad_epochs"));
  loaded.cooldown_counter = static_cast<int64_t>(reader.number("cooldown_counter"));
  const auto epoch = static_cast<int64_t>(reader.number("last_epoch"));
  reader.finish();
  return [this, loaded, epoch] {
    state_ = loaded;
    last_epoch_ = epoch;
  };
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones, Location location)
    : LRScheduler("SequentialLR", optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  check(!schedulers_.empty(), "schedulers", 0, "at least one", location);
  check(milestones_.size() + 1 == schedulers_.size(), "milestones", static_cast<double>(milestones_.size()),
        "one less than schedulers", location);
  for (const auto& scheduler : schedulers_)
    if (scheduler->optimizer_ != &optimizer) refuse("schedulers", "one of another optimizer", "this one's", location);
  SequentialLR::restart(location);
}
void SequentialLR::restart(Location location) {
  last_epoch_ = 0;
  schedulers_[0]->restart(location);
}
void SequentialLR::step(Location location) {
  ++last_epoch_;
  const auto after = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_);
  LRScheduler& now = *schedulers_[static_cast<size_t>(after - milestones_.begin())];
  if (after != milestones_.begin() && after[-1] == last_epoch_)
    now.restart(location);
  else
    now.step(location);
}
StateDict SequentialLR::state_dict() const {
  StateDict state = LRScheduler::state_dict();
  for (size_t i = 0; i < schedulers_.size(); ++i)
    for (const auto& [name, t] : schedulers_[i]->state_dict())
      state["_schedulers." + std::to_string(i) + "." + name] = t;
  return state;
}
std::function<void()> SequentialLR::loading(const StateDict& state, Location location) {
  StateDict own;
  std::vector<StateDict> parts(schedulers_.size());
  for (const auto& [name, t] : state) {
    bool taken = false;
    for (size_t i = 0; i < parts.size() && !taken; ++i)
      if (const std::string prefix = "_schedulers." + std::to_string(i) + "."; (taken = name.starts_with(prefix)))
        parts[i][name.substr(prefix.size())] = t;
    if (!taken) own[name] = t;
  }
  std::vector<std::function<void()>> all{LRScheduler::loading(own, location)};
  for (size_t i = 0; i < parts.size(); ++i) all.push_back(schedulers_[i]->loading(parts[i], location));
  return [all] {
    for (const auto& one : all) one();
  };
}

}  // namespace ingot::optim
