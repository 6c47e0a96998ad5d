#include "runtime/memory/arena_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ingot::runtime {
namespace {

TEST(ArenaPlan, RoomIsLittleMoreThanIsAskedFor) {
  for (int64_t bytes = 0; bytes < 200'000; ++bytes) {
    const int64_t room = arena_room(bytes);
    ASSERT_GE(room, bytes);
    ASSERT_LE(room, bytes + std::max<int64_t>(63, bytes < 32768 ? bytes / 8 : 4095)) << bytes;
    ASSERT_EQ(room % 64, 0);
    ASSERT_LE(room, arena_room(bytes + 1));
  }
  EXPECT_EQ(arena_room(20'000), arena_room(20'400));
}

// What is wrong is left to the plan to say.
TEST(ArenaPlan, RoomOfWhatIsNoSizeIsTheSame) {
  for (int64_t bytes : {int64_t{-1}, INT64_MIN, INT64_MAX}) EXPECT_EQ(arena_room(bytes), bytes);
}

TEST(ArenaPlan, BuffersOfOneTimeDoNotMeet) {
  std::vector<ArenaRequest> requests;
  uint64_t random = 1;
  auto next = [&] { return (random = random * 6364136223846793005u + 1442695040888963407u) >> 33; };
  for (uint32_t i = 0; i < 60; ++i) {
    const auto first = static_cast<uint32_t>(next() % 40), last = first + static_cast<uint32_t>(next() % 6);
    requests.push_back({arena_room(static_cast<int64_t>(next() % 100'000)), first, last});
  }
  const ArenaPlan plan = plan_arena(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0);
    EXPECT_LE(plan.offsets[i] + requests[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool meet =
          requests[i].first_step <= requests[j].last_step && requests[j].first_step <= requests[i].last_step;
      if (!meet) continue;
      EXPECT_TRUE(plan.offsets[i] + requests[i].bytes <= plan.offsets[j] ||
                  plan.offsets[j] + requests[j].bytes <= plan.offsets[i]);
    }
  }
}

}  // namespace
}  // namespace ingot::runtime
