// Regions of mixed precision: which op is computed in which dtype, and what the tape sees of it.
#include "eager/autocast.h"

#include <gtest/gtest.h>

#include <thread>

#include "eager/autograd/autograd.h"
#include "eager/autograd/function.h"
#include "eager/nn/grid.h"
#include "eager/nn/layers.h"
#include "eager/nn/recurrent_layers.h"
#include "eager/op_support.h"
#include "eager/ops/contractions.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/random.h"
#include "eager/support.h"
#include "ir/samples.h"

namespace ingot {
namespace {

void dispatched(const eager::OpCall& call, std::span<Tensor> outputs) { eager::dispatch(call, outputs); }

/// The dtype that a row asks for, of operands that are f32 and bf16 (or bf16 alone).
DType asked(const ir::OpInfo& op, bool mixed) {
  if (op.has(ir::kLower16)) return kFloat16;
  return op.has(ir::kFull) || mixed ? kFloat32 : kBFloat16;
}

// Of every row of the table that a region changes: the same bits as with casts written by hand.
TEST(Autocast, RowsSayInWhichDtypeTheyAreComputed) {
  int rows = 0;
  for (const ir::Sample& sample : ir::samples()) {
    const ir::OpInfo& op = *sample.op;
    EXPECT_LE(op.has(ir::kLower16) + op.has(ir::kFull) + op.has(ir::kWidest), 1) << op.name;
    if (!op.has(ir::kLower16) && !op.has(ir::kFull) && !op.has(ir::kWidest)) continue;
    SCOPED_TRACE(sample.text);
    const ir::Graph graph = ir::parse(sample.text);
    bool told = false;
    for (const ir::Attr& a : graph.nodes.at(0).attrs) told |= a.kind == ir::Attr::Kind::dtype;
    if (told && op.has(ir::kFull)) continue;
    const std::vector<Tensor> inputs = eager_tensors(random_inputs(graph, op.name, 5));
    for (bool mixed : {false, true}) {
      std::vector<Tensor> given, cast;
      for (const Tensor& t : inputs) {
        const bool floating = t.is_floating_point() && t.dtype() != kFloat64;
        given.push_back(!floating ? t : t.to(given.empty() || !mixed ? kBFloat16 : kFloat32));
        cast.push_back(floating ? given.back().to(asked(op, mixed && inputs.size() > 1)) : t);
      }
      // A sample whose other operands are no floats is not mixed.
      if (op.has(ir::kWidest) && mixed && (inputs.size() < 2 || !inputs.back().is_floating_point())) continue;
      const std::vector<Tensor> expected = run(graph, cast);
      const AutocastGuard autocast(kFloat16);
      const std::vector<Tensor> got = run(graph, given, &dispatched);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].dtype(), expected[i].dtype());
        EXPECT_EQ(bytes_of(got[i]), bytes_of(expected[i]));
      }
      ++rows;
    }
  }
  EXPECT_GT(rows, 100);
}

TEST(Autocast, OtherRowsAreLeftAlone) {
  const AutocastGuard autocast;
  const Tensor x = rand({3, 4}), low = x.to(kBFloat16);
  for (const Tensor& t : {x, low}) {
    EXPECT_EQ(relu(t).dtype(), t.dtype());
    EXPECT_EQ((t * 2 + t).dtype(), t.dtype());
    EXPECT_EQ(t.mean().dtype(), t.dtype());
    EXPECT_EQ(F::max_pool2d(t.view({1, 3, 4}), 2).dtype(), t.dtype());
  }
  EXPECT_EQ((x + low).dtype(), kFloat32);
  EXPECT_EQ(cat({x, low}).dtype(), kFloat32);
}

TEST(Autocast, DoublesIntegersInplaceFormsAndAnAskedDtypeAreLeftAlone) {
  const AutocastGuard autocast;
  EXPECT_EQ(matmul(eye(2).to(kFloat64), eye(2).to(kFloat64)).dtype(), kFloat64);
  EXPECT_EQ(matmul(eye(2).to(kInt64), eye(2).to(kInt64)).dtype(), kInt64);
  EXPECT_EQ(eye(2).addmm_(eye(2), eye(2)).dtype(), kFloat32);
  const Tensor low = rand({4}).to(kBFloat16);
  EXPECT_EQ(sum(low).dtype(), kFloat32);
  EXPECT_EQ(sum(low, std::nullopt, false, kBFloat16).dtype(), kBFloat16);
  EXPECT_EQ(softmax(low, 0).dtype(), kFloat32);
  EXPECT_EQ(dot(low, rand({4})).dtype(), kFloat32);
  EXPECT_EQ(dot(low, low).dtype(), kBFloat16);
}

