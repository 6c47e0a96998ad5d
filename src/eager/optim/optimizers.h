// The optimizers. Of each: its options; what it keeps of a parameter, made at the first step (`prepare`); and how that
// follows a gradient (`update`, after `step` was counted), a part of the parameter at a time. Numbers that go on from
// step to step do so when all of it was (`advance`).
#pragma once
#include "eager/optim/optimizer.h"

namespace ingot::optim {

struct INGOT_API SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;

  static constexpr const char* kName = "SGD";
  void check(Location location) const;
  INGOT_ALL_FIELDS(SGDOptions, lr, momentum, dampening, weight_decay, nesterov, maximize)
};
struct SGDState {
  int64_t step = 0;
  Tensor momentum_buffer;

  void prepare(const Tensor& p, const SGDOptions& o);
  void update(const Tensor& p, Tensor g, const SGDOptions& o);
  INGOT_ALL_FIELDS(SGDState, step, momentum_buffer)
};
using SGD = OptimizerOf<SGDOptions, SGDState>;

/// Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015. Decoupled (AdamW), the decay of weights does not
/// pass through the moments: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019. Amsgrad: Reddi et
/// al., "On the Convergence of Adam and Beyond", 2018.
template <bool kDecoupled>
struct AdamLikeOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = kDecoupled ? 1e-2 : 0;
  bool amsgrad = false, maximize = false;

  static constexpr const char* kName = kDecoupled ? "AdamW" : "Adam";
  static constexpr bool decoupled = kDecoupled;
  INGOT_API void check(Location location) const;
  INGOT_ALL_FIELDS(AdamLikeOptions, lr, betas, eps, weight_decay, amsgrad, maximize)
};
using AdamOptions = AdamLikeOptions<false>;
using AdamWOptions = AdamLikeOptions<true>;
struct AdamState {
  int64_t step = 0;
  Tensor exp_avg, exp_avg_sq, max_exp_avg_sq;

  template <class Options>
  void prepare(const Tensor& p, const Options& o);
  template <class Options>
  void update(const Tensor& p, Tensor g, const Options& o);
  INGOT_ALL_FIELDS(AdamState, step, exp_avg, exp_avg_sq, max_exp_avg_sq)
};
using Adam = OptimizerOf<AdamOptions, AdamState>;
using AdamW = OptimizerOf<AdamWOptions, AdamState>;

/// Tieleman and Hinton, lecture 6.5, 2012; centered: Graves, "Generating Sequences With Recurrent Neural Networks",
/// 2013.
struct INGOT_API RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;

  static constexpr const char* kName = "RMSprop";
  void check(Location location) const;
  INGOT_ALL_FIELDS(RMSpropOptions, lr, alpha, eps, weight_decay, momentum, centered, maximize)
};
struct RMSpropState {
  int64_t step = 0;
  Tensor square_avg, grad_avg, momentum_buffer;

  void prepare(const Tensor& p, const RMSpropOptions& o);
  void update(const Tensor& p, Tensor g, const RMSpropOptions& o);
  INGOT_ALL_FIELDS(RMSpropState, step, square_avg, grad_avg, momentum_buffer)
};
using RMSprop = OptimizerOf<RMSpropOptions, RMSpropState>;

/// Duchi et al., "Adaptive Subgradient Methods", 2011.
struct INGOT_API AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;

  static constexpr const char* kName = "Adagrad";
  void check(Location location) const;
  INGOT_ALL_FIELDS(AdagradOptions, lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize)
};
struct AdagradState {
  int64_t step = 0;
  Tensor sum;

  void prepare(const Tensor& p, const AdagradOptions& o);
  void update(const Tensor& p, Tensor g, const AdagradOptions& o);
  INGOT_ALL_FIELDS(AdagradState, step, sum)
};
using Adagrad = OptimizerOf<AdagradOptions, AdagradState>;

/// Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.
struct INGOT_API LionOptions {
  double lr = 1e-4;
  Betas betas = {0.9, 0.99};
  double weight_decay = 0;
  bool maximize = false;

  static constexpr const char* kName = "Lion";
  void check(Location location) const;
  INGOT_ALL_FIELDS(LionOptions, lr, betas, weight_decay, maximize)
};
struct LionState {
  int64_t step = 0;
  Tensor exp_avg;

  void prepare(const Tensor& p, const LionOptions& o);
  void update(const Tensor& p, Tensor g, const LionOptions& o);
  INGOT_ALL_FIELDS(LionState, step, exp_avg)
};
using Lion = OptimizerOf<LionOptions, LionState>;

