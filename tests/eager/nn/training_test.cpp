// Modules and gradients: who requires them, and what keeps that.
#include <gtest/gtest.h>

#include "eager/autograd/autograd.h"
#include "eager/nn/layers.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/random.h"

namespace ingot {
namespace {

struct NetImpl : nn::Module {
  nn::Linear in{3, 4}, out{4, 2};
  nn::BatchNorm norm{4};
  Tensor scale = ones({4}), table = tensor({1, 2});
  nn::Buffer offset = zeros({4});
  NetImpl() { in->weight.mul_(0.5); }  // no guard is needed
  Tensor forward(const Tensor& x) { return out(norm(in(x)) * scale + offset); }
};
INGOT_MODULE(Net, in, out, norm, scale, table, offset);

bool tracked(const std::vector<Tensor>& tensors) {
  bool all = true;
  for (const Tensor& t : tensors) all &= t.requires_grad() && t.is_leaf();
  return all;
}

TEST(Training, ParametersRequireGradAndBuffersDoNot) {
  Net net;
  EXPECT_TRUE(tracked({net->in->weight, net->in->bias, net->out->weight, net->norm->weight, net->scale}));
  for (const Tensor& b : net->buffers()) EXPECT_FALSE(b.requires_grad());
  EXPECT_FALSE(net->table.requires_grad());
  EXPECT_TRUE(tracked(nn::Embedding(3, 2)->parameters()));
  EXPECT_TRUE(tracked(nn::MultiheadAttention(4, 2)->parameters()));
  EXPECT_TRUE(tracked(nn::Sequential(nn::Conv2d(1, 2, 3), nn::LayerNorm(4))->parameters()));
  EXPECT_TRUE(GradMode::is_enabled());
}

TEST(Training, AllAtOnceOrOneByOne) {
  Net net;
  net->requires_grad_(false);
  for (const Tensor& p : net->parameters()) EXPECT_FALSE(p.requires_grad());
  net->out->requires_grad_();
  EXPECT_TRUE(tracked(net->out->parameters()));
  EXPECT_FALSE(net->in->weight.requires_grad());
}

TEST(Training, ZeroGrad) {
  Net net;
  net->scale.set_grad(ones({4}));
  net->zero_grad(false);
  EXPECT_EQ(net->scale.grad()[0].item<float>(), 0.f);
  net->zero_grad();
  EXPECT_FALSE(net->scale.grad().defined());
}

TEST(Training, TiedParametersAreListedOnce) {
  nn::Linear a(3, 3), b(3, 3);
  b->weight = a->weight;
  nn::Sequential both(a, b);
  EXPECT_EQ(both->parameters().size(), 3u);
  EXPECT_EQ(both->named_parameters().size(), 4u);
}

TEST(Training, LoadingAndConvertingKeepWhoRequiresGrad) {
  Net net, other;
  net->out->requires_grad_(false);
  auto kept = [&] {
    return tracked({net->in->weight, net->scale}) && !net->out->weight.requires_grad() &&
           !net->norm->running_mean.requires_grad() && net->out->weight.is_leaf();
  };
  net->load_state_dict(other->state_dict());
  EXPECT_TRUE(kept());
  EXPECT_TRUE(equal(net->in->weight, other->in->weight));
  net->to(kFloat64);
  EXPECT_TRUE(kept());
  EXPECT_EQ(net->in->weight.dtype(), kFloat64);
  net->load_state_dict(other->state_dict(), {.assign = true});
  EXPECT_TRUE(kept());
  EXPECT_TRUE(net->in->weight.shares_storage(other->in->weight));
  EXPECT_TRUE(other->out->weight.requires_grad());  // the one that was taken without is another
  EXPECT_TRUE(net->out->weight.shares_storage(other->out->weight));
  StateDict plain;
  for (const auto& [name, t] : other->state_dict()) plain[name] = zeros_like(t);
  net->load_state_dict(plain, {.assign = true});
  EXPECT_TRUE(kept());
}

TEST(Training, WhatSkipInitLeftWithoutMemoryRequiresGradOnceLoaded) {
  nn::Linear full(3, 4);
  nn::Linear linear = [] {
    nn::SkipInit skip;
    return nn::Linear(3, 4);
  }();
  EXPECT_TRUE(tracked(linear->parameters()));
  linear->load_state_dict(full->state_dict());
  EXPECT_TRUE(tracked(linear->parameters()));
  EXPECT_TRUE(equal(linear->weight, full->weight));
}

TEST(Training, RunningStatisticsHaveNoHistory) {
  nn::BatchNorm norm(2);
  const Tensor x = tensor({{1.f, 2.f}, {3.f, 6.f}}, requires_grad());
  norm(x);
  EXPECT_FALSE(norm->running_mean.requires_grad());
  EXPECT_TRUE(allclose(norm->running_mean, tensor({0.2f, 0.4f})));
}

TEST(Options, FactoriesMakeLeaves) {
  const TensorOptions options = TensorOptions(kFloat64).requires_grad();
  for (const Tensor& t :
       {zeros({2}, options), ones({2}, options), full({2}, 3, options), empty({2}, options), randn({2}, options),
        rand({2}, options), arange(0.0, 2.0, options), linspace(0, 1, 3, options), eye(2, {}, options),
        tensor({1, 2}, options), zeros_like(ones({2}), options), randn_like(ones({2}), options),
        scalar_tensor(1, options), logspace(0, 1, 3, 10, options)}) {
    EXPECT_TRUE(t.requires_grad() && t.is_leaf());
    EXPECT_EQ(t.dtype(), kFloat64);
  }
  EXPECT_EQ(randn({3}, requires_grad()).dtype(), kFloat32);
  EXPECT_FALSE(randn({3}, TensorOptions().requires_grad(false)).requires_grad());
  EXPECT_THROW(zeros({2}, dtype(kInt64).requires_grad()), Error);
}

}  // namespace
}  // namespace ingot
