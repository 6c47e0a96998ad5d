// Batches that threads make, and compiled code.
#include "compile/support.h"

namespace ingot {
namespace {

using test::same_bits;

// What a loader's workers make meanwhile is no part of a recorded step.
TEST(DataLoader, FeedsACompiledStep) {
  const NoGradGuard no_grad;
  const Tensor x = randn({40, 3}), w = randn({3, 3});
  const data::DataLoader loader(data::TensorDataset{x}, {.batch_size = 8, .num_workers = 2});
  auto fast = compile([&](const Tensor& in) { return in.matmul(w).tanh(); });
  int64_t at = 0;
  for (const auto& [batch] : loader) {
    EXPECT_TRUE(same_bits(fast(batch), x.narrow(0, at, 8).matmul(w).tanh()));
    at += 8;
  }
  // An epoch that begins in a recorded call.
  auto whole = compile([&] {
    Tensor sum = zeros({3});
    for (const auto& [batch] :
         data::DataLoader(data::TensorDataset{x}, {.batch_size = 8, .shuffle = true, .num_workers = 2}))
      sum = sum + batch.sum(0);
    return sum;
  });
  EXPECT_TRUE(allclose(whole(), x.sum(0), 1e-4, 1e-5));
}

}  // namespace
}  // namespace ingot
