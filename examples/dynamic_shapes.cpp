// Sizes that change from call to call. The first size is compiled as it is; when another comes, that size becomes a
// symbol, and every later size runs the same program. explain() says why there was a second compilation.
#include <ingot/ingot.h>

#include <cstdio>

using namespace ingot;

int main() {
  const NoGradGuard no_grad;  // inference: no gradients are recorded
  nn::Sequential model{nn::Linear(32, 64), nn::GELU(), nn::Linear(64, 8)};
  auto fast = compile(model, {.name = "classifier"});
  bool same = true;
  for (int64_t batch : {1, 2, 3, 7, 16, 33, 64, 100}) {
    Tensor x = randn({batch, 32});
    same = same && bitwise_equal(fast(x), model(x));
  }
  std::printf("8 batch sizes, %d compilations, same bits: %s\n", static_cast<int>(fast.stats().compilations),
              same ? "yes" : "no");
  Explanation e = fast.explain();
  for (const auto& r : e.recompiles)
    std::printf("recompiled: %s was %s, is %s\n", r.guard.c_str(), r.before.c_str(), r.after.c_str());
  std::printf("the general program takes %s\n", e.programs.back().inputs[0].type.c_str());

  // Frozen, the callable is not run again. What it computes from size() goes along with the sizes, once they were seen
  // to vary: here it runs three times, twice for the first batch and once for the second.
  int runs = 0;
  auto mean = [&](const Tensor& x) {
    ++runs;
    return x.sum(0) / x.size(0) + arange(x.size(1));
  };
  auto frozen = compile(mean, {.mode = CompileMode::frozen});
  for (int64_t batch : {2, 2, 3, 4, 5, 6, 7, 8}) {
    Tensor x = randn({batch, 32});
    Tensor y = frozen(x);
    int before = runs;
    same = same && bitwise_equal(y, mean(x));
    runs = before;
  }
  std::printf("8 calls of a frozen function, %d runs of it, same bits: %s\n", runs, same ? "yes" : "no");
}
