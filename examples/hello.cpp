// Hello, Ingot: ordinary tensor code, then the same code compiled. The first call records and compiles, later calls run
// the machine code; both give the same bits.
#include <ingot/ingot.h>

#include <cstdio>
#include <iostream>

using namespace ingot;

Tensor wave(const Tensor& x) { return (x.sin() * 2 + x.cos()) / (x * x + 1); }

int main() {
  Tensor x = arange(0, 8).to(kFloat32) / 4.0;
  auto fast = compile(wave);
  std::cout << "eager    " << wave(x) << "\n";
  std::cout << "compiled " << fast(x) << "\n";
  Statistics s = fast.stats();
  std::printf("%d ops became %d kernel, compiled once in %s\n", static_cast<int>(s.ops_traced),
              static_cast<int>(s.kernels), s.compile_ms < 100 ? "milliseconds" : "a while");
  std::printf("same bits: %s\n", bitwise_equal(fast(x), wave(x)) ? "yes" : "no");
}
