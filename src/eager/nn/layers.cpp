#include "eager/nn/layers.h"

#include <cmath>
#include <limits>

#include "base/float_environment.h"
#include "eager/call/call.h"
#include "eager/data.h"
#include "eager/nn/initial.h"
#include "eager/nn/windows.h"
#include "eager/ops/random.h"
#include "eager/ops/selection.h"

namespace ingot::nn {
namespace {

Tensor filled(const IntList& sizes, double value, DType dtype = kFloat32) {
  Tensor t = empty(sizes, dtype);
  char* at = eager::data_of(*t.impl());
  for (int64_t i = 0; i < t.numel(); ++i, at += size_of(dtype)) eager::write_element(dtype, at, value);
  return t;
}

/// One NaN that stands for all elements.
Tensor blank(const IntList& sizes) { return filled(1, std::numeric_limits<double>::quiet_NaN()).expand(sizes); }

int64_t divisible(const char* layer, const char* setting, int64_t value, const char* by, int64_t divisor) {
  if (value % divisor != 0)
    detail::refuse(layer, setting, std::to_string(value),
                   std::string("a multiple of ") + by + " (" + std::to_string(divisor) + ")");
  return value;
}

}  // namespace

namespace detail {
// What PyTorch starts linear and convolution layers with.
Tensor uniform(const IntList& sizes, int64_t fan_in) {
  const FloatEnvironment environment;
  double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  if (SkipInit::active()) return blank(sizes);
  Tensor t = empty(sizes);
  t.uniform_(-bound, bound);
  return t;
}
}  // namespace detail
using detail::uniform;

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, bool with_bias)
    : weight(uniform({detail::not_negative("Linear", "out_features", out_features),
                      detail::not_negative("Linear", "in_features", in_features)},
                     in_features)) {
  if (with_bias) bias = uniform({out_features}, in_features);
}
bool LinearImpl::convert_weight(DType format, Location location) {
  if (weight_scale.defined() || (widens && weight.dtype() == format)) return false;
  if (format == kInt8) {
    Int8Weight made = quantize_int8({weight, location});
    weight = std::move(made.weight), weight_scale = std::move(made.scale);
  } else {
    weight = round_weight({weight, location}, format).requires_grad_(weight.requires_grad());
  }
  widens = format != kInt8;
  return true;
}

ConvolutionImpl::ConvolutionImpl(const char* name, size_t spatial, int64_t in_channels, int64_t out_channels,
                                 const IntList& kernel_size, int64_t groups, bool with_bias, bool transposed) {
  detail::positive(name, "groups", groups);
  divisible(name, "in_channels", detail::not_negative(name, "in_channels", in_channels), "groups", groups);
  divisible(name, "out_channels", detail::not_negative(name, "out_channels", out_channels), "groups", groups);
  Ints kernel = eager::spread(detail::positive(name, "kernel_size", kernel_size, spatial), spatial);
  // [out, in of a group, kernel]; transposed [in, out of a group, kernel], of which PyTorch counts the same fan.
  Ints shape{transposed ? in_channels : out_channels, (transposed ? out_channels : in_channels) / groups};
  int64_t fan_in = shape[1];
  for (int64_t k : kernel) {
    shape.push_back(k);
    fan_in *= k;
  }
  weight = uniform(shape, fan_in);
  if (with_bias) bias = uniform({out_channels}, fan_in);
}

const ConvOptions& ConvolutionImpl::checked(const char* name, size_t spatial, const ConvOptions& o) {
  detail::windows(name, spatial, o);
  const std::string &word = o.padding.word(), &mode = o.padding_mode;
  if (word.empty())
    detail::not_negative(name, "padding", o.padding.sizes(), spatial);
  else if (word != "same" && word != "valid")
    detail::refuse(name, "padding", "\"" + word + "\"", "\"same\", \"valid\" or numbers");
  for (int64_t s : o.stride.items())
    if (word == "same" && s != 1) detail::refuse(name, "stride", std::to_string(s), "1 for padding \"same\"");
  if (mode != "zeros" && mode != "reflect" && mode != "replicate" && mode != "circular")
    detail::refuse(name, "padding_mode", "\"" + mode + "\"",
                   "one of \"zeros\", \"reflect\", \"replicate\", \"circular\"");
  return o;
}

