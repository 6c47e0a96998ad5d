// The A/B benchmark as a library call: first the results are compared, bit by bit, then both are timed in turns.
#include <ingot/ingot.h>

#include <cstdio>

using namespace ingot;

int main() {
  auto chain = [](const Tensor& x, const Tensor& y) {
    Tensor z = (x * y + 0.5).sigmoid() * x;
    return (z - y).tanh() * 2 + y;
  };
  Tensor x = randn({256, 256}), y = randn({256, 256});
  Comparison c = compare(chain, compile(chain), std::tuple(x, y), {.seconds = 0.2});
  std::printf("%s\n", c.str().c_str());
  std::printf("bitwise equal: %s\n", c.bitwise_equal ? "yes" : "no");
}
