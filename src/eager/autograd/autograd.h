// Gradients: whether they are recorded, and how they are asked for. Names are PyTorch's.
//
//   x.requires_grad_();
//   Tensor loss = F::mse_loss(model(x), y);
//   loss.backward();                      // x.grad(), and that of every parameter
//
// The tape is written as ops run; backward() runs it from the last op to the first. The contributions to a tensor are
// added in the order in which they arise, so a gradient has the same bits every time, eager and compiled.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "eager/tensor.h"

namespace ingot {

/// Whether this thread records gradients.
struct INGOT_API GradMode {
  static bool is_enabled();
  static void set_enabled(bool on);
};
inline void set_grad_enabled(bool on) { GradMode::set_enabled(on); }
inline bool is_grad_enabled() { return GradMode::is_enabled(); }

/// On or off while it lives, on this thread.
class INGOT_API AutoGradMode {
 public:
  explicit AutoGradMode(bool on) : outer_(GradMode::is_enabled()) { GradMode::set_enabled(on); }
  ~AutoGradMode() { GradMode::set_enabled(outer_); }
  AutoGradMode(const AutoGradMode&) = delete;

 private:
  bool outer_;
};
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
using no_grad = NoGradGuard;
struct EnableGradGuard : AutoGradMode {
  EnableGradGuard() : AutoGradMode(true) {}
};
using enable_grad = EnableGradGuard;
/// Nothing that is made while it lives has a gradient. The same as NoGradGuard: a tensor has no cost of its own to be
/// spared. InferenceMode(false) is EnableGradGuard.
struct InferenceMode : AutoGradMode {
  explicit InferenceMode(bool on = true) : AutoGradMode(!on) {}
};

namespace autograd {

/// Sums of the gradients of `roots` into .grad of the leaves (or of `inputs`, where there are some). `gradients`: one
/// for each root with its dtype and sizes; may be left out for a root with one element. `retain_graph`: the tape stays
/// for another time (default: what `create_graph` is). `create_graph`: the gradients have a tape themselves. Throws
/// Error for a root that does not require grad, a missing or wrong gradient, a tape that was used up, and a saved
/// tensor that was written to.
INGOT_API void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients = {},
                        std::optional<bool> retain_graph = {}, bool create_graph = false,
                        const std::vector<Tensor>& inputs = {}, Location location = Location());
/// The gradients of `inputs`, in order; .grad stays as it is. One that no tape leads to is an Error, or undefined with
/// `allow_unused`.
INGOT_API std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                   const std::vector<Tensor>& grad_outputs = {}, std::optional<bool> retain_graph = {},
                                   bool create_graph = false, bool allow_unused = false,
                                   Location location = Location());

/// While it is on, backward() looks for NaN in every gradient, and names the line of the forward op that made one.
struct INGOT_API AnomalyMode {
  static bool is_enabled();
  static void set_enabled(bool on);
};
class DetectAnomalyGuard {
 public:
  DetectAnomalyGuard() : outer_(AnomalyMode::is_enabled()) { AnomalyMode::set_enabled(true); }
  ~DetectAnomalyGuard() { AnomalyMode::set_enabled(outer_); }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;

 private:
  bool outer_;
};

/// Whether backward() of a function agrees with finite differences of it, (f(x + eps) - f(x - eps)) / 2 eps: each
/// number within atol + rtol |difference|. Inputs that require grad are f64. Throws Error at the first that is not,
/// with output, input and position; without `raise_exception` returns false. True says nothing of other inputs.
INGOT_API bool gradcheck(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
                         const std::vector<Tensor>& inputs, double eps = 1e-6, double atol = 1e-5, double rtol = 1e-3,
                         bool raise_exception = true, Location location = Location());
/// The same of its gradients: of second order. `grad_outputs`: what the outputs that require grad are weighed with, f64
/// and requiring grad; none: random numbers.
INGOT_API bool gradgradcheck(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
                             const std::vector<Tensor>& inputs, const std::vector<Tensor>& grad_outputs = {},
                             double eps = 1e-6, double atol = 1e-5, double rtol = 1e-3, bool raise_exception = true,
                             Location location = Location());

}  // namespace autograd
}  // namespace ingot