void ConvolutionImpl::set_padding(const ConvOptions& options) {
  const size_t spatial = static_cast<size_t>(weight.dim()) - 2;
  detail::Around around{Ints(spatial), Ints(spatial)};
  if (options.padding.word() == "same")
    around = detail::same_padding(weight, eager::spread(options.dilation, spatial));
  else if (options.padding.word().empty())
    around.before = around.after = eager::spread(options.padding.sizes(), spatial);
  if (options.padding_mode == "zeros" && around.even()) {
    padding_ = around.before;
  } else {
    padding_ = Ints(spatial);
    pairs_ = around.pairs();
  }
}

PReLUImpl::PReLUImpl(int64_t num_parameters, double initial)
    : weight(filled(detail::not_negative("PReLU", "num_parameters", num_parameters), initial)) {}

LayerNormImpl::LayerNormImpl(const IntList& shape, NormOptions o)
    : normalized_shape(detail::not_negative("LayerNorm", "normalized_shape", shape, 0)), eps(o.eps) {
  if (!o.affine) return;
  weight = filled(shape, 1);
  bias = filled(shape, 0);
}
RMSNormImpl::RMSNormImpl(const IntList& shape, std::optional<double> epsilon, bool affine)
    : normalized_shape(detail::not_negative("RMSNorm", "normalized_shape", shape, 0)), eps(epsilon) {
  if (affine) weight = filled(shape, 1);
}
GroupNormImpl::GroupNormImpl(int64_t num_groups, int64_t channels, NormOptions o)
    : groups(detail::positive("GroupNorm", "num_groups", num_groups)), eps(o.eps) {
  divisible("GroupNorm", "num_channels", detail::not_negative("GroupNorm", "num_channels", channels), "num_groups",
            num_groups);
  if (!o.affine) return;
  weight = filled(channels, 1);
  bias = filled(channels, 0);
}

ChannelNormImpl::ChannelNormImpl(const char* layer, int64_t channels, double set_eps, bool affine,
                                 bool track_running_stats)
    : eps(set_eps) {
  detail::not_negative(layer, "num_features", channels);
  if (track_running_stats) {
    running_mean = filled(channels, 0);
    running_var = filled(channels, 1);
    num_batches_tracked = filled(IntList(Ints()), 0, kInt64);
  }
  if (!affine) return;
  weight = filled(channels, 1);
  bias = filled(channels, 0);
}

void ChannelNormImpl::count_batch(Location location) const {
  if (is_training() && running_mean.defined()) num_batches_tracked.add_(1, 1, location);
}

BatchNormImpl::BatchNormImpl(int64_t channels, NormOptions o)
    : ChannelNormImpl("BatchNorm", channels, o.eps, o.affine, o.track_running_stats), momentum(o.momentum) {}

Tensor BatchNormImpl::forward(const TensorArg& x) const {
  bool tracked = running_mean.defined();
  if (!is_training() || !tracked)
    return functional::batch_norm(x, running_mean, running_var, weight, bias, is_training() || !tracked, 0, eps);
  count_batch(x.location);
  if (momentum) return functional::batch_norm(x, running_mean, running_var, weight, bias, true, *momentum, eps);
  Tensor cumulative = reciprocal(num_batches_tracked.to(running_mean.dtype()));
  return functional::batch_norm(x, running_mean, running_var, weight, bias, true, cumulative, eps);
}

InstanceNormImpl::InstanceNormImpl(int64_t channels, InstanceNormOptions o)
    : ChannelNormImpl("InstanceNorm", channels, o.eps, o.affine, o.track_running_stats), momentum(o.momentum) {}

Tensor InstanceNormImpl::forward(const TensorArg& x) const {
  bool tracked = running_mean.defined();
  count_batch(x.location);
  return functional::instance_norm(x, running_mean, running_var, weight, bias, is_training() || !tracked, momentum,
                                   eps);
}

