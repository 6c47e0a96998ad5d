#include "eager/optim/schedulers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/float_environment.h"
#include "eager/optim/optimizer_impl.h"

namespace ingot::optim {

using std::numbers::pi;

void LRScheduler::step(Location) {
  const FloatEnvironment environment;
  ++last_epoch_;
  for (size_t g = 0; g < optimizer_->num_groups(); ++g) {
    // A group that was added since begins with its own rate.
    std::optional<double>& base = optimizer_->initial_lr(g);
    if (!base) base = optimizer_->lr(g);
    optimizer_->set_lr(rate(g, optimizer_->lr(g), *base), g);
    const std::optional<double> now = momentum(g);
    if (!now) continue;
    if (Betas* betas = optimizer_->option<Betas>("betas", g)) (*betas)[0] = *now;
    if (double* own = optimizer_->option<double>("momentum", g)) *own = *now;
  }
}

void LRScheduler::restart(Location location) {
  for (size_t g = 0; g < optimizer_->num_groups(); ++g)
    optimizer_->set_lr(optimizer_->initial_lr(g).value_or(optimizer_->lr(g)), g);
  rewind(location);
}
void LRScheduler::rewind(Location location) {
  last_epoch_ = -1;
  step(location);
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (size_t g = 0; g < optimizer_->num_groups(); ++g) rates.push_back(optimizer_->lr(g));
  return rates;
}

StateDict LRScheduler::state_dict() const {
  StateDict state;
  for (const Entry& e : kept_) state[e.name] = stored(e);
  return state;
}

std::function<void()> LRScheduler::loading(const StateDict& state, Location location) {
  StateReader reader(name_, state, location);
  std::vector<double> numbers;
  for (const Entry& e : kept_) numbers.push_back(reader.number(e.name));
  reader.finish();
  return [this, numbers] {
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (double* const* at = std::get_if<double*>(&kept_[i].at)) **at = numbers[i];
      if (int64_t* const* at = std::get_if<int64_t*>(&kept_[i].at)) **at = static_cast<int64_t>(numbers[i]);
    }
  };
}

void LRScheduler::refuse(const char* setting, const std::string& got, const char* expected, Location location) const {
  eager::fail(name_, setting, got, expected, location);
}
void LRScheduler::check(bool good, const char* setting, double got, const char* expected, Location location) const {
  if (!good) refuse(setting, short_text(got), expected, location);
}
void LRScheduler::check_groups(const char* setting, const PerGroup& numbers, Location location) const {
  if (!numbers.fits(optimizer_->num_groups()))
    refuse(setting, std::to_string(numbers.size()) + " numbers", "one, or one for each group", location);
}
void LRScheduler::check_momentum(Location location) const {
  for (size_t g = 0; g < optimizer_->num_groups(); ++g)
    if (!optimizer_->option<double>("momentum", g) && !optimizer_->option<Betas>("betas", g))
      refuse("cycle_momentum", optimizer_->name(), "an optimizer with a momentum or betas, or false", location);
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

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters, Location location)
    : LRScheduler("ConstantLR", optimizer), factor_(factor), total_(total_iters) {
  check(factor >= 0 && factor <= 1, "factor", factor, "a number from 0 to 1", location);
  ConstantLR::step();
}
double ConstantLR::rate(size_t, double lr, double base) const {
  if (last_epoch_ == 0) return lr * factor_;
  if (last_epoch_ != total_) return lr;
  // From zero there is no ratio to go up by.
  return factor_ == 0 ? base : lr * (1 / factor_);
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power, Location)
    : LRScheduler("PolynomialLR", optimizer), total_(total_iters), power_(power) {
  PolynomialLR::step();
}
double PolynomialLR::rate(size_t, double lr, double) const {
  if (last_epoch_ == 0 || last_epoch_ > total_) return lr;
  auto left = [&](int64_t epoch) { return 1 - static_cast<double>(epoch) / static_cast<double>(total_); };
  return lr * std::pow(left(last_epoch_) / left(last_epoch_ - 1), power_);
}

