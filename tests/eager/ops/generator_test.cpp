#include "eager/ops/generator.h"

#include <gtest/gtest.h>

#include <thread>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/random.h"

namespace ingot {
namespace {

TEST(Generator, GivesWhatTheDefaultOneGives) {
  manual_seed(7);
  const Tensor expected[] = {
      randn({5}), rand({3}), randint(10, {4}), randperm(6), empty({3}).uniform_(1, 2), bernoulli(full({9}, 0.5))};
  Generator g;
  g.manual_seed(7);
  EXPECT_TRUE(equal(randn({5}, {}, g), expected[0]));
  EXPECT_TRUE(equal(rand({3}, {}, g), expected[1]));
  EXPECT_TRUE(equal(randint(10, {4}, {}, g), expected[2]));
  EXPECT_TRUE(equal(randperm(6, {}, g), expected[3]));
  EXPECT_TRUE(equal(empty({3}).uniform_(1, 2, g), expected[4]));
  EXPECT_TRUE(equal(bernoulli(full({9}, 0.5), {}, g), expected[5]));
  EXPECT_EQ(g.current_seed(), 7u);
}

TEST(Generator, LeavesTheDefaultOneAlone) {
  manual_seed(1);
  const Tensor first = randn({4});
  manual_seed(1);
  randn({100}, {}, Generator(3));
  EXPECT_TRUE(equal(randn({4}), first));
}

TEST(Generator, GoesOnFromAState) {
  Generator g(5), h;
  randn({11}, {}, g);
  const Tensor state = g.get_state();
  const Generator copy = g, own = g.clone();
  const Tensor next = randn({7}, {}, g);
  EXPECT_TRUE(equal(randn({7}, {}, own), next));
  EXPECT_FALSE(equal(randn({7}, {}, copy), next));  // shares
  h.set_state(state);
  EXPECT_TRUE(equal(randn({7}, {}, h), next));
  EXPECT_THROW(h.set_state(tensor({1, 2, 3})), Error);
  EXPECT_THROW(h.set_state(tensor({1.f, 2.f})), Error);

  manual_seed(2);
  randn({3});
  const Tensor at = default_generator().get_state();
  const Tensor later = randn({3});
  default_generator().set_state(at);
  EXPECT_TRUE(equal(randn({3}), later));
}

TEST(Generator, OneAWorkerGivesEachItsOwnNumbers) {
  Tensor alone[2], together[2];
  for (uint64_t i = 0; i < 2; ++i) alone[i] = randn({1000}, {}, Generator(i));
  std::thread workers[2];
  for (uint64_t i = 0; i < 2; ++i) workers[i] = std::thread([&, i] { together[i] = randn({1000}, {}, Generator(i)); });
  for (std::thread& w : workers) w.join();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(equal(alone[i], together[i]));
}

}  // namespace
}  // namespace ingot