/// Adam with Nesterov's momentum. Dozat, "Incorporating Nesterov Momentum into Adam", 2016.
struct INGOT_API NAdamOptions {
  double lr = 2e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false, maximize = false;

  static constexpr const char* kName = "NAdam";
  void check(Location location) const;
  INGOT_ALL_FIELDS(NAdamOptions, lr, betas, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize)
};
struct NAdamState {
  int64_t step = 0;
  double mu_product = 1;
  Tensor exp_avg, exp_avg_sq;

  void prepare(const Tensor& p, const NAdamOptions& o);
  void update(const Tensor& p, Tensor g, const NAdamOptions& o);
  void advance(const NAdamOptions& o);
  INGOT_ALL_FIELDS(NAdamState, step, mu_product, exp_avg, exp_avg_sq)
};
using NAdam = OptimizerOf<NAdamOptions, NAdamState>;

/// Adam whose first steps, for as long as there is little to tell the variance from, do without it: with the default
/// betas five, after which a compiled step is compiled once more. Liu et al., "On the Variance of the Adaptive Learning
/// Rate and Beyond", 2020.
struct INGOT_API RAdamOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false, maximize = false;

  static constexpr const char* kName = "RAdam";
  void check(Location location) const;
  INGOT_ALL_FIELDS(RAdamOptions, lr, betas, eps, weight_decay, decoupled_weight_decay, maximize)
};
struct RAdamState {
  int64_t step = 0;
  Tensor exp_avg, exp_avg_sq;

  void prepare(const Tensor& p, const RAdamOptions& o);
  void update(const Tensor& p, Tensor g, const RAdamOptions& o);
  INGOT_ALL_FIELDS(RAdamState, step, exp_avg, exp_avg_sq)
};
using RAdam = OptimizerOf<RAdamOptions, RAdamState>;

/// Adam with the largest gradient in place of the root of the mean square. Kingma and Ba, 2015.
struct INGOT_API AdamaxOptions {
  double lr = 2e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool maximize = false;

  static constexpr const char* kName = "Adamax";
  void check(Location location) const;
  INGOT_ALL_FIELDS(AdamaxOptions, lr, betas, eps, weight_decay, maximize)
};
struct AdamaxState {
  int64_t step = 0;
  Tensor exp_avg, exp_inf;

  void prepare(const Tensor& p, const AdamaxOptions& o);
  void update(const Tensor& p, Tensor g, const AdamaxOptions& o);
  INGOT_ALL_FIELDS(AdamaxState, step, exp_avg, exp_inf)
};
using Adamax = OptimizerOf<AdamaxOptions, AdamaxState>;

/// Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.
struct INGOT_API AdadeltaOptions {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;

  static constexpr const char* kName = "Adadelta";
  void check(Location location) const;
  INGOT_ALL_FIELDS(AdadeltaOptions, lr, rho, eps, weight_decay, maximize)
};
struct AdadeltaState {
  int64_t step = 0;
  Tensor square_avg, acc_delta;

  void prepare(const Tensor& p, const AdadeltaOptions& o);
  void update(const Tensor& p, Tensor g, const AdadeltaOptions& o);
  INGOT_ALL_FIELDS(AdadeltaState, step, square_avg, acc_delta)
};
using Adadelta = OptimizerOf<AdadeltaOptions, AdadeltaState>;

/// SGD whose rate falls, and beside it (`ax` of the state) the average of the parameters from step t0 on. Polyak and
/// Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992. A rate that is set holds from the step
/// after the next one on.
struct INGOT_API ASGDOptions {
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  bool maximize = false;

  static constexpr const char* kName = "ASGD";
  void check(Location location) const;
  INGOT_ALL_FIELDS(ASGDOptions, lr, lambd, alpha, t0, weight_decay, maximize)
};
struct ASGDState {
  int64_t step = 0;
  double eta = 0, mu = 1;  // of the next step: the rate, and the weight of the parameter in the average
  Tensor ax;

  void prepare(const Tensor& p, const ASGDOptions& o);
  void update(const Tensor& p, Tensor g, const ASGDOptions& o);
  void advance(const ASGDOptions& o);
  INGOT_ALL_FIELDS(ASGDState, step, eta, mu, ax)
};
using ASGD = OptimizerOf<ASGDOptions, ASGDState>;