void TableImpl::make(const char* layer, int64_t count, int64_t width) {
  detail::not_negative(layer, "num_embeddings", count);
  detail::not_negative(layer, "embedding_dim", width);
  if (max_norm && !(*max_norm >= 0)) detail::refuse(layer, "max_norm", std::to_string(*max_norm), "no negative number");
  if (padding_idx && (*padding_idx < -count || *padding_idx >= count))
    detail::refuse(layer, "padding_idx", std::to_string(*padding_idx),
                   "an index of " + std::to_string(count) + " rows");
  weight = SkipInit::active() ? blank({count, width}) : randn({count, width});
  if (!padding_idx) return;
  if (*padding_idx < 0) *padding_idx += count;
  if (!SkipInit::active()) weight.select(0, *padding_idx).zero_();
}
void TableImpl::renorm(const TensorArg& indices) const {
  if (!max_norm) return;
  const NoGradGuard no_grad;
  functional::embedding_renorm_(weight, indices, *max_norm, norm_type);
}

EmbeddingImpl::EmbeddingImpl(int64_t count, int64_t width, EmbeddingOptions o)
    : TableImpl("Embedding", count, width, o) {}
Tensor EmbeddingImpl::forward(const TensorArg& indices) const {
  renorm(indices);
  return embedding(weight, indices, padding_idx.value_or(-1));
}

namespace {

const EmbeddingBagOptions& checked(const EmbeddingBagOptions& o) {
  if (o.mode != "sum" && o.mode != "mean" && o.mode != "max")
    detail::refuse("EmbeddingBag", "mode", "\"" + o.mode + "\"", "one of \"sum\", \"mean\", \"max\"");
  return o;
}

}  // namespace

EmbeddingBagImpl::EmbeddingBagImpl(int64_t count, int64_t width, EmbeddingBagOptions o)
    : TableImpl("EmbeddingBag", count, width, checked(o)),
      mode(std::move(o.mode)),
      include_last_offset(o.include_last_offset) {}
Tensor EmbeddingBagImpl::forward(const TensorArg& indices, const TensorArg& offsets,
                                 const TensorArg& per_sample_weights) const {
  renorm(indices);
  return functional::embedding_bag(indices, weight, offsets, mode, per_sample_weights, include_last_offset,
                                   padding_idx);
}

MultiheadAttentionImpl::MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads, bool with_bias,
                                               double dropout_probability)
    : out_proj(nullptr),
      heads(detail::positive("MultiheadAttention", "num_heads", num_heads)),
      dropout(detail::share("MultiheadAttention", "dropout", dropout_probability)) {
  divisible("MultiheadAttention", "embed_dim", detail::positive("MultiheadAttention", "embed_dim", embed_dim),
            "num_heads", num_heads);
  in_proj_weight = uniform({3 * embed_dim, embed_dim}, embed_dim);
  out_proj = Linear(embed_dim, embed_dim, with_bias);
  if (with_bias) in_proj_bias = filled(3 * embed_dim, 0);
}

namespace {

/// As scaled_dot_product_attention takes it: true where a key is seen, or what is added to the scores. PyTorch's masks
/// of this module are true where a key is not.
Tensor seen(const Tensor& mask) { return mask.dtype() == kBool ? mask.logical_not() : mask; }

Tensor both(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() ? a : b;
  if (a.dtype() == kBool && b.dtype() == kBool) return a.logical_and(b);
  auto added = [&](const Tensor& mask, DType dtype) {
    return mask.dtype() == kBool ? where(mask, zeros({}, dtype), -std::numeric_limits<double>::infinity()) : mask;
  };
  const DType dtype = a.dtype() == kBool ? b.dtype() : a.dtype();
  return added(a, dtype) + added(b, dtype);
}

}  // namespace

