#include "eager/nn/adaptive_softmax.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "eager/call/check_values.h"
#include "eager/nn/checks.h"
#include "eager/ops/checks.h"
#include "eager/ops/selection.h"

namespace ingot::nn {
namespace {

constexpr const char* kLayer = "AdaptiveLogSoftmaxWithLoss";

}  // namespace

AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes,
                                                               const std::vector<int64_t>& first_cutoffs,
                                                               AdaptiveLogSoftmaxOptions o)
    : head(nullptr), cutoffs(first_cutoffs) {
  cutoffs.push_back(n_classes);
  detail::positive(kLayer, "in_features", in_features);
  if (first_cutoffs.empty()) detail::refuse(kLayer, "cutoffs", "none", "at least one");
  for (size_t i = 0; i < cutoffs.size(); ++i)
    if (cutoffs[i] <= (i ? cutoffs[i - 1] : 0))
      detail::refuse(kLayer, "cutoffs", eager::text(first_cutoffs),
                     "rising numbers from 1 to below the number of classes, " + std::to_string(n_classes));
  if (!(o.div_value > 0)) detail::refuse(kLayer, "div_value", std::to_string(o.div_value), "a positive number");
  head = Linear(in_features, cutoffs[0] + static_cast<int64_t>(first_cutoffs.size()), o.head_bias);
  double width = static_cast<double>(in_features);
  for (size_t i = 0; i + 1 < cutoffs.size(); ++i) {
    const auto hidden = static_cast<int64_t>(std::floor(width /= o.div_value));
    if (hidden < 1)
      detail::refuse(kLayer, "div_value", std::to_string(o.div_value),
                     "one that leaves cluster " + std::to_string(i) + " a width of 1 or more");
    tail.push_back(Sequential(Linear(in_features, hidden, false), Linear(hidden, cutoffs[i + 1] - cutoffs[i], false)));
  }
}

std::tuple<Tensor, Tensor> AdaptiveLogSoftmaxWithLossImpl::forward(const TensorArg& input,
                                                                   const TensorArg& target) const {
  Tensor x = eager::present(kLayer, "input", input), y = eager::present(kLayer, "target", target);
  if (y.dtype() != kInt64) detail::refuse(kLayer, "target", eager::dtype_text(y), "classes, i64");
  const bool batched = y.dim() == 1;
  if (y.dim() > 1 || x.dim() != y.dim() + 1 || (batched && x.size(0) != y.size(0)))
    detail::refuse(
        kLayer, "target", detail::shape_of(y),
        "[N] for an input [N, in_features], or no dims for [in_features]; the input has " + detail::shape_of(x));
  eager::check_numbers(kLayer, "target", y, 0, cutoffs.back(), input.location);
  if (!batched) x = x.unsqueeze(0), y = y.unsqueeze(0);
  // Of each row the entry of the head, and what its cluster adds.
  Tensor entry = y, added = zeros({y.size(0)}, x.dtype());
  for (size_t i = 0; i < tail.size(); ++i) {
    const Tensor inside = logical_and(y >= cutoffs[i], y < cutoffs[i + 1]), rows = nonzero(inside).flatten();
    if (rows.numel() == 0) continue;
    const Tensor own = log_softmax(tail[i](x.index_select(0, rows)), 1);
    added = added.index_add(0, rows, own.gather(1, (y.index_select(0, rows) - cutoffs[i]).unsqueeze(1)).squeeze(1));
    entry = entry.masked_fill(inside, cutoffs[0] + static_cast<int64_t>(i));
  }
  const Tensor output = log_softmax(head(x), 1).gather(1, entry.unsqueeze(1)).squeeze(1) + added;
  return {batched ? output : output.squeeze(0), -output.mean()};
}

Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const TensorArg& input) const {
  const CallerLine line(input.location);
  const Tensor &x = eager::present_with_dims(kLayer, "input", input, 2), first = log_softmax(head(x), 1);
  std::vector<Tensor> parts{first.narrow(1, 0, cutoffs[0])};
  for (size_t i = 0; i < tail.size(); ++i)
    parts.push_back(log_softmax(tail[i](x), 1) + first.narrow(1, cutoffs[0] + static_cast<int64_t>(i), 1));
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const TensorArg& input) const {
  const CallerLine line(input.location);
  const Tensor& x = eager::present_with_dims(kLayer, "input", input, 2);
  const Tensor best = head(x).argmax(1), rows = nonzero(best >= cutoffs[0]).flatten();
  return rows.numel() == 0 ? best : best.index_copy(0, rows, log_prob(x.index_select(0, rows)).argmax(1));
}

}  // namespace ingot::nn
