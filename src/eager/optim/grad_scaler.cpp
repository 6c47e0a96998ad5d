#include "eager/optim/grad_scaler.h"

#include <cmath>
#include <limits>

#include "eager/autograd/autograd.h"
#include "eager/call/call.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/lists.h"
#include "eager/optim/state_reader.h"

namespace ingot::amp {
namespace {

bool is_scale(double x) { return x > 0 && std::isfinite(x); }

void check(const GradScalerOptions& options, Location location) {
  auto refuse = [&](const char* name, double got, const char* expected) {
    eager::fail("GradScaler", name, optim::short_text(got), expected, location);
  };
  if (!is_scale(options.init_scale)) refuse("init_scale", options.init_scale, "a positive number");
  if (!(options.growth_factor > 1)) refuse("growth_factor", options.growth_factor, "a number above 1");
  if (!(options.backoff_factor > 0 && options.backoff_factor < 1))
    refuse("backoff_factor", options.backoff_factor, "a number between 0 and 1");
  if (options.growth_interval < 1)
    refuse("growth_interval", static_cast<double>(options.growth_interval), "a number of steps from 1 on");
}

std::vector<Tensor> gradients_of(const optim::Optimizer& optimizer) {
  std::vector<Tensor> gradients;
  for (size_t group = 0; group < optimizer.num_groups(); ++group)
    for (const Tensor& p : optimizer.params(group))
      if (Tensor g = p.grad(); g.defined()) gradients.push_back(std::move(g));
  return gradients;
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options, Location location) : options_(options) {
  check(options_, location);
  state_->scale = options_.init_scale;
}

Tensor GradScaler::scale(const TensorArg& loss) const {
  const Tensor& given = eager::present("GradScaler::scale", "loss", loss);
  if (!options_.enabled) return given;
  // A loss of 16 bits would not hold it.
  return mul({given.itemsize() == 2 ? given.to(kFloat32, loss.location) : given, loss.location}, state_->scale);
}

void GradScaler::restore_if_refused() {
  if (eager::Interceptor* recorder = eager::interceptor(eager::Stage::record))
    recorder->on_refusal([state = state_, before = *state_] { *state = before; });
}

void GradScaler::unscale_(optim::Optimizer& optimizer, Location location) {
  if (!options_.enabled) return;
  if (const auto seen = state_->seen.find(&optimizer); seen != state_->seen.end())
    eager::fail("GradScaler::unscale_", "optimizer",
                seen->second.stepped ? "one that has made its step" : "one whose gradients are unscaled already",
                "an update() in between", location);
  const NoGradGuard no_grad;
  const CallerLine line(location);
  const std::vector<Tensor> gradients = gradients_of(optimizer);
  if (gradients.empty())
    eager::fail("GradScaler", "optimizer", "no gradients", "a backward() of the scaled loss before", location);
  for (const Tensor& g : gradients)
    if (g.dtype() == kFloat16)
      eager::fail("GradScaler::unscale_", "optimizer", "gradients of f16",
                  "parameters of f32: an AutocastGuard takes them to f16 where that is wanted", location);
  restore_if_refused();
  // The largest number of all is finite where each of them is.
  std::vector<Tensor> largest;
  for (const Tensor& g : gradients)
    largest.push_back(vector_norm(g, std::numeric_limits<double>::infinity()).to(kFloat32));
  state_->seen[&optimizer].finite = isfinite(stack(largest)).all();
  for (const Tensor& g : gradients) g.mul_(1 / state_->scale);
}

void GradScaler::step(optim::Optimizer& optimizer, Location location) {
  if (!options_.enabled) return optimizer.step(location);
  if (!state_->seen.count(&optimizer)) unscale_(optimizer, location);
  Gradients& gradients = state_->seen[&optimizer];
  if (gradients.stepped)
    eager::fail("GradScaler::step", "optimizer", "one that has made its step", "an update() in between", location);
  restore_if_refused();
  gradients.stepped = true;
  if (gradients.finite.item<bool>(location)) optimizer.step(location);
}

void GradScaler::update(std::optional<double> new_scale, Location location) {
  if (!options_.enabled) return;
  if (new_scale && !is_scale(*new_scale))
    eager::fail("GradScaler::update", "new_scale", optim::short_text(*new_scale), "a positive number", location);
  if (!new_scale && state_->seen.empty())
    eager::fail("GradScaler::update", "", "no step since the last one", "a step() or unscale_() before", location);
  bool finite = true;
  for (const auto& [optimizer, gradients] : state_->seen) finite &= gradients.finite.item<bool>(location);
  restore_if_refused();
  state_->seen.clear();
  if (new_scale) {
    state_->scale = *new_scale;
  } else if (!finite) {
    state_->scale *= options_.backoff_factor;
    state_->growth_tracker = 0;
  } else if (++state_->growth_tracker == options_.growth_interval) {
    // One that would not be finite in f32 stays.
    if (const double grown = state_->scale * options_.growth_factor; grown <= std::numeric_limits<float>::max())
      state_->scale = grown;
    state_->growth_tracker = 0;
  }
}

StateDict GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  return {{"scale", tensor(state_->scale, kFloat64)},
          {"growth_factor", tensor(options_.growth_factor, kFloat64)},
          {"backoff_factor", tensor(options_.backoff_factor, kFloat64)},
          {"growth_interval", tensor(options_.growth_interval)},
          {"_growth_tracker", tensor(state_->growth_tracker)}};
}

void GradScaler::load_state_dict(const StateDict& state, Location location) {
  if (!options_.enabled) return;
  optim::StateReader reader("GradScaler::load_state_dict", state, location);
  GradScalerOptions options = options_;
  options.init_scale = reader.number("scale");
  options.growth_factor = reader.number("growth_factor");
  options.backoff_factor = reader.number("backoff_factor");
  const double interval = reader.number("growth_interval"), tracker = reader.number("_growth_tracker");
  auto counts = [](double x) { return x >= 0 && x == std::floor(x) && x < 9e15; };
  if (!counts(interval)) reader.refuse("growth_interval " + optim::short_text(interval), "a number of steps");
  if (!counts(tracker)) reader.refuse("_growth_tracker " + optim::short_text(tracker), "a number of steps");
  options.growth_interval = static_cast<int64_t>(interval);
  reader.finish();
  check(options, location);
  options_ = options;
  state_->scale = options.init_scale;
  state_->growth_tracker = static_cast<int64_t>(tracker);
}

}  // namespace ingot::amp
