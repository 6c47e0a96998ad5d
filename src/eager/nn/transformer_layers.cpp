#include "eager/nn/transformer_layers.h"

#include <limits>

#include "eager/call/call.h"
#include "eager/nn/init.h"

namespace ingot::nn {
namespace {

template <class L>
std::vector<L> made(const char* layer, const std::function<L()>& make, int64_t count) {
  if (!make) detail::refuse(layer, "make", "an empty function", "one that makes a layer");
  std::vector<L> layers;
  for (int64_t i = 0; i < detail::not_negative(layer, "num_layers", count); ++i) layers.push_back(make());
  return layers;
}

const TransformerOptions& checked_transformer(const char* layer, const TransformerOptions& o) {
  detail::positive(layer, "dim_feedforward", o.dim_feedforward);
  detail::share(layer, "dropout", o.dropout);
  if (o.activation != "relu" && o.activation != "gelu")
    detail::refuse(layer, "activation", "\"" + o.activation + "\"", "\"relu\" or \"gelu\"");
  return o;
}

LayerNorm norm_of(int64_t d_model, const TransformerOptions& o) {
  LayerNorm made(d_model, NormOptions{.eps = o.layer_norm_eps});
  if (!o.bias) made->bias = Tensor();
  return made;
}

}  // namespace

TransformerLayerImpl::TransformerLayerImpl(const char* layer, int64_t d_model, int64_t num_heads, TransformerOptions o)
    : self_attn(d_model, num_heads, checked_transformer(layer, o).bias, o.dropout),
      linear1(d_model, o.dim_feedforward, o.bias),
      linear2(o.dim_feedforward, d_model, o.bias),
      options(std::move(o)) {}

LayerNorm TransformerLayerImpl::norm(int64_t d_model) const { return norm_of(d_model, options); }

Tensor TransformerLayerImpl::feed_forward(const Tensor& x) const {
  const Tensor inner = linear1(x);
  return dropped(linear2(dropped(options.activation == "relu" ? relu(inner) : gelu(inner))));
}

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(int64_t d_model, int64_t num_heads, TransformerOptions o)
    : TransformerLayerImpl("TransformerEncoderLayer", d_model, num_heads, std::move(o)),
      norm1(norm(d_model)),
      norm2(norm(d_model)) {}

Tensor TransformerEncoderLayerImpl::forward(const TensorArg& src, const TensorArg& src_mask,
                                            const TensorArg& src_key_padding_mask, bool is_causal) const {
  const Tensor x = residual(eager::present("TransformerEncoderLayer", "src", src), norm1, [&](const Tensor& y) {
    return dropped(self_attn(y, y, y, src_mask, is_causal, src_key_padding_mask));
  });
  return residual(x, norm2, [&](const Tensor& y) { return feed_forward(y); });
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(int64_t d_model, int64_t num_heads, TransformerOptions o)
    : TransformerLayerImpl("TransformerDecoderLayer", d_model, num_heads, std::move(o)),
      multihead_attn(d_model, num_heads, options.bias, options.dropout),
      norm1(norm(d_model)),
      norm2(norm(d_model)),
      norm3(norm(d_model)) {}

Tensor TransformerDecoderLayerImpl::forward(const TensorArg& tgt, const TensorArg& memory, const TensorArg& tgt_mask,
                                            const TensorArg& memory_mask, const TensorArg& tgt_key_padding_mask,
                                            const TensorArg& memory_key_padding_mask, bool tgt_is_causal,
                                            bool memory_is_causal) const {
  const Tensor& seen = eager::present("TransformerDecoderLayer", "memory", memory);
  Tensor x = residual(eager::present("TransformerDecoderLayer", "tgt", tgt), norm1, [&](const Tensor& y) {
    return dropped(self_attn(y, y, y, tgt_mask, tgt_is_causal, tgt_key_padding_mask));
  });
  x = residual(x, norm2, [&](const Tensor& y) {
    return dropped(multihead_attn(y, seen, seen, memory_mask, memory_is_causal, memory_key_padding_mask));
  });
  return residual(x, norm3, [&](const Tensor& y) { return feed_forward(y); });
}

TransformerEncoderImpl::TransformerEncoderImpl(const std::function<TransformerEncoderLayer()>& make, int64_t num_layers,
                                               LayerNorm last)
    : layers(made("TransformerEncoder", make, num_layers)), norm(std::move(last)) {}
TransformerEncoderImpl::TransformerEncoderImpl(const TransformerEncoderLayer& layer, int64_t num_layers, LayerNorm last)
    : TransformerEncoderImpl([&] { return layer.clone(); }, num_layers, std::move(last)) {}

Tensor TransformerEncoderImpl::forward(const TensorArg& src, const TensorArg& mask,
                                       const TensorArg& src_key_padding_mask, bool is_causal) const {
  Tensor x = eager::present("TransformerEncoder", "src", src);
  for (const TransformerEncoderLayer& layer : layers) x = layer(x, mask, src_key_padding_mask, is_causal);
  return norm ? norm(x) : x;
}

TransformerDecoderImpl::TransformerDecoderImpl(const std::function<TransformerDecoderLayer()>& make, int64_t num_layers,
                                               LayerNorm last)
    : layers(made("TransformerDecoder", make, num_layers)), norm(std::move(last)) {}
TransformerDecoderImpl::TransformerDecoderImpl(const TransformerDecoderLayer& layer, int64_t num_layers, LayerNorm last)
    : TransformerDecoderImpl([&] { return layer.clone(); }, num_layers, std::move(last)) {}

Tensor TransformerDecoderImpl::forward(const TensorArg& tgt, const TensorArg& memory, const TensorArg& tgt_mask,
                                       const TensorArg& memory_mask, const TensorArg& tgt_key_padding_mask,
                                       const TensorArg& memory_key_padding_mask, bool tgt_is_causal,
                                       bool memory_is_causal) const {
  Tensor x = eager::present("TransformerDecoder", "tgt", tgt);
  for (const TransformerDecoderLayer& layer : layers)
    x = layer(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
              memory_is_causal);
  return norm ? norm(x) : x;
}

TransformerImpl::TransformerImpl(int64_t d_model, int64_t num_heads, TransformerOptions o)
    : encoder([&] { return TransformerEncoderLayer(d_model, num_heads, o); }, o.num_encoder_layers,
              norm_of(d_model, o)),
      decoder([&] { return TransformerDecoderLayer(d_model, num_heads, o); }, o.num_decoder_layers,
              norm_of(d_model, o)) {
  if (SkipInit::active()) return;
  for (Module* part : {static_cast<Module*>(&*encoder), static_cast<Module*>(&*decoder)})
    for (const Tensor& p : part->parameters())
      if (p.dim() > 1) init::xavier_uniform_(p);
}

Tensor TransformerImpl::forward(const TensorArg& src, const TensorArg& tgt, const TensorArg& src_mask,
                                const TensorArg& tgt_mask, const TensorArg& memory_mask,
                                const TensorArg& src_key_padding_mask, const TensorArg& tgt_key_padding_mask,
                                const TensorArg& memory_key_padding_mask, bool src_is_causal, bool tgt_is_causal,
                                bool memory_is_causal) const {
  const Tensor memory = encoder(src, src_mask, src_key_padding_mask, src_is_causal);
  return decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
                 memory_is_causal);
}

Tensor TransformerImpl::generate_square_subsequent_mask(const SizeArg& size, Location location) {
  const CallerLine line(location);
  IntList sizes{size, size};
  return full(sizes, -std::numeric_limits<double>::infinity()).triu(1);
}

}  // namespace ingot::nn
