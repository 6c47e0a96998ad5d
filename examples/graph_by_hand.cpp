// A graph without a trace: built by hand or from text, compiled, run. The door for other front ends.
#include <ingot/ingot.h>
#include <ingot/ir.h>

#include <cstdio>

using namespace ingot;

// softmax(x W + b): `batch` is a symbol, so one program serves every batch; the factor is given at each call.
ir::Graph classifier() {
  ir::Graph graph;
  ir::GraphBuilder b(graph);
  const Dim batch = graph.dims.symbol(8);
  const auto x = ir::Operand::value(graph.add_input(kFloat32, {batch, 16}));
  const auto weight = ir::Operand::value(graph.add_input(kFloat32, {16, 4}));
  const auto bias = ir::Operand::value(graph.add_input(kFloat32, {4}));
  const auto factor = ir::Operand::scalar(graph.add_scalar(Category::floating), Category::floating);
  const auto scores = b.mul(b.add(b.matmul(x, weight), bias), factor);
  graph.outputs.push_back(b.softmax(scores, b.attr(1)).id);
  return graph;
}

int main() {
  const std::string text = ir::print(classifier());
  std::printf("%s", text.c_str());
  std::printf("reads back the same: %s\n", ir::print(ir::parse(text)) == text ? "yes" : "no");

  auto fast = compile(ir::parse(text));
  const Tensor weight = randn({16, 4}), bias = randn({4});
  bool same = true;
  for (int64_t batch : {1, 8, 31}) {
    const Tensor x = randn({batch, 16});
    const Tensor inputs[] = {x, weight, bias};
    const Scalar scalars[] = {0.5};
    same = same && bitwise_equal(fast(inputs, scalars)[0], softmax((x.matmul(weight) + bias) * 0.5, 1));
  }
  std::printf("three batches, the bits of eager: %s\n", same ? "yes" : "no");

  try {
    const Tensor inputs[] = {randn({8, 15}), weight, bias};
    const Scalar scalars[] = {0.5};
    fast(inputs, scalars);
  } catch (const Error& e) {
    std::printf("error: %s\n", e.what());
  }
  try {
    ir::parse("ingot.ir 1\ninput %0 = f32[2, 3]\n%1 = softmax(%0, dim=2)\noutput %1\n");
  } catch (const Error& e) {
    std::printf("error: %s\n", e.what());
  }
}
