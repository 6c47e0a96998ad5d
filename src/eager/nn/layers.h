// The layers of a network, with PyTorch's names and initial values for their parameters.
#pragma once
#include "eager/nn/activation_layers.h"
#include "eager/nn/convolution_layers.h"
#include "eager/nn/functional.h"
#include "eager/nn/loss_layers.h"
#include "eager/nn/module.h"
#include "eager/nn/pad_layers.h"
#include "eager/nn/quantize.h"
#include "eager/nn/window_layers.h"

namespace ingot::nn {

struct LinearOptions {
  bool bias = true;
};
/// y = x W^T + b.
struct INGOT_API LinearImpl : Layer, Quantizable {
  Tensor weight, bias;
  FixedBuffer weight_scale;  // of an int8 weight; else none
  bool widens = false;       // a weight of bf16 or f16 that convert_weights() made
  LinearImpl(int64_t in_features, int64_t out_features, bool with_bias = true);
  LinearImpl(int64_t in_features, int64_t out_features, LinearOptions o)
      : LinearImpl(in_features, out_features, o.bias) {}
  Tensor forward(const TensorArg& x) const {
    if (weight_scale.defined()) return linear_int8(x, weight, weight_scale, bias);
    return linear(x, widens ? widened(weight, x) : weight, bias);
  }
  std::function<void()> converted_weight(DType format, Location location) override;
};
class Linear : public HandleFrom<Linear, LinearImpl, From<int64_t, int64_t, LinearOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(Linear, weight, weight_scale, bias)
};

/// y[k] = x1^T W[k] x2 + b[k].
struct INGOT_API BilinearImpl : Layer {
  Tensor weight, bias;
  BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features, bool with_bias = true);
  Tensor forward(const TensorArg& input1, const TensorArg& input2) const {
    return functional::bilinear(input1, input2, weight, bias);
  }
};
INGOT_MODULE(Bilinear, weight, bias);

struct NormOptions {
  double eps = 1e-5;
  bool affine = true;
  // Batch norm. Without a momentum the running statistics are the averages of all batches; untracked, every batch is
  // normalised by its own.
  std::optional<double> momentum = 0.1;
  bool track_running_stats = true;
};
/// Over the last dims, those of `normalized_shape`.
struct INGOT_API LayerNormImpl : Layer {
  Tensor weight, bias;
  IntList normalized_shape;
  double eps;
  explicit LayerNormImpl(const IntList& shape, NormOptions o = {});
  Tensor forward(const TensorArg& x) const { return layer_norm(x, normalized_shape, weight, bias, eps); }
};
class LayerNorm : public HandleFrom<LayerNorm, LayerNormImpl, From<std::initializer_list<SizeArg>>,
                                    From<const IntList&, NormOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(LayerNorm, weight, bias)
};
struct INGOT_API RMSNormImpl : Layer {
  Tensor weight;
  IntList normalized_shape;
  std::optional<double> eps;  // absent: the dtype's own
  explicit RMSNormImpl(const IntList& shape, std::optional<double> epsilon = {}, bool affine = true);
  Tensor forward(const TensorArg& x) const {
    return rms_norm(x, normalized_shape, weight, eps ? ScalarArg(*eps) : ScalarArg());
  }
};
class RMSNorm : public HandleFrom<RMSNorm, RMSNormImpl, From<std::initializer_list<SizeArg>>,
                                  From<const IntList&, std::optional<double>>,
                                  From<const IntList&, std::optional<double>, bool>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(RMSNorm, weight)
};
struct INGOT_API GroupNormImpl : Layer {
  Tensor weight, bias;
  int64_t groups;
  double eps;
  GroupNormImpl(int64_t num_groups, int64_t channels, NormOptions o = {});
  Tensor forward(const TensorArg& x) const { return group_norm(x, groups, weight, bias, eps); }
};
INGOT_MODULE(GroupNorm, weight, bias);

/// Scale and shift a channel, and statistics that follow the batches; each only where it is asked for.
struct INGOT_API ChannelNormImpl : Layer {
  Tensor weight, bias;
  Buffer running_mean, running_var, num_batches_tracked;
  double eps;

 protected:
  ChannelNormImpl(const char* layer, int64_t channels, double eps, bool affine, bool track_running_stats);
  /// In training and with running statistics, counts the batch.
  void count_batch(Location location) const;
};

