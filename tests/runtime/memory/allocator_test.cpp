#include "runtime/memory/allocator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "runtime/memory/storage.h"

namespace ingot::runtime {
namespace {

const int64_t kSizes[] = {0,      1,    63,   64,    65,    511,    512,     513,           576,     577,
                          1023,   1025, 4096, 32767, 32769, 100000, 1 << 20, (1 << 20) + 1, 2 << 20, (2 << 20) + 1,
                          9000000};

TEST(Allocator, BlocksAreAlignedDisjointAndUsableToTheLastByte) {
  std::vector<std::pair<char*, int64_t>> blocks;
  for (int round = 0; round < 3; ++round)
    for (int64_t bytes : kSizes) {
      char* block = static_cast<char*>(allocate(bytes));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      std::memset(block, static_cast<int>(blocks.size() + 1), bytes);
      blocks.push_back({block, bytes});
    }
  for (size_t i = 0; i < blocks.size(); ++i)
    for (int64_t at = 0; at < blocks[i].second; ++at)
      ASSERT_EQ(blocks[i].first[at], static_cast<char>(i + 1)) << "block " << i;
  for (auto [block, bytes] : blocks) deallocate(block, bytes);
}

TEST(Allocator, AFreedBlockIsReused) {
  for (int64_t bytes : kSizes) {
    void* first = allocate(bytes);
    deallocate(first, bytes);
    int64_t reuses = allocator_statistics().reuses;
    void* second = allocate(bytes);
    EXPECT_EQ(first, second) << bytes;
    EXPECT_EQ(allocator_statistics().reuses, reuses + 1);
    deallocate(second, bytes);
  }
}

TEST(Allocator, StatisticsBalance) {
  AllocatorStatistics before = allocator_statistics();
  std::vector<void*> blocks;
  for (int64_t bytes : kSizes) blocks.push_back(allocate(bytes));
  int64_t total = 0;
  for (int64_t bytes : kSizes) total += bytes;
  AllocatorStatistics held = allocator_statistics();
  EXPECT_GE(held.live_bytes - before.live_bytes, total);
  EXPECT_EQ(held.allocations - before.allocations, static_cast<int64_t>(std::size(kSizes)));
  for (size_t i = 0; i < blocks.size(); ++i) deallocate(blocks[i], kSizes[i]);
  AllocatorStatistics after = allocator_statistics();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  trim_allocator();
  EXPECT_LT(allocator_statistics().cached_bytes, after.cached_bytes);
}

TEST(Allocator, LargeBlocksDoNotShareTheirAddressModuloAPage) {
  std::set<uintptr_t> starts;
  std::vector<void*> blocks;
  trim_allocator();
  for (int i = 0; i < 8; ++i) blocks.push_back(allocate(4 << 20));
  for (void* block : blocks) starts.insert(reinterpret_cast<uintptr_t>(block) % 4096);
  EXPECT_EQ(starts.size(), blocks.size());
  for (void* block : blocks) deallocate(block, 4 << 20);
}

// As in a step of training: what is free has other sizes than what is asked for, again and again.
TEST(Allocator, PagesOfFreeBlocksGoToBlocksOfOtherSizes) {
  forget_peak();
  struct Held {
    unsigned char* block;
    int64_t bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  uint32_t random = 1;
  auto next = [&](uint32_t below) { return (random = random * 1664525 + 1013904223) / 65536 % below; };
  auto take = [&](int64_t bytes) {
    auto mark = static_cast<unsigned char>(next(256));
    auto* block = static_cast<unsigned char*>(allocate(bytes));
    std::memset(block, mark, bytes);
    held.push_back({block, bytes, mark});
  };
  auto give = [&](size_t i) {
    const auto [block, bytes, mark] = held[i];
    for (int64_t at = 0; at < bytes; at += 509) ASSERT_EQ(block[at], mark) << bytes;
    ASSERT_EQ(block[bytes - 1], mark) << bytes;
    deallocate(block, bytes);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
  };
  const AllocatorStatistics before = allocator_statistics();
  for (int step = 0; step < 10; ++step) {
    const int64_t bytes = int64_t{1} << (20 + step % 5);
    while (held.size() < (160u << 20) / static_cast<size_t>(bytes)) take(bytes + next(1 << 20));
    while (!held.empty()) {
      give(next(static_cast<uint32_t>(held.size())));
      if (next(4) == 0) take((1 << 20) + 8192 * next(2000)), give(next(static_cast<uint32_t>(held.size())));
      const AllocatorStatistics now = allocator_statistics();
      ASSERT_LE(now.cached_bytes - before.cached_bytes, now.cached_limit + (16 << 20));
      ASSERT_LE(now.live_bytes + now.cached_bytes - before.live_bytes - before.cached_bytes, int64_t{420} << 20);
    }
  }
  const AllocatorStatistics after = allocator_statistics();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_GT(after.moved_bytes - before.moved_bytes, int64_t{100} << 20);
  trim_allocator();
  EXPECT_LE(allocator_statistics().cached_bytes, before.cached_bytes);
}

TEST(Allocator, AbsurdSizesAreErrors) {
  EXPECT_THROW(allocate(-1), Error);
  EXPECT_THROW(allocate(INT64_MIN), Error);
  EXPECT_THROW(allocate(INT64_MAX), Error);
  EXPECT_THROW(allocate((int64_t{1} << 47) - (1 << 20)), Error);
  EXPECT_THROW(Storage::allocate(INT64_MAX - 1), Error);
}

// A mapping of that size would do, and the process be ended when it is written.
TEST(Allocator, WhatTheMachineCannotHoldIsRefused) {
  for (int64_t bytes : {int64_t{1} << 44, (int64_t{1} << 45) + 1}) {
    const int64_t live = allocator_statistics().live_bytes;
    try {
      deallocate(allocate(bytes), bytes);
      FAIL() << bytes;
    } catch (const OutOfMemory& e) {
      EXPECT_NE(std::string(e.what()).find("cannot allocate " + std::to_string(bytes) + " bytes"), std::string::npos)
          << e.what();
    }
    EXPECT_THROW(allocate_scratch(bytes), OutOfMemory);
    EXPECT_EQ(allocator_statistics().live_bytes, live);
  }
  const int64_t fits = int64_t{300} << 20;  // beyond what is never looked at
  deallocate(allocate(fits), fits);
  trim_allocator();
}

TEST(Allocator, BlocksMoveBetweenThreads) {
  std::vector<void*> blocks(5000);
  for (int round = 0; round < 4; ++round) {
    std::thread([&] {
      for (size_t i = 0; i < blocks.size(); ++i) *static_cast<size_t*>(blocks[i] = allocate(64 + i % 3000)) = i;
    }).join();
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (size_t i = t; i < blocks.size(); i += 3) {
          EXPECT_EQ(*static_cast<size_t*>(blocks[i]), i);
          deallocate(blocks[i], 64 + i % 3000);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Allocator, ThePeakIsTheMostThatWasInUseAtOnce) {
  for (int64_t bytes : {int64_t{512} << 10, int64_t{8} << 20}) {
    for (int round = 0; round < 2; ++round) {  // the second time, of what was kept
      reset_allocator_peak();
      const int64_t before = allocator_statistics().live_bytes;
      EXPECT_EQ(allocator_statistics().peak_bytes, before);
      void* blocks[] = {allocate(bytes), allocate(bytes)};
      for (void* block : blocks) deallocate(block, bytes);
      deallocate(allocate(bytes), bytes);
      EXPECT_EQ(allocator_statistics().peak_bytes, before + 2 * bytes);
    }
  }
}

TEST(Allocator, ScratchMemoryIsAFigureOfItsOwn) {
  constexpr int64_t bytes = int64_t{8} << 20;
  reset_allocator_peak();
  const AllocatorStatistics before = allocator_statistics();
  void* scratch = allocate_scratch(bytes);
  void* block = allocate(bytes);
  const AllocatorStatistics with = allocator_statistics();
  EXPECT_EQ(with.scratch_bytes, before.scratch_bytes + bytes);
  EXPECT_EQ(with.live_bytes, before.live_bytes + 2 * bytes);
  EXPECT_EQ(with.peak_bytes, before.live_bytes + 2 * bytes);
  EXPECT_EQ(with.peak_beyond_scratch, before.live_bytes - before.scratch_bytes + bytes);
  deallocate(block, bytes);
  deallocate_scratch(scratch, bytes);
  EXPECT_EQ(allocator_statistics().scratch_bytes, before.scratch_bytes);
  EXPECT_EQ(allocator_statistics().peak_beyond_scratch, with.peak_beyond_scratch);
}

TEST(Storage, ReleasesItsOwnerOnceWithTheLastReference) {
  int released = 0;
  float memory[4];
  {
    StoragePtr a = Storage::adopt(
        memory, sizeof memory, [](void* owner) { ++*static_cast<int*>(owner); }, &released);
    StoragePtr b = a;
    EXPECT_EQ(b->data(), memory);
    EXPECT_TRUE(b->external());
    a = StoragePtr();
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(Storage, WritesMoveTheVersion) {
  StoragePtr a = Storage::allocate(16), b = Storage::allocate(16);
  EXPECT_NE(a->id(), b->id());
  const uint64_t version = a->version();
  a->bump_version();
  EXPECT_EQ(a->version(), version + 1);
  EXPECT_EQ(b->version(), 0u);
  uint64_t id = a->id();
  a = StoragePtr();
  EXPECT_NE(Storage::allocate(16)->id(), id);
}

}  // namespace
}  // namespace ingot::runtime
