// A softmax over many classes, of which few are frequent.
#pragma once
#include <tuple>
#include <vector>

#include "eager/nn/layers.h"

namespace ingot::nn {

struct AdaptiveLogSoftmaxOptions {
  double div_value = 4;
  bool head_bias = false;
};
/// Classes in the order of their frequency, cut into a head and clusters at `cutoffs`: rising numbers from 1 to below
/// the number of classes (Grave et al., "Efficient softmax approximation for GPUs", 2017). `head` is a linear layer to
/// the classes of the head and one number for each cluster; cluster i is two linear layers through in_features /
/// div_value^(i + 1), `tail.i.0` and `tail.i.1`, and is computed of those rows alone whose target lies there. Throws
/// Error for other cutoffs.
struct INGOT_API AdaptiveLogSoftmaxWithLossImpl : Layer {
  Linear head;
  std::vector<Sequential> tail;
  std::vector<int64_t> cutoffs;  // and the number of classes
  AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes, const std::vector<int64_t>& first_cutoffs,
                                 AdaptiveLogSoftmaxOptions o = {});
  /// Input [N, in_features] and classes i64 [N] (or [in_features] and one without dims): the logarithm of the
  /// probability of each class, and the mean of their negatives. It reads the classes: a graph break in compiled code.
  std::tuple<Tensor, Tensor> forward(const TensorArg& input, const TensorArg& target) const;
  /// The logarithms of the probabilities of all classes: [N, in_features] to [N, n_classes].
  Tensor log_prob(const TensorArg& input) const;
  /// The most probable class of each row, i64 [N]; clusters are computed of the rows that may lie there.
  Tensor predict(const TensorArg& input) const;
};
class AdaptiveLogSoftmaxWithLoss
    : public HandleFrom<AdaptiveLogSoftmaxWithLoss, AdaptiveLogSoftmaxWithLossImpl,
                        From<int64_t, int64_t, const std::vector<int64_t>&>,
                        From<int64_t, int64_t, const std::vector<int64_t>&, AdaptiveLogSoftmaxOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(AdaptiveLogSoftmaxWithLoss, head, tail)
};

}  // namespace ingot::nn
