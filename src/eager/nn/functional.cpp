#include "eager/nn/functional.h"

#include <cmath>
#include <limits>

#include "base/float_environment.h"
#include "eager/autograd/autograd.h"
#include "eager/call/call.h"

namespace ingot::nn::functional {

Tensor dropout(const TensorArg& input, double p, bool training) {
  if (!(p >= 0 && p <= 1)) eager::fail("dropout", "p", std::to_string(p), "numbers from 0 to 1", input.location);
  if ((training && p != 0) || !input.tensor) return ingot::dropout(input, p);
  return *input.tensor;
}

Tensor feature_dropout(const TensorArg& input, double p, bool training) {
  const CallerLine line(input.location);
  const ingot::detail::TensorImpl& x =
      ingot::detail::checked_impl(input.tensor ? input.tensor->impl() : nullptr, "feature_dropout", input.location);
  if (x.sizes.size() < 2)
    eager::fail("feature_dropout", "input", std::to_string(x.sizes.size()) + " dims", "at least two: [N, C, ...]",
                input.location);
  if (!training || p == 0) return dropout(input, p, training);
  IntList channels{input.tensor->size(0), input.tensor->size(1)};
  for (size_t d = 2; d < x.sizes.size(); ++d) channels.add(1);
  return mul(input, dropout(TensorArg(ones(channels, x.dtype), input.location), p));
}

Tensor batch_norm(const TensorArg& input, const TensorArg& running_mean, const TensorArg& running_var,
                  const TensorArg& weight, const TensorArg& bias, bool training, const OperandArg& momentum,
                  double eps) {
  const CallerLine line(input.location);
  Tensor y = ingot::batch_norm(input, running_mean, running_var, weight, bias, training, 0, eps);
  if (!training || !running_mean.tensor || !running_mean.tensor->defined()) return y;
  const NoGradGuard no_grad;
  const Tensor &x = *input.tensor, &mean = *running_mean.tensor;
  Ints dims;
  int64_t values = 1;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != 1) {
      dims.push_back(d);
      values *= x.size(d);
    }
  if (values == 0) return y;  // an empty batch has no statistics
  if (values == 1)
    eager::fail("batch_norm", "input", "one value a channel", "more than one, for statistics in training",
                input.location);
  Tensor wide = x.to(mean.dtype(), input.location);
  mean.lerp_(wide.mean(dims, false, {}, input.location), momentum, input.location);
  if (running_var.tensor && running_var.tensor->defined())
    running_var.tensor->lerp_(wide.var(dims, 1, false, input.location), momentum, input.location);
  return y;
}

Tensor instance_norm(const TensorArg& input, const TensorArg& running_mean, const TensorArg& running_var,
                     const TensorArg& weight, const TensorArg& bias, bool use_input_stats, const OperandArg& momentum,
                     double eps) {
  const CallerLine line(input.location);
  Tensor y = ingot::instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, 0, eps);
  if (!use_input_stats || !running_mean.tensor || !running_mean.tensor->defined()) return y;
  const NoGradGuard no_grad;
  Ints dims;
  for (int64_t d = 2; d < input.tensor->dim(); ++d) dims.push_back(d);
  // Of each sample, then their mean.
  Tensor wide = input.tensor->to(running_mean.tensor->dtype(), input.location);
  auto [var, mean] = wide.var_mean(dims, 1, false, input.location);
  running_mean.tensor->lerp_(mean.mean(0), momentum, input.location);
  if (running_var.tensor && running_var.tensor->defined())
    running_var.tensor->lerp_(var.mean(0), momentum, input.location);
  return y;
}

Tensor scaled_dot_product_attention(const TensorArg& query, const TensorArg& key, const TensorArg& value,
                                    const TensorArg& attn_mask, double dropout_p, bool is_causal,
                                    const ScalarArg& scale, bool enable_gqa) {
  const CallerLine line(query.location);
  const FloatEnvironment environment;
  if (dropout_p == 0)
    return ingot::scaled_dot_product_attention(query, key, value, attn_mask, 0, is_causal, scale, enable_gqa);
  // With its weights laid open, for some of them to be dropped; what the op refuses is refused before a draw is taken.
  Location location = query.location;
  const Tensor whole =
      ingot::scaled_dot_product_attention(query, key, value, attn_mask, 0, is_causal, scale, enable_gqa);
  DType working = working_dtype(whole.dtype());
  Tensor q = query.tensor->to(working), k = key.tensor->to(working), v = value.tensor->to(working);
  if (enable_gqa) {
    auto repeated = [&](const Tensor& x) {
      int64_t groups = q.size(-3) / x.size(-3);
      Tensor each = x.unsqueeze(-3);
      Ints sizes(each.sizes());
      sizes[sizes.size() - 3] = groups;
      return each.expand(sizes).flatten(-4, -3);
    };
    k = repeated(k), v = repeated(v);
  }
  double factor =
      scale.present ? scale.value.to_double() : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.size(-1), 1)));
  Tensor scores = mul(matmul(TensorArg(q, location), k.transpose(-2, -1)), factor);
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  if (is_causal) scores = scores.masked_fill(logical_not(ones({q.size(-2), k.size(-2)}, kBool).tril()), kHidden);
  if (attn_mask.tensor && attn_mask.tensor->defined())
    scores = attn_mask.tensor->dtype() == kBool ? scores.masked_fill(logical_not(attn_mask), kHidden)
                                                : add(scores, attn_mask.tensor->to(working));
  // A row without any key gives zeros.
  Tensor weights = softmax(scores, -1);
  if (k.size(-2) > 0) weights = weights.masked_fill(eq(amax(scores, -1, true), kHidden), 0);
  return matmul(dropout(TensorArg(weights, location), dropout_p), v).to(whole.dtype());
}

Tensor local_response_norm(const TensorArg& input, int64_t size, const ScalarArg& alpha, const ScalarArg& beta,
                           const ScalarArg& k) {
  const Tensor& x = eager::present("local_response_norm", "input", input);
  if (!is_floating(x.dtype()) && x.dim() >= 3 && x.numel(input.location) == 0) return x;
  return ingot::local_response_norm(input, size, alpha, beta, k);
}

Tensor normalize(const TensorArg& input, double p, int64_t dim, double eps) {
  const CallerLine line(input.location);
  return div(input, clamp_min(vector_norm(input, p, dim, true), eps));
}

}  // namespace ingot::nn::functional
