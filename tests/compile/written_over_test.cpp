// Results of products that lie where an operand of their epilogue lay, with eager's bits.
#include <functional>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

struct WrittenOver : testing::Test {
  const test::RestoredSettings restored;
};

// cumsum gives a value that nobody but the product's epilogue reads.
TEST_F(WrittenOver, AnOperandOfAnEpilogue) {
  struct Sizes {
    int64_t m, k, n;
  };
  // One row, one block of k, several blocks, cuts of k, edges of tiles, nothing.
  for (const auto [m, k, n] : {Sizes{1, 40, 300}, Sizes{7, 16, 5}, Sizes{64, 64, 64}, Sizes{33, 1500, 47},
                               Sizes{16, 4096, 16}, Sizes{200, 20, 130}, Sizes{5, 0, 6}}) {
    const Tensor a = randn({m, k}), w = randn({k, n}), square = randn({m, m}), x = randn({m, n});
    const std::function<Tensor(const Tensor&)> functions[] = {
        [&](const Tensor& t) { return ((a.matmul(w) + 1) * t.cumsum(0)).cumsum(1); },
        [&](const Tensor& t) {
          const Tensor u = t.cumsum(0), y = a.matmul(w);
          return (y * u).cumsum(1) + (y - u).cumsum(0);  // two results
        },
        [&](const Tensor& t) {
          const Tensor u = square.cumsum(0);  // an operand of the product, too
          return (u.matmul(u) * u).cumsum(1).sum() + t;
        },
        [&](const Tensor& t) {
          const Tensor u = t.cumsum(0);
          return ((a.matmul(w) * u).cumsum(1) + u.t().contiguous().t()).cumsum(0);  // read after it
        },
        [&](const Tensor& t) {
          const Tensor u = t.cumsum(0);
          return (a.matmul(w) * u.flip({0})).cumsum(1);  // other elements of it
        },
    };
    for (size_t f = 0; f < std::size(functions); ++f)
      for (Isa isa : {runtime::detected_target().isa, Isa::avx2, Isa::none}) {
        if (isa > runtime::detected_target().isa) continue;
        SCOPED_TRACE(std::to_string(f) + " of " + std::to_string(m) + ", " + std::to_string(k) + ", " +
                     std::to_string(n));
        const Tensor expected = functions[f](x);
        runtime::set_host_target(runtime::target_of(isa));
        auto fast = compile(functions[f]), apart = compile(functions[f], {.disable = {"join_buffers"}});
        for (int threads : {1, 2}) {
          set_num_threads(threads);
          for (int call = 0; call < 2; ++call) {
            EXPECT_TRUE(same_bits(fast(x), expected));
            EXPECT_TRUE(same_bits(apart(x), expected));
          }
        }
        EXPECT_EQ(fast.stats().fallbacks, 0);
        runtime::set_host_target(std::nullopt);
      }
  }
}

// A prologue reads whole rows of it, which pieces of the result would stand in by then.
TEST_F(WrittenOver, NotWhatAPrologueReads) {
  const NoGradGuard no_grad;
  const Tensor w = randn({48, 48}), scale = randn({48});
  const Tensor start = randn({300, 48});
  const std::function<void(Tensor&)> functions[] = {
      [&](Tensor& t) { t.add_(softmax(t, 1).matmul(w)); },
      [&](Tensor& t) { t.copy_(t + (t * scale).matmul(w)); },
      [&](Tensor& t) {
        const Tensor u = t.cumsum(0);
        t.copy_((u + (u * scale).matmul(w)).cumsum(0));
      },
  };
  for (const auto& f : functions) {
    Tensor expected = start.clone();
    for (int call = 0; call < 3; ++call) f(expected);
    for (CompileMode mode : {CompileMode::checked, CompileMode::frozen})
      for (int threads : {1, 2, 5}) {
        set_num_threads(threads);
        auto fast = compile([&](Tensor& t) { f(t); }, {.mode = mode});
        auto program_of = [&] { return fast.explain().programs.back(); };
        Tensor x = start.clone();
        for (int call = 0; call < 3; ++call) fast(x);
        EXPECT_TRUE(same_bits(x, expected));
        EXPECT_EQ(fast.stats().fallbacks, 0);
        const auto steps = program_of().steps;
        EXPECT_TRUE(std::any_of(steps.begin(), steps.end(),
                                [](const auto& step) { return step.algorithm.find("prologue") != std::string::npos; }));
      }
  }
}

}  // namespace
}  // namespace ingot
