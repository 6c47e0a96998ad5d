#include "eager/optim/swa_utils.h"

#include <cmath>
#include <numbers>

#include "eager/call/call.h"
#include "eager/nn/layers.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/optim/state_reader.h"

namespace ingot::optim::swa_utils {
namespace {

/// `weight` of the current values, which is what `part` makes of a difference of integers.
template <class Part>
void average(const std::vector<Tensor>& averaged, const std::vector<Tensor>& current, double weight, Part part) {
  for (size_t i = 0; i < averaged.size(); ++i) {
    const Tensor &own = averaged[i], &given = current[i];
    if (own.is_floating_point())
      own.lerp_(given.to(own.dtype()), weight);
    else
      own.copy_(own + part((given - own).to(kFloat64)));
  }
}

}  // namespace

MultiAvgFn get_swa_multi_avg_fn() {
  return [](const std::vector<Tensor>& averaged, const std::vector<Tensor>& current, int64_t num_averaged) {
    const auto models = static_cast<double>(num_averaged + 1);
    average(averaged, current, 1 / models, [&](const Tensor& difference) { return difference / models; });
  };
}
MultiAvgFn get_ema_multi_avg_fn(double decay, Location location) {
  if (!(decay >= 0 && decay <= 1))
    eager::fail("get_ema_multi_avg_fn", "decay", short_text(decay), "a number from 0 to 1", location);
  return [weight = 1 - decay](const std::vector<Tensor>& averaged, const std::vector<Tensor>& current, int64_t) {
    average(averaged, current, weight, [&](const Tensor& difference) { return difference * weight; });
  };
}

AveragedModelBase::AveragedModelBase(AveragedModelOptions options)
    : n_averaged(tensor(int64_t{0})), options_(std::move(options)) {
  if (options_.avg_fn && options_.multi_avg_fn)
    eager::fail("AveragedModel", "avg_fn", "a function, and multi_avg_fn, too", "one of the two", Location::none());
  if (!options_.avg_fn && !options_.multi_avg_fn) options_.multi_avg_fn = get_swa_multi_avg_fn();
}

void AveragedModelBase::update(nn::Module& averaged, nn::Module& model, Location location) {
  const NoGradGuard no_grad;
  const CallerLine line(location);
  auto check_like = [&](const std::vector<Tensor>& own, const std::vector<Tensor>& given, const char* what) {
    bool same = own.size() == given.size();
    for (size_t i = 0; same && i < own.size(); ++i) same = own[i].sizes() == given[i].sizes();
    if (!same)
      eager::fail("update_parameters", "model", std::to_string(given.size()) + " " + what,
                  "the " + std::to_string(own.size()) + " of the averaged model, with their sizes", location);
  };
  std::vector<Tensor> own = averaged.parameters(), given = model.parameters();
  const std::vector<Tensor> buffers = averaged.buffers(), given_buffers = model.buffers();
  check_like(own, given, "parameters");
  check_like(buffers, given_buffers, "buffers");
  auto copy = [](const std::vector<Tensor>& to, const std::vector<Tensor>& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
  };
  if (options_.use_buffers) {
    own.insert(own.end(), buffers.begin(), buffers.end());
    given.insert(given.end(), given_buffers.begin(), given_buffers.end());
  } else {
    copy(buffers, given_buffers);
  }
  const auto count = n_averaged.item<int64_t>(location);
  if (count == 0)
    copy(own, given);
  else if (options_.multi_avg_fn)
    options_.multi_avg_fn(own, given, count);
  else
    for (size_t i = 0; i < own.size(); ++i) own[i].copy_(options_.avg_fn(own[i], given[i], count));
  n_averaged.add_(1);
}

BatchNormUpdate::BatchNormUpdate(nn::Module& model) {
  const NoGradGuard no_grad;
  for (const auto& [name, module] : model.named_modules()) {
    modes_.emplace_back(module, module->is_training());
    auto* norm = dynamic_cast<nn::BatchNormImpl*>(module);
    if (!norm) continue;
    momentums_.emplace_back(&norm->momentum, std::exchange(norm->momentum, std::nullopt));
    if (!norm->running_mean.defined()) continue;
    norm->running_mean.zero_();
    norm->running_var.fill_(1);
    norm->num_batches_tracked.zero_();
  }
  if (any()) model.train();
}
BatchNormUpdate::~BatchNormUpdate() {
  for (auto& [momentum, before] : momentums_) *momentum = before;
  // Parents come first, and set those below them, too.
  for (auto& [module, training] : modes_) module->train(training);
}

SWALR::SWALR(Optimizer& optimizer, PerGroup swa_lr, int64_t anneal_epochs, const std::string& anneal_strategy,
             Location location)
    : LRScheduler("SWALR", optimizer),
      swa_lr_(std::move(swa_lr)),
      anneal_epochs_(anneal_epochs),
      linear_(anneal_strategy == "linear") {
  check_groups("swa_lr", swa_lr_, location);
  check(anneal_epochs >= 0, "anneal_epochs", static_cast<double>(anneal_epochs), "no negative number", location);
  if (!linear_ && anneal_strategy != "cos")
    refuse("anneal_strategy", '"' + anneal_strategy + '"', "\"cos\" or \"linear\"", location);
  SWALR::step();
}
double SWALR::share(int64_t epoch) const {
  const double line =
      std::clamp(static_cast<double>(epoch) / std::max(1.0, static_cast<double>(anneal_epochs_)), 0.0, 1.0);
  return linear_ ? line : (1 - std::cos(std::numbers::pi * line)) / 2;
}
double SWALR::rate(size_t group, double lr, double) const {
  const double goal = swa_lr_[group];
  const int64_t epoch = anneal_epochs_ == 0 ? std::max<int64_t>(last_epoch_, 1) : last_epoch_;
  const double before = share(epoch - 1), now = share(epoch);
  // What the rate would be without this schedule.
  const double other = before == 1 ? goal : (lr - before * goal) / (1 - before);
  return now * goal + (1 - now) * other;
}

}  // namespace ingot::optim::swa_utils
