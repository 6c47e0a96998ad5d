// An op of your own: any C++ function over tensors, here one that calls into another library (stood for by a loop that
// Ingot has no op for). Eager and compiled code call it alike; in compiled code it is a graph break under its own name:
// what was recorded before it runs as one program, what comes after it as another.
#include <ingot/ingot.h>

#include <cstdio>

using namespace ingot;

// An exponential moving average along a vector: each element needs the one before it.
Tensor moving_average(const Tensor& x, double keep) {
  Tensor in = x.contiguous(), out = empty_like(in);
  const float* from = in.data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  float state = 0;
  for (int64_t i = 0; i < in.numel(); ++i) to[i] = state = static_cast<float>(keep) * state + from[i];
  return out;
}

int main() {
  auto smooth = custom_op("moving_average", moving_average, [](const Tensor& x, double) {
    if (x.dtype() != kFloat32) throw Error("moving_average: x: got another dtype, expected f32");
    return ResultType{kFloat32, x.sizes()};  // the rule: dtype and sizes of the result, from the arguments
  });
  auto f = [&](const Tensor& x) { return smooth(x.relu() * 2 + 1, 0.5).sqrt() - 1; };
  auto fast = compile(f);
  Tensor x = arange(-3, 5).to(kFloat32);
  std::printf("same bits: %s\n", bitwise_equal(fast(x), f(x)) ? "yes" : "no");
  Explanation e = fast.explain();
  for (const auto& b : e.breaks) std::printf("graph break: %s, %s\n", b.op.c_str(), b.reason.c_str());
  std::printf("programs: %d\n", static_cast<int>(e.programs.size()));
  try {
    fast(x.to(kFloat64));
  } catch (const Error& error) {
    std::printf("error: %s\n", error.what());
  }
}
