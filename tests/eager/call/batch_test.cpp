// Every op of the table on slices of a vmap: the bits of a call for each slice, and its gradients.
#include "eager/call/batch.h"

#include <gtest/gtest.h>

#include "eager/autograd/autograd.h"
#include "eager/dispatch_node.h"
#include "eager/op_support.h"
#include "eager/ops/functions.h"
#include "ir/rules/rules.h"
#include "ir/samples.h"

namespace ingot {
namespace {

using Tensors = std::vector<Tensor>;
constexpr int64_t kSlices = 2;

/// Inputs of a sample: which of them are slices says `held`, a bit each.
struct Inputs {
  const ir::Graph& graph;
  std::vector<Tensors> slices;  // [slice][input]
  unsigned held;

  Inputs(const ir::Graph& g, std::string_view op, unsigned h) : graph(g), held(h) {
    for (unsigned b = 0; b < kSlices; ++b) slices.push_back(eager_tensors(random_inputs(g, op, b + 1)));
    for (Tensors& s : slices)
      for (size_t i = 0; i < s.size(); ++i)
        if (!(held >> i & 1)) s[i] = slices[0][i];
  }
  size_t count() const { return slices[0].size(); }
  /// What the graph gives for wholes, which become slices inside.
  Tensors vmapped(const Tensors& wholes, bool inplace = false) const {
    eager::Batch batch(kSlices, eager::Randomness::same);
    Tensors own = wholes;
    for (size_t i = 0; i < own.size(); ++i)
      if (held >> i & 1) own[i] = batch.slice_of(own[i]);
    Tensors results = test::dispatch_node(graph, own, inplace);
    for (Tensor& t : results) t = batch.whole_of(t);
    return results;
  }
  Tensors wholes() const {
    Tensors all;
    for (size_t i = 0; i < count(); ++i) {
      Tensors list;
      for (const Tensors& s : slices) list.push_back(s[i]);
      all.push_back(held >> i & 1 ? stack(list) : list[0]);
    }
    return all;
  }
};

/// Calls f with inputs of each sample: all of them slices, or one alone.
template <class F>
void for_each_batch(F f) {
  for (const ir::Sample& sample : ir::samples()) {
    SCOPED_TRACE(sample.text);
    const ir::Graph graph = ir::parse(sample.text);
    const size_t count = graph.inputs.size();
    const unsigned all = (1u << count) - 1;
    for (unsigned held = 1; held <= all; ++held) {
      if (held != all && (held & (held - 1))) continue;
      SCOPED_TRACE("slices: " + std::to_string(held));
      f(sample, Inputs(graph, sample.op->name, held));
    }
  }
}

TEST(Batch, EveryOpGivesTheBitsOfItsSlices) {
  for_each_batch([](const ir::Sample& sample, const Inputs& inputs) {
    if (sample.op->has(ir::kOfMemory) && sample.op->kind == ir::OpKind::view) return;
    Tensors got;
    ASSERT_NO_THROW(got = inputs.vmapped(inputs.wholes()));
    for (int64_t b = 0; b < kSlices; ++b) {
      const Tensors expected = test::dispatch_node(inputs.graph, inputs.slices[static_cast<size_t>(b)]);
      for (size_t o = 0; o < expected.size(); ++o) {
        ASSERT_EQ(got[o][b].sizes(), expected[o].sizes());
        // A product of vectors becomes one of matrices, and losses of classes are summed apart: other orders of sums.
        if (sample.op->form == ir::Form::product || sample.op->shapes == &ir::shapes::class_or_probability_loss)
          EXPECT_TRUE(allclose(got[o][b], expected[o], 1e-5, 1e-6)) << got[o][b] << "\n" << expected[o];
        else
          EXPECT_EQ(bytes_of(got[o][b]), bytes_of(expected[o])) << got[o][b] << "\n" << expected[o];
      }
    }
  });
}

TEST(Batch, InplaceFormsWriteToSlices) {
  for_each_batch([](const ir::Sample& sample, const Inputs& inputs) {
    const ir::Operand& self = inputs.graph.nodes[0].operands[0];
    if (!sample.op->has(ir::kInplace) || !self.is_value() || !(inputs.held >> self.id & 1)) return;
    const Tensors wholes = inputs.wholes();
    try {
      for (const Tensors& slice : inputs.slices) test::dispatch_node(inputs.graph, slice, true);
    } catch (const Error&) {
      EXPECT_THROW(inputs.vmapped(wholes, true), Error);
      return;
    }
    ASSERT_NO_THROW(inputs.vmapped(wholes, true));
    for (int64_t b = 0; b < kSlices; ++b) {
      const Tensor& expected = inputs.slices[static_cast<size_t>(b)][self.id];
      EXPECT_EQ(bytes_of(wholes[self.id][b]), bytes_of(expected)) << wholes[self.id][b] << "\n" << expected;
    }
  });
}

Tensors tracked(Tensors list) {
  for (Tensor& t : list)
    if (is_floating(t.dtype())) t = t.detach().requires_grad_();
  return list;
}

/// The gradients of floating inputs, of results weighted by 1, 2, ...; zeros where none goes there. `batch`: the
/// results have one as dim 0, and its slices the same weights.
Tensors gradients(const Tensors& results, const Tensors& inputs, bool batch) {
  Tensors roots, weights, wanted;
  for (const Tensor& t : results)
    if (t.requires_grad()) {
      roots.push_back(t);
      const Tensor one = batch ? t[0] : t;
      weights.push_back(arange(1, one.numel() + 1, t.dtype()).view(one.sizes().vec()).expand_as(t));
    }
  for (const Tensor& t : inputs)
    if (t.requires_grad()) wanted.push_back(t);
  if (roots.empty() || wanted.empty()) return {};
  Tensors made = autograd::grad(roots, wanted, weights, false, false, true);
  for (size_t i = 0; i < made.size(); ++i)
    if (!made[i].defined()) made[i] = zeros_like(wanted[i].detach());
  return made;
}

TEST(Batch, EveryOpHasTheGradientsOfItsSlices) {
  for_each_batch([](const ir::Sample& sample, const Inputs& inputs) {
    if (sample.op->gradient == ir::Gradient::none || sample.op->has(ir::kOfMemory)) return;
    if (inputs.held > 1 && inputs.held + 1 < 1u << inputs.count()) return;  // all of them, or the first alone
    const Tensors wholes = tracked(inputs.wholes());
    const Tensors got = gradients(inputs.vmapped(wholes), wholes, true);
    std::vector<Tensors> expected(got.size());
    for (const Tensors& slice : inputs.slices) {
      const Tensors own = tracked(slice), list = gradients(test::dispatch_node(inputs.graph, own), own, false);
      ASSERT_EQ(got.size(), list.size());
      for (size_t g = 0; g < list.size(); ++g) expected[g].push_back(list[g]);
    }
    for (size_t i = 0, g = 0; i < inputs.count() && g < got.size(); ++i) {
      if (!wholes[i].requires_grad()) continue;
      const Tensor all = stack(expected[g]), wanted = inputs.held >> i & 1 ? all : all.sum(0);
      // Sums of numbers of 16 bits are rounded relative to the largest.
      const bool halves = is_half(all.dtype());
      const double near = halves ? 3e-2 : 1e-4, size = halves ? wanted.abs().max().item<double>() : 1;
      EXPECT_TRUE(allclose(got[g], wanted, near, near * size, true)) << got[g] << "\n" << wanted;
      ++g;
    }
  });
}

}  // namespace
}  // namespace ingot
