#include "eager/nn/losses.h"

#include <cmath>
#include <numbers>

#include "base/function_scope.h"
#include "eager/autograd/autograd.h"
#include "eager/call/check_values.h"
#include "eager/nn/checks.h"
#include "eager/nn/reduction.h"

namespace ingot::nn::functional {
namespace {

using detail::reduced;
using detail::Reduction;
using detail::reduction_of;
using detail::shape_of;
using eager::fail;
using eager::present;

// Sizes as they are now: for checks alone, what they decide of results is decided again by the ops.
IntArrayRef sizes_of(const Tensor& t) { return t.impl()->sizes; }
std::string dims_of(const Tensor& t) { return std::to_string(t.dim()) + " dims"; }

/// Each as many dims as the first one.
void check_dims(const char* op, const Tensor& first, const char* name, const Tensor& other, Location at) {
  if (other.dim() != first.dim()) fail(op, name, dims_of(other), std::to_string(first.dim()) + ", as the input", at);
}

Tensor hinge(const Tensor& x) { return clamp_min(x, 0); }

}  // namespace

Tensor margin_ranking_loss(const TensorArg& input1, const TensorArg& input2, const TensorArg& target, double margin,
                           Word word) {
  constexpr const char* kOp = "margin_ranking_loss";
  const FunctionScope scope(kOp, input1.location);
  const Reduction reduction = reduction_of(kOp, word, input1.location);
  const Tensor &a = present(kOp, "input1", input1), &b = present(kOp, "input2", input2);
  const Tensor& t = present(kOp, "target", target);
  check_dims(kOp, a, "input2", b, input1.location);
  check_dims(kOp, a, "target", t, input1.location);
  return reduced(hinge(-t * (a - b) + margin), reduction);
}

Tensor hinge_embedding_loss(const TensorArg& input, const TensorArg& target, double margin, Word word) {
  constexpr const char* kOp = "hinge_embedding_loss";
  const FunctionScope scope(kOp, input.location);
  const Reduction reduction = reduction_of(kOp, word, input.location);
  const Tensor &x = present(kOp, "input", input), &t = present(kOp, "target", target);
  const Tensor apart = where(t != 1, hinge(margin - x).to(x.dtype()), 0), near = where(t != -1, x, 0);
  return reduced(apart + near, reduction);
}

Tensor cosine_embedding_loss(const TensorArg& input1, const TensorArg& input2, const TensorArg& target, double margin,
                             Word word) {
  constexpr const char* kOp = "cosine_embedding_loss";
  const Location at = input1.location;
  const FunctionScope scope(kOp, at);
  const Reduction reduction = reduction_of(kOp, word, at);
  const Tensor &a = present(kOp, "input1", input1), &b = present(kOp, "input2", input2);
  const Tensor& t = present(kOp, "target", target);
  if (t.dim() > 1) fail(kOp, "target", dims_of(t), "at most one", at);
  for (const Tensor* x : {&a, &b})
    if (x->dim() != t.dim() + 1)
      fail(kOp, x == &a ? "input1" : "input2", dims_of(*x),
           std::to_string(t.dim() + 1) + " for a target of " + std::to_string(t.dim()), at);
  constexpr double kEps = 1e-12;  // PyTorch's, added to squares of lengths
  const auto of_rows = [](const Tensor& products) { return products.sum(-1); };
  const Tensor cosine = of_rows(a * b) / sqrt((of_rows(a * a) + kEps) * (of_rows(b * b) + kEps));
  return reduced(where(t == 1, 1 - cosine, 0) + where(t == -1, hinge(cosine - margin), 0), reduction);
}

namespace {

Tensor triplet_loss(const char* op, const TensorArg& anchor, const TensorArg& positive, const TensorArg& negative,
                    const Distance& distance, double margin, bool swap, std::string_view word) {
  const FunctionScope scope(op, anchor.location);
  const Reduction reduction = reduction_of(op, word, anchor.location);
  const Tensor &a = present(op, "anchor", anchor), &p = present(op, "positive", positive);
  const Tensor& n = present(op, "negative", negative);
  check_dims(op, a, "positive", p, anchor.location);
  check_dims(op, a, "negative", n, anchor.location);
  detail::margin(op, margin);
  const Tensor near = distance(a, p);
  Tensor far = distance(a, n);
  if (swap) far = minimum(far, distance(p, n));
  return reduced(hinge(margin + near - far), reduction);
}

}  // namespace

Tensor triplet_margin_loss(const TensorArg& anchor, const TensorArg& positive, const TensorArg& negative, double margin,
                           double p, double eps, bool swap, Word reduction) {
  return triplet_loss(
      "triplet_margin_loss", anchor, positive, negative,
      [&](const Tensor& x, const Tensor& y) { return pairwise_distance(x, y, p, eps); }, margin, swap, reduction);
}
Tensor triplet_margin_with_distance_loss(const TensorArg& anchor, const TensorArg& positive, const TensorArg& negative,
                                         const Distance& distance_function, double margin, bool swap, Word reduction) {
  const Distance plain = [](const Tensor& x, const Tensor& y) { return pairwise_distance(x, y); };
  return triplet_loss("triplet_margin_with_distance_loss", anchor, positive, negative,
                      distance_function ? distance_function : plain, margin, swap, reduction);
}

namespace {

/// Rows of scores and what is asked of their classes; one row where there is no batch.
struct Scores {
  Tensor x;       // [N, C], 32 bits at least
  Tensor target;  // i64, a first dim for N
  DType dtype;
  bool batched;