/// Follows the signs of gradients of whole batches; `lr` is the first size of a step, which then grows and shrinks by
/// `etas` within `step_sizes`. Riedmiller and Braun, "A Direct Adaptive Method for Faster Backpropagation Learning: The
/// RPROP Algorithm", 1993.
struct INGOT_API RpropOptions {
  double lr = 1e-2;
  std::array<double, 2> etas = {0.5, 1.2}, step_sizes = {1e-6, 50};
  bool maximize = false;

  static constexpr const char* kName = "Rprop";
  void check(Location location) const;
  INGOT_ALL_FIELDS(RpropOptions, lr, etas, step_sizes, maximize)
};
struct RpropState {
  int64_t step = 0;
  Tensor prev, step_size;

  void prepare(const Tensor& p, const RpropOptions& o);
  void update(const Tensor& p, Tensor g, const RpropOptions& o);
  INGOT_ALL_FIELDS(RpropState, step, prev, step_size)
};
using Rprop = OptimizerOf<RpropOptions, RpropState>;

/// For matrices alone (parameters of two dims): momentum whose singular values are made about equal, by steps of Newton
/// and Schulz in bf16. Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024. The step is scaled by
/// max(1, rows / columns)^(1/2), or, with `match_rms_adamw`, by 0.2 max(rows, columns)^(1/2), for which a rate of AdamW
/// is right (Liu et al., "Muon is Scalable for LLM Training", 2025). Weights decay by themselves, as in AdamW.
struct INGOT_API MuonOptions {
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95;
  bool nesterov = true;
  double eps = 1e-7;
  int64_t ns_steps = 5;
  bool match_rms_adamw = false;

  static constexpr const char* kName = "Muon";
  void check(Location location) const;
  INGOT_ALL_FIELDS(MuonOptions, lr, weight_decay, momentum, nesterov, eps, ns_steps, match_rms_adamw)
};
struct MuonState {
  int64_t step = 0;
  Tensor momentum_buffer;

  static constexpr int64_t kDims = 2;   // of its parameters
  static constexpr bool kWhole = true;  // not a part of a parameter at a time
  void prepare(const Tensor& p, const MuonOptions& o);
  void update(const Tensor& p, Tensor g, const MuonOptions& o);
  INGOT_ALL_FIELDS(MuonState, step, momentum_buffer)
};
using Muon = OptimizerOf<MuonOptions, MuonState>;

/// Steps relative to the size of a parameter, divided by a variance of which a matrix (the last two dims) keeps a row
/// and a column. Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018. `eps`: of
/// the variance (0: the parameter's dtype's own; PyTorch's None), and the least size of a parameter; an update is no
/// longer than `d`.
struct INGOT_API AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8;
  std::array<double, 2> eps = {0, 1e-3};
  double d = 1, weight_decay = 0;
  bool maximize = false;

  static constexpr const char* kName = "Adafactor";
  void check(Location location) const;
  INGOT_ALL_FIELDS(AdafactorOptions, lr, beta2_decay, eps, d, weight_decay, maximize)
};
struct AdafactorState {
  int64_t step = 0;
  Tensor row_var, col_var, variance;  // the last one where there are fewer than two dims, the others else

  static constexpr bool kWhole = true;
  void prepare(const Tensor& p, const AdafactorOptions& o);
  void update(const Tensor& p, Tensor g, const AdafactorOptions& o);
  INGOT_ALL_FIELDS(AdafactorState, step, row_var, col_var, variance)
};
using Adafactor = OptimizerOf<AdafactorOptions, AdafactorState>;

extern template class INGOT_API OptimizerOf<SGDOptions, SGDState>;
extern template class INGOT_API OptimizerOf<AdamOptions, AdamState>;
extern template class INGOT_API OptimizerOf<AdamWOptions, AdamState>;
extern template class INGOT_API OptimizerOf<RMSpropOptions, RMSpropState>;
extern template class INGOT_API OptimizerOf<AdagradOptions, AdagradState>;
extern template class INGOT_API OptimizerOf<LionOptions, LionState>;
extern template class INGOT_API OptimizerOf<NAdamOptions, NAdamState>;
extern template class INGOT_API OptimizerOf<RAdamOptions, RAdamState>;
extern template class INGOT_API OptimizerOf<AdamaxOptions, AdamaxState>;
extern template class INGOT_API OptimizerOf<AdadeltaOptions, AdadeltaState>;
extern template class INGOT_API OptimizerOf<ASGDOptions, ASGDState>;
extern template class INGOT_API OptimizerOf<RpropOptions, RpropState>;
extern template class INGOT_API OptimizerOf<MuonOptions, MuonState>;
extern template class INGOT_API OptimizerOf<AdafactorOptions, AdafactorState>;

}  // namespace ingot::optim
