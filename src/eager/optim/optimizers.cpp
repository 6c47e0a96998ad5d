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
  void not_negative(std::initializer_list<std::pair<const char*, double>> options) const {
    for (const auto& [option, value] : options)
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
/// The same where weights may decay by themselves.
template <class Options>
Tensor descended(const Tensor& p, const Tensor& g, const Options& o, bool decoupled) {
  if (decoupled && o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
  return descended(p, g, o.maximize, decoupled ? 0 : o.weight_decay);
}

}  // namespace

void SGDOptions::check(Location location) const {
  const Checks checks{kName, location};
  checks.not_negative({{"lr", lr}, {"momentum", momentum}, {"weight_decay", weight_decay}});
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
  checks.not_negative({{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}});
  checks.betas(betas);
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
  g = descended(p, g, o, Options::decoupled);
  exp_avg.lerp_(g, 1 - beta1);
  exp_avg_sq.mul_(beta2).addcmul_(g, g, 1 - beta2);
  if (o.amsgrad) max_exp_avg_sq.clamp_min_(exp_avg_sq);
  const Tensor& square = o.amsgrad ? max_exp_avg_sq : exp_avg_sq;
  const Tensor size = square.sqrt().div_(std::sqrt(1 - std::pow(beta2, t))).add_(o.eps);
  p.addcdiv_(exp_avg, size, -o.lr / (1 - std::pow(beta1, t)));
}

void RMSpropOptions::check(Location location) const {
  Checks{kName, location}.not_negative(
      {{"lr", lr}, {"alpha", alpha}, {"eps", eps}, {"weight_decay", weight_decay}, {"momentum", momentum}});
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
  Checks{kName, location}.not_negative({{"lr", lr},
                                        {"lr_decay", lr_decay},
                                        {"weight_decay", weight_decay},
                                        {"initial_accumulator_value", initial_accumulator_value},
                                        {"eps", eps}});
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
  checks.not_negative({{"lr", lr}, {"weight_decay", weight_decay}});
  checks.betas(betas);
}
void LionState::prepare(const Tensor& p, const LionOptions&) { make(exp_avg, p); }
void LionState::update(const Tensor& p, Tensor g, const LionOptions& o) {
  g = descended(p, g, o, true);
  p.add_(exp_avg.lerp(g, 1 - o.betas[0]).sign(), -o.lr);
  exp_avg.lerp_(g, 1 - o.betas[1]);
}

void NAdamOptions::check(Location location) const {
  const Checks checks{kName, location};
  checks.not_negative({{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}, {"momentum_decay", momentum_decay}});
  checks.betas(betas);
}
void NAdamState::prepare(const Tensor& p, const NAdamOptions&) {
  make(exp_avg, p);
  make(exp_avg_sq, p);
}
namespace {
/// The weight of the momentum at a step.
double momentum_at(int64_t step, const NAdamOptions& o) {
  return o.betas[0] * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * o.momentum_decay));
}
}  // namespace
void NAdamState::update(const Tensor& p, Tensor g, const NAdamOptions& o) {
  const auto [beta1, beta2] = o.betas;
  g = descended(p, g, o, o.decoupled_weight_decay);
  exp_avg.lerp_(g, 1 - beta1);
  exp_avg_sq.mul_(beta2).addcmul_(g, g, 1 - beta2);
  const Tensor size = exp_avg_sq.div(1 - std::pow(beta2, static_cast<double>(step))).sqrt_().add_(o.eps);
  const double now = momentum_at(step, o), next = momentum_at(step + 1, o), product = mu_product * now;
  p.addcdiv_(g, size, -o.lr * (1 - now) / (1 - product));
  p.addcdiv_(exp_avg, size, -o.lr * next / (1 - product * next));
}
void NAdamState::advance(const NAdamOptions& o) { mu_product *= momentum_at(step, o); }

void RAdamOptions::check(Location location) const {
  const Checks checks{kName, location};
  checks.not_negative({{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}});
  checks.betas(betas);
}
void RAdamState::prepare(const Tensor& p, const RAdamOptions&) {
  make(exp_avg, p);
  make(exp_avg_sq, p);
}
void RAdamState::update(const Tensor& p, Tensor g, const RAdamOptions& o) {
  const auto [beta1, beta2] = o.betas;
  const double t = static_cast<double>(step), power = std::pow(beta2, t);
  g = descended(p, g, o, o.decoupled_weight_decay);
  exp_avg.lerp_(g, 1 - beta1);
  exp_avg_sq.mul_(beta2).addcmul_(g, g, 1 - beta2);
  const double rate = o.lr / (1 - std::pow(beta1, t));
  // How many gradients the mean square is of, as if all had the same weight: at most, and now.
  const double most = 2 / (1 - beta2) - 1, length = most - 2 * t * power / (1 - power);
  if (length > 5) {
    const double rectified =
        std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) * std::sqrt(1 - power);
    p.addcdiv_(exp_avg, exp_avg_sq.sqrt().add_(o.eps), -rate * rectified);
  } else {
    p.add_(exp_avg, -rate);
  }
}

