// autograd::functional in compiled functions: eager's bits.
#include "support.h"

namespace ingot {
namespace {

using namespace test;
using namespace autograd::functional;

Tensor single(const Tensor& t) { return t.tanh().matmul(t.exp().t()); }
Tensors two_of(const Tensors& in) { return {(in[0] * in[1]).sin(), in[0].square().sum()}; }
Tensor number_of(const Tensors& in) { return (in[0] * in[1]).exp().sum() + in[0].pow(3).sum(); }

std::vector<Tensor> all_of(const Tensor& x, const Tensor& y) {
  std::vector<Tensor> results{jacobian(single, x)};
  auto add = [&](const Tensors& list) { results.insert(results.end(), list.begin(), list.end()); };
  for (const Tensors& row : jacobian(two_of, {x, y})) add(row);
  for (const Tensors& row : hessian(number_of, {x, y})) add(row);
  add(vjp(two_of, {x, y}, two_of({y, x})).second);
  add(jvp(two_of, {x, y}, {y, x}).second);
  add(vhp(number_of, {x, y}, {y, x}).second);
  add(hvp(number_of, {x, y}, {y, x}).second);
  return results;
}

TEST(FunctionalDerivatives, CompiledHaveEagersBits) {
  auto fast = compile(all_of);
  for (int s = 0; s < 4; ++s) {
    manual_seed(static_cast<uint64_t>(s));
    const Tensor x = randn({2, 3}), y = randn({2, 3});
    const std::vector<Tensor> expected = all_of(x, y), got = fast(x, y);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << s << ": " << i;
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().graph_breaks, 0);
}

}  // namespace
}  // namespace ingot
