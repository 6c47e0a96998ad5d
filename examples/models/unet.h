// A U-Net (Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation", 2015) as diffusion
// models have it (Ho et al., "Denoising Diffusion Probabilistic Models", 2020): residual blocks with group norms, and
// attention where the image is smallest.
#pragma once
#include "attention.h"

namespace models {

/// 2.3 million parameters.
struct UNetConfig {
  int64_t channels = 3;  // of the image, in and out
  int64_t stem = 64, down1 = 64, down2 = 128, mid = 256, up2 = 128, up1 = 64;
  int64_t groups = 4, heads = 4;
};

/// Norm, SiLU and a convolution, twice, beside the input, which a 1x1 convolution brings to other channels.
struct ResidualBlockImpl : nn::Module {
  nn::GroupNorm norm1, norm2;
  nn::Conv2d conv1, conv2, skip = nullptr;
  ResidualBlockImpl(int64_t in, int64_t out, int64_t groups)
      : norm1(groups, in), norm2(groups, out), conv1(in, out, 3, {.padding = 1}), conv2(out, out, 3, {.padding = 1}) {
    if (in != out) skip = nn::Conv2d(in, out, 1);
  }
  Tensor forward(const Tensor& x) {
    Tensor y = conv2(F::silu(norm2(conv1(F::silu(norm1(x))))));
    return y + (skip ? skip(x) : x);
  }
};
INGOT_MODULE(ResidualBlock, norm1, conv1, norm2, conv2, skip);

/// Images f32 [N, channels, H, W] to images of the same size; H and W are multiples of 4.
struct UNetImpl : nn::Module {
  int64_t heads;
  nn::Conv2d stem, head, attn_qkv, attn_out;
  nn::GroupNorm attn_norm;
  ResidualBlock down1, down2, mid, up2, up1;
  explicit UNetImpl(const UNetConfig& c = {})
      : heads(c.heads),
        stem(c.channels, c.stem, 3, {.padding = 1}),
        head(c.up1, c.channels, 3, {.padding = 1}),
        attn_qkv(c.mid, 3 * c.mid, 1),
        attn_out(c.mid, c.mid, 1),
        attn_norm(c.groups, c.mid),
        down1(c.stem, c.down1, c.groups),
        down2(c.down1, c.down2, c.groups),
        mid(c.down2, c.mid, c.groups),
        up2(c.mid + c.down2, c.up2, c.groups),
        up1(c.up2 + c.down1, c.up1, c.groups) {}

  /// Every pixel looks at every other.
  Tensor attention(const Tensor& x) {
    // Queries, keys and values of each head: [N, 3, heads, H * W, width].
    const Tensor qkv = attn_qkv(attn_norm(x)).flatten(2).unflatten(1, {3, heads, -1}).transpose(-2, -1);
    Tensor y = join_heads(F::scaled_dot_product_attention(qkv.select(1, 0), qkv.select(1, 1), qkv.select(1, 2)));
    return x + attn_out(y.unflatten(1, {x.size(2), x.size(3)}).permute({0, 3, 1, 2}));
  }
  Tensor forward(const Tensor& images) {
    Tensor a = down1(stem(images));
    Tensor b = down2(F::avg_pool2d(a, 2));
    Tensor z = attention(mid(F::avg_pool2d(b, 2)));
    Tensor y = up2(cat({twice(z), b}, 1));
    return head(up1(cat({twice(y), a}, 1)));
  }

 private:
  static Tensor twice(const Tensor& x) { return F::interpolate(x, {}, /*scale_factor=*/{2}); }
};
INGOT_MODULE(UNet, stem, down1, down2, mid, attn_norm, attn_qkv, attn_out, up2, up1, head);

}  // namespace models