void AdamaxOptions::check(Location location) const {
  const Checks checks{kName, location};
  checks.not_negative({{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}});
  checks.betas(betas);
}
void AdamaxState::prepare(const Tensor& p, const AdamaxOptions&) {
  make(exp_avg, p);
  make(exp_inf, p);
}
void AdamaxState::update(const Tensor& p, Tensor g, const AdamaxOptions& o) {
  g = descended(p, g, o.maximize, o.weight_decay);
  exp_avg.lerp_(g, 1 - o.betas[0]);
  exp_inf.mul_(o.betas[1]).clamp_min_(g.abs().add_(o.eps));
  p.addcdiv_(exp_avg, exp_inf, -o.lr / (1 - std::pow(o.betas[0], static_cast<double>(step))));
}

void AdadeltaOptions::check(Location location) const {
  const Checks checks{kName, location};
  checks.not_negative({{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}});
  if (!(rho >= 0 && rho <= 1)) checks.refuse("rho", rho, "a number from 0 to 1");
}
void AdadeltaState::prepare(const Tensor& p, const AdadeltaOptions&) {
  make(square_avg, p);
  make(acc_delta, p);
}
void AdadeltaState::update(const Tensor& p, Tensor g, const AdadeltaOptions& o) {
  g = descended(p, g, o.maximize, o.weight_decay);
  square_avg.mul_(o.rho).addcmul_(g, g, 1 - o.rho);
  const Tensor delta = acc_delta.add(o.eps).sqrt_().div_(square_avg.add(o.eps).sqrt_()).mul_(g);
  acc_delta.mul_(o.rho).addcmul_(delta, delta, 1 - o.rho);
  p.add_(delta, -o.lr);
}

void ASGDOptions::check(Location location) const {
  Checks{kName, location}.not_negative({{"lr", lr}, {"weight_decay", weight_decay}});
}
void ASGDState::prepare(const Tensor& p, const ASGDOptions& o) {
  make(ax, p);
  if (step == 0) eta = o.lr;
}
void ASGDState::update(const Tensor& p, Tensor g, const ASGDOptions& o) {
  g = descended(p, g, o.maximize, o.weight_decay);
  p.mul_(1 - o.lambd * eta).add_(g, -eta);
  ax.lerp_(p, mu);
}
void ASGDState::advance(const ASGDOptions& o) {
  const double t = static_cast<double>(step);
  eta = o.lr / std::pow(1 + o.lambd * o.lr * t, o.alpha);
  mu = 1 / std::max(1.0, t - o.t0);
}

void RpropOptions::check(Location location) const {
  const Checks checks{kName, location};
  checks.not_negative({{"lr", lr}});
  if (!(etas[0] > 0 && etas[0] < 1)) checks.refuse("etas", etas[0], "a number between 0 and 1 to shrink by");
  if (!(etas[1] > 1)) checks.refuse("etas", etas[1], "a number above 1 to grow by");
}
void RpropState::prepare(const Tensor& p, const RpropOptions& o) {
  make(prev, p);
  if (!step_size.defined()) step_size = full_like(p, o.lr);
}
void RpropState::update(const Tensor& p, Tensor g, const RpropOptions& o) {
  g = descended(p, g, o.maximize, 0);
  const Tensor product = g.mul(prev), turned = product.lt(0);
  step_size.mul_(ones_like(p).masked_fill_(product.gt(0), o.etas[1]).masked_fill_(turned, o.etas[0]))
      .clamp_(o.step_sizes[0], o.step_sizes[1]);
  g = g.masked_fill(turned, 0);
  p.addcmul_(g.sign(), step_size, -1);
  prev.copy_(g);
}

