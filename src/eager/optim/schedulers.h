// Learning rates that follow the steps of a training run. A scheduler writes the rates of an optimizer's groups, which
// it refers to; make it after the optimizer and step it after the optimizer's steps. Names, defaults and formulas are
// PyTorch's: a rate is made from the one before, so several schedulers of one optimizer multiply.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "eager/optim/optimizer.h"

namespace ingot::optim {

class INGOT_API LRScheduler {
 public:
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;
  virtual ~LRScheduler() = default;
  /// To the next epoch, or whatever is counted.
  virtual void step(Location location = Location());
  /// As at the beginning: rates from the optimizer's first ones.
  virtual void restart(Location location = Location());
  int64_t last_epoch() const { return last_epoch_; }
  /// Of each group.
  std::vector<double> get_last_lr() const;

  /// What changes from step to step; the settings are those of the constructor.
  virtual StateDict state_dict() const;
  /// Throws Error, before anything is changed, for what is missing, unknown or of a wrong shape.
  void load_state_dict(const StateDict& state, Location location = Location()) { loading(state, location)(); }
  /// Checks all of it, and gives what then does it. Rates are the optimizer's to load.
  [[nodiscard]] virtual std::function<void()> loading(const StateDict& state, Location location = Location());

 protected:
  explicit LRScheduler(const char* name, Optimizer& optimizer);
  /// The rate of a group at last_epoch(), from `lr`, the one before, and `base`, the first one.
  virtual double rate(size_t group, double lr, double base) const = 0;
  [[noreturn]] void refuse(const char* setting, const std::string& got, const char* expected, Location location) const;
  void check(bool good, const char* setting, double got, const char* expected, Location location) const;
  Optimizer& optimizer() const { return *optimizer_; }

  int64_t last_epoch_ = -1;

 private:
  friend class SequentialLR;
  const char* name_;
  Optimizer* optimizer_;
};

/// Times gamma every `step_size` epochs.
class INGOT_API StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1, Location location = Location());

 private:
  double rate(size_t, double lr, double base) const override;
  int64_t step_size_;
  double gamma_;
};

/// Times gamma at each of these epochs.
class INGOT_API MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1,
              Location location = Location());

 private:
  double rate(size_t, double lr, double base) const override;
  std::vector<int64_t> milestones_;
  double gamma_;
};

/// Times gamma at every epoch.
class INGOT_API ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma, Location location = Location());

 private:
  double rate(size_t, double lr, double base) const override;
  double gamma_;
};

/// Half a cosine down to `eta_min` in `T_max` epochs, and up again. Loshchilov and Hutter, "SGDR", 2017.
class INGOT_API CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0, Location location = Location());

 private:
  double rate(size_t, double lr, double base) const override;
  int64_t t_max_;
  double eta_min_;
};

/// The first rate times a factor that goes from one to another in `total_iters` epochs: a warm-up.
class INGOT_API LinearLR final : public LRScheduler {
 public:
  LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1, int64_t total_iters = 5,
           Location location = Location());

 private:
  double rate(size_t, double lr, double base) const override;
  double start_, end_;
  int64_t total_;
};

/// The first rate times a function of the epoch; one for each group, or one for all.
class INGOT_API LambdaLR final : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t epoch)>;
  LambdaLR(Optimizer& optimizer, Lambda lr_lambda, Location location = Location());
  LambdaLR(Optimizer& optimizer, std::vector<Lambda> lr_lambdas, Location location = Location());

 private:
  double rate(size_t, double lr, double base) const override;
  std::vector<Lambda> lambdas_;
};

struct OneCycleOptions {
  double max_lr = 0;
  int64_t total_steps = 0;
  /// Of the steps, in which the rate goes up.
  double pct_start = 0.3;
  bool linear = false;  // instead of half a cosine
  /// The momentum, or the first beta, goes the other way.
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};
/// Up to `max_lr` and down far below where it began. Smith and Topin, "Super-Convergence", 2018.
class INGOT_API OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options, Location location = Location());
  void step(Location location = Location()) override;

 private:
  double rate(size_t, double lr, double base) const override;
  /// At last_epoch(), where the three are passed at the ends of the phases.
  double along(double low, double high, double last) const;
  OneCycleOptions options_;
};

struct ReduceLROnPlateauOptions {
  bool maximize = false;  // mode "max"
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  bool threshold_abs = false;  // threshold_mode "abs"
  int64_t cooldown = 0;
  double min_lr = 0, eps = 1e-8;
};
/// Times a factor once a metric has not become better for more than `patience` epochs.
class INGOT_API ReduceLROnPlateau final : public LRScheduler {
 public:
  ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {}, Location location = Location());
  void step(double metric);
  void step(Location location = Location()) override;
  void restart(Location location = Location()) override;
  StateDict state_dict() const override;
  [[nodiscard]] std::function<void()> loading(const StateDict& state, Location location = Location()) override;

 private:
  struct State {
    double best = 0;
    int64_t num_bad_epochs = 0, cooldown_counter = 0;
  };
  double rate(size_t, double lr, double) const override { return lr; }
  bool is_better(double metric) const;
  ReduceLROnPlateauOptions options_;
  State state_;
};

/// One scheduler after the other, each from its milestone on.
///
///   SequentialLR rate(opt, {std::make_shared<LinearLR>(opt, 0.1), std::make_shared<CosineAnnealingLR>(opt, 95)}, {5});
class INGOT_API SequentialLR final : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones, Location location = Location());
  void step(Location location = Location()) override;
  void restart(Location location = Location()) override;
  StateDict state_dict() const override;
  [[nodiscard]] std::function<void()> loading(const StateDict& state, Location location = Location()) override;

 private:
  double rate(size_t, double lr, double) const override { return lr; }
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

}  // namespace ingot::optim
