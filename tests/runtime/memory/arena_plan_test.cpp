#include "runtime/memory/arena_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/work_count.h"

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

/// Where requests lie by looking at all that were placed before, the largest first.
std::vector<int64_t> first_fit(const std::vector<ArenaRequest>& requests) {
  std::vector<size_t> order(requests.size()), placed;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  std::vector<int64_t> offsets(requests.size());
  for (size_t i : order) {
    int64_t offset = 0;
    for (size_t j : placed) {
      if (requests[j].last_step < requests[i].first_step || requests[i].last_step < requests[j].first_step) continue;
      if (offsets[j] >= offset + requests[i].bytes) break;
      offset = std::max(offset, offsets[j] + requests[j].bytes);
    }
    offsets[i] = offset;
    placed.insert(std::find_if(placed.begin(), placed.end(), [&](size_t j) { return offsets[j] > offset; }), i);
  }
  return offsets;
}

// Few of many live at the same time, and some all the time: only those are looked at, which changes nothing.
TEST(ArenaPlan, OfALongProgramIsTheLowestPlaces) {
  for (uint32_t longest : {4u, 60u, 2000u}) {
    std::vector<ArenaRequest> requests;
    uint64_t random = longest;
    auto next = [&] { return (random = random * 6364136223846793005u + 1442695040888963407u) >> 33; };
    for (uint32_t i = 0; i < 2000; ++i) {
      const auto life = static_cast<uint32_t>(next() % (i % 50 ? 4 : longest));
      requests.push_back({static_cast<int64_t>(64 * (next() % 40)), i, std::min(1999u, i + life)});
    }
    EXPECT_EQ(plan_arena(requests).offsets, first_fit(requests)) << longest;
  }
}

TEST(ArenaPlan, TakesTimeLinearInALongProgram) {
  auto work = [](uint32_t n) {
    std::vector<ArenaRequest> requests;
    for (uint32_t i = 0; i < n; ++i) requests.push_back({64 * (1 + i % 7), i, std::min(n - 1, i + 1 + i % 3)});
    const uint64_t before = detail::counted_work();
    static_cast<void>(plan_arena(requests));
    return detail::counted_work() - before;
  };
  EXPECT_GE(work(2000), 2000u);
  EXPECT_LE(work(8000), 5 * work(2000));
}

}  // namespace
}  // namespace ingot::runtime
