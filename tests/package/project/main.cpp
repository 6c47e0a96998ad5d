// What a user writes first: a model, compiled, called. Exit code 0 if compiled and eager agree to the bit.
#include <ingot/ingot.h>

#include <cstdio>

using namespace ingot;

struct NetImpl : nn::Module {
  nn::Linear fc1{784, 256}, fc2{256, 10};
  Tensor forward(const Tensor& x) { return fc2(F::gelu(fc1(x))); }
};
INGOT_MODULE(Net, fc1, fc2);

int main() {
  nn::Sequential model{nn::Linear(784, 256), nn::GELU(), nn::Linear(256, 10)};
  auto fast = compile(model);
  Tensor x = arange(4 * 784).to(kFloat32).reshape({4, 784}) / 3136.0;
  bool same = true;
  for (int call = 0; call < 3; ++call) same = same && equal(fast(x), model(x));
  Net net;
  auto fast_net = compile(net);
  same = same && equal(fast_net(x), net(x));
  std::printf("compiled and eager %s, %d compilations\n", same ? "agree to the bit" : "DIFFER",
              static_cast<int>(fast.stats().compilations));
  return same && fast.stats().compilations == 1 ? 0 : 1;
}
