// What a program writes over its inputs it writes when nothing can fail any more: a call that runs out of memory leaves
// every tensor as it was, and the next one gives the right numbers.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <thread>

#include "base/sanitizer.h"
#include "compile/support.h"
#include "eager/optim/optimizers.h"

namespace ingot {
namespace {

/// Calls f on a thread of its own, with `room` bytes of address space more than this process has; false: too few.
bool runs_in(int64_t room, const std::function<void()>& f) {
  bool done = false;
  trim_memory();
  std::thread([&] {
    rlimit old;
    getrlimit(RLIMIT_AS, &old);
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit little = old;
    little.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + room);
    setrlimit(RLIMIT_AS, &little);
    try {
      f();
      done = true;
    } catch (const std::exception&) {
    }
    setrlimit(RLIMIT_AS, &old);
  }).join();
  return done;
}

std::vector<std::vector<float>> contents(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<float>> all;
  for (const Tensor& t : tensors) all.emplace_back(t.data_ptr<float>(), t.data_ptr<float>() + t.numel());
  return all;
}

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// With more and more memory until it is enough, each time as if it were the first.
void expect_all_or_nothing(const char* what, const Function& f, const std::vector<IntList>& sizes, size_t in_place) {
  if (INGOT_ASAN || INGOT_TSAN) GTEST_SKIP() << "a sanitizer's own memory counts as the program's";
  SCOPED_TRACE(what);
  const test::RestoredSettings restored;
  for (int threads : {1, 2})
    for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
      SCOPED_TRACE(std::to_string(threads) + " threads, frozen " + std::to_string(mode == CompileMode::frozen));
      set_num_threads(threads);
      std::vector<Tensor> mine, theirs;
      for (const IntList& s : sizes) mine.push_back(randn(s)), theirs.push_back(mine.back().clone());
      auto fast = compile(f, {.mode = mode});
      for (int call = 0; call < 4; ++call) fast(mine), f(theirs);
      size_t donated = 0;
      const Explanation explanation = fast.explain();
      for (const auto& write : explanation.programs.back().writes) donated += write.in_place;
      EXPECT_EQ(donated, in_place) << explanation.str();

      const std::vector<std::vector<float>> before = contents(mine);
      int refused = 0;
      for (int64_t room = 32 << 10;; room += std::max<int64_t>(96 << 10, room / 8), ++refused) {
        ASSERT_LT(room, int64_t{1} << 30);
        std::vector<Tensor> results;
        if (runs_in(room, [&] {
              results = fast(mine);
              for (const Tensor& t : results) t.data_ptr();
            })) {
          const std::vector<Tensor> expected = f(theirs);
          for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(test::same_bits(results[i], expected[i])) << i;
          break;
        }
        for (size_t i = 0; i < mine.size(); ++i) ASSERT_EQ(contents({mine[i]})[0], before[i]) << i << ", " << room;
      }
      for (size_t i = 0; i < mine.size(); ++i) EXPECT_TRUE(test::same_bits(mine[i], theirs[i])) << i;
      EXPECT_GT(refused, 5);
    }
}

