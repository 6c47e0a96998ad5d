// Random whole programs (docs/random_graphs.md): captured tensors, aliasing arguments, moved views, empty sizes, host
// numbers and flags, writes, caught errors; checked, frozen, in the background and from several threads.
#include "whole_program.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "whole_program_run.h"

namespace ingot::test {
namespace {

constexpr uint64_t kShards = 4, kEach = 500;
constexpr unsigned kSecondsEach = 60;

char in_work[64] = "";
void tell_seed(int number) {
  // Only what a handler may do.
  (void)!write(STDERR_FILENO, in_work, sizeof in_work);
  signal(number, SIG_DFL);
  raise(number);
}

/// While it lives, a crash names the program, and a program that does not end is ended.
struct Watch {
  Watch() {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM}) signal(number, tell_seed);
  }
  ~Watch() {
    alarm(0);
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM}) signal(number, SIG_DFL);
  }
  static void next(uint64_t seed) {
    std::snprintf(in_work, sizeof in_work, "whole program of seed %llu\n", static_cast<unsigned long long>(seed));
    alarm(kSecondsEach);
  }
};

class WholePrograms : public testing::TestWithParam<uint64_t> {};

TEST_P(WholePrograms, CompiledIsEager) {
  Watch watch;
  ProgramCounts counts;
  for (uint64_t seed = GetParam() * kEach + 1; seed <= (GetParam() + 1) * kEach; ++seed) {
    Watch::next(seed);
    const WholeProgram program = whole_program(seed);
    if (const std::string failure = judge(program, &counts); !failure.empty())
      ADD_FAILURE() << to_text(program) << failure << "\nto make it smaller: build/whole_programs --minimize " << seed;
  }
  std::printf("%s\n", counts.str().c_str());
  // A generator that no longer makes a kind proves nothing about it.
  EXPECT_EQ(counts.programs, static_cast<int64_t>(kEach));
  EXPECT_GT(counts.calls, 2000);
  EXPECT_GT(counts.results, 4000);
  EXPECT_GT(counts.hits, 800);
  EXPECT_GT(counts.threw, 200);
  EXPECT_LT(counts.threw, counts.calls / 3);
  EXPECT_GT(counts.caught, 100);
  EXPECT_GT(counts.frozen, 20);
  EXPECT_GT(counts.flushes, 400);
  EXPECT_GT(counts.empty_arguments, 200);
  EXPECT_GT(counts.aliases, 300);
  EXPECT_GT(counts.events, 300);
}

TEST_P(WholePrograms, GradientsAreEagers) {
  Watch watch;
  ProgramCounts counts;
  for (uint64_t seed = GetParam() * kEach + 1; seed <= (GetParam() + 1) * kEach; ++seed) {
    Watch::next(seed);
    const WholeProgram program = whole_program(seed, true);
    if (const std::string failure = judge(program, &counts); !failure.empty())
      ADD_FAILURE() << to_text(program) << failure
                    << "\nto make it smaller: build/whole_programs --gradients --minimize " << seed;
  }
  std::printf("%s\n", counts.str().c_str());
  EXPECT_EQ(counts.programs, static_cast<int64_t>(kEach));
  EXPECT_GT(counts.gradients, 5000);
  EXPECT_GT(counts.written, 40) << "saved tensors that were written before backward read them";
}

INSTANTIATE_TEST_SUITE_P(Random, WholePrograms, testing::Range<uint64_t>(0, kShards));

TEST(WholeProgram, IsAFunctionOfItsSeed) {
  for (uint64_t seed : {1, 77, 1234}) EXPECT_EQ(to_text(whole_program(seed)), to_text(whole_program(seed)));
  EXPECT_NE(to_text(whole_program(1)), to_text(whole_program(2)));
}

// The judge tells programs apart that differ in one op, and the minimizer keeps what makes the difference.
TEST(WholeProgram, IsMadeSmallerWhileItFails) {
  auto uses_products = [](const WholeProgram& program, void*) {
    return to_text(program).find("matmul") != std::string::npos;
  };
  for (uint64_t seed = 1; seed < 40; ++seed) {
    WholeProgram program = whole_program(seed);
    if (!uses_products(program, nullptr)) continue;
    const WholeProgram small = smaller(program, uses_products, nullptr);
    EXPECT_TRUE(uses_products(small, nullptr));
    EXPECT_EQ(small.calls.size(), 1u);
    EXPECT_EQ(small.instructions.size(), 1u) << to_text(small);
    EXPECT_TRUE(small.results.empty());
  }
}

}  // namespace
}  // namespace ingot::test