/// Over all dims but the second, for any number of them. In training it uses the batch's statistics and follows them.
struct INGOT_API BatchNormImpl : ChannelNormImpl {
  std::optional<double> momentum;
  explicit BatchNormImpl(int64_t channels, NormOptions o = {}, const char* layer = "BatchNorm");
  Tensor forward(const TensorArg& x) const;
};
class BatchNorm : public HandleFrom<BatchNorm, BatchNormImpl, From<int64_t, NormOptions>> {
 public:
  using HandleFrom::HandleFrom;
  template <class Other>
  requires std::is_base_of_v<BatchNormImpl, typename Other::Impl> BatchNorm(const Other& other)
      : BatchNorm(HandleBase::handle_to<BatchNorm>(other.module())) {}
  INGOT_MODULE_FIELDS(BatchNorm, weight, bias, running_mean, running_var, num_batches_tracked)
};
// Those that take inputs with so many dims alone.
#define INGOT_BATCH_NORM(NAME, fewest, most)                                                         \
  struct INGOT_API NAME##Impl : BatchNormImpl {                                                      \
    explicit NAME##Impl(int64_t channels, NormOptions o = {}) : BatchNormImpl(channels, o, #NAME) {} \
    Tensor forward(const TensorArg& x) const {                                                       \
      return BatchNormImpl::forward(detail::with_dims(#NAME, x, fewest, most));                      \
    }                                                                                                \
  };                                                                                                 \
  class NAME : public HandleFrom<NAME, NAME##Impl, From<int64_t, NormOptions>> {                     \
   public:                                                                                           \
    using HandleFrom::HandleFrom;                                                                    \
    INGOT_MODULE_FIELDS(NAME, weight, bias, running_mean, running_var, num_batches_tracked)          \
  }
INGOT_BATCH_NORM(BatchNorm1d, 2, 3);
INGOT_BATCH_NORM(BatchNorm2d, 4, 4);
INGOT_BATCH_NORM(BatchNorm3d, 5, 5);
#undef INGOT_BATCH_NORM

struct InstanceNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = false, track_running_stats = false;
};
/// Over the spatial dims of each channel of each sample. With running statistics it follows them in training and uses
/// them otherwise.
struct INGOT_API InstanceNormImpl : ChannelNormImpl {
  double momentum;
  explicit InstanceNormImpl(int64_t channels, InstanceNormOptions o = {});
  Tensor forward(const TensorArg& x) const;
};
class InstanceNorm : public HandleFrom<InstanceNorm, InstanceNormImpl, From<int64_t, InstanceNormOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(InstanceNorm, weight, bias, running_mean, running_var, num_batches_tracked)
};
using InstanceNorm1d = InstanceNorm;
using InstanceNorm2d = InstanceNorm;
using InstanceNorm3d = InstanceNorm;

/// Over `size` neighbouring channels.
struct INGOT_API LocalResponseNormImpl : Layer {
  int64_t size;
  double alpha, beta, k;
  explicit LocalResponseNormImpl(int64_t channels, double a = 1e-4, double b = 0.75, double offset = 1)
      : size(detail::positive("LocalResponseNorm", "size", channels)), alpha(a), beta(b), k(offset) {}
  Tensor forward(const TensorArg& x) const { return functional::local_response_norm(x, size, alpha, beta, k); }
};
INGOT_MODULE(LocalResponseNorm);

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // a row of zeros at first, without a gradient; a negative one from the end
  std::optional<double> max_norm = {};      // rows that are asked for are first scaled down to this norm, in place
  double norm_type = 2;
  bool scale_grad_by_freq = false;  // the gradient of a row is divided by how often its index is among those asked for
};
struct EmbeddingBagOptions {
  std::string mode = "mean";  // or "sum", "max"
  std::optional<int64_t> padding_idx = {};
  std::optional<double> max_norm = {};
  double norm_type = 2;
  bool scale_grad_by_freq = false;
  bool include_last_offset = false;  // offsets have one number more, the end of the last bag
};
namespace detail {
/// What a table of embeddings is made from, off the tape; throws Error unless it has two dims of floating point
/// numbers.
INGOT_API Tensor table_of(const char* layer, const Tensor& embeddings, Location location);
}  // namespace detail
/// What holds a table of `count` rows.
struct INGOT_API TableImpl : Layer {
  Tensor weight;
  std::optional<int64_t> padding_idx;  // counted from the front
  std::optional<double> max_norm;
  double norm_type;
  bool scale_grad_by_freq;

