// What a user writes first: a model, compiled, called. Exit code 0 if compiled and eager agree to the bit.
#include <ingot/ingot.h>
#include <ingot/ir.h>

#include <cstdio>

using namespace ingot;

struct NetImpl : nn::Module {
  nn::Linear fc1{784, 256}, fc2{256, 10};
  Tensor forward(const Tensor& x) { return fc2(F::gelu(fc1(x))); }
};
INGOT_MODULE(Net, fc1, fc2);

// A graph by hand, through its text, compiled.
bool graph_agrees() {
  ir::Graph graph;
  ir::GraphBuilder b(graph);
  const Dim n = graph.dims.symbol(3);
  const auto x = ir::Operand::value(graph.add_input(kFloat32, {n, 4}));
  const auto index = ir::Operand::value(graph.add_input(kInt64, {2}));
  graph.outputs = {b.tanh(b.add(x, 1.0)).id, graph.add(OpId::index_select, {x, index}, {b.attr(0)})};
  ir::verify(graph);
  const std::string text = ir::print(graph);
  if (ir::print(ir::parse(text)) != text) return false;
  const auto f = compile(ir::parse(text));
  const Tensor t = randn({5, 4}), rows = tensor({4, 0});
  const std::vector<Tensor> out = f({{t, rows}});
  bool refused = false;
  try {
    f({{t, rows + 1}});
  } catch (const Error&) {
    refused = true;
  }
  return refused && equal(out[0], (t + 1.0).tanh()) && equal(out[1], t.index_select(0, rows));
}

int main() {
  const NoGradGuard no_grad;
  nn::Sequential model{nn::Linear(784, 256), nn::GELU(), nn::Linear(256, 10)};
  auto fast = compile(model);
  Tensor x = arange(4 * 784).to(kFloat32).reshape({4, 784}) / 3136.0;
  bool same = true;
  for (int call = 0; call < 3; ++call) same = same && equal(fast(x), model(x));
  Net net;
  auto fast_net = compile(net);
  same = same && equal(fast_net(x), net(x));
  same = same && equal(x.index({"...", 0}), x.select(-1, 0));
  same = same && graph_agrees();
  std::printf("compiled and eager %s, %d compilations\n", same ? "agree to the bit" : "DIFFER",
              static_cast<int>(fast.stats().compilations));
  return same && fast.stats().compilations == 1 ? 0 : 1;
}
