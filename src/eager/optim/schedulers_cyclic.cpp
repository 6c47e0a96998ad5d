// Schedulers whose rates go up and down.
#include <cmath>
#include <numbers>

#include "base/float_environment.h"
#include "eager/optim/schedulers.h"

namespace ingot::optim {

using std::numbers::pi;

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult,
                                                         double eta_min, Location location)
    : LRScheduler("CosineAnnealingWarmRestarts", optimizer),
      t_0_(static_cast<double>(T_0)),
      t_mult_(static_cast<double>(T_mult)),
      eta_min_(eta_min),
      t_i_(t_0_) {
  check(T_0 > 0, "T_0", t_0_, "a positive number", location);
  check(T_mult > 0, "T_mult", t_mult_, "a positive number", location);
  keep("T_cur", &t_cur_);
  keep("T_i", &t_i_);
  LRScheduler::step();
}
double CosineAnnealingWarmRestarts::rate(size_t, double, double base) const {
  return eta_min_ + (base - eta_min_) * (1 + std::cos(pi * t_cur_ / t_i_)) / 2;
}
void CosineAnnealingWarmRestarts::rewind(Location location) { step(0.0, location); }
void CosineAnnealingWarmRestarts::step(Location location) {
  if (++t_cur_ >= t_i_) {
    t_cur_ -= t_i_;
    t_i_ *= t_mult_;
  }
  LRScheduler::step(location);
}
void CosineAnnealingWarmRestarts::step(double epoch, Location location) {
  check(epoch >= 0 && std::isfinite(epoch), "epoch", epoch, "a number from 0 on", location);
  t_cur_ = epoch;
  t_i_ = t_0_;
  if (t_mult_ == 1) t_cur_ = std::fmod(epoch, t_0_);
  for (; t_cur_ >= t_i_; t_i_ *= t_mult_) t_cur_ -= t_i_;
  last_epoch_ = static_cast<int64_t>(epoch) - 1;
  LRScheduler::step(location);
}

CyclicLR::CyclicLR(Optimizer& optimizer, const CyclicOptions& options, Location location)
    : LRScheduler("CyclicLR", optimizer), options_(options) {
  for (auto [setting, numbers] : {std::pair{"base_lr", &options.base_lr},
                                  {"max_lr", &options.max_lr},
                                  {"base_momentum", &options.base_momentum},
                                  {"max_momentum", &options.max_momentum}})
    check_groups(setting, *numbers, location);
  check(options.step_size_up > 0, "step_size_up", options.step_size_up, "a positive number", location);
  const double down = options.step_size_down.value_or(options.step_size_up);
  check(down >= 0, "step_size_down", down, "no negative number", location);
  auto check_word = [&](const char* setting, const std::string& word, std::initializer_list<const char*> words,
                        const char* expected) {
    if (std::find(words.begin(), words.end(), word) == words.end())
      refuse(setting, '"' + word + '"', expected, location);
  };
  if (options.scale_fn)
    check_word("scale_mode", options.scale_mode, {"cycle", "iterations"}, "\"cycle\" or \"iterations\"");
  else
    check_word("mode", options.mode, {"triangular", "triangular2", "exp_range"},
               "\"triangular\", \"triangular2\", \"exp_range\", or a scale_fn");
  if (options.cycle_momentum) check_momentum(location);
  for (size_t g = 0; g < optimizer.num_groups(); ++g) optimizer.set_lr(options.base_lr[g], g);
  CyclicLR::step(location);
}
double CyclicLR::height() const {
  const double up = options_.step_size_up, whole = up + options_.step_size_down.value_or(up);
  const auto step = static_cast<double>(last_epoch_);
  const double cycle = std::floor(1 + step / whole), at = 1 + step / whole - cycle, top = up / whole;
  const double line = at <= top ? at / top : (at - 1) / (top - 1);
  if (options_.scale_fn) return line * options_.scale_fn(options_.scale_mode == "cycle" ? cycle : step);
  if (options_.mode == "triangular2") return line * std::pow(0.5, cycle - 1);
  return options_.mode == "exp_range" ? line * std::pow(options_.gamma, step) : line;
}
double CyclicLR::rate(size_t group, double, double) const {
  const double low = options_.base_lr[group];
  return low + (options_.max_lr[group] - low) * height();
}
std::optional<double> CyclicLR::momentum(size_t group) const {
  if (!options_.cycle_momentum) return {};
  const double high = options_.max_momentum[group];
  return high - (high - options_.base_momentum[group]) * height();
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options, Location location)
    : LRScheduler("OneCycleLR", optimizer), options_(options) {
  check_groups("max_lr", options.max_lr, location);
  check_groups("base_momentum", options.base_momentum, location);
  check_groups("max_momentum", options.max_momentum, location);
  for (size_t g = 0; g < optimizer.num_groups(); ++g)
    check(options.max_lr[g] > 0, "max_lr", options.max_lr[g], "a positive number", location);
  check(options.total_steps > 0, "total_steps", static_cast<double>(options.total_steps), "a positive number",
        location);
  check(options.pct_start >= 0 && options.pct_start <= 1, "pct_start", options.pct_start, "a number from 0 to 1",
        location);
  if (options.cycle_momentum) check_momentum(location);
  for (size_t g = 0; g < optimizer.num_groups(); ++g) optimizer.initial_lr(g) = options.max_lr[g] / options.div_factor;
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
double OneCycleLR::rate(size_t group, double, double base) const {
  return along(base, options_.max_lr[group], base / options_.final_div_factor);
}
std::optional<double> OneCycleLR::momentum(size_t group) const {
  if (!options_.cycle_momentum) return {};
  const double most = options_.max_momentum[group];
  return along(most, options_.base_momentum[group], most);
}
void OneCycleLR::step(Location location) {
  check(last_epoch_ < options_.total_steps, "step", static_cast<double>(last_epoch_ + 1),
        "no more steps than total_steps", location);
  LRScheduler::step(location);
}

}  // namespace ingot::optim
