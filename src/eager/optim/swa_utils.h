// Averages of a model along its training: stochastic weight averaging, exponential moving averages.
//
//   using namespace optim::swa_utils;
//   AveragedModel ema(net, {.multi_avg_fn = get_ema_multi_avg_fn(0.999)});
//   for (auto& [x, y] : batches) step(x, y), ema->update_parameters(net);
//   update_bn(batches, ema);                        // where batch norms have statistics
//   Tensor out = ema(x);
#pragma once
#include "eager/nn/module.h"
#include "eager/optim/schedulers.h"

namespace ingot::optim::swa_utils {

/// The average with one model more, after `num_averaged` ones; the first one is copied, so that is above 0.
using AvgFn = std::function<Tensor(const Tensor& averaged, const Tensor& current, int64_t num_averaged)>;
/// The same of all tensors, in place.
using MultiAvgFn =
    std::function<void(const std::vector<Tensor>& averaged, const std::vector<Tensor>& current, int64_t num_averaged)>;

/// The mean of all models. Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", 2018.
INGOT_API MultiAvgFn get_swa_multi_avg_fn();
/// decay * averaged + (1 - decay) * current. Throws Error unless decay is from 0 to 1.
INGOT_API MultiAvgFn get_ema_multi_avg_fn(double decay = 0.999, Location location = Location());

struct AveragedModelOptions {
  /// One of the two; without them, the mean.
  AvgFn avg_fn = nullptr;
  MultiAvgFn multi_avg_fn = nullptr;
  /// Averages buffers as well; else they are copied.
  bool use_buffers = false;
};

/// What all averaged models share.
struct INGOT_API AveragedModelBase : nn::Layer {
  nn::Buffer n_averaged;

 protected:
  explicit AveragedModelBase(AveragedModelOptions options);
  void update(nn::Module& averaged, nn::Module& model, Location location);

 private:
  AveragedModelOptions options_;
};

template <class Net>
struct AveragedModelImpl : AveragedModelBase {
  Net module;

  explicit AveragedModelImpl(const Net& model, AveragedModelOptions options = {})
      : AveragedModelBase(std::move(options)), module(model.clone()) {}
  /// Takes the model into the average. How many there are is read, which is a graph break in a compiled function.
  /// Throws Error for a model whose parameters or buffers are not like the average's.
  void update_parameters(const Net& model, Location location = Location()) { update(*module, *model, location); }
  template <class... Args>
  auto forward(const TensorArg& x, Args&&... args) -> decltype(module(x, std::forward<Args>(args)...)) {
    return module(x, std::forward<Args>(args)...);
  }
};

/// A copy of a model, which is the average of the models that it is given. A module: its state has PyTorch's names,
/// "n_averaged" and "module.NAME". In training mode where the model is.
template <class Net>
class AveragedModel : public nn::Handle<AveragedModel<Net>, AveragedModelImpl<Net>> {
 public:
  using nn::Handle<AveragedModel, AveragedModelImpl<Net>>::Handle;
  explicit AveragedModel(const Net& model, AveragedModelOptions options = {},
                         nn::detail::MadeAt at = nn::detail::MadeAt())
      : nn::Handle<AveragedModel, AveragedModelImpl<Net>>(model, std::move(options), at) {}

  static constexpr const char* module_type() { return "AveragedModel"; }
  static void fields(AveragedModelImpl<Net>& self, nn::Fields& visit) {
    visit("n_averaged", self.n_averaged);
    visit("module", self.module);
  }
};

/// While it lives, the batch norms of a model are in training and follow all batches alike, from nothing on; then its
/// momentums and modes are again what they were.
class INGOT_API BatchNormUpdate {
 public:
  explicit BatchNormUpdate(nn::Module& model);
  ~BatchNormUpdate();
  BatchNormUpdate(const BatchNormUpdate&) = delete;
  BatchNormUpdate& operator=(const BatchNormUpdate&) = delete;
  /// Whether there are any.
  bool any() const { return !momentums_.empty(); }

 private:
  std::vector<std::pair<std::optional<double>*, std::optional<double>>> momentums_;
  std::vector<std::pair<nn::Module*, bool>> modes_;
};

/// Computes the statistics of a model's batch norms anew, for its present parameters: those of all these inputs, a
/// range of tensors, or of pairs and tuples that begin with one.
template <class Loader, class Net>
void update_bn(Loader&& loader, const Net& model, Location location = Location()) {
  const CallerLine line(location);
  const BatchNormUpdate batch_norms(*model);
  if (!batch_norms.any()) return;
  const NoGradGuard no_grad;
  for (const auto& batch : loader)
    if constexpr (std::is_convertible_v<decltype(batch), const Tensor&>)
      model(batch);
    else
      model(std::get<0>(batch));
}

/// From the rates that there are to `swa_lr`, in `anneal_epochs` epochs along half a cosine ("cos") or a line
/// ("linear"), and stays there.
class INGOT_API SWALR final : public LRScheduler {
 public:
  SWALR(Optimizer& optimizer, PerGroup swa_lr, int64_t anneal_epochs = 10, const std::string& anneal_strategy = "cos",
        Location location = Location());
  /// From the rates that there are.
  void restart(Location location = Location()) override { rewind(location); }

 private:
  double rate(size_t group, double lr, double base) const override;
  /// How much of the way is behind, as a weight of swa_lr.
  double share(int64_t epoch) const;
  PerGroup swa_lr_;
  int64_t anneal_epochs_;
  bool linear_;
};

}  // namespace ingot::optim::swa_utils
