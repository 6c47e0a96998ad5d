// Whole models: decoding with a growing length, frozen with checks of positions, convolutions.
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;
using Models = test::Inference;

// One block of a decoder over bytes.
struct TinyGptImpl : nn::Module {
  nn::Embedding wte{32, 16}, wpe{24, 16};
  nn::LayerNorm norm{16};
  nn::Linear qkv{16, 48}, out{16, 16};
  Tensor forward(const Tensor& ids) {
    int64_t n = ids.size(0), t = ids.size(1);
    Tensor x = wte(ids) + wpe(arange(t));
    std::vector<Tensor> heads;
    for (const Tensor& part : qkv(norm(x)).split(16, -1)) heads.push_back(part.view({n, t, 2, 8}).transpose(1, 2));
    Tensor y = scaled_dot_product_attention(heads[0], heads[1], heads[2], {}, 0, true);
    x = x + out(y.transpose(1, 2).reshape({n, t, 16}));
    return x.matmul(wte->weight.t());
  }
};
INGOT_MODULE(TinyGpt, wte, wpe, norm, qkv, out);

TEST_F(Models, DecodingWithAGrowingLength) {
  TinyGpt model;
  auto fast = compile(model);
  Tensor ids = tensor({{3, 1, 4, 1}});
  for (int step = 0; step < 12; ++step) {
    Tensor logits = fast(ids);
    ASSERT_TRUE(same_bits(logits, model(ids))) << step;
    Tensor next = logits.select(1, ids.size(1) - 1).argmax(-1, true);
    ids = cat({ids, next}, 1);
  }
  EXPECT_LE(fast.stats().compilations, 3);
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().graph_breaks, 0);
  EXPECT_EQ(fast.stats().recompile_limit_hits, 0);
  EXPECT_THROW(fast(tensor({{3, 32}})), Error);
}

TEST_F(Models, AFrozenGptChecksItsPositions) {
  TinyGpt model;
  auto fast = compile(model, {.mode = CompileMode::frozen});
  for (int i = 0; i < 4; ++i) {
    Tensor ids = randint(0, 32, {2, 6});
    EXPECT_TRUE(same_bits(fast(ids), model(ids)));
  }
  EXPECT_EQ(fast.explain().frozen, "1 frozen, 0 seen once");
  EXPECT_THROW(fast(full({2, 6}, 32, kInt64)), Error);
}

TEST_F(Models, ASmallCnn) {
  nn::Conv2d conv(1, 8, 3, {.padding = 1});
  nn::BatchNorm2d norm(8);
  norm->eval();
  nn::Linear fc(8, 10);
  auto f = [=](const Tensor& x) {
    Tensor h = norm(conv(x)).relu();
    h = h + conv->weight.sum();
    return fc(h.mean({2, 3}));
  };
  auto fast = compile(f);
  for (int64_t batch : {2, 2, 5}) {
    Tensor x = randn({batch, 1, 8, 8});
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

}  // namespace
}  // namespace ingot