 protected:
  template <class Options>
  TableImpl(const char* layer, int64_t count, int64_t width, const Options& o)
      : padding_idx(o.padding_idx),
        max_norm(o.max_norm),
        norm_type(o.norm_type),
        scale_grad_by_freq(o.scale_grad_by_freq) {
    make(layer, count, width);
  }
  /// Scales rows down, where there is a max_norm.
  void renorm(const TensorArg& indices) const;

 private:
  void make(const char* layer, int64_t count, int64_t width);
};
template <class Self, class Impl, class Options>
class TableHandle : public HandleFrom<Self, Impl, From<int64_t, int64_t, Options>> {
  using Base = HandleFrom<Self, Impl, From<int64_t, int64_t, Options>>;

 public:
  using Base::Base;
  /// Over the given table [count, width], whose memory it shares; `freeze`: no gradient goes to it.
  static Self from_pretrained(const Tensor& embeddings, bool freeze = true, Options o = {},
                              detail::MadeAt at = detail::MadeAt()) {
    const Tensor table = detail::table_of(Self::module_type(), embeddings, at.line);
    const SkipInit skip;
    Self made(table.size(0).value(), table.size(1).value(), std::move(o), at);
    made->weight = table.requires_grad_(!freeze);
    return made;
  }
};
/// Rows of a table.
struct INGOT_API EmbeddingImpl : TableImpl {
  EmbeddingImpl(int64_t count, int64_t width, EmbeddingOptions o = {});
  Tensor forward(const TensorArg& indices) const;
};
class Embedding : public TableHandle<Embedding, EmbeddingImpl, EmbeddingOptions> {
 public:
  using TableHandle::TableHandle;
  INGOT_MODULE_FIELDS(Embedding, weight)
};
/// Rows of a table, joined bag by bag (functional::embedding_bag).
struct INGOT_API EmbeddingBagImpl : TableImpl {
  std::string mode;
  bool include_last_offset;
  EmbeddingBagImpl(int64_t count, int64_t width, EmbeddingBagOptions o = {});
  Tensor forward(const TensorArg& indices, const TensorArg& offsets = {},
                 const TensorArg& per_sample_weights = {}) const;
};
class EmbeddingBag : public TableHandle<EmbeddingBag, EmbeddingBagImpl, EmbeddingBagOptions> {
 public:
  using TableHandle::TableHandle;
  INGOT_MODULE_FIELDS(EmbeddingBag, weight)
};

struct INGOT_API DropoutImpl : Layer {
  double p;
  explicit DropoutImpl(double probability = 0.5) : p(detail::share("Dropout", "p", probability)) {}
  Tensor forward(const TensorArg& x) const { return functional::dropout(x, p, is_training()); }
};
INGOT_MODULE(Dropout);
/// Drops whole channels.
struct INGOT_API FeatureDropoutImpl : Layer {
  double p;
  explicit FeatureDropoutImpl(double probability = 0.5) : p(detail::share("FeatureDropout", "p", probability)) {}
  Tensor forward(const TensorArg& x) const { return functional::feature_dropout(x, p, is_training()); }
};
INGOT_MODULE(FeatureDropout);
using Dropout2d = FeatureDropout;
// Drops whole channels, of an input with a batch or without.
#define INGOT_DROPOUT(NAME, function)                                                              \
  struct INGOT_API NAME##Impl : Layer {                                                            \
    double p;                                                                                      \
    explicit NAME##Impl(double probability = 0.5) : p(detail::share(#NAME, "p", probability)) {}   \
    Tensor forward(const TensorArg& x) const { return functional::function(x, p, is_training()); } \
  };                                                                                               \
  INGOT_MODULE(NAME)
