// compile(ir::Graph), and compiling in the background.
#include <functional>

#include "bounded.h"
#include "ir.h"
#include "support.h"

namespace ingot {
namespace {

using test::error_of;
using test::same_bits;

TEST(CompiledGraph, RunsForEverySizeThatItsSymbolsAdmit) {
  ir::Graph graph;
  Dim n = graph.dims.symbol(4);
  ir::ValueId x = graph.add_input(kFloat32, {n, 3}), b = graph.add_input(kFloat32, {3});
  uint32_t scale = graph.add_scalar(Category::floating);
  ir::ValueId sum = graph.add(OpId::add, {ir::Operand::value(x), ir::Operand::value(b)});
  graph.outputs.push_back(
      graph.add(OpId::mul, {ir::Operand::value(sum), ir::Operand::scalar(scale, Category::floating)}));
  auto f = compile(std::move(graph));
  for (int64_t size : {4, 1, 9}) {
    Tensor inputs[] = {randn({size, 3}), randn({3})};
    Scalar scalars[] = {0.5};
    std::vector<Tensor> out = f(inputs, scalars);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(same_bits(out[0], (inputs[0] + inputs[1]) * 0.5));
  }
  Tensor wrong[] = {randn({4, 2}), randn({3})};
  Scalar scalars[] = {0.5};
  EXPECT_THROW(f(wrong, scalars), Error);
  Tensor dtype[] = {randn({4, 3}, kFloat64), randn({3})};
  EXPECT_THROW(f(dtype, scalars), Error);
  EXPECT_THROW(f(dtype), Error);
}

using ir::Operand;

void expect_error(const std::function<void()>& f, const std::string& part) {
  const std::string text = error_of(f);
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nexpected: " << part;
}

TEST(CompiledGraph, ArgumentsThatAreNotTheGraphsAreRefused) {
  ir::Graph graph;
  const Dim n = graph.dims.symbol(4), m = graph.dims.symbol(3);
  const ir::ValueId x = graph.add_input(kFloat32, {n, m}), y = graph.add_input(kFloat32, {m, n});
  const uint32_t factor = graph.add_scalar(Category::floating), count = graph.add_scalar(Category::integer);
  ir::ValueId z = graph.add(OpId::matmul, {Operand::value(x), Operand::value(y)});
  z = graph.add(OpId::mul, {Operand::value(z), Operand::scalar(factor, Category::floating)});
  graph.outputs.push_back(graph.add(OpId::add, {Operand::value(z), Operand::scalar(count, Category::integer)}));
  const auto f = compile(graph);
  auto call = [&](std::vector<Tensor> inputs, std::vector<Scalar> scalars = {0.5, 2}) {
    return [&f, inputs, scalars] { f(inputs, scalars); };
  };
  const Tensor a = randn({5, 2}), b = randn({2, 5});
  EXPECT_EQ(error_of(call({a, b})), "");
  EXPECT_EQ(error_of(call({a, b}, {1, true})), "");
  expect_error(call({a}), "inputs: got 1, expected 2");
  expect_error(call({a, b, b}), "inputs: got 3, expected 2");
  expect_error(call({a, b}, {0.5}), "scalars: got 1, expected 2");
  expect_error(call({a, Tensor()}), "input 1: tensor: got an undefined one");
  expect_error(call({a, b.to(kFloat64)}), "input 1: dtype: got f64, expected f32");
  expect_error(call({a, b.unsqueeze(0)}), "input 1: rank: got 3, expected 2");
  expect_error(call({a, randn({2, 6})}), "input 0: size: got 5, expected 6");
  expect_error(call({a, randn({3, 5})}), "input 0: size: got 2, expected 3");
  expect_error(call({a, randn({5, 2}).transpose(0, 1)}), "input 1: stride: got 1, expected 5");
  expect_error(call({a, randn({2, 1}).expand({2, 5})}), "input 1: stride: got 1, expected 5");
  expect_error(call({a, b}, {0.5, 2.5}), "scalar 1: got 2.5");
  EXPECT_EQ(error_of(call({randn({5, 0}), randn({0, 5})})), "");
  EXPECT_EQ(error_of(call({randn({0, 2}), randn({0, 2}).transpose(0, 1)})), "") << "no element is stepped over";
}

TEST(CompiledGraph, GraphsThatAreNotSoundAreRefused) {
  auto sound = [] {
    ir::Graph graph;
    const Dim n = graph.dims.symbol(4);
    graph.outputs.push_back(graph.add(OpId::exp, {Operand::value(graph.add_input(kFloat32, {n}))}));
    return graph;
  };
  EXPECT_EQ(error_of([&] { compile(sound()); }), "");
  {
    ir::Graph graph = sound();
    graph.dims.symbol(7);
    expect_error([&] { compile(graph); }, "symbol s1: got no input");
  }
  {
    ir::Graph graph =
        ir::parse("ingot.ir 1\nsymbol s0 = 4\nsymbol s1 = 4\ninput %0 = f32[s0, 2*s1]\n%1 = exp(%0)\noutput %1\n");
    expect_error([&] { compile(graph); }, "symbol s1: got no input");
  }
  {
    ir::Graph graph =
        ir::parse("ingot.ir 1\nsymbol s0 = 9\ninput %0 = f32[3, 2] strides [s0, 1]\n%1 = exp(%0)\noutput %1\n");
    Tensor wide = randn({3, 5}), x = wide.slice(1, 0, 2);
    EXPECT_TRUE(same_bits(compile(graph)({{x}})[0], x.exp())) << "a stride gives a symbol as well";
  }
  {
    ir::Graph graph = sound();
    graph.outputs.clear();
    expect_error([&] { compile(graph); }, "outputs: got none");
    graph.outputs = {77};
    expect_error([&] { compile(graph); }, "value 77");
  }
  {
    ir::Graph graph = sound();
    graph.outputs = {graph.add(OpId::exp, {Operand::value(0)}, {}, Location::none(), true)};
    expect_error([&] { compile(graph); }, "no in-place node");
  }
  {
    ir::Graph graph = sound();
    graph.values.back().type.dtype = kInt64;
    expect_error([&] { compile(graph); }, "of type f32");
  }
}

// Calls that an op's row does not have are refused as they are added, and leave the graph as it was.
TEST(CompiledGraph, WrongCallsAreRefusedWhereTheyAreAdded) {
  ir::Graph graph, other;
  const Dim n = graph.dims.symbol(4);
  for (int i = 0; i < 5; ++i) other.dims.symbol(i);
  const Dim far = other.dims.symbol_dim(4);
  const Operand x = Operand::value(graph.add_input(kFloat32, {n, 3}));
  const std::string before = ir::print(graph);
  auto refused = [&](OpId op, std::vector<Operand> operands, std::vector<ir::Attr> attrs, const std::string& part) {
    expect_error([&] { graph.add(op, operands, attrs); }, part);
    expect_error([&] { ir::GraphBuilder(graph).call(op, operands, attrs); }, part);
    EXPECT_EQ(ir::print(graph), before);
  };
  refused(OpId::exp, {Operand::value(9)}, {}, "exp: self: got value 9");
  refused(OpId::exp, {x, x}, {}, "operands: got 2");
  refused(OpId::exp, {}, {}, "exp: self: got nothing");
  refused(OpId::exp, {Operand::constant(1.0)}, {}, "exp: self: got");
  refused(OpId::add, {x, Operand::scalar(0, Category::floating)}, {}, "add: other: got scalar 0");
  refused(OpId::add, {x, Operand::size(far)}, {}, "add: other: got a size of another graph");
  refused(OpId::softmax, {x}, {}, "softmax: dim: got nothing");
  refused(OpId::softmax, {x}, {ir::Attr::of(int64_t{-1})}, "softmax: dim: got -1");
  refused(OpId::softmax, {x}, {ir::Attr::of(int64_t{2})}, "softmax: dim: got 2");
  refused(OpId::softmax, {x}, {ir::Attr::of(Dims{1})}, "softmax: dim: got a list");
  refused(OpId::view, {x}, {ir::Attr::of(Dims{far})}, "view: size: got a size of another graph");
  refused(OpId::view, {x}, {ir::Attr::of(Dims{5})}, "view: ");
  refused(OpId::permute, {x}, {ir::Attr::of(Dims{n, 0})}, "permute: dims: got a symbol");
  refused(OpId::gelu, {x}, {ir::Attr::mode(99)}, "gelu: approximate: got mode 99");
  refused(OpId::arange, {Operand::constant(int64_t{0}), Operand::constant(int64_t{1})}, {ir::Attr::of(Dims{})},
          "arange: length: got 0 sizes");
  refused(static_cast<OpId>(60000), {x}, {}, "op: got number 60000");
  expect_error([&] { graph.add_input(kFloat32, {far}); }, "of another graph");
  expect_error([&] { graph.add_input(kFloat32, {n, 3}, {1}); }, "input: got 1 strides");
  expect_error([] { Dims{3, -1}; }, "sizes: got -1");
  EXPECT_EQ(ir::print(graph), before);
}

// Results are tensors of their own, whatever the outputs are: inputs, views of them, one value twice.
TEST(CompiledGraph, OutputsAreFreshTensors) {
  ir::Graph graph;
  const Dim n = graph.dims.symbol(4);
  const Operand x = Operand::value(graph.add_input(kFloat32, {n, 3})), y = Operand::value(graph.add_input(kInt64, {n}));
  const ir::ValueId turned = graph.add(OpId::permute, {x}, {ir::Attr::of(Dims{1, 0})});
  const ir::ValueId row =
      graph.add(OpId::slice, {x},
                {ir::Attr::of(int64_t{0}), ir::Attr::of(Dims{1}), ir::Attr::of(Dims{n}), ir::Attr::of(int64_t{1})});
  const ir::ValueId sum = graph.add(OpId::add, {x, x});
  graph.outputs = {x.id, turned, x.id, row, sum, sum, y.id};
  const auto f = compile(graph);
  for (int64_t size : {4, 1, 6}) {
    const Tensor a = randn({size, 3}), b = arange(size);
    const Tensor a_before = a.clone(), b_before = b.clone();
    const std::vector<Tensor> out = f({{a, b}});
    const Tensor expected[] = {a, a.transpose(0, 1), a, a.slice(0, 1, size), a + a, a + a, b};
    ASSERT_EQ(out.size(), 7u);
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_TRUE(same_bits(out[i], expected[i])) << i;
      EXPECT_TRUE(out[i].is_contiguous());
    }
    for (const Tensor& t : out) t.zero_();
    EXPECT_TRUE(same_bits(a, a_before));
    EXPECT_TRUE(same_bits(b, b_before));
  }
  // Two inputs that are one tensor, or overlap.
  ir::Graph two;
  const Operand p = Operand::value(two.add_input(kFloat32, {3})), q = Operand::value(two.add_input(kFloat32, {3}));
  two.outputs = {two.add(OpId::add, {p, q}), p.id, q.id};
  const Tensor base = randn({5}), s = base.slice(0, 0, 3), t = base.slice(0, 2, 5);
  const std::vector<Tensor> out = compile(two)({{s, t}});
  EXPECT_TRUE(same_bits(out[0], s + t));
  EXPECT_TRUE(same_bits(out[1], s));
  EXPECT_TRUE(same_bits(out[2], t));
}

// Sizes that only the arithmetic of the graph makes are checked too.
TEST(CompiledGraph, SizesBelowZeroAndDivisionsByZeroAreRefused) {
  const auto shrunk =
      compile(ir::parse("ingot.ir 1\nsymbol s0 = 8\ninput %0 = f32[s0]\ninput %1 = f32[1]\n"
                        "%2 = expand(%1, size=[s0-5])\noutput %2\n"));
  EXPECT_EQ(shrunk({{randn({7}), randn({1})}})[0].numel(), 2);
  EXPECT_EQ(shrunk({{randn({5}), randn({1})}})[0].numel(), 0);
  expect_error([&] { shrunk({{randn({3}), randn({1})}}); }, "no negative size");
  const auto divided =
      compile(ir::parse("ingot.ir 1\nsymbol s0 = 8\ninput %0 = f32[s0]\ninput %1 = f32[1]\n"
                        "%2 = expand(%1, size=[floor_div(24, s0)])\noutput %2\n"));
  EXPECT_EQ(divided({{randn({7}), randn({1})}})[0].numel(), 3);
  expect_error([&] { divided({{randn({0}), randn({1})}}); }, "division by zero");
  const auto large =
      compile(ir::parse("ingot.ir 1\nsymbol s0 = 8\ninput %0 = f32[s0]\ninput %1 = f32[1]\n"
                        "%2 = expand(%1, size=[s0*s0*s0*s0, s0*s0*s0*s0])\n%3 = sum(%2)\noutput %3\n"));
  EXPECT_EQ(large({{randn({2}), ones({1})}})[0].item<float>(), 256);
  expect_error([&] { large({{ones({1}).expand({int64_t{1} << 14}).contiguous(), randn({1})}}); }, "compiled graph: ");
}

TEST(CompiledGraph, WhatTheBuilderMakesRoundTripsAndRuns) {
  ir::Graph graph;
  ir::GraphBuilder b(graph);
  const Dim n = graph.dims.symbol(5);
  const Operand x = Operand::value(graph.add_input(kFloat32, {n, 4}));
  const Operand target = Operand::value(graph.add_input(kInt64, {n}));
  const Operand p = b.log_softmax(x, b.attr(1));
  const Operand loss = b.nll_loss(p, target, Operand::none(), b.attr(-100));
  graph.outputs = {p.id, loss.id};
  const std::string text = ir::print(graph);
  EXPECT_EQ(ir::print(ir::parse(text)), text);
  const auto f = compile(ir::parse(text));
  const Tensor logits = randn({3, 4}), ids = tensor(std::vector<int64_t>{1, -100, 3});
  const std::vector<Tensor> out = f({{logits, ids}});
  EXPECT_TRUE(allclose(out[0], logits.log_softmax(1)));
  EXPECT_TRUE(allclose(out[1], nll_loss(logits.log_softmax(1), ids)));
}

TEST(Background, CallsAreEagerUntilTheirProgramIsReady) {
  auto f = [](const Tensor& x) { return x.exp() * 2; };
  auto fast = compile(f, {.background = true});
  Tensor x = randn({4});
  // Every call is right, whether its program was ready or not; some day it is, and runs.
  auto hits = [&] {
    int64_t sum = 0;
    for (const auto& program : fast.explain().programs) sum += program.hits;
    return sum;
  };
  int wrong = 0;
  ASSERT_TRUE(test::eventually([&] {
    wrong += !same_bits(fast(x), f(x));
    return hits() > 0;
  }));
  EXPECT_EQ(wrong, 0);
  int64_t before = hits();
  EXPECT_TRUE(same_bits(fast(x), f(x)));
  EXPECT_EQ(hits(), before + 1);
  EXPECT_EQ(fast.stats().compilations, 1);
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

struct Opaque {};
static_assert(detail::Leaves<std::tuple<std::vector<Tensor>, std::optional<double>, std::string>>::known);
static_assert(!detail::Leaves<Opaque>::known && !detail::Leaves<std::vector<Opaque>>::known);
static_assert(!detail::Leaves<void*>::known);

}  // namespace
}  // namespace ingot
