// A module of your own: a struct with its parts and forward(), and one line that makes the handle, finds parameters and
// gives them PyTorch's names. compile() takes it like any callable.
#include <ingot/ingot.h>

#include <cstdio>

using namespace ingot;

// A gated residual block, as in many language models.
struct GatedBlockImpl : nn::Module {
  nn::RMSNorm norm{{64}};
  nn::Linear gate{64, 128}, up{64, 128}, down{128, 64};
  Tensor forward(const Tensor& x) {
    Tensor h = norm(x);
    return x + down(F::silu(gate(h)) * up(h));
  }
};
INGOT_MODULE(GatedBlock, norm, gate, up, down);

struct NetImpl : nn::Module {
  std::vector<GatedBlock> blocks{GatedBlock(), GatedBlock()};
  nn::Linear head{64, 10};
  Tensor forward(Tensor x) {
    for (auto& block : blocks) x = block(x);
    return head(x);
  }
};
INGOT_MODULE(Net, blocks, head);

int main() {
  const NoGradGuard no_grad;  // inference: no gradients are recorded
  Net net;
  net->eval();
  for (const auto& [name, tensor] : net->state_dict())
    if (name.starts_with("blocks.0.")) std::printf("%s\n", name.c_str());
  auto fast = compile(net);
  Tensor x = randn({4, 64});
  std::printf("same bits: %s\n", bitwise_equal(fast(x), net(x)) ? "yes" : "no");
  Statistics s = fast.stats();
  std::printf("graph breaks %d, fallbacks %d\n", static_cast<int>(s.graph_breaks), static_cast<int>(s.fallbacks));
}
