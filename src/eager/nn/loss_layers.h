// Losses and distances as layers of two tensors, with PyTorch's names and defaults.
#pragma once
#include "eager/nn/checks.h"
#include "eager/nn/functional.h"
#include "eager/nn/module.h"

namespace ingot::nn {

struct INGOT_API MSELossImpl : Layer {
  std::string reduction;
  explicit MSELossImpl(std::string set_reduction = "mean") : reduction(std::move(set_reduction)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const { return mse_loss(x, y, reduction); }
};
INGOT_MODULE(MSELoss);
struct INGOT_API L1LossImpl : Layer {
  std::string reduction;
  explicit L1LossImpl(std::string set_reduction = "mean") : reduction(std::move(set_reduction)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const { return l1_loss(x, y, reduction); }
};
INGOT_MODULE(L1Loss);
struct INGOT_API SmoothL1LossImpl : Layer {
  std::string reduction;
  double beta;
  explicit SmoothL1LossImpl(std::string set_reduction = "mean", double set_beta = 1.0)
      : reduction(std::move(set_reduction)), beta(set_beta) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const { return smooth_l1_loss(x, y, reduction, beta); }
};
INGOT_MODULE(SmoothL1Loss);
struct INGOT_API HuberLossImpl : Layer {
  std::string reduction;
  double delta;
  explicit HuberLossImpl(std::string set_reduction = "mean", double set_delta = 1.0)
      : reduction(std::move(set_reduction)), delta(set_delta) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const { return huber_loss(x, y, reduction, delta); }
};
INGOT_MODULE(HuberLoss);
struct INGOT_API KLDivLossImpl : Layer {
  std::string reduction;
  bool log_target;
  explicit KLDivLossImpl(std::string set_reduction = "mean", bool set_log_target = false)
      : reduction(std::move(set_reduction)), log_target(set_log_target) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const { return kl_div(x, y, reduction, log_target); }
};
INGOT_MODULE(KLDivLoss);
struct INGOT_API CosineSimilarityImpl : Layer {
  int64_t dim;
  double eps;
  explicit CosineSimilarityImpl(int64_t set_dim = 1, double set_eps = 1e-8) : dim(set_dim), eps(set_eps) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const { return cosine_similarity(x, y, dim, eps); }
};
INGOT_MODULE(CosineSimilarity);
struct INGOT_API PairwiseDistanceImpl : Layer {
  double p;
  double eps;
  bool keepdim;
  explicit PairwiseDistanceImpl(double set_p = 2, double set_eps = 1e-6, bool set_keepdim = false)
      : p(set_p), eps(set_eps), keepdim(set_keepdim) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const { return pairwise_distance(x, y, p, eps, keepdim); }
};
INGOT_MODULE(PairwiseDistance);

/// Losses with weights, which are buffers: absent ones count every element alike.
struct INGOT_API BCELossImpl : Layer {
  Buffer weight;
  std::string reduction;
  explicit BCELossImpl(Tensor w = {}, std::string r = "mean") : weight(std::move(w)), reduction(std::move(r)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const { return binary_cross_entropy(x, y, weight, reduction); }
};
INGOT_MODULE(BCELoss, weight);
struct INGOT_API BCEWithLogitsLossImpl : Layer {
  Buffer weight, pos_weight;
  std::string reduction;
  explicit BCEWithLogitsLossImpl(Tensor w = {}, Tensor positive = {}, std::string r = "mean")
      : weight(std::move(w)), pos_weight(std::move(positive)), reduction(std::move(r)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const {
    return binary_cross_entropy_with_logits(x, y, weight, pos_weight, reduction);
  }
};
INGOT_MODULE(BCEWithLogitsLoss, weight, pos_weight);
struct INGOT_API NLLLossImpl : Layer {
  Buffer weight;
  int64_t ignore_index;
  std::string reduction;
  explicit NLLLossImpl(Tensor w = {}, int64_t ignored = -100, std::string r = "mean")
      : weight(std::move(w)), ignore_index(ignored), reduction(std::move(r)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const {
    return nll_loss(x, y, weight, ignore_index, reduction);
  }
};
INGOT_MODULE(NLLLoss, weight);
struct INGOT_API CrossEntropyLossImpl : Layer {
  Buffer weight;
  int64_t ignore_index;
  std::string reduction;
  double label_smoothing;
  explicit CrossEntropyLossImpl(Tensor w = {}, int64_t ignored = -100, std::string r = "mean", double smoothing = 0)
      : weight(std::move(w)),
        ignore_index(ignored),
        reduction(std::move(r)),
        label_smoothing(detail::share("CrossEntropyLoss", "label_smoothing", smoothing)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const {
    return cross_entropy(x, y, weight, ignore_index, reduction, label_smoothing);
  }
};
INGOT_MODULE(CrossEntropyLoss, weight);

}  // namespace ingot::nn