TEST(Autocast, RegionsAreNestedAndEndWithTheirScope) {
  EXPECT_FALSE(is_autocast_enabled());
  EXPECT_EQ(get_autocast_dtype(), kBFloat16);
  const Tensor x = eye(2);
  auto dtype = [&] { return matmul(x, x).dtype(); };
  {
    const AutocastGuard outer(kFloat16);
    EXPECT_TRUE(is_autocast_enabled());
    EXPECT_EQ(dtype(), kFloat16);
    {
      const AutocastGuard inner;
      EXPECT_EQ(get_autocast_dtype(), kBFloat16);
      EXPECT_EQ(dtype(), kBFloat16);
      const AutocastGuard off(false);
      EXPECT_FALSE(is_autocast_enabled());
      EXPECT_EQ(dtype(), kFloat32);
    }
    EXPECT_EQ(dtype(), kFloat16);
    EXPECT_EQ(test::message_of([] { AutocastGuard g(kFloat32); }).rfind("AutocastGuard: dtype: got f32, expected", 0),
              0);
    EXPECT_THROW(matmul(x, rand({3, 2})), Error);
    EXPECT_EQ(dtype(), kFloat16);
    std::thread([&] { EXPECT_EQ(dtype(), kFloat32); }).join();
  }
  EXPECT_EQ(dtype(), kFloat32);
}

// What a region computes is what casts by hand compute, gradients too; those of f32 are f32.
TEST(Autocast, GradientsGoThroughTheCasts) {
  manual_seed(3);
  nn::Linear first(6, 8), second(8, 4);
  const Tensor x = randn({5, 6}), target = randint(0, 4, {5}, kInt64);
  auto lower = [](const Tensor& t) { return t.to(kBFloat16); };
  const Tensor hidden = gelu(F::linear(lower(x), lower(first->weight), lower(first->bias)));
  const Tensor by_hand =
      F::cross_entropy(F::linear(hidden, lower(second->weight), lower(second->bias)).to(kFloat32), target);
  const auto parameters = {first->weight, first->bias, second->weight, second->bias};
  const std::vector<Tensor> expected = autograd::grad({by_hand}, parameters);
  Tensor loss;
  {
    const AutocastGuard autocast;
    loss = F::cross_entropy(second(gelu(first(x))), target);
  }
  EXPECT_EQ(loss.dtype(), kFloat32);
  EXPECT_TRUE(equal(loss, by_hand));
  loss.backward();
  size_t i = 0;
  for (const Tensor& p : parameters) {
    EXPECT_EQ(p.grad().dtype(), kFloat32);
    EXPECT_TRUE(equal(p.grad(), expected[i++]));
  }
}

// A backward pass within the region is the same one, of second order too.
TEST(Autocast, ABackwardPassInsideIsTheSame) {
  manual_seed(4);
  const Tensor w = randn({6, 6}).requires_grad_(), x = randn({3, 6});
  std::vector<Tensor> first[2], second[2];
  for (bool inside : {false, true}) {
    std::optional<AutocastGuard> autocast(std::in_place);
    const Tensor loss = tanh(matmul(x, w)).pow(2).sum();
    if (!inside) autocast.reset();
    first[inside] = autograd::grad({loss}, {w}, {}, true, true);
    second[inside] = autograd::grad({first[inside][0]}, {w}, {ones({6, 6})});
  }
  EXPECT_TRUE(equal(first[0][0], first[1][0]));
  EXPECT_TRUE(equal(second[0][0], second[1][0]));
  EXPECT_EQ(first[1][0].dtype(), kFloat32);
}

TEST(Autocast, LayersTakeTheirParametersAsTheyAre) {
  manual_seed(5);
  const NoGradGuard no_grad;
  nn::Conv2d conv(3, 8, 3, {.padding = 1});
  nn::BatchNorm2d norm(8);
  nn::LSTM lstm(8, 8);
  nn::LayerNorm layer{{8}};
  const AutocastGuard autocast;
  const Tensor image = norm(conv(randn({2, 3, 6, 6})));
  EXPECT_EQ(image.dtype(), kBFloat16);
  EXPECT_EQ(norm->running_mean.dtype(), kFloat32);
  EXPECT_GT(norm->running_mean.abs().sum().item<float>(), 0);
  const Tensor rows = image.flatten(2).transpose(1, 2);
  EXPECT_EQ(layer(rows).dtype(), kFloat32);
  EXPECT_EQ(std::get<0>(lstm(rows)).dtype(), kBFloat16);
  const Tensor theta = randn({2, 2, 3});
  EXPECT_EQ(F::affine_grid(theta, {2, 3, 9, 9}, false).dtype(), kFloat32);
  const Tensor heads = rand({1, 2, 4, 8}), low = heads.to(kBFloat16);
  auto dropped = [](const Tensor& x) { return manual_seed(7), F::scaled_dot_product_attention(x, x, x, {}, 0.5); };
  const Tensor with = dropped(heads);
  EXPECT_EQ(with.dtype(), kBFloat16);
  {
    const AutocastGuard off(false);
    EXPECT_TRUE(equal(with, dropped(low)));
  }
  EXPECT_EQ(F::scaled_dot_product_attention(heads, heads.to(kBFloat16), heads).dtype(), kBFloat16);
}

}  // namespace
}  // namespace ingot
