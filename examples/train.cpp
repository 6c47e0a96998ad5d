// Training: forward, backward and the optimizer's step in one compiled function. It is one program from its second call
// on, whatever the learning rate; a checkpoint holds all that going on from here needs.
#include <ingot/ingot.h>

#include <cmath>
#include <cstdio>

using namespace ingot;

struct NetImpl : nn::Module {
  nn::Linear in{1, 32}, out{32, 1};
  Tensor forward(const Tensor& x) { return out(tanh(in(x))); }
};
INGOT_MODULE(Net, in, out);

int main() {
  manual_seed(1);
  Net net;
  optim::AdamW opt(net->parameters(), {.lr = 0.02});
  optim::CosineAnnealingLR rate(opt, 500);

  auto step = compile([&](const Tensor& x, const Tensor& y) {
    Tensor loss = nn::functional::mse_loss(net(x), y);
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    opt.step();
    opt.zero_grad();
    return loss.detach();
  });

  double first = 0, last = 0;
  for (int i = 0; i < 500; ++i) {
    Tensor x = rand({64, 1}) * 6 - 3;
    last = step(x, x.sin()).item<double>();
    if (i == 0) first = last;
    rate.step();
  }
  std::printf("loss %.3f, after 500 steps %s\n", first,
              last < first / 100 ? "less than a hundredth of it" : "not less");
  std::printf("%d graph breaks, %d programs\n", static_cast<int>(step.stats().graph_breaks),
              static_cast<int>(step.stats().compilations));

  save_checkpoint("train.ckpt", {.model = &*net, .optimizer = &opt, .scheduler = &rate, .numbers = {{"step", 500}}});
  auto numbers = load_checkpoint("train.ckpt", {.model = &*net, .optimizer = &opt, .scheduler = &rate});
  std::printf("goes on from step %.0f\n", numbers["step"]);
  std::remove("train.ckpt");
}
