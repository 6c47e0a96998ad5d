// The vision transformer (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020), with the names of torchvision's
// VisionTransformer.
#pragma once
#include "input.h"

namespace models {

/// torchvision's vit_b_16.
struct ViTConfig {
  int64_t image_size = 224, patch_size = 16, num_layers = 12, num_heads = 12, hidden_dim = 768, mlp_dim = 3072,
          num_classes = 1000;
  double dropout = 0;
  static ViTConfig small() { return {.num_heads = 6, .hidden_dim = 384, .mlp_dim = 1536}; }  // ViT-S/16
  int64_t patches() const { return (image_size / patch_size) * (image_size / patch_size); }
};

struct ViTEncoderLayerImpl : nn::Module {
  nn::LayerNorm ln_1, ln_2;
  nn::MultiheadAttention self_attention;
  nn::Dropout dropout;
  nn::Sequential mlp;
  explicit ViTEncoderLayerImpl(const ViTConfig& c)
      : ln_1(c.hidden_dim, {.eps = 1e-6}),
        ln_2(c.hidden_dim, {.eps = 1e-6}),
        self_attention(c.hidden_dim, c.num_heads),
        dropout(c.dropout),
        mlp(nn::Linear(c.hidden_dim, c.mlp_dim), nn::GELU(), nn::Dropout(c.dropout),
            nn::Linear(c.mlp_dim, c.hidden_dim), nn::Dropout(c.dropout)) {}
  Tensor forward(const Tensor& x) {
    Tensor h = x + dropout(self_attention(ln_1(x)));
    return h + mlp(ln_2(h));
  }
};
INGOT_MODULE(ViTEncoderLayer, ln_1, self_attention, dropout, ln_2, mlp);

struct ViTEncoderImpl : nn::Module {
  Tensor pos_embedding;
  nn::Dropout dropout;
  std::vector<ViTEncoderLayer> layers;
  nn::LayerNorm ln;
  explicit ViTEncoderImpl(const ViTConfig& c)
      : pos_embedding(randn({1, c.patches() + 1, c.hidden_dim}) * 0.02),
        dropout(c.dropout),
        ln(c.hidden_dim, {.eps = 1e-6}) {
    for (int64_t i = 0; i < c.num_layers; ++i) layers.emplace_back(c);
  }
  Tensor forward(const Tensor& tokens) {
    Tensor x = dropout(tokens + pos_embedding);
    for (auto& layer : layers) x = layer(x);
    return ln(x);
  }
};
/// Written out, as torchvision's names of layers are not their numbers.
class ViTEncoder : public nn::Handle<ViTEncoder, ViTEncoderImpl> {
 public:
  using Handle::Handle;
  static constexpr const char* module_type() { return "ViTEncoder"; }
  static void fields(ViTEncoderImpl& self, nn::Fields& visit) {
    visit("pos_embedding", self.pos_embedding);
    visit("dropout", self.dropout);
    for (size_t i = 0; i < self.layers.size(); ++i) visit("layers.encoder_layer_" + std::to_string(i), self.layers[i]);
    visit("ln", self.ln);
  }
};

struct ViTHeadsImpl : nn::Module {
  nn::Linear head;
  explicit ViTHeadsImpl(const ViTConfig& c) : head(c.hidden_dim, c.num_classes) {}
  Tensor forward(const Tensor& x) { return head(x); }
};
INGOT_MODULE(ViTHeads, head);

/// Images f32 [N, 3, image_size, image_size] to logits [N, num_classes].
struct VisionTransformerImpl : nn::Module {
  int64_t image_size;
  nn::Conv2d conv_proj;
  Tensor class_token;
  ViTEncoder encoder;
  ViTHeads heads;
  explicit VisionTransformerImpl(const ViTConfig& c = {})
      : image_size(c.image_size),
        conv_proj(3, c.hidden_dim, c.patch_size, {.stride = c.patch_size}),
        class_token(zeros({1, 1, c.hidden_dim})),
        encoder(c),
        heads(c) {}
  Tensor forward(const TensorArg& given) {
    const Tensor& images = given.get();
    // Positions are learned for the patches of one size.
    if (images.dim() != 4 || images.size(2) != image_size || images.size(3) != image_size)
      refuse_input("VisionTransformer", "images", given,
                   "[N, 3, " + std::to_string(image_size) + ", " + std::to_string(image_size) + "]");
    Tensor patches = conv_proj(images).flatten(2).transpose(1, 2);
    Tensor first = class_token.expand({images.size(0), -1, -1});
    return heads(encoder(cat({first, patches}, 1)).select(1, 0));
  }
};
INGOT_MODULE(VisionTransformer, conv_proj, class_token, encoder, heads);

}  // namespace models
