// Fused programs beyond the threading grain: eager's bits, by any number of threads and on every instruction set.
#include <gtest/gtest.h>

#include "compile/compile.h"
#include "lacks.h"
#include "runtime/thread_pool.h"
#include "support.h"

namespace ingot {
namespace {

struct Function {
  const char* name;
  std::vector<IntList> shapes;  // of the inputs
  Tensor (*run)(const std::vector<Tensor>&);
  friend std::ostream& operator<<(std::ostream& out, const Function& f) { return out << f.name; }
};

const Function kFunctions[] = {
    {"pointwise",
     {{262147}, {262147}},
     [](const std::vector<Tensor>& x) {
       const Tensor z = sigmoid(x[0] * x[1] + 0.5) * x[0];
       return tanh(z - x[1]) * 2 + x[1];
     }},
    {"rows of statistics",
     {{517, 515}, {515}, {515}},
     [](const std::vector<Tensor>& x) { return softmax(F::layer_norm(x[0] * 2, {515}, x[1], x[2]), 1) + x[0]; }},
    {"long rows",
     {{3, 100003}},
     [](const std::vector<Tensor>& x) { return log_softmax(x[0] + 1, 1) * x[0].sum(1, true); }},
    {"columns",
     {{1031, 515}, {515}},
     [](const std::vector<Tensor>& x) { return (x[0] - x[0].mean(0)) * x[1] + amax(x[0].abs(), {0}); }},
    {"everything to one number", {{517, 515}}, [](const std::vector<Tensor>& x) { return (x[0] * x[0]).sum().sqrt(); }},
    {"transposed", {{517, 515}, {515, 517}}, [](const std::vector<Tensor>& x) { return exp(x[0].t()) + x[1]; }},
    {"multilayer perceptron",
     {{67, 515}, {259, 515}, {259}, {131, 259}},
     [](const std::vector<Tensor>& x) { return F::linear(gelu(F::linear(x[0], x[1], x[2])), x[3]).softmax(1); }},
    {"convolution",
     {{3, 16, 33, 35}, {24, 16, 3, 3}, {24}},
     [](const std::vector<Tensor>& x) { return F::max_pool2d(relu(F::conv2d(x[0], x[1], x[2], 1, 1)), 2); }},
    {"attention",
     {{3, 4, 131, 32}, {3, 4, 131, 32}},
     [](const std::vector<Tensor>& x) {
       const Tensor y = F::scaled_dot_product_attention(x[0], x[1] + 1, x[0] * 2, {}, 0, true);
       return y.transpose(1, 2).reshape({3, 131, 128}) * 0.5;
     }},
    {"scan and sort",
     {{67, 4099}},
     [](const std::vector<Tensor>& x) { return std::get<0>((x[0] * 3).sort(1)).cumsum(1) + x[0]; }},
};

struct LargeSizes : testing::TestWithParam<Function> {
  const test::RestoredSettings restored;
};

TEST_P(LargeSizes, ThreadsAndInstructionSetChangeNoBit) {
  manual_seed(5);
  std::vector<Tensor> inputs;
  for (const IntList& shape : GetParam().shapes) inputs.push_back(randn(shape));
  set_num_threads(1);
  const Tensor expected = GetParam().run(inputs);
  for (Isa isa : {Isa::none, Isa::avx2, Isa::avx512}) {
    if (test::lacks(isa)) continue;
    runtime::set_host_target(runtime::target_of(isa));
    auto fast = compile(GetParam().run);
    for (int threads : {1, 2, 3, 7}) {
      if (isa == Isa::none && threads != 7) continue;  // it takes its time
      set_num_threads(threads);
      EXPECT_TRUE(test::same_bits(fast(inputs), expected))
          << runtime::target_of(isa).str() << ", " << threads << " threads";
    }
    EXPECT_EQ(fast.stats().fallbacks, 0);
    EXPECT_EQ(fast.stats().compilations, 1);
  }
}
INSTANTIATE_TEST_SUITE_P(Functions, LargeSizes, testing::ValuesIn(kFunctions));

}  // namespace
}  // namespace ingot
