#include "eager/nn/layers.h"

#include <limits>

#include "eager/autograd/rerun.h"
#include "eager/call/call.h"
#include "eager/nn/checks.h"
#include "eager/nn/initial.h"
#include "eager/ops/selection.h"

namespace ingot::nn {
using detail::blank;
using detail::divisible;
using detail::filled;
using detail::uniform;

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, bool with_bias)
    : weight(uniform({detail::not_negative("Linear", "out_features", out_features),
                      detail::not_negative("Linear", "in_features", in_features)},
                     in_features)) {
  if (with_bias) bias = uniform({out_features}, in_features);
}
std::function<void()> LinearImpl::converted_weight(DType format, Location location) {
  if (weight_scale.defined() || (widens && weight.dtype() == format)) return {};
  if (format == kInt8)
    return [this, made = quantize_int8({weight, location})] {
      weight = made.weight, weight_scale = made.scale;
      widens = false;
    };
  return [this, made = round_weight({weight, location}, format).requires_grad_(weight.requires_grad())] {
    weight = made;
    widens = true;
  };
}

BilinearImpl::BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features, bool with_bias)
    : weight(uniform({detail::not_negative("Bilinear", "out_features", out_features),
                      detail::positive("Bilinear", "in1_features", in1_features),
                      detail::not_negative("Bilinear", "in2_features", in2_features)},
                     in1_features)) {
  if (with_bias) bias = uniform(out_features, in1_features);
}

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

BatchNormImpl::BatchNormImpl(int64_t channels, NormOptions o, const char* layer)
    : ChannelNormImpl(layer, channels, o.eps, o.affine, o.track_running_stats), momentum(o.momentum) {}

Tensor BatchNormImpl::forward(const TensorArg& x) const {
  bool tracked = running_mean.defined();
  if (!is_training() || !tracked)
    return functional::batch_norm(x, running_mean, running_var, weight, bias, is_training() || !tracked, 0, eps);
  Tensor cumulative;
  if (const autograd::SideEffect statistics; statistics.is_due()) {
    count_batch(x.location);
    if (!momentum) cumulative = reciprocal(num_batches_tracked.to(running_mean.dtype()));
  }
  return functional::batch_norm(x, running_mean, running_var, weight, bias, true,
                                momentum ? OperandArg(*momentum) : OperandArg(cumulative), eps);
}

InstanceNormImpl::InstanceNormImpl(int64_t channels, InstanceNormOptions o)
    : ChannelNormImpl("InstanceNorm", channels, o.eps, o.affine, o.track_running_stats), momentum(o.momentum) {}