Tensor MultiheadAttentionImpl::forward(const TensorArg& query, const TensorArg& key, const TensorArg& value,
                                       const TensorArg& attn_mask, bool is_causal,
                                       const TensorArg& key_padding_mask) const {
  const int64_t width = in_proj_weight.size(1);
  auto by_heads = [&](const Tensor& y) { return y.unflatten(-1, {heads, -1}).transpose(-3, -2); };
  auto projected = [&](const TensorArg& x, int64_t part) {
    const Tensor bias = in_proj_bias.defined() ? in_proj_bias.narrow(0, part * width, width) : Tensor();
    return by_heads(linear(x, in_proj_weight.narrow(0, part * width, width), bias));
  };
  const auto same = [&](const TensorArg& x) { return x.tensor && query.tensor && x.tensor->is_same(*query.tensor); };
  Tensor q, k, v;
  if (same(key) && same(value)) {
    const Tensor all = linear(query, in_proj_weight, in_proj_bias);
    q = by_heads(all.narrow(-1, 0, width));
    k = by_heads(all.narrow(-1, width, width));
    v = by_heads(all.narrow(-1, 2 * width, width));
  } else {
    q = projected(query, 0), k = projected(key, 1), v = projected(value, 2);
  }
  Tensor mask;
  if (attn_mask.tensor && attn_mask.tensor->defined()) {
    mask = seen(*attn_mask.tensor);
    if (mask.dim() == 3 && q.dim() == 4) mask = mask.unflatten(0, {-1, heads});  // one for each head of each sample
  }
  if (key_padding_mask.tensor && key_padding_mask.tensor->defined()) {
    const Tensor keys = seen(*key_padding_mask.tensor);
    mask = both(mask, q.dim() == 4 ? keys.unsqueeze(1).unsqueeze(1) : keys);
  }
  if (is_causal && mask.defined()) mask = both(mask, ones({q.size(-2), k.size(-2)}, kBool).tril());
  const Tensor y = functional::scaled_dot_product_attention(TensorArg(q, query.location), k, v, mask,
                                                            is_training() ? dropout : 0, is_causal && !mask.defined());
  return out_proj(y.transpose(-3, -2).flatten(-2));
}

UpsampleImpl::UpsampleImpl(UpsampleOptions o) : options(std::move(o)) {
  if (options.size.present() == !options.scale_factor.empty())
    detail::refuse("Upsample", "size",
                   options.size.present() ? "size and scale_factor" : "neither size nor scale_factor",
                   "one of the two");
  if (options.size.present()) detail::positive("Upsample", "size", options.size, 0);
  for (double factor : options.scale_factor)
    if (!(factor > 0)) detail::refuse("Upsample", "scale_factor", std::to_string(factor), "a positive number");
}

void SequentialImpl::push_back(AnyModule module) {
  modules.push_back(std::move(module));
  detail::count_module();  // the new one has no name yet
}

Tensor SequentialImpl::forward(const TensorArg& x) const {
  if (!x.tensor) eager::fail("Sequential", "x", "nothing", "a tensor", x.location);
  Tensor y = *x.tensor;
  for (const AnyModule& module : modules) y = module(TensorArg(y, x.location));
  return y;
}

void Sequential::fields(SequentialImpl& self, Fields& visit) { visit("", self.modules); }

namespace functional {

Tensor dropout(const TensorArg& input, double p, bool training) {
  if (!(p >= 0 && p <= 1)) eager::fail("dropout", "p", std::to_string(p), "numbers from 0 to 1", input.location);
  if (training || !input.tensor) return ingot::dropout(input, p);
  return *input.tensor;
}

Tensor feature_dropout(const TensorArg& input, double p, bool training) {
  const CallerLine line(input.location);
  const ingot::detail::TensorImpl& x =
      ingot::detail::checked_impl(input.tensor ? input.tensor->impl() : nullptr, "feature_dropout", input.location);
  if (x.sizes.size() < 2)
    eager::fail("feature_dropout", "input", std::to_string(x.sizes.size()) + " dims", "at least two: [N, C, ...]",
                input.location);
  if (!training) return dropout(input, p, false);
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
  if (values < 2)
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
  double factor = scale.present ? scale.value.to_double() : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  Tensor scores = mul(matmul(TensorArg(q, location), k.transpose(-2, -1)), factor);
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  if (is_causal) scores = scores.masked_fill(logical_not(ones({q.size(-2), k.size(-2)}, kBool).tril()), kHidden);
  if (attn_mask.tensor && attn_mask.tensor->defined())
    scores = attn_mask.tensor->dtype() == kBool ? scores.masked_fill(logical_not(attn_mask), kHidden)
                                                : add(scores, attn_mask.tensor->to(working));
  // A row without any key gives zeros.
  Tensor weights = softmax(scores, -1).masked_fill(eq(amax(scores, -1, true), kHidden), 0);
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

}  // namespace functional
}  // namespace ingot::nn