void MuonOptions::check(Location location) const {
  constexpr int64_t kMostSteps = 99;  // PyTorch's
  const Checks checks{kName, location};
  checks.not_negative({{"lr", lr}, {"weight_decay", weight_decay}, {"momentum", momentum}, {"eps", eps}});
  if (ns_steps < 0 || ns_steps > kMostSteps) checks.refuse("ns_steps", static_cast<double>(ns_steps), "0 to 99");
}
void MuonState::prepare(const Tensor& p, const MuonOptions&) { make(momentum_buffer, p); }
namespace {
/// With singular values of about 1. The coefficients, Jordan's, make small ones grow fastest.
Tensor orthogonalized(const Tensor& matrix, const MuonOptions& o) {
  constexpr double kLinear = 3.4445, kCubic = -4.775, kQuintic = 2.0315;
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = (tall ? matrix.t() : matrix).to(kBFloat16);
  x = x / x.norm().clamp_min(o.eps);
  for (int64_t i = 0; i < o.ns_steps; ++i) {
    const Tensor gram = x.matmul(x.t());
    x = addmm(x, addmm(gram, gram, gram, kCubic, kQuintic), x, kLinear);
  }
  return tall ? x.t() : x;
}
}  // namespace
void MuonState::update(const Tensor& p, Tensor g, const MuonOptions& o) {
  momentum_buffer.lerp_(g, 1 - o.momentum);
  g = orthogonalized(o.nesterov ? g.lerp(momentum_buffer, o.momentum) : momentum_buffer, o);
  const auto rows = static_cast<double>(p.size(0)), columns = static_cast<double>(p.size(1));
  const double scale =
      o.match_rms_adamw ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  if (o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
  p.add_(g, -o.lr * scale);
}

void AdafactorOptions::check(Location location) const {
  const Checks checks{kName, location};
  checks.not_negative({{"lr", lr}, {"eps", eps[0]}, {"eps", eps[1]}, {"weight_decay", weight_decay}});
  if (!(beta2_decay <= 0)) checks.refuse("beta2_decay", beta2_decay, "no positive number");
  if (!(d >= 1)) checks.refuse("d", d, "1 or more");
}
void AdafactorState::prepare(const Tensor& p, const AdafactorOptions&) {
  if (p.dim() < 2) return make(variance, p);
  Ints rows(p.sizes()), columns(p.sizes());
  rows[rows.size() - 1] = columns[columns.size() - 2] = 1;
  if (!row_var.defined()) row_var = zeros(rows, p.dtype()), col_var = zeros(columns, p.dtype());
}
void AdafactorState::update(const Tensor& p, Tensor g, const AdafactorOptions& o) {
  const double t = static_cast<double>(step), share = std::pow(t, o.beta2_decay);
  const double elements = static_cast<double>(p.numel());
  const double eps = o.eps[0] > 0            ? o.eps[0]
                     : p.dtype() == kFloat64 ? 0x1p-52
                     : p.dtype() == kFloat32 ? 0x1p-23
                     : p.dtype() == kFloat16 ? 0x1p-10
                                             : 0x1p-7;
  const auto root_mean_square = [&](const Tensor& x) { return x.norm() / std::sqrt(elements); };
  const Tensor rate = root_mean_square(p).clamp_min(o.eps[1]) * std::min(o.lr, 1 / std::sqrt(t));
  if (o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
  if (o.maximize) g = neg(g);
  const Tensor square = g * g;
  Tensor estimate = variance;
  if (estimate.defined()) {
    estimate.lerp_(square, share);
  } else {
    row_var.lerp_(square.mean(-1, true), share);
    col_var.lerp_(square.mean(-2, true), share);
    estimate = row_var * col_var / row_var.mean(-2, true).clamp_min(eps);
  }
  const Tensor direction = estimate.clamp_min(eps * eps).rsqrt() * g;
  p.sub_(direction * (rate / (root_mean_square(direction) / o.d).clamp_min(1)));
}

template struct AdamLikeOptions<false>;
template struct AdamLikeOptions<true>;
template class OptimizerOf<SGDOptions, SGDState>;
template class OptimizerOf<AdamOptions, AdamState>;
template class OptimizerOf<AdamWOptions, AdamState>;
template class OptimizerOf<RMSpropOptions, RMSpropState>;
template class OptimizerOf<AdagradOptions, AdagradState>;
template class OptimizerOf<LionOptions, LionState>;
template class OptimizerOf<NAdamOptions, NAdamState>;
template class OptimizerOf<RAdamOptions, RAdamState>;
template class OptimizerOf<AdamaxOptions, AdamaxState>;
template class OptimizerOf<AdadeltaOptions, AdadeltaState>;
template class OptimizerOf<ASGDOptions, ASGDState>;
template class OptimizerOf<RpropOptions, RpropState>;
template class OptimizerOf<MuonOptions, MuonState>;
template class OptimizerOf<AdafactorOptions, AdafactorState>;

}  // namespace ingot::optim
