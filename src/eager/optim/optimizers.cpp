#include "eager/optim/optimizers.h"

#include <cmath>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/optim/optimizer_impl.h"

namespace ingot::optim {
namespace {

/// What the options of an optimizer are checked with.
struct Checks {
  const char* optimizer;
  Location location;

  [[noreturn]] void refuse(const char* option, double got, const char* expected) const {
    eager::fail(optimizer, option, short_text(got), expected, location);
  }
  void not_negative(const char* option, double value) const {
    if (!(value >= 0)) refuse(option, value, "no negative number");
  }
  void betas(const Betas& values) const {
    for (double beta : values)
      if (!(beta >= 0 && beta < 1)) refuse("betas", beta, "numbers from 0 to below 1");
  }
};

void make(Tensor& state, const Tensor& like, bool needed = true) {
  if (needed && !state.defined()) state = zeros_like(like);
}

/// The gradient as a step descends it.
Tensor descended(const Tensor& p, const Tensor& g, bool maximize, double weight_decay) {
  const Tensor down = maximize ? neg(g) : g;
  return weight_decay != 0 ? down.add(p, weight_decay) : down;
}

}  // namespace

void SGDOptions::check(Location location) const {
  const Checks checks{kName, location};
  checks.not_negative("lr", lr);
  checks.not_negative("momentum", momentum);
  checks.not_negative("weight_decay", weight_decay);
  if (nesterov && momentum == 0) checks.refuse("momentum", momentum, "a positive number, with nesterov");
  if (nesterov && dampening != 0) checks.refuse("dampening", dampening, "0, with nesterov");
}
void SGDState::prepare(const Tensor& p, const SGDOptions& o) { make(momentum_buffer, p, o.momentum != 0); }
void SGDState::update(const Tensor& p, Tensor g, const SGDOptions& o) {
  g = descended(p, g, o.maximize, o.weight_decay);
  if (o.momentum != 0) {
    // The first gradient is taken whole.
    momentum_buffer.mul_(o.momentum).add_(g, step == 1 ? 1 : 1 - o.dampening);
    g = o.nesterov ? g.add(momentum_buffer, o.momentum) : momentum_buffer;
  }
  p.add_(g, -o.lr);
}

template <bool kDecoupled>
void AdamLikeOptions<kDecoupled>::check(Location location) const {
  const Checks checks{kName, location};
  checks.not_negative("lr", lr);
  checks.betas(betas);
  checks.not_negative("eps", eps);
  checks.not_negative("weight_decay", weight_decay);
}
template <class Options>
void AdamState::prepare(const Tensor& p, const Options& o) {
  make(exp_avg, p);
  make(exp_avg_sq, p);
  make(max_exp_avg_sq, p, o.amsgrad);
}
template <class Options>
void AdamState::update(const Tensor& p, Tensor g, const Options& o) {
  const auto [beta1, beta2] = o.betas;
  const double t = static_cast<double>(step);
  g = descended(p, g, o.maximize, Options::decoupled ? 0 : o.weight_decay);
  if (Options::decoupled && o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
  exp_avg.lerp_(g, 1 - beta1);
  exp_avg_sq.mul_(beta2).addcmul_(g, g, 1 - beta2);
  if (o.amsgrad) max_exp_avg_sq.clamp_min_(exp_avg_sq);
  const Tensor& square = o.amsgrad ? max_exp_avg_sq : exp_avg_sq;
  const Tensor size = square.sqrt().div_(std::sqrt(1 - std::pow(beta2, t))).add_(o.eps);
  p.addcdiv_(exp_avg, size, -o.lr / (1 - std::pow(beta1, t)));
}

void RMSpropOptions::check(Location location) const {
  const Checks checks{kName, location};
  for (auto [option, value] :
       {std::pair{"lr", lr}, {"alpha", alpha}, {"eps", eps}, {"weight_decay", weight_decay}, {"momentum", momentum}})
    checks.not_negative(option, value);
}
void RMSpropState::prepare(const Tensor& p, const RMSpropOptions& o) {
  make(square_avg, p);
  make(grad_avg, p, o.centered);
  make(momentum_buffer, p, o.momentum != 0);
}
void RMSpropState::update(const Tensor& p, Tensor g, const RMSpropOptions& o) {
  g = descended(p, g, o.maximize, o.weight_decay);
  square_avg.mul_(o.alpha).addcmul_(g, g, 1 - o.alpha);
  if (o.centered) grad_avg.lerp_(g, 1 - o.alpha);
  const Tensor variance = o.centered ? square_avg.addcmul(grad_avg, grad_avg, -1) : square_avg;
  const Tensor size = variance.sqrt().add_(o.eps);
  if (o.momentum != 0)
    p.add_(momentum_buffer.mul_(o.momentum).addcdiv_(g, size), -o.lr);
  else
    p.addcdiv_(g, size, -o.lr);
}

void AdagradOptions::check(Location location) const {
  const Checks checks{kName, location};
  for (auto [option, value] : {std::pair{"lr", lr},
                               {"lr_decay", lr_decay},
                               {"weight_decay", weight_decay},
                               {"initial_accumulator_value", initial_accumulator_value},
                               {"eps", eps}})
    checks.not_negative(option, value);
}
void AdagradState::prepare(const Tensor& p, const AdagradOptions& o) {
  if (!sum.defined()) sum = full_like(p, o.initial_accumulator_value);
}
void AdagradState::update(const Tensor& p, Tensor g, const AdagradOptions& o) {
  g = descended(p, g, o.maximize, o.weight_decay);
  sum.addcmul_(g, g);
  p.addcdiv_(g, sum.sqrt().add_(o.eps), -o.lr / (1 + static_cast<double>(step - 1) * o.lr_decay));
}

void LionOptions::check(Location location) const {
  const Checks checks{kName, location};
  checks.not_negative("lr", lr);
  checks.betas(betas);
  checks.not_negative("weight_decay", weight_decay);
}
void LionState::prepare(const Tensor& p, const LionOptions&) { make(exp_avg, p); }
void LionState::update(const Tensor& p, Tensor g, const LionOptions& o) {
  g = descended(p, g, o.maximize, 0);
  if (o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
  p.add_(exp_avg.lerp(g, 1 - o.betas[0]).sign(), -o.lr);
  exp_avg.lerp_(g, 1 - o.betas[1]);
}

template struct AdamLikeOptions<false>;
template struct AdamLikeOptions<true>;
template class OptimizerOf<SGDOptions, SGDState>;
template class OptimizerOf<AdamOptions, AdamState>;
template class OptimizerOf<AdamWOptions, AdamState>;
template class OptimizerOf<RMSpropOptions, RMSpropState>;
template class OptimizerOf<AdagradOptions, AdagradState>;
template class OptimizerOf<LionOptions, LionState>;

}  // namespace ingot::optim
