// A plugin: what a program, or Python, opens while it runs. plugin_check returns 0 if compiled and eager agree to the
// bit, on this thread and on one of its own.
#include <ingot/ingot.h>

#include <thread>

using namespace ingot;

static int check() {
  nn::Sequential model{nn::Linear(64, 128), nn::GELU(), nn::Linear(128, 8)};
  auto fast = compile(model);
  Tensor x = randn({16, 64});
  for (int call = 0; call < 3; ++call)
    if (!equal(fast(x), model(x))) return 1;
  return fast.stats().compilations == 1 && fast.stats().fallbacks == 0 ? 0 : 2;
}

extern "C" __attribute__((visibility("default"))) int plugin_check() try {
  int here = check(), there = 3;
  std::thread([&] { there = check(); }).join();
  return here ? here : there;
} catch (...) {
  return 4;
}
