// The optimizers. Of each: its options; what it keeps of a parameter, made at the first step (`prepare`); and how that
// follows a gradient (`update`, after `step` was counted).
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

extern template class INGOT_API OptimizerOf<SGDOptions, SGDState>;
extern template class INGOT_API OptimizerOf<AdamOptions, AdamState>;
extern template class INGOT_API OptimizerOf<AdamWOptions, AdamState>;
extern template class INGOT_API OptimizerOf<RMSpropOptions, RMSpropState>;
extern template class INGOT_API OptimizerOf<AdagradOptions, AdagradState>;
extern template class INGOT_API OptimizerOf<LionOptions, LionState>;

}  // namespace ingot::optim