Tensor InstanceNormImpl::forward(const TensorArg& x) const {
  bool tracked = running_mean.defined();
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
Tensor detail::table_of(const char* layer, const Tensor& embeddings, Location location) {
  if (!embeddings.defined()) eager::fail(layer, "embeddings", "nothing", "a tensor", location);
  if (embeddings.dim() != 2 || !is_floating(embeddings.dtype()))
    eager::fail(layer, "embeddings", std::string(name_of(embeddings.dtype())) + ", " + shape_of(embeddings),
                "two dims of floating point numbers", location);
  return embeddings.detach(location);
}
void TableImpl::renorm(const TensorArg& indices) const {
  if (max_norm) functional::embedding_renorm_(weight, indices, *max_norm, norm_type);
}

EmbeddingImpl::EmbeddingImpl(int64_t count, int64_t width, EmbeddingOptions o)
    : TableImpl("Embedding", count, width, o) {}
Tensor EmbeddingImpl::forward(const TensorArg& indices) const {
  renorm(indices);
  return embedding(weight, indices, padding_idx.value_or(-1), scale_grad_by_freq);
}

namespace {

const EmbeddingBagOptions& checked_options(const EmbeddingBagOptions& o) {
  if (o.mode != "sum" && o.mode != "mean" && o.mode != "max")
    detail::refuse("EmbeddingBag", "mode", "\"" + o.mode + "\"", "one of \"sum\", \"mean\", \"max\"");
  if (o.scale_grad_by_freq && o.mode == "max")
    detail::refuse("EmbeddingBag", "scale_grad_by_freq", "true with mode \"max\"", "mode \"sum\" or \"mean\"");
  return o;
}

}  // namespace

EmbeddingBagImpl::EmbeddingBagImpl(int64_t count, int64_t width, EmbeddingBagOptions o)
    : TableImpl("EmbeddingBag", count, width, checked_options(o)),
      mode(std::move(o.mode)),
      include_last_offset(o.include_last_offset) {}
Tensor EmbeddingBagImpl::forward(const TensorArg& indices, const TensorArg& offsets,
                                 const TensorArg& per_sample_weights) const {
  renorm(indices);
  return functional::embedding_bag(indices, weight, offsets, mode, per_sample_weights, include_last_offset, padding_idx,
                                   scale_grad_by_freq);
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
  const auto in_batch = [&](const char* argument, const TensorArg& x, int64_t dims) {
    if (!x.tensor || !x.tensor->defined()) return;
    const bool batched = query.get().dim() == 3;
    if (x.tensor->dim() != (batched ? dims : dims - 1) || (batched && x.tensor->size(0) != query.get().size(0)))
      detail::refuse("MultiheadAttention", argument, detail::shape_of(*x.tensor),
                     "one that goes with the query's, " + detail::shape_of(query.get()));
  };
  if (query.tensor && query.tensor->defined())
    in_batch("key", key, 3), in_batch("value", value, 3), in_batch("key_padding_mask", key_padding_mask, 2);
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

FunctionalImpl::FunctionalImpl(std::function<Tensor(const Tensor&)> f) : function(std::move(f)) {
  if (!function) detail::refuse("Functional", "function", "nothing", "a function of a tensor");
}

SequentialImpl::SequentialImpl(const std::vector<AnyModule>& unnamed) {
  for (const AnyModule& module : unnamed) modules.emplace_back("", module);
}
SequentialImpl::SequentialImpl(std::initializer_list<Named> named) {
  for (const auto& [name, module] : named) push_back(name, module);
}

/// A module that holds this one would hold itself.
void SequentialImpl::check_tree(const AnyModule& module) {
  for (const auto& [name, below] : module ? module.module()->named_modules() : NamedModules())
    if (below == this) detail::refuse("Sequential", "module", "one that holds this one", "modules that form a tree");
}
void SequentialImpl::push_back(AnyModule module) {
  check_tree(module);
  modules.emplace_back("", std::move(module));
  detail::count_module();  // the new one has no name yet
}
void SequentialImpl::push_back(const std::string& name, AnyModule module) {
  // An empty name is a place, and a tensor's name is cut at its dots.
  if (name.empty() || name.find('.') != std::string::npos)
    detail::refuse("Sequential", "name", "\"" + name + "\"", "a name without dots");
  for (size_t i = 0; i < modules.size(); ++i)
    if ((modules[i].first.empty() ? std::to_string(i) : modules[i].first) == name)
      detail::refuse("Sequential", "name", "\"" + name + "\" again", "another one for each module");
  check_tree(module);
  modules.emplace_back(name, std::move(module));
  detail::count_module();
}

AnyModule& SequentialImpl::operator[](size_t i) {
  if (i >= modules.size())
    detail::refuse("Sequential", "i", std::to_string(i), "a number below " + std::to_string(modules.size()));
  return modules[i].second;
}

Tensor SequentialImpl::forward(const TensorArg& x) const {
  if (!x.tensor) eager::fail("Sequential", "x", "nothing", "a tensor", x.location);
  Tensor y = *x.tensor;
  for (const auto& [name, module] : modules) y = module(TensorArg(y, x.location));
  return y;
}

Sequential::Sequential() : Handle(std::vector<AnyModule>()) {}
Sequential::Sequential(std::initializer_list<SequentialImpl::Named> named, detail::MadeAt at) : Handle(named, at) {}
void Sequential::fields(SequentialImpl& self, Fields& visit) { visit("", self.modules); }

}  // namespace ingot::nn
