#include "eager/nn/functional.h"

#include <cmath>
#include <limits>

#include "base/float_environment.h"
#include "base/function_scope.h"
#include "eager/autocast.h"
#include "eager/autograd/autograd.h"
#include "eager/autograd/rerun.h"
#include "eager/call/call.h"
#include "eager/nn/checks.h"
#include "eager/ops/random.h"

namespace ingot::nn::functional {

Tensor dropout(const TensorArg& input, double p, bool training) {
  if (!(p >= 0 && p <= 1)) eager::fail("dropout", "p", std::to_string(p), "numbers from 0 to 1", input.location);
  if ((training && p != 0) || !input.tensor) return ingot::dropout(input, p);
  return *input.tensor;
}

namespace {

const Tensor& floating(const char* op, const char* argument, const TensorArg& input) {
  const Tensor& x = eager::present(op, argument, input);
  if (!is_floating(x.dtype()))
    eager::fail(op, argument, "a tensor of " + std::string(name_of(x.dtype())), "floating point numbers",
                input.location);
  return x;
}

/// [N, C, 1, ...] of an input [N, C, ...].
IntList channels_of(const char* op, const TensorArg& input) {
  const Tensor& x = eager::present(op, "input", input);
  if (x.dim() < 2)
    eager::fail(op, "input", std::to_string(x.dim()) + " dims", "at least two: [N, C, ...]", input.location);
  IntList channels{x.size(0), x.size(1)};
  for (int64_t d = 2; d < x.dim(); ++d) channels.add(1);
  return channels;
}

/// Dropout of whole channels, of an input that has no batch where it has so many dims.
Tensor channel_dropout(const TensorArg& input, int64_t unbatched, double p, bool training) {
  const CallerLine line(input.location);
  if (!input.tensor || !input.tensor->defined() || input.tensor->dim() != unbatched)
    return feature_dropout(input, p, training);
  const Tensor one = input.tensor->unsqueeze(0);
  return feature_dropout(TensorArg(one, input.location), p, training).squeeze(0);
}

/// `noise`: of which sizes it is drawn.
Tensor alpha_dropped(const char* op, const TensorArg& input, const IntList& noise, double p, bool training) {
  const FunctionScope scope(op, input.location);
  const FloatEnvironment environment;
  const Tensor& x = floating(op, "input", input);
  if (!(p >= 0 && p <= 1)) eager::fail(op, "p", std::to_string(p), "numbers from 0 to 1", input.location);
  if (!training || p == 0) return x;
  if (p == 1) return x * zeros(noise, x.dtype());
  constexpr double kEnd = 1.7580993408473766;  // minus the lower end of selu
  const double scale = 1 / std::sqrt((kEnd * kEnd * p + 1) * (1 - p));
  const Tensor kept = ne(dropout(ones(noise, x.dtype()), p), 0).to(x.dtype());
  return x * (kept * scale) + ((kept - 1) * (kEnd * scale) + kEnd * scale * p);
}

}  // namespace

Tensor feature_dropout(const TensorArg& input, double p, bool training) {
  const FunctionScope scope("feature_dropout", input.location);
  const IntList channels = channels_of("feature_dropout", input);
  if (!training || p == 0) return dropout(input, p, training);
  return mul(input, dropout(TensorArg(ones(channels, input.tensor->dtype()), input.location), p));
}
Tensor dropout1d(const TensorArg& input, double p, bool training) { return channel_dropout(input, 2, p, training); }
Tensor dropout2d(const TensorArg& input, double p, bool training) { return feature_dropout(input, p, training); }
Tensor dropout3d(const TensorArg& input, double p, bool training) { return channel_dropout(input, 4, p, training); }

Tensor alpha_dropout(const TensorArg& input, double p, bool training) {
  constexpr const char* kOp = "alpha_dropout";
  return alpha_dropped(kOp, input, eager::sizes_of(eager::present(kOp, "input", input), input.location), p, training);
}
Tensor feature_alpha_dropout(const TensorArg& input, double p, bool training) {
  constexpr const char* kOp = "feature_alpha_dropout";
  return alpha_dropped(kOp, input, channels_of(kOp, input), p, training);
}

Tensor rrelu(const TensorArg& input, double lower, double upper, bool training) {
  const FunctionScope scope("rrelu", input.location);
  const Tensor& x = floating("rrelu", "input", input);
  if (!(lower <= upper) || std::isinf(lower) || std::isinf(upper))
    eager::fail("rrelu", "lower", std::to_string(lower) + " with an upper bound of " + std::to_string(upper),
                "a finite number that is not above the upper bound, finite too", input.location);
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  return where(x <= 0, x * (rand_like(x) * (upper - lower) + lower), x);
}

Tensor gumbel_softmax(const TensorArg& logits, double tau, bool hard, int64_t dim) {
  const FunctionScope scope("gumbel_softmax", logits.location);
  const Tensor& x = floating("gumbel_softmax", "logits", logits);
  const Tensor smooth = softmax((x - log(exponential(zeros_like(x)))) / tau, dim);
  if (!hard) return smooth;
  const Tensor largest = argmax(smooth, dim, true);
  const Tensor ones_there = zeros_like(smooth).scatter(dim, largest, 1.0);
  return ones_there - smooth.detach() + smooth;
}

Tensor bilinear(const TensorArg& input1, const TensorArg& input2, const TensorArg& given_weight,
                const TensorArg& bias) {
  constexpr const char* kOp = "bilinear";
  const Location at = input1.location;
  const FunctionScope scope(kOp, at);
  const Tensor &x = eager::present(kOp, "input1", input1), &y = eager::present(kOp, "input2", input2);
  const Tensor& weight = eager::present(kOp, "weight", given_weight);
  if (weight.dim() != 3) eager::fail(kOp, "weight", detail::shape_of(weight), "[out, in1, in2]", at);
  for (const auto& [name, input, dim] : {std::tuple("input1", &x, 1), std::tuple("input2", &y, 2)})
    if (input->dim() == 0 || input->size(-1) != weight.size(dim))
      eager::fail(kOp, name, detail::shape_of(*input),
                  "a last dim of " + std::to_string(weight.size(dim).value()) + ", as the weight has", at);
  bool apart = x.dim() != y.dim();
  for (int64_t d = 0; !apart && d + 1 < x.dim(); ++d) apart = x.size(d) != y.size(d);
  if (apart) eager::fail(kOp, "input2", detail::shape_of(y), "the other dims of " + detail::shape_of(x), at);
  const Size in1 = weight.size(1), in2 = weight.size(2), out = weight.size(0);
  const bool biased = bias.tensor && bias.tensor->defined();
  if (biased && (bias.tensor->dim() != 1 || bias.tensor->size(0) != out))
    eager::fail(kOp, "bias", detail::shape_of(*bias.tensor), "[" + std::to_string(out.value()) + "]", at);
  // [..., out, in2], then its products with input2.
  const DType dtype = x.dtype(), working = working_dtype(dtype);
  const Tensor flat = weight.permute({1, 0, 2}).reshape({in1, out * in2}).to(working);
  const Tensor rows = matmul(x.to(working), flat).unflatten(-1, {out, in2});
  const Tensor result = sum(rows * y.to(working).unsqueeze(-2), -1, false, working);
  return (biased ? result + bias.tensor->to(working) : result).to(dtype);
}

Tensor pdist(const TensorArg& input, double p) {
  const FunctionScope scope("pdist", input.location);
  const Tensor& x = floating("pdist", "input", input);
  if (x.dim() != 2) eager::fail("pdist", "input", detail::shape_of(x), "two dims", input.location);
  if (!(p >= 0)) eager::fail("pdist", "p", std::to_string(p), "no negative number", input.location);
  const Size n = x.size(0);
  const Tensor rows = x.to(working_dtype(x.dtype())), place = arange(n);
  const Tensor above = (place.unsqueeze(1) < place).reshape({-1}).nonzero_static(n * (n - 1) / 2).select(1, 0);
  return cdist(rows, rows, p).reshape({-1}).index_select(0, above).to(x.dtype());
}

Tensor batch_norm(const TensorArg& input, const TensorArg& running_mean, const TensorArg& running_var,
                  const TensorArg& weight, const TensorArg& bias, bool training, const OperandArg& momentum,
                  double eps) {
  const CallerLine line(input.location);
  // Training reads no running statistics; a region would be held to them as they are now.
  const bool unread = training && autograd::RegionRun::current();
  Tensor y = ingot::batch_norm(input, unread ? TensorArg() : running_mean, unread ? TensorArg() : running_var, weight,
                               bias, training, 0, eps);
  if (!training || !running_mean.tensor || !running_mean.tensor->defined()) return y;
  const autograd::SideEffect statistics;
  if (!statistics.is_due()) return y;
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
  const bool unread = use_input_stats && autograd::RegionRun::current();
  Tensor y = ingot::instance_norm(input, unread ? TensorArg() : running_mean, unread ? TensorArg() : running_var,
                                  weight, bias, use_input_stats, 0, eps);
  if (!use_input_stats || !running_mean.tensor || !running_mean.tensor->defined()) return y;
  const autograd::SideEffect statistics;
  if (!statistics.is_due()) return y;
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
  const DType working = working_dtype(whole.dtype());
  // What autocast takes in 16 bits is wide from here on.
  auto widened = [&](const TensorArg& x) { return x.tensor->to(whole.dtype()).to(working); };
  Tensor q = widened(query), k = widened(key), v = widened(value);
  const AutocastGuard no_autocast(false);
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
  const FunctionScope scope("normalize", input.location);
  return div(input, clamp_min(vector_norm(input, p, dim, true), eps));
}

}  // namespace ingot::nn::functional
