// compile(ir::Graph), and compiling in the background.
#include <thread>

#include "ir/graph.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

TEST(CompiledGraph, RunsForEverySizeThatItsSymbolsAdmit) {
  ir::Graph graph;
  Dim n = graph.dims.symbol(4);
  ir::ValueId x = graph.add_input(kFloat32, {n, 3}), b = graph.add_input(kFloat32, {3});
  uint32_t scale = graph.add_scalar(Category::floating);
  ir::ValueId sum = graph.add(OpId::add, {ir::Operand::value(x), ir::Operand::value(b)});
  graph.outputs.push_back(
      graph.add(OpId::mul, {ir::Operand::value(sum), ir::Operand::scalar(scale, Category::floating)}));
  auto f = compile(std::move(graph));
  for (int64_t size : {4, 1, 9}) {
    Tensor inputs[] = {randn({size, 3}), randn({3})};
    Scalar scalars[] = {0.5};
    std::vector<Tensor> out = f(inputs, scalars);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(same_bits(out[0], (inputs[0] + inputs[1]) * 0.5));
  }
  Tensor wrong[] = {randn({4, 2}), randn({3})};
  Scalar scalars[] = {0.5};
  EXPECT_THROW(f(wrong, scalars), Error);
  Tensor dtype[] = {randn({4, 3}, kFloat64), randn({3})};
  EXPECT_THROW(f(dtype, scalars), Error);
  EXPECT_THROW(f(dtype), Error);
}

TEST(Background, CallsAreEagerUntilTheirProgramIsReady) {
  auto f = [](const Tensor& x) { return x.exp() * 2; };
  auto fast = compile(f, {.background = true});
  Tensor x = randn({4});
  // Every call is right, whether its program was ready or not; some day it is, and runs.
  auto hits = [&] {
    int64_t sum = 0;
    for (const auto& program : fast.explain().programs) sum += program.hits;
    return sum;
  };
  while (!hits()) {
    ASSERT_TRUE(same_bits(fast(x), f(x)));
    std::this_thread::yield();
  }
  int64_t before = hits();
  EXPECT_TRUE(same_bits(fast(x), f(x)));
  EXPECT_EQ(hits(), before + 1);
  EXPECT_EQ(fast.stats().compilations, 1);
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

struct Opaque {};
static_assert(detail::Leaves<std::tuple<std::vector<Tensor>, std::optional<double>, std::string>>::known);
static_assert(!detail::Leaves<Opaque>::known && !detail::Leaves<std::vector<Opaque>>::known);
static_assert(!detail::Leaves<void*>::known);

}  // namespace
}  // namespace ingot
