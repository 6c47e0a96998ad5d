// Learning rates that follow the steps of a training run. A scheduler writes the rates of an optimizer's groups, which
// it refers to; make it after the optimizer and step it after the optimizer's steps. Names, defaults and formulas are
// PyTorch's: a rate is made from the one before, so several schedulers of one optimizer multiply.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eager/optim/optimizer.h"

namespace ingot::optim {

/// One number for all groups of an optimizer, or one for each.
class PerGroup {
 public:
  PerGroup(double all) : values_{all} {}
  PerGroup(std::initializer_list<double> each) : values_(each) {}
  PerGroup(std::vector<double> each) : values_(std::move(each)) {}
  /// Groups that were added since have the number of the last one.
  double operator[](size_t group) const { return values_[std::min(group, values_.size() - 1)]; }
  /// Whether it is for this many.
  bool fits(size_t groups) const { return values_.size() == 1 || values_.size() == groups; }
  size_t size() const { return values_.size(); }

 private:
  std::vector<double> values_;
};

class INGOT_API LRScheduler {
 public:
  /// Neither copied nor moved: what it keeps is known by its place. A function may return a new one, and a
  /// std::optional or std::unique_ptr hold one.
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

  /// What changes from step to step, under PyTorch's names; the settings are those of the constructor.
  virtual StateDict state_dict() const;
  /// Throws Error, before anything is changed, for what is missing, unknown or of a wrong shape.
  void load_state_dict(const StateDict& state, Location location = Location()) { loading(state, location)(); }
  /// Checks all of it, and gives what then does it. Rates are the optimizer's to load.
  [[nodiscard]] virtual std::function<void()> loading(const StateDict& state, Location location = Location());

 protected:
  explicit LRScheduler(const char* name, Optimizer& optimizer) : name_(name), optimizer_(&optimizer) {}
  /// The rate of a group at last_epoch(), from `lr`, the one before, and `base`, the first one.
  virtual double rate(size_t group, double lr, double base) const = 0;
  /// The momentum of a group, or its first beta, at last_epoch(); of most schedulers none.
  virtual std::optional<double> momentum(size_t /*group*/) const { return {}; }
  /// As at the beginning, but from the rates that there are.
  virtual void rewind(Location location);
  /// Another number, one of this object's, that changes from step to step.
  void keep(const char* name, double* number) { kept_.push_back({name, number}); }
  void keep(const char* name, int64_t* number) { kept_.push_back({name, number}); }
  [[noreturn]] void refuse(const char* setting, const std::string& got, const char* expected, Location location) const;
  void check(bool good, const char* setting, double got, const char* expected, Location location) const;
  void check_groups(const char* setting, const PerGroup& numbers, Location location) const;
  /// Throws Error for a group that has neither a momentum nor betas.
  void check_momentum(Location location) const;
  Optimizer& optimizer() const { return *optimizer_; }

  int64_t last_epoch_ = -1;

 private:
  friend class SchedulerList;
  const char* name_;
  Optimizer* optimizer_;
  std::vector<Entry> kept_{{"last_epoch", &last_epoch_}};
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

/// Times a factor for the first `total_iters` epochs.
class INGOT_API ConstantLR final : public LRScheduler {
 public:
  ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5, Location location = Location());

 private:
  double rate(size_t, double lr, double base) const override;
  double factor_;
  int64_t total_;
};

/// The first rate times a power of the share of `total_iters` epochs that is left.
class INGOT_API PolynomialLR final : public LRScheduler {
 public:
  PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1, Location location = Location());

 private:
  double rate(size_t, double lr, double base) const override;
  int64_t total_;
  double power_;
};

/// Half a cosine down to `eta_min`, again and again from the first rate: at first in `T_0` epochs, then each time in
/// `T_mult` times as many. Loshchilov and Hutter, "SGDR", 2017.
class INGOT_API CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1, double eta_min = 0,
                              Location location = Location());
  void step(Location location = Location()) override;
  /// To this epoch, or a part of one: epoch + batch / batches.
  void step(double epoch, Location location = Location());

 private:
  double rate(size_t, double lr, double base) const override;
  void rewind(Location location) override;
  double t_0_, t_mult_, eta_min_;
  double t_cur_ = 0, t_i_;  // since the last restart; up to the next one
};

/// What follows functions of the epoch: one for each group, or one for all. A group that was added since is left alone.
class INGOT_API LambdaScheduler : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t epoch)>;

 protected:
  LambdaScheduler(const char* name, Optimizer& optimizer, std::vector<Lambda> lambdas, Location location);
  /// Of the group at last_epoch(), if it has a function.
  std::optional<double> factor(size_t group) const;

 private:
  std::vector<Lambda> lambdas_;
};

/// The first rate times a function of the epoch.
class INGOT_API LambdaLR final : public LambdaScheduler {
 public:
  LambdaLR(Optimizer& optimizer, Lambda lr_lambda, Location location = Location());
  LambdaLR(Optimizer& optimizer, std::vector<Lambda> lr_lambdas, Location location = Location());
  LambdaLR(Optimizer& optimizer, std::initializer_list<Lambda> lr_lambdas, Location location = Location());