LambdaScheduler::LambdaScheduler(const char* name, Optimizer& optimizer, std::vector<Lambda> lambdas, Location location)
    : LRScheduler(name, optimizer), lambdas_(std::move(lambdas)) {
  check(lambdas_.size() == optimizer.num_groups(), "lr_lambdas", static_cast<double>(lambdas_.size()),
        "one function for each group", location);
  for (const Lambda& f : lambdas_)
    if (!f) refuse("lr_lambda", "an empty function", "one that gives a factor for an epoch", location);
}
std::optional<double> LambdaScheduler::factor(size_t group) const {
  if (group >= lambdas_.size()) return {};
  return lambdas_[group](last_epoch_);
}

LambdaLR::LambdaLR(Optimizer& optimizer, Lambda lr_lambda, Location location)
    : LambdaLR(optimizer, std::vector<Lambda>(optimizer.num_groups(), lr_lambda), location) {}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Lambda> lr_lambdas, Location location)
    : LambdaScheduler("LambdaLR", optimizer, std::move(lr_lambdas), location) {
  LambdaLR::step();
}
LambdaLR::LambdaLR(Optimizer& optimizer, std::initializer_list<Lambda> lr_lambdas, Location location)
    : LambdaLR(optimizer, std::vector<Lambda>(lr_lambdas), location) {}
double LambdaLR::rate(size_t group, double lr, double base) const {
  const std::optional<double> f = factor(group);
  return f ? base * *f : lr;
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, Lambda lr_lambda, Location location)
    : MultiplicativeLR(optimizer, std::vector<Lambda>(optimizer.num_groups(), lr_lambda), location) {}
MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::vector<Lambda> lr_lambdas, Location location)
    : LambdaScheduler("MultiplicativeLR", optimizer, std::move(lr_lambdas), location) {
  MultiplicativeLR::rewind(location);
}
MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::initializer_list<Lambda> lr_lambdas, Location location)
    : MultiplicativeLR(optimizer, std::vector<Lambda>(lr_lambdas), location) {}
void MultiplicativeLR::rewind(Location location) {
  beginning_ = true;
  LRScheduler::rewind(location);
  beginning_ = false;
}
double MultiplicativeLR::rate(size_t group, double lr, double) const {
  return beginning_ ? lr : lr * factor(group).value_or(1);
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options, Location location)
    : LRScheduler("ReduceLROnPlateau", optimizer), options_(options) {
  check(options.factor < 1, "factor", options.factor, "a number below 1", location);
  check_groups("min_lr", options.min_lr, location);
  keep("best", &best_);
  keep("num_bad_epochs", &num_bad_epochs_);
  keep("cooldown_counter", &cooldown_counter_);
  ReduceLROnPlateau::rewind(location);
}
void ReduceLROnPlateau::rewind(Location) {
  const double worst = std::numeric_limits<double>::infinity();
  best_ = options_.maximize ? -worst : worst;
  num_bad_epochs_ = cooldown_counter_ = last_epoch_ = 0;
}
bool ReduceLROnPlateau::is_better(double metric) const {
  const double sign = options_.maximize ? 1 : -1;
  const double bar =
      options_.threshold_abs ? best_ + sign * options_.threshold : best_ * (1 + sign * options_.threshold);
  return options_.maximize ? metric > bar : metric < bar;
}
void ReduceLROnPlateau::step(double metric) {
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ <= options_.patience) return;
  for (size_t g = 0; g < optimizer().num_groups(); ++g) {
    const double before = optimizer().lr(g), lr = std::max(before * options_.factor, options_.min_lr[g]);
    if (before - lr > options_.eps) optimizer().set_lr(lr, g);
  }
  cooldown_counter_ = options_.cooldown;
  num_bad_epochs_ = 0;
}
void ReduceLROnPlateau::step(Location location) { refuse("metric", "nothing", "the value to be watched", location); }

}  // namespace ingot::optim
