// L-BFGS: steps by curvature, which it learns from the last gradients.
#pragma once
#include "eager/optim/optimizer.h"

namespace ingot::optim {

struct LBFGSOptions {
  double lr = 1;
  /// Of one step; evaluations of the closure, else 5/4 of the iterations.
  int64_t max_iter = 20;
  std::optional<int64_t> max_eval = {};
  /// A step ends where no element of the gradient, or no change of a parameter and of the loss, is larger.
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  /// Pairs of changes that are kept: memory of twice as many copies of the parameters.
  int64_t history_size = 100;
  /// "strong_wolfe" looks for the length of each iteration's way; without it, that is `lr`.
  std::optional<std::string> line_search_fn = {};
};

/// Takes all parameters as one vector, in one group, and a closure that it calls several times a step: it zeroes the
/// gradients, computes them, and gives the loss. A parameter without a gradient has one of zeros. Numbers decide how it
/// goes on, so a step is for eager code; within a compiled function each of them is a graph break (compile the closure
/// instead). Nocedal and Wright, "Numerical Optimization", 2006: algorithms 7.4, 3.5 and 3.6; the line search
/// interpolates as Schmidt's minFunc, 2005.
class INGOT_API LBFGS final : public Optimizer {
 public:
  explicit LBFGS(const std::vector<Tensor>& params, const LBFGSOptions& options = {}, Location location = Location());
  /// Returns the loss that the step began with. Throws Error for a loss that is no number of one element.
  Tensor step(const Closure& closure, Location location = Location()) override;
  /// Throws Error: there is no step without a closure.
  void step(Location location = Location()) override;
  /// May be changed between steps.
  LBFGSOptions& options() { return options_; }

  [[nodiscard]] std::function<void()> loading(const StateDict& state, Location location = Location()) override;
  const char* name() const override { return "LBFGS"; }

 private:
  /// What goes on from iteration to iteration. Tensors are never written once they are here.
  struct State {
    int64_t func_evals = 0, n_iter = 0;
    double t = 0, prev_loss = 0;
    Tensor d, prev_flat_grad, H_diag;
    std::vector<Tensor> old_dirs, old_stps, ro;
  };
  /// The loss, and the gradients of all parameters as one vector.
  struct Point {
    double loss;
    Tensor gradient;
  };
  /// A place on the line that is searched.
  struct Trial {
    double t;
    Point at;
    double slope;
  };
  static std::vector<Entry> entries(LBFGSOptions& options, bool& strong_wolfe);
  static std::vector<Entry> entries(State& state);
  static void check(const LBFGSOptions& options, Location location);
  std::vector<Entry> options_of(size_t group) override;
  std::vector<Entry> state_of(size_t param) override;
  void update(size_t, const Tensor&) override {}
  std::function<void()> restoring(size_t) override {
    return [this, state = state_] { state_ = state; };
  }

  Point evaluate(const Closure& closure, Location location);
  Tensor flat_gradient() const;
  /// Adds t times a vector to the parameters.
  void move(double t, const Tensor& direction);
  /// Where to go from this gradient; learns from the way that led to it.
  Tensor direction(const Tensor& gradient);
  /// From `start`, along d, for a length that meets Wolfe's strong conditions; the parameters are left at the start.
  /// The first length that is tried is t.
  Trial search(const Closure& closure, const Trial& start, double t, int64_t& evaluations, Location location);

  LBFGSOptions options_;
  bool strong_wolfe_ = false;  // the option as a state dict has it
  State state_;
};

}  // namespace ingot::optim