  Scores(const char* op, const TensorArg& input, const TensorArg& given_target) {
    const Tensor &scores = present(op, "input", input), &t = present(op, "target", given_target);
    if (scores.dim() > 2 || (scores.dim() > 0 && scores.size(-1) == 0))
      fail(op, "input", shape_of(scores), "[N, C] or [C], with a class at least", input.location);
    if (!is_floating(scores.dtype()))
      fail(op, "input", std::string(name_of(scores.dtype())), "floating point numbers", input.location);
    if (t.dtype() != kInt64)
      fail(op, "target", "a tensor of " + std::string(name_of(t.dtype())), "i64", given_target.location);
    batched = scores.dim() == 2;
    dtype = scores.dtype();
    x = scores.to(working_dtype(dtype));
    if (!batched) x = x.reshape({1, -1});
    target = t;
  }
  /// Losses [N], each shared out over the classes.
  Tensor joined(const Tensor& losses, Reduction reduction) const {
    const Tensor each = (losses / x.size(1)).to(dtype);
    // Of no sample the mean is 0, as PyTorch's.
    return reduced(each, reduction == Reduction::mean && x.size(0) == 0 ? Reduction::sum : reduction);
  }
};

// As PyTorch's loops have it: what is NaN is not above 0 either.
Tensor where_above_zero(const Tensor& counts, const Tensor& x) { return where(logical_and(counts, x > 0), x, 0); }

}  // namespace

Tensor multi_margin_loss(const TensorArg& input, const TensorArg& target, int64_t p, double margin,
                         const TensorArg& given_weight, Word word) {
  constexpr const char* kOp = "multi_margin_loss";
  const Location at = input.location;
  const FunctionScope scope(kOp, at);
  const Reduction reduction = reduction_of(kOp, word, at);
  if (p != 1 && p != 2) fail(kOp, "p", std::to_string(p), "1 or 2", at);
  Scores scores(kOp, input, target);
  const Tensor& x = scores.x;
  const Tensor shaped = scores.target;
  if (shaped.dim() > 1 || shaped.numel() != x.size(0) || (scores.batched && shaped.dim() != 1))
    fail(kOp, "target", shape_of(shaped),
         scores.batched ? "[" + std::to_string(x.size(0).value()) + "], one for each row" : "one number", at);
  eager::check_numbers(kOp, "target", shaped, 0, x.size(1).value(), at);
  const Tensor y = shaped.reshape({-1, 1});
  const Tensor others = arange(x.size(1)) != y;
  Tensor losses = where_above_zero(others, margin - x.gather(1, y) + x);
  if (p == 2) losses = square(losses);
  if (given_weight.tensor && given_weight.tensor->defined()) {
    const Tensor& weight = *given_weight.tensor;
    if (weight.dim() != 1 || weight.size(0) != x.size(1))
      fail(kOp, "weight", shape_of(weight), "[" + std::to_string(x.size(1).value()) + "], one for each class", at);
    if (weight.dtype() != scores.dtype)
      fail(kOp, "weight", "a tensor of " + std::string(name_of(weight.dtype())),
           std::string(name_of(scores.dtype)) + ", the input's dtype", at);
    losses = losses * weight.to(x.dtype()).index_select(0, y.reshape({-1})).unsqueeze(1);
  }
  losses = losses.sum(1);
  return scores.joined(shaped.dim() == 0 ? losses.squeeze(0) : losses, reduction);
}

Tensor multilabel_margin_loss(const TensorArg& input, const TensorArg& target, Word word) {
  constexpr const char* kOp = "multilabel_margin_loss";
  const Location at = input.location;
  const FunctionScope scope(kOp, at);
  const Reduction reduction = reduction_of(kOp, word, at);
  Scores scores(kOp, input, target);
  const Tensor& x = scores.x;
  if (sizes_of(scores.target) != sizes_of(*input.tensor))
    fail(kOp, "target", shape_of(scores.target), "the input's, " + shape_of(*input.tensor), at);
  eager::require_numbers({kOp, "target", "a number that is no class", "classes, -1 behind them"}, scores.target, -1,
                         x.size(1), at);
  const Tensor listed = scores.batched ? scores.target : scores.target.reshape({1, -1});
  const Tensor counts = cumprod(listed >= 0, 1) > 0, y = where(counts, listed, 0);  // up to the first -1
  // [N, places of the list, classes].
  const Tensor place = counts.unsqueeze(2);
  const Tensor is_target = any(logical_and(place, y.unsqueeze(2) == arange(x.size(1))), 1, true);
  const Tensor apart = 1 - x.gather(1, y).unsqueeze(2) + x.unsqueeze(1);
  const Tensor losses = where_above_zero(logical_and(place, logical_not(is_target)), apart).sum({1, 2});
  return scores.joined(scores.batched ? losses : losses.squeeze(0), reduction);
}

Tensor multilabel_soft_margin_loss(const TensorArg& input, const TensorArg& target, const TensorArg& weight,
                                   Word word) {
  constexpr const char* kOp = "multilabel_soft_margin_loss";
  const FunctionScope scope(kOp, input.location);
  const Reduction reduction = reduction_of(kOp, word, input.location);
  const Tensor &x = present(kOp, "input", input), &t = present(kOp, "target", target);
  if (x.dim() == 0)
    fail(kOp, "input", "a tensor without dims", "one dim at least, the last for classes", input.location);
  Tensor losses = -(t * logsigmoid(x) + (1 - t) * logsigmoid(-x));
  if (weight.tensor && weight.tensor->defined()) losses = losses * *weight.tensor;
  return reduced(losses.mean(-1), reduction);
}

Tensor poisson_nll_loss(const TensorArg& input, const TensorArg& target, bool log_input, bool full, double eps,
                        Word word) {
  constexpr const char* kOp = "poisson_nll_loss";
  const FunctionScope scope(kOp, input.location);
  const Reduction reduction = reduction_of(kOp, word, input.location);
  const Tensor &x = present(kOp, "input", input), &t = present(kOp, "target", target);
  Tensor losses = log_input ? exp(x) - t * x : x - t * log(x + eps);
  if (full) {
    // Of 1 where it does not count, so that no gradient is NaN there.
    const Tensor left_out = t <= 1, n = t.masked_fill(left_out, 1);
    const Tensor stirling = n * log(n) - n + 0.5 * log(2 * std::numbers::pi * n);
    losses = losses + stirling.masked_fill(left_out, 0).to(losses.dtype());
  }
  return reduced(losses, reduction);
}

Tensor gaussian_nll_loss(const TensorArg& input, const TensorArg& target, const OperandArg& given_var, bool full,
                         double eps, Word word) {
  constexpr const char* kOp = "gaussian_nll_loss";
  const Location at = input.location;
  const FunctionScope scope(kOp, at);
  const Reduction reduction = reduction_of(kOp, word, at);
  const Tensor &x = present(kOp, "input", input), &t = present(kOp, "target", target);
  Tensor var;
  if (given_var.is_scalar) {
    if (given_var.value.to_double() < 0)
      fail(kOp, "var", std::to_string(given_var.value.to_double()), "no negative number", at);
    var = ones_like(x) * given_var.value;
  } else {
    var = present(kOp, "var", TensorArg(given_var.tensor ? *given_var.tensor : Tensor(), at));
    eager::require({kOp, "var", "negative numbers", "none"}, logical_not(var < 0));
    const IntArrayRef sizes = sizes_of(x), given = sizes_of(var);
    const bool one_less = given.size() + 1 == sizes.size() && given == IntArrayRef(sizes.data(), given.size());
    size_t apart = 0;
    bool of_one = true;
    for (size_t d = 0; given.size() == sizes.size() && d < sizes.size(); ++d)
      if (given[d] != sizes[d]) ++apart, of_one = given[d] == 1;
    if (!one_less && (given.size() != sizes.size() || apart > 1 || !of_one))
      fail(kOp, "var", shape_of(var), "the input's, " + shape_of(x) + ", without its last size or with 1 for one", at);
    if (one_less) var = var.unsqueeze(-1);
    var = var.clone();
  }
  {
    const NoGradGuard no_grad;
    var.clamp_min_(eps);
  }
  Tensor losses = 0.5 * (log(var) + square(x - t) / var);
  if (full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  return reduced(losses, reduction);
}

Tensor linear_cross_entropy(const TensorArg& input, const TensorArg& linear_weight, const TensorArg& target,
                            const TensorArg& linear_bias, const TensorArg& weight, Word reduction, int64_t ignore_index,
                            double label_smoothing) {
  constexpr const char* kOp = "linear_cross_entropy";
  const FunctionScope scope(kOp, input.location);
  const Tensor &x = eager::present(kOp, "input", input), &w = eager::present(kOp, "linear_weight", linear_weight);
  if (x.dim() < 1) eager::fail(kOp, "input", detail::shape_of(x), "at least one dim", input.location);
  if (w.dim() < 2) eager::fail(kOp, "linear_weight", detail::shape_of(w), "at least two dims", input.location);
  const DType working = working_dtype(x.dtype());
  const auto wide = [&](const TensorArg& t) {
    return t.tensor && t.tensor->defined() && is_floating(t.tensor->dtype()) ? t.tensor->to(working) : t.get();
  };
  Tensor bias = wide(linear_bias);
  const Tensor flat = linear(x.to(working), wide(linear_weight).flatten(0, -2),
                             bias.defined() ? TensorArg(bias = bias.flatten()) : TensorArg());
  IntList sizes{};
  for (int64_t d = 0; d + 1 < x.dim(); ++d) sizes.add(x.size(d));
  for (int64_t d = 0; d + 1 < w.dim(); ++d) sizes.add(w.size(d));
  const Tensor logits = flat.reshape(sizes);
  return cross_entropy(logits, wide(target), wide(weight), ignore_index, reduction, label_smoothing).to(x.dtype());
}

}  // namespace ingot::nn::functional