INGOT_DROPOUT(Dropout1d, dropout1d);
INGOT_DROPOUT(Dropout3d, dropout3d);
// For what selu gives: mean and variance stay.
INGOT_DROPOUT(AlphaDropout, alpha_dropout);
INGOT_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout);
#undef INGOT_DROPOUT
struct INGOT_API FlattenImpl : Layer {
  int64_t start_dim, end_dim;
  explicit FlattenImpl(int64_t start = 1, int64_t end = -1) : start_dim(start), end_dim(end) {}
  Tensor forward(const TensorArg& x) const { return flatten(x, start_dim, end_dim); }
};
INGOT_MODULE(Flatten);
/// One dim as several: their sizes, one of which may be -1.
struct INGOT_API UnflattenImpl : Layer {
  int64_t dim;
  IntList sizes;
  UnflattenImpl(int64_t which, const IntList& pieces) : dim(which), sizes(pieces) {}
  Tensor forward(const TensorArg& x) const { return unflatten(x, dim, sizes); }
};
class Unflatten : public HandleFrom<Unflatten, UnflattenImpl, From<int64_t, const IntList&>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(Unflatten)
};
/// Any function of one tensor as a layer: Functional(relu), Functional([](const Tensor& x) { return x * 2; }).
struct INGOT_API FunctionalImpl : Layer {
  std::function<Tensor(const Tensor&)> function;
  explicit FunctionalImpl(std::function<Tensor(const Tensor&)> f);
  Tensor forward(const TensorArg& x) const { return function(x.get()); }
};
INGOT_MODULE(Functional);

/// softmax(q k^T) v of [N, T, C] or [T, C], with PyTorch's packed projection; key and value default to the query.
/// Masks are PyTorch's of this module: bools are true where a key is hidden, numbers are added to the scores.
/// attn_mask: [T, S] or [N * heads, T, S]; key_padding_mask: [N, S] or [S]. `dropout` is the share of attention weights
/// that are dropped in training.
struct INGOT_API MultiheadAttentionImpl : Layer {
  Tensor in_proj_weight, in_proj_bias;
  Linear out_proj;
  int64_t heads;
  double dropout;
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads, bool with_bias = true, double dropout_probability = 0);
  Tensor forward(const TensorArg& query, const TensorArg& key, const TensorArg& value, const TensorArg& attn_mask = {},
                 bool is_causal = false, const TensorArg& key_padding_mask = {}) const;
  Tensor forward(const TensorArg& x) const { return forward(x, x, x); }
};
INGOT_MODULE(MultiheadAttention, in_proj_weight, in_proj_bias, out_proj);

/// Modules one after the other, named 0, 1, 2 ..., or as they are given: Sequential({{"conv", Conv2d(..)}, ...}).
struct INGOT_API SequentialImpl : Layer {
  using Named = std::pair<std::string, AnyModule>;
  std::vector<Named> modules;  // an empty name: its place
  SequentialImpl() = default;
  explicit SequentialImpl(const std::vector<AnyModule>& unnamed);
  explicit SequentialImpl(std::initializer_list<Named> named);
  void push_back(AnyModule module);
  void push_back(const std::string& name, AnyModule module);
  size_t size() const { return modules.size(); }
  /// Throws Error where there is none of this number.
  AnyModule& operator[](size_t i);
  /// Its modules, in their order: `for (nn::AnyModule& module : *net)`.
  struct Iterator {
    std::vector<Named>::iterator at;
    AnyModule& operator*() const { return at->second; }
    Iterator& operator++() { return ++at, *this; }
    bool operator==(const Iterator&) const = default;
  };
  Iterator begin() { return {modules.begin()}; }
  Iterator end() { return {modules.end()}; }
  Tensor forward(const TensorArg& x) const;

 private:
  void check_tree(const AnyModule& module);
};
class Sequential : public Handle<Sequential, SequentialImpl> {
 public:
  using Handle::Handle;
  INGOT_API Sequential();
  INGOT_API Sequential(std::initializer_list<SequentialImpl::Named> named, detail::MadeAt at = detail::MadeAt());
  template <class First, class... Rest>
  requires(detail::ModuleHandle<First> && (detail::ModuleHandle<Rest> && ...) &&
           !(sizeof...(Rest) == 0 && std::is_base_of_v<Sequential, std::remove_cvref_t<First>>))
      Sequential(First&& first, Rest&&... rest)
      : Handle(std::vector<AnyModule>{AnyModule(std::remove_cvref_t<First>(first)),
                                      AnyModule(std::remove_cvref_t<Rest>(rest))...}) {}
  AnyModule& operator[](size_t i) const { return (**this)[i]; }
  static constexpr const char* module_type() { return "Sequential"; }
  INGOT_API static void fields(SequentialImpl& self, Fields& visit);
};

}  // namespace ingot::nn
