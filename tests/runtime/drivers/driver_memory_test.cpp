#include "runtime/drivers/driver_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ingot::runtime {
namespace {

struct Noted {
  Noted(std::string& deaths, char name) : deaths(deaths), name(name) {}
  ~Noted() { deaths += name; }
  std::string& deaths;
  const char name;
};

TEST(DriverMemory, DestroysWhatOwnsSomethingLatestFirst) {
  std::string deaths;
  auto shared = std::make_shared<int>(1);
  {
    DriverMemory memory(64);
    memory.make<Noted>(deaths, 'a');
    memory.make<int64_t>(3);
    memory.make<std::shared_ptr<int>>(shared);
    memory.make<Noted>(deaths, 'b');
    EXPECT_EQ(shared.use_count(), 2);
    EXPECT_EQ(deaths, "");
  }
  EXPECT_EQ(shared.use_count(), 1);
  EXPECT_EQ(deaths, "ba");
}

TEST(DriverMemory, GrowsPastWhatWasExpected) {
  struct alignas(32) Wide {
    explicit Wide(int64_t n) : number(n) {}
    int64_t number;
  };
  DriverMemory memory(1);
  std::vector<std::span<int64_t>> arrays;
  std::vector<Wide*> wides;
  for (size_t n = 0; n < 200; ++n) {
    arrays.push_back(memory.array<int64_t>(n));
    ASSERT_EQ(arrays.back().size(), n);
    ASSERT_TRUE(std::ranges::all_of(arrays.back(), [](int64_t x) { return x == 0; }));
    std::ranges::fill(arrays.back(), static_cast<int64_t>(n));
    wides.push_back(memory.make<Wide>(static_cast<int64_t>(n)));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(wides.back()) % 32, 0u);
  }
  for (size_t n = 0; n < 200; ++n) {
    EXPECT_TRUE(std::ranges::all_of(arrays[n], [&](int64_t x) { return x == static_cast<int64_t>(n); }));
    EXPECT_EQ(wides[n]->number, static_cast<int64_t>(n));
  }
  EXPECT_GE(memory.bytes(), 200u * 199 / 2 * 8);
}

TEST(DriverMemory, WhatCannotBeMadeIsNotDestroyed) {
  struct Refuses {
    explicit Refuses(std::shared_ptr<int> held) : held(std::move(held)) { throw 1; }
    std::shared_ptr<int> held;
  };
  auto held = std::make_shared<int>(1);
  {
    DriverMemory memory(64);
    EXPECT_THROW(memory.make<Refuses>(held), int);
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(MadeOnce, GivesAllThreadsTheSame) {
  for (int round = 0; round < 50; ++round) {
    MadeOnce once;
    std::atomic<int> ready{0};
    const std::vector<int>* met[4];
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (++ready; ready < 4;) {
        }
        met[t] = &once.get([&] { return std::vector<int>(3, t); });
      });
    for (std::thread& thread : threads) thread.join();
    for (const auto* m : met) EXPECT_EQ(m, met[0]);
    EXPECT_EQ(met[0]->size(), 3u);
    EXPECT_EQ(&once.get([]() -> std::vector<int> { throw 1; }), met[0]);
  }
}

TEST(MadeOnce, IsMadeTheNextTimeWhereItFails) {
  MadeOnce once;
  EXPECT_THROW(once.get([]() -> std::string { throw 1; }), int);
  EXPECT_EQ(once.get([] { return std::string("made"); }), "made");
}

}  // namespace
}  // namespace ingot::runtime
