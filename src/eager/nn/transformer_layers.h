// Transformer layers as PyTorch has them, with its names; batches come first ([N, T, C], or [T, C]).
#pragma once
#include "eager/nn/layers.h"

namespace ingot::nn {

struct TransformerOptions {
  int64_t num_encoder_layers = 6, num_decoder_layers = 6;  // of Transformer alone
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  double layer_norm_eps = 1e-5;
  bool norm_first = false;
  bool bias = true;
};

/// What the layers share: self-attention and a network of two linear layers, each beside a residual.
struct INGOT_API TransformerLayerImpl : Layer {
  MultiheadAttention self_attn;
  Linear linear1, linear2;
  TransformerOptions options;

 protected:
  TransformerLayerImpl(const char* layer, int64_t d_model, int64_t num_heads, TransformerOptions o);
  LayerNorm norm(int64_t d_model) const;
  Tensor dropped(const Tensor& x) const { return functional::dropout(x, options.dropout, is_training()); }
  Tensor feed_forward(const Tensor& x) const;
  /// x + block(x), with the norm before the block or after the sum.
  template <class Block>
  Tensor residual(const Tensor& x, const LayerNorm& norm, Block block) const {
    return options.norm_first ? x + block(norm(x)) : norm(x + block(x));
  }
};

/// Masks are those of MultiheadAttention.
struct INGOT_API TransformerEncoderLayerImpl : TransformerLayerImpl {
  LayerNorm norm1, norm2;
  TransformerEncoderLayerImpl(int64_t d_model, int64_t num_heads, TransformerOptions o = {});
  Tensor forward(const TensorArg& src, const TensorArg& src_mask = {}, const TensorArg& src_key_padding_mask = {},
                 bool is_causal = false) const;
};
struct INGOT_API TransformerDecoderLayerImpl : TransformerLayerImpl {
  MultiheadAttention multihead_attn;
  LayerNorm norm1, norm2, norm3;
  TransformerDecoderLayerImpl(int64_t d_model, int64_t num_heads, TransformerOptions o = {});
  Tensor forward(const TensorArg& tgt, const TensorArg& memory, const TensorArg& tgt_mask = {},
                 const TensorArg& memory_mask = {}, const TensorArg& tgt_key_padding_mask = {},
                 const TensorArg& memory_key_padding_mask = {}, bool tgt_is_causal = false,
                 bool memory_is_causal = false) const;
};
class TransformerEncoderLayer : public HandleFrom<TransformerEncoderLayer, TransformerEncoderLayerImpl,
                                                  From<int64_t, int64_t, TransformerOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(TransformerEncoderLayer, self_attn, linear1, linear2, norm1, norm2)
};
class TransformerDecoderLayer : public HandleFrom<TransformerDecoderLayer, TransformerDecoderLayerImpl,
                                                  From<int64_t, int64_t, TransformerOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(TransformerDecoderLayer, self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3)
};

/// `num_layers` layers that `make` gives, each with numbers of its own, or clones of one, then a norm if one is given.
struct INGOT_API TransformerEncoderImpl : Layer {
  std::vector<TransformerEncoderLayer> layers;
  LayerNorm norm;
  TransformerEncoderImpl(const std::function<TransformerEncoderLayer()>& make, int64_t num_layers,
                         LayerNorm last = nullptr);
  TransformerEncoderImpl(const TransformerEncoderLayer& layer, int64_t num_layers, LayerNorm last = nullptr);
  Tensor forward(const TensorArg& src, const TensorArg& mask = {}, const TensorArg& src_key_padding_mask = {},
                 bool is_causal = false) const;
};
INGOT_MODULE(TransformerEncoder, layers, norm);
struct INGOT_API TransformerDecoderImpl : Layer {
  std::vector<TransformerDecoderLayer> layers;
  LayerNorm norm;
  TransformerDecoderImpl(const std::function<TransformerDecoderLayer()>& make, int64_t num_layers,
                         LayerNorm last = nullptr);
  TransformerDecoderImpl(const TransformerDecoderLayer& layer, int64_t num_layers, LayerNorm last = nullptr);
  Tensor forward(const TensorArg& tgt, const TensorArg& memory, const TensorArg& tgt_mask = {},
                 const TensorArg& memory_mask = {}, const TensorArg& tgt_key_padding_mask = {},
                 const TensorArg& memory_key_padding_mask = {}, bool tgt_is_causal = false,
                 bool memory_is_causal = false) const;
};
INGOT_MODULE(TransformerDecoder, layers, norm);

/// An encoder and a decoder (Vaswani et al., "Attention is all you need", 2017), each with a norm at its end. Weights
/// start as xavier_uniform_ gives them.
struct INGOT_API TransformerImpl : Layer {
  TransformerEncoder encoder;
  TransformerDecoder decoder;
  explicit TransformerImpl(int64_t d_model = 512, int64_t num_heads = 8, TransformerOptions o = {});
  Tensor forward(const TensorArg& src, const TensorArg& tgt, const TensorArg& src_mask = {},
                 const TensorArg& tgt_mask = {}, const TensorArg& memory_mask = {},
                 const TensorArg& src_key_padding_mask = {}, const TensorArg& tgt_key_padding_mask = {},
                 const TensorArg& memory_key_padding_mask = {}, bool src_is_causal = false, bool tgt_is_causal = false,
                 bool memory_is_causal = false) const;
  /// [size, size], f32: what hides from each position those behind it.
  static Tensor generate_square_subsequent_mask(const SizeArg& size, Location location = Location());
};
class Transformer : public HandleFrom<Transformer, TransformerImpl, From<int64_t, int64_t, TransformerOptions>> {
 public:
  using HandleFrom::HandleFrom;
  INGOT_MODULE_FIELDS(Transformer, encoder, decoder)
};

}  // namespace ingot::nn
