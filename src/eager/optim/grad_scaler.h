// Scaling of losses, for gradients that pass through f16: what is too small there would be lost. bf16 needs none.
//
//   amp::GradScaler scaler;
//   scaler.scale(loss).backward();
//   scaler.unscale_(opt);                     // where gradients are looked at, or clipped
//   scaler.step(opt);                         // skipped where a gradient is not finite
//   scaler.update();
#pragma once
#include <map>

#include "eager/optim/optimizer.h"

namespace ingot::amp {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  bool enabled = true;
};

/// The scale falls by backoff_factor after a step whose gradients were not finite, and grows by growth_factor after
/// growth_interval others in a row. Names, defaults and errors are PyTorch's. step() reads whether the gradients are
/// finite, which is a graph break in a compiled function.
class INGOT_API GradScaler {
 public:
  /// Throws Error for a scale that is not positive, a growth_factor of at most 1, a backoff_factor that is not between
  /// 0 and 1, and an interval below 1.
  explicit GradScaler(const GradScalerOptions& options = {}, Location location = Location());
  /// Not copied: compiled calls that may be refused refer to it.
  GradScaler(const GradScaler&) = delete;

  /// loss * scale, a loss of 16 bits in f32.
  Tensor scale(const TensorArg& loss) const;
  /// Divides the gradients of an optimizer's parameters by the scale, in place; at most once before update(). Throws
  /// Error for gradients of f16: their parameters should be f32 (AutocastGuard).
  void unscale_(optim::Optimizer& optimizer, Location location = Location());
  /// optimizer.step() after unscale_(), unless a gradient is not finite. Throws Error where there are no gradients, and
  /// for a second step before update().
  void step(optim::Optimizer& optimizer, Location location = Location());
  /// The next scale, after the steps of all optimizers; or `new_scale`.
  void update(std::optional<double> new_scale = {}, Location location = Location());

  /// 1 where it is not enabled.
  double get_scale() const { return options_.enabled ? state_->scale : 1; }
  double get_growth_factor() const { return options_.growth_factor; }
  double get_backoff_factor() const { return options_.backoff_factor; }
  int64_t get_growth_interval() const { return options_.growth_interval; }
  bool is_enabled() const { return options_.enabled; }

  /// Under PyTorch's names; empty where it is not enabled.
  StateDict state_dict() const;
  /// Throws Error, before anything is changed, for what is missing, unknown or out of range.
  void load_state_dict(const StateDict& state, Location location = Location());

 private:
  struct Gradients {
    Tensor finite;  // a bool, of all gradients of an optimizer
    bool stepped = false;
  };
  struct State {
    double scale = 0;
    int64_t growth_tracker = 0;  // steps in a row that were finite
    std::map<const optim::Optimizer*, Gradients> seen;
  };
  void restore_if_refused();

  GradScalerOptions options_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace ingot::amp