 private:
  double rate(size_t, double lr, double base) const override;
};

/// Times a function of the epoch, at every epoch but the first.
class INGOT_API MultiplicativeLR final : public LambdaScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, Lambda lr_lambda, Location location = Location());
  MultiplicativeLR(Optimizer& optimizer, std::vector<Lambda> lr_lambdas, Location location = Location());
  MultiplicativeLR(Optimizer& optimizer, std::initializer_list<Lambda> lr_lambdas, Location location = Location());
  /// From the rates that there are, times the function of 0: so it comes after another one in a SequentialLR.
  void restart(Location location = Location()) override { LRScheduler::rewind(location); }

 private:
  double rate(size_t, double lr, double base) const override;
  void rewind(Location location) override;
  bool beginning_ = false;
};

struct CyclicOptions {
  PerGroup base_lr = 0, max_lr = 0;
  double step_size_up = 2000;
  std::optional<double> step_size_down = {};  // else that of the way up
  /// The height of the cycles: "triangular", always the same; "triangular2", half of it after each; "exp_range", times
  /// gamma at every step.
  std::string mode = "triangular";
  double gamma = 1;
  /// In place of a mode, a factor of the height: of the number of the cycle, from 1 on, or ("iterations") of the step.
  std::function<double(double)> scale_fn = nullptr;
  std::string scale_mode = "cycle";
  /// The momentum, or the first beta, goes the other way.
  bool cycle_momentum = true;
  PerGroup base_momentum = 0.8, max_momentum = 0.9;
};
/// From `base_lr` in a line up to `max_lr` and down again. Smith, "Cyclical Learning Rates for Training Neural
/// Networks", 2017.
class INGOT_API CyclicLR final : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, const CyclicOptions& options, Location location = Location());

 private:
  double rate(size_t group, double lr, double base) const override;
  std::optional<double> momentum(size_t group) const override;
  /// At last_epoch(), from 0 to 1.
  double height() const;
  CyclicOptions options_;
};

struct OneCycleOptions {
  PerGroup max_lr = 0;
  int64_t total_steps = 0;
  /// Of the steps, in which the rate goes up.
  double pct_start = 0.3;
  bool linear = false;  // instead of half a cosine
  /// The momentum, or the first beta, goes the other way.
  bool cycle_momentum = true;
  PerGroup base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};
/// Up to `max_lr` and down far below where it began. Smith and Topin, "Super-Convergence", 2018.
class INGOT_API OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options, Location location = Location());
  void step(Location location = Location()) override;

 private:
  double rate(size_t group, double lr, double base) const override;
  std::optional<double> momentum(size_t group) const override;
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
  PerGroup min_lr = 0;
  double eps = 1e-8;
};
/// Times a factor once a metric has not become better for more than `patience` epochs.
class INGOT_API ReduceLROnPlateau final : public LRScheduler {
 public:
  ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {}, Location location = Location());
  void step(double metric);
  void step(Location location = Location()) override;
  /// From the rates that there are.
  void restart(Location location = Location()) override { rewind(location); }

 private:
  double rate(size_t, double lr, double) const override { return lr; }
  void rewind(Location location) override;
  bool is_better(double metric) const;
  ReduceLROnPlateauOptions options_;
  double best_ = 0;
  int64_t num_bad_epochs_ = 0, cooldown_counter_ = 0;
};

/// What is made of several schedulers of one optimizer, and saves and loads them all.
class INGOT_API SchedulerList : public LRScheduler {
 public:
  StateDict state_dict() const override;
  [[nodiscard]] std::function<void()> loading(const StateDict& state, Location location = Location()) override;

 protected:
  using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;
  SchedulerList(const char* name, Optimizer& optimizer, Schedulers schedulers, Location location);
  size_t count() const { return schedulers_.size(); }
  LRScheduler& operator[](size_t i) const { return *schedulers_[i]; }
  void rewind_one(size_t i, Location location) { schedulers_[i]->rewind(location); }
  /// That of the first; throws Error where there is none.
  static Optimizer& optimizer_of(const char* name, const Schedulers& schedulers, Location location);

 private:
  double rate(size_t, double lr, double) const override { return lr; }
  Schedulers schedulers_;
};

/// One scheduler after the other, each from its milestone on.
///
///   SequentialLR rate(opt, {std::make_shared<LinearLR>(opt, 0.1), std::make_shared<CosineAnnealingLR>(opt, 95)}, {5});
class INGOT_API SequentialLR final : public SchedulerList {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones, Location location = Location());
  void step(Location location = Location()) override;

 private:
  void rewind(Location location) override;
  std::vector<int64_t> milestones_;
};

/// All of these at once, in their order: each makes its rate from that of the one before.
class INGOT_API ChainedScheduler final : public SchedulerList {
 public:
  explicit ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers, Location location = Location());
  void step(Location location = Location()) override;

 private:
  void rewind(Location location) override;
};

}  // namespace ingot::optim
