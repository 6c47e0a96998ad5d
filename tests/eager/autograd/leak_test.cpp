// Nothing on the tape holds itself: once the user's tensors are gone, so are the nodes and what they saved.
#include <gtest/gtest.h>

#include "eager/autograd/autograd.h"
#include "eager/autograd/node.h"
#include "eager/dispatch_node.h"
#include "eager/execute/caches.h"
#include "eager/op_support.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/selection.h"
#include "ir/samples.h"

namespace ingot {
namespace {

using autograd::meta_of;

/// Held by everything that is followed: its only holder at the end is this one.
class Followed {
 public:
  void follow(const Tensor& t) {
    meta_of(t).accumulated.emplace_back(0, [token = token_](const Tensor&) {});
    if (!t.impl()->node) return;
    t.impl()->node->hooks.push_back({1, 0, [token = token_](const Tensor&) { return Tensor(); }});
    ++nodes_;
  }
  int64_t nodes() const { return nodes_; }
  int64_t left() const { return token_.use_count() - 1; }

 private:
  std::shared_ptr<int> token_ = std::make_shared<int>();
  int64_t nodes_ = 0;
};

enum class Ending { dropped, walked, walked_twice, derived_again };

void run(const ir::Sample& sample, bool inplace, Ending ending, Followed& followed) {
  const ir::Graph graph = ir::parse(sample.text);
  std::vector<Tensor> leaves, inputs;
  for (const ReferenceTensor& r : random_inputs(graph, sample.op->name, 1)) {
    Tensor t = eager_tensor(r);
    if (t.is_floating_point()) {
      leaves.push_back(t.requires_grad_());
      t = t * 1;
    }
    followed.follow(t);
    inputs.push_back(t);
  }
  std::vector<Tensor> roots, cotangents;
  for (const Tensor& t : test::dispatch_node(graph, inputs, inplace)) {
    if (!t.requires_grad()) continue;
    followed.follow(t);
    roots.push_back(t);
    cotangents.push_back(ones_like(t.detach()));
  }
  if (roots.empty() || ending == Ending::dropped) return;
  if (ending != Ending::derived_again) {
    if (ending == Ending::walked_twice) autograd::backward(roots, cotangents, true);
    return autograd::backward(roots, cotangents);
  }
  for (const Tensor& t : autograd::grad(roots, leaves, cotangents, {}, true, true))
    if (t.defined() && t.requires_grad()) followed.follow(t);
}

TEST(Leaks, NoRowHoldsItself) {
  int64_t nodes = 0;
  for (const ir::Sample& sample : ir::samples())
    for (bool inplace : {false, true}) {
      if (sample.op->gradient == ir::Gradient::none || (inplace && !sample.op->has(ir::kInplace))) continue;
      for (Ending ending : {Ending::dropped, Ending::walked, Ending::walked_twice, Ending::derived_again}) {
        Followed followed;
        try {
          run(sample, inplace, ending, followed);
        } catch (const Error& e) {
          EXPECT_TRUE(inplace) << sample.text << ": " << e.what();  // not each sample's result fits into its operand
        }
        nodes += followed.nodes();
        EXPECT_EQ(followed.left(), 0) << sample.text << (inplace ? " in place, " : ", ") << static_cast<int>(ending);
      }
    }
  EXPECT_GT(nodes, 4000);
}

template <class F>
int64_t left_of(F f) {
  Followed followed;
  f(followed);
  EXPECT_GT(followed.nodes(), 0);
  return followed.left();
}

// A tensor that is written by what was made of it: its new node leads back to the node that saved it.
TEST(Leaks, WritesByWhatWasMadeOfTheTensor) {
  const Tensor w = tensor({2.f, 3.f}).requires_grad_();
  EXPECT_EQ(left_of([&](Followed& f) {
              Tensor y = w * 1;
              y.add_(y * w);
              f.follow(y);
            }),
            0);
  EXPECT_EQ(left_of([&](Followed& f) {
              Tensor y = ones({2}), z = y * w;  // a constant until then
              f.follow(z);
              y.add_(z.exp());
              f.follow(y);
            }),
            0);
  EXPECT_EQ(left_of([&](Followed& f) {
              Tensor y = ones({2, 2}), row = y[0];
              row.mul_(w * y[1]);
              f.follow(y);
              y.add_(row * w);
              f.follow(y);
              f.follow(row);
            }),
            0);
}

// What a write reads of the tensor itself is kept as it was.
TEST(Leaks, AWriteKeepsWhatItOverwrites) {
  const Tensor w = tensor({2.f, 3.f}).requires_grad_(), x = tensor({5.f, 7.f}).requires_grad_();
  auto expect_gradients = [&](const Tensor& y, std::vector<float> by_w, std::vector<float> by_x) {
    const std::vector<Tensor> g = autograd::grad({y.sum()}, {w, x});
    EXPECT_TRUE(equal(g[0], tensor(by_w))) << g[0];
    EXPECT_TRUE(equal(g[1], tensor(by_x))) << g[1];
  };
  Tensor y = x * 1;
  y.mul_(w);
  expect_gradients(y, {5, 7}, {2, 3});
  y = x * w;
  y.mul_(y);
  expect_gradients(y, {2 * 2 * 25, 2 * 3 * 49}, {2 * 5 * 4, 2 * 7 * 9});
  y = (x * 1).unsqueeze(0);
  y[0].mul_(w);
  expect_gradients(y, {5, 7}, {2, 3});
}

}  // namespace
}  // namespace ingot