using Tensors = std::vector<Tensor>;
#define EXPECT_ALL_OR_NOTHING(in_place, sizes, ...) \
  expect_all_or_nothing(                            \
      #__VA_ARGS__, [](const Tensors& t) -> Tensors { __VA_ARGS__ }, sizes, in_place)

const std::vector<IntList> kSquares(4, IntList{512, 512});

TEST(OutOfMemory, ResultsBesideUpdates) {
  EXPECT_ALL_OR_NOTHING(2, kSquares, t[0].mul_(0.9).add_(t[1], 0.1); t[2].addcdiv_(t[0], t[1].abs() + 1, -0.01);
                        return {t[0] * 2, t[2].exp()};);
}

// The product lies in the arena, its panels in the scratch of threads.
TEST(OutOfMemory, IntermediateResultsAndScratch) {
  EXPECT_ALL_OR_NOTHING(1, kSquares, t[0].add_(t[1], -0.1); Tensor y = matmul(matmul(t[1], t[2]), t[2]);
                        t[3].mul_(0.5).add_(softmax(y, 1)); return {y.sum()};);
}

// Rows so long that what a thread keeps of them is much, after the write.
TEST(OutOfMemory, LongRows) {
  const std::vector<IntList> sizes{IntList{512, 512}, IntList{1, 4000000}};
  EXPECT_ALL_OR_NOTHING(1, sizes, t[0].mul_(0.5).add_(1); return {softmax(t[1] * t[0].sum(), 1)};);
}

TEST(OutOfMemory, AKeyValueCache) {
  const std::vector<IntList> sizes{IntList{4, 1024, 64}, IntList{4, 512, 64}};
  EXPECT_ALL_OR_NOTHING(1, sizes, t[0].narrow(1, 256, 512).copy_(t[1]);
                        Tensor scores = matmul(t[1], t[0].transpose(1, 2)); return {matmul(softmax(scores, 2), t[0])};);
}

struct Trained {
  std::vector<Tensor> params;
  optim::AdamW opt;
  Trained() : params(leaves()), opt(params, {}) {}
  static std::vector<Tensor> leaves() {
    manual_seed(3);
    std::vector<Tensor> leaves;
    for (int64_t rows : {512, 256, 384}) {
      leaves.push_back(randn({rows, 512}).requires_grad_());
      leaves.back().set_grad(randn({rows, 512}));
    }
    return leaves;
  }
  /// Parameters and state; `between`: after the first of two ops on a tensor.
  std::vector<std::vector<float>> held(bool between = false) {
    const NoGradGuard no_grad;
    const optim::AdamWOptions& o = opt.options();
    std::vector<Tensor> all;
    for (const Tensor& p : params) all.push_back(between ? p * (1 - o.lr * o.weight_decay) : p);
    for (const auto& [name, tensor] : opt.state_dict()) {
      if (tensor.dtype() != kFloat32) continue;
      all.push_back(between && name.ends_with("exp_avg_sq") ? tensor * o.betas[1] : tensor);
    }
    return contents(all);
  }
};

// Each op is done or not; a compiled step as a whole.
TEST(OutOfMemory, AnOptimizersStep) {
  if (INGOT_ASAN || INGOT_TSAN) GTEST_SKIP() << "a sanitizer's own memory counts as the program's";
  Trained reference;
  reference.opt.step();
  const std::vector<std::vector<float>> before = reference.held(), between = reference.held(true);
  reference.opt.step();
  const std::vector<std::vector<float>> after = reference.held();
  int refused = 0;
  for (int64_t room = 32 << 10;; room += 96 << 10, ++refused) {
    Trained eager;
    eager.opt.step();
    const bool done = runs_in(room, [&] { eager.opt.step(); });
    const std::vector<std::vector<float>> now = eager.held();
    for (size_t i = 0; i < now.size(); ++i)
      ASSERT_TRUE(now[i] == after[i] || (!done && (now[i] == before[i] || now[i] == between[i])))
          << "tensor " << i << ", " << room;
    if (done) break;
  }
  EXPECT_GT(refused, 3);
}

TEST(OutOfMemory, ACompiledOptimizersStep) {
  if (INGOT_ASAN || INGOT_TSAN) GTEST_SKIP() << "a sanitizer's own memory counts as the program's";
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    Trained compiled, reference;
    auto step = compile([&] { compiled.opt.step(); }, {.mode = mode});
    for (int i = 0; i < 4; ++i) step(), reference.opt.step();
    const std::vector<std::vector<float>> before = compiled.held();
    // How many steps there were is counted by the callable, which is not undone.
    StateDict counted = compiled.opt.state_dict();
    for (int64_t room = 0; !runs_in(room, [&] { step(); }); room += 32 << 10) {
      ASSERT_EQ(compiled.held(), before) << room;
      counted = compiled.opt.state_dict();
    }
    StateDict state = reference.opt.state_dict();
    for (const auto& [name, tensor] : counted)
      if (tensor.dtype() != kFloat32) state[name] = tensor;
    reference.opt.load_state_dict(state);
    reference.opt.step();
    EXPECT_EQ(compiled.held(), reference.held());
  }
}

}  // namespace
}  // namespace ingot
