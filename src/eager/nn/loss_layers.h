// Losses and distances as layers of two tensors, with PyTorch's names and defaults.
#pragma once
#include "eager/nn/checks.h"
#include "eager/nn/ctc_loss.h"
#include "eager/nn/functional.h"
#include "eager/nn/losses.h"
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

struct INGOT_API SoftMarginLossImpl : Layer {
  std::string reduction;
  explicit SoftMarginLossImpl(std::string set_reduction = "mean") : reduction(std::move(set_reduction)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const { return soft_margin_loss(x, y, reduction); }
};
INGOT_MODULE(SoftMarginLoss);
struct INGOT_API MultiLabelMarginLossImpl : Layer {
  std::string reduction;
  explicit MultiLabelMarginLossImpl(std::string set_reduction = "mean") : reduction(std::move(set_reduction)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const {
    return functional::multilabel_margin_loss(x, y, reduction);
  }
};
INGOT_MODULE(MultiLabelMarginLoss);
struct INGOT_API HingeEmbeddingLossImpl : Layer {
  double margin;
  std::string reduction;
  explicit HingeEmbeddingLossImpl(double set_margin = 1, std::string set_reduction = "mean")
      : margin(set_margin), reduction(std::move(set_reduction)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const {
    return functional::hinge_embedding_loss(x, y, margin, reduction);
  }
};
INGOT_MODULE(HingeEmbeddingLoss);
struct INGOT_API PoissonNLLLossImpl : Layer {
  bool log_input, full;
  double eps;
  std::string reduction;
  explicit PoissonNLLLossImpl(bool set_log_input = true, bool set_full = false, double set_eps = 1e-8,
                              std::string set_reduction = "mean")
      : log_input(set_log_input), full(set_full), eps(set_eps), reduction(std::move(set_reduction)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const {
    return functional::poisson_nll_loss(x, y, log_input, full, eps, reduction);
  }
};
INGOT_MODULE(PoissonNLLLoss);

/// Losses of three tensors.
struct INGOT_API MarginRankingLossImpl : Layer {
  double margin;
  std::string reduction;
  explicit MarginRankingLossImpl(double set_margin = 0, std::string set_reduction = "mean")
      : margin(set_margin), reduction(std::move(set_reduction)) {}
  Tensor forward(const TensorArg& input1, const TensorArg& input2, const TensorArg& target) const {
    return functional::margin_ranking_loss(input1, input2, target, margin, reduction);
  }
};
INGOT_MODULE(MarginRankingLoss);
struct INGOT_API CosineEmbeddingLossImpl : Layer {
  double margin;
  std::string reduction;
  explicit CosineEmbeddingLossImpl(double set_margin = 0, std::string set_reduction = "mean")
      : margin(set_margin), reduction(std::move(set_reduction)) {}
  Tensor forward(const TensorArg& input1, const TensorArg& input2, const TensorArg& target) const {
    return functional::cosine_embedding_loss(input1, input2, target, margin, reduction);
  }
};
INGOT_MODULE(CosineEmbeddingLoss);
struct INGOT_API GaussianNLLLossImpl : Layer {
  bool full;
  double eps;
  std::string reduction;
  explicit GaussianNLLLossImpl(bool set_full = false, double set_eps = 1e-6, std::string set_reduction = "mean")
      : full(set_full), eps(set_eps), reduction(std::move(set_reduction)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y, const OperandArg& var) const {
    return functional::gaussian_nll_loss(x, y, var, full, eps, reduction);
  }
};
INGOT_MODULE(GaussianNLLLoss);
struct TripletMarginLossOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  std::string reduction = "mean";
};
struct INGOT_API TripletMarginLossImpl : Layer {
  TripletMarginLossOptions options;
  explicit TripletMarginLossImpl(TripletMarginLossOptions o = {}) : options(std::move(o)) {
    detail::margin("TripletMarginLoss", options.margin);
  }
  Tensor forward(const TensorArg& anchor, const TensorArg& positive, const TensorArg& negative) const {
    return functional::triplet_margin_loss(anchor, positive, negative, options.margin, options.p, options.eps,
                                           options.swap, options.reduction);
  }
};
class TripletMarginLoss : public HandleFrom<TripletMarginLoss, TripletMarginLossImpl, From<TripletMarginLossOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(TripletMarginLoss)
};
struct INGOT_API TripletMarginWithDistanceLossImpl : Layer {
  functional::Distance distance_function;  // none: pairwise_distance
  double margin;
  bool swap;
  std::string reduction;
  explicit TripletMarginWithDistanceLossImpl(functional::Distance distance = {}, double set_margin = 1,
                                             bool set_swap = false, std::string set_reduction = "mean")
      : distance_function(std::move(distance)),
        margin(detail::margin("TripletMarginWithDistanceLoss", set_margin)),
        swap(set_swap),
        reduction(std::move(set_reduction)) {}
  Tensor forward(const TensorArg& anchor, const TensorArg& positive, const TensorArg& negative) const {
    return functional::triplet_margin_with_distance_loss(anchor, positive, negative, distance_function, margin, swap,
                                                         reduction);
  }
};
INGOT_MODULE(TripletMarginWithDistanceLoss);
struct INGOT_API CTCLossImpl : Layer {
  int64_t blank;
  std::string reduction;
  bool zero_infinity;
  explicit CTCLossImpl(int64_t set_blank = 0, std::string set_reduction = "mean", bool set_zero_infinity = false)
      : blank(set_blank), reduction(std::move(set_reduction)), zero_infinity(set_zero_infinity) {}
  template <class Lengths>
  Tensor forward(const TensorArg& log_probs, const TensorArg& targets, const Lengths& input_lengths,
                 const Lengths& target_lengths) const {
    return functional::ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity);
  }
};
INGOT_MODULE(CTCLoss);

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
struct INGOT_API MultiMarginLossImpl : Layer {
  int64_t p;
  double margin;
  Buffer weight;
  std::string reduction;
  explicit MultiMarginLossImpl(int64_t order = 1, double set_margin = 1, Tensor w = {}, std::string r = "mean");
  Tensor forward(const TensorArg& x, const TensorArg& y) const {
    return functional::multi_margin_loss(x, y, p, margin, weight, reduction);
  }
};
INGOT_MODULE(MultiMarginLoss, weight);
struct INGOT_API MultiLabelSoftMarginLossImpl : Layer {
  Buffer weight;
  std::string reduction;
  explicit MultiLabelSoftMarginLossImpl(Tensor w = {}, std::string r = "mean")
      : weight(std::move(w)), reduction(std::move(r)) {}
  Tensor forward(const TensorArg& x, const TensorArg& y) const {
    return functional::multilabel_soft_margin_loss(x, y, weight, reduction);
  }
};
INGOT_MODULE(MultiLabelSoftMarginLoss, weight);

}  // namespace ingot::nn
