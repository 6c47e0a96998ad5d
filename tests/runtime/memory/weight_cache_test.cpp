// Packed weights: what identifies one, how long it lives, and that there is a bound.
#include "runtime/memory/weight_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/log.h"
#include "runtime/memory/allocator.h"

namespace ingot::runtime {
namespace {

using Format = std::shared_ptr<const WeightFormat>;

Format format(std::vector<int64_t> numbers) {
  return std::make_shared<const WeightFormat>(nullptr, std::move(numbers));
}

/// A step that asks for packings, which hold the first byte of their source throughout.
struct Asker {
  WeightSlot slot;
  WeightUse use;
  int packed = 0;
  /// What the step then reads; -1: nothing is kept.
  int ask(Storage& storage, int64_t offset, const Format& f, int64_t bytes = 256) {
    const char* source = static_cast<const char*>(storage.data()) + offset;
    use.find(source, 0, InputIdentity::of(storage), f, bytes, slot, [&](char* to) {
      ++packed;
      std::memset(to, *source, static_cast<size_t>(bytes));
    });
    const int got = use.data() ? use.data()[bytes - 1] : -1;
    use.release();
    return got;
  }
};

StoragePtr numbered(int64_t bytes) {
  StoragePtr storage = Storage::allocate(bytes);
  for (int64_t i = 0; i < bytes; ++i) static_cast<char*>(storage->data())[i] = static_cast<char>(i % 100);
  return storage;
}

int64_t entries() { return WeightCache::instance().statistics().entries; }
int64_t bytes_kept() { return WeightCache::instance().statistics().bytes; }

struct Limit {
  int64_t before = WeightCache::instance().statistics().limit_bytes;
  explicit Limit(int64_t bytes) { WeightCache::instance().set_limit(bytes); }
  ~Limit() { WeightCache::instance().set_limit(before); }
};

TEST(WeightCache, StorageAddressFormatAndVersionIdentifyAPacking) {
  StoragePtr one = numbered(4096), two = numbered(4096);
  const Format plain = format({1, 2}), other = format({2, 1});
  Asker asker;
  for (int round = 0; round < 4; ++round)
    for (Storage* storage : {one.get(), two.get()})
      for (int64_t offset : {0, 64, 7})
        for (const Format& f : {plain, other, format({1, 2})}) {
          const int got = asker.ask(*storage, offset, f);
          if (round > 1) EXPECT_EQ(got, offset) << "kept by now";
          EXPECT_TRUE(got == -1 || got == offset) << got;
        }
  EXPECT_EQ(asker.packed, 2 * 3 * 2);
  static_cast<char*>(one->data())[7] = 99;
  one->bump_version();
  EXPECT_EQ(asker.ask(*one, 7, plain), 99);
  EXPECT_EQ(asker.ask(*two, 7, plain), 7);
}

TEST(WeightCache, GoesWithItsStorage) {
  const int64_t entries_before = entries(), before = bytes_kept();
  Asker asker;
  {
    StoragePtr storage = numbered(4096);
    EXPECT_EQ(asker.ask(*storage, 5, format({1})), 5);
    EXPECT_EQ(asker.ask(*storage, 6, format({1})), 6);
    EXPECT_EQ(bytes_kept(), before + 512);
  }
  EXPECT_EQ(bytes_kept(), before);
  EXPECT_EQ(entries(), entries_before);
}

TEST(WeightCache, MemoryIsThereUntilTheRunEnds) {
  StoragePtr storage = numbered(4096);
  Asker asker;
  asker.use.find(storage->data(), storage->bytes(), InputIdentity::of(*storage), format({1}), 1 << 20, asker.slot,
                 [](char* to) { std::memset(to, 42, 1 << 20); });
  ASSERT_NE(asker.use.data(), nullptr);
  WeightCache::instance().clear();
  EXPECT_EQ(bytes_kept(), 0);
  for (int64_t i = 0; i < 1 << 20; i += 4096) ASSERT_EQ(asker.use.data()[i], 42);
  asker.use.release();
  EXPECT_EQ(asker.ask(*storage, 3, format({1})), 3);
}

// A step that still knows a packing that went does not keep its memory.
TEST(WeightCache, MemoryGoesWithTheLastRunThatReadsIt) {
  constexpr int64_t kBytes = 8 << 20;
  auto allocated = [] { return allocator_statistics().live_bytes; };
  StoragePtr storage = numbered(4096);
  std::vector<Asker> askers(3);
  for (Asker& asker : askers)
    asker.use.find(storage->data(), storage->bytes(), InputIdentity::of(*storage), format({7}), kBytes, asker.slot,
                   [](char* to) { std::memset(to, 1, kBytes); });
  for (Asker& asker : askers) ASSERT_NE(asker.use.data(), nullptr);
  const int64_t before = allocated();
  WeightCache::instance().clear();
  askers[0].use.release();
  askers[2].use.release();
  EXPECT_EQ(allocated(), before);
  askers[1].use.release();
  EXPECT_LE(allocated(), before - kBytes);
}

TEST(WeightCache, WeightsThatNeverComeBackAreNotPackedForEver) {
  Asker asker;
  for (int i = 0; i < 20; ++i) {
    StoragePtr fresh = numbered(512);
    asker.ask(*fresh, 0, format({1}));
  }
  EXPECT_EQ(asker.packed, WeightSlot::kTrust);
  StoragePtr stays = numbered(512);
  EXPECT_EQ(asker.ask(*stays, 1, format({1})), -1);
  EXPECT_EQ(asker.ask(*stays, 1, format({1})), 1);
}

TEST(WeightCache, MemoryThatItsOwnerMayWriteUnseenIsNotKept) {
  char block[256] = {};
  StoragePtr blob = Storage::adopt(block, sizeof block, nullptr, nullptr, true);
  Asker asker;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(asker.ask(*blob, 0, format({1})), -1);
  EXPECT_EQ(asker.packed, 0);
}

TEST(WeightCache, WhatBecomesOfAWeightIsSaidOnce) {
  char block[256] = {};
  StoragePtr blob = Storage::adopt(block, sizeof block, nullptr, nullptr, true);
  Asker asker;
  set_log_topics("cache");
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) asker.ask(*blob, 0, format({1}));
  for (int i = 0; i < 5; ++i) asker.use.find(block, 0, InputIdentity{}, format({1}), 256, asker.slot, [](char*) {});
  const std::string said = testing::internal::GetCapturedStderr();
  set_log_topics("");
  EXPECT_LE(std::count(said.begin(), said.end(), '\n'), 2) << said;
}

TEST(WeightCache, BytesAreBounded) {
  WeightCache::instance().clear();
  Limit limit(10 * 256);
  std::vector<StoragePtr> storages;
  for (int i = 0; i < 40; ++i) storages.push_back(numbered(512));
  std::vector<Asker> askers(40);
  for (int round = 0; round < 50; ++round)
    for (size_t i = 0; i < 10; ++i) {
      const int got = askers[i].ask(*storages[i], 9, format({1}));
      EXPECT_EQ(got, 9);
    }
  // Others find no room while these are used ...
  for (int round = 0; round < 3; ++round)
    for (size_t i = 10; i < 20; ++i) {
      EXPECT_EQ(askers[i].ask(*storages[i], 9, format({1})), -1);
      for (size_t used = 0; used < 10; ++used) EXPECT_EQ(askers[used].ask(*storages[used], 9, format({1})), 9);
    }
  // ... and find it when these have long been idle.
  int kept = 0;
  for (int round = 0; round < 50; ++round)
    for (size_t i = 10; i < 20; ++i) kept += askers[i].ask(*storages[i], 9, format({1})) == 9;
  EXPECT_GT(kept, 300);
  EXPECT_LE(bytes_kept(), 10 * 256);
}

TEST(WeightCache, EntriesAreBounded) {
  StoragePtr storage = numbered(1 << 16);
  Asker asker;
  for (size_t i = 0; i < 3 * WeightCache::kMostEntries; ++i)
    asker.ask(*storage, static_cast<int64_t>(i % 60000), format({static_cast<int64_t>(i)}));
  EXPECT_LE(entries(), static_cast<int64_t>(WeightCache::kMostEntries));
}

TEST(WeightCache, PastTheBoundTheOlderHalfGoes) {
  WeightCache& cache = WeightCache::instance();
  cache.clear();
  constexpr auto kMost = static_cast<int64_t>(WeightCache::kMostEntries);
  StoragePtr storage = numbered(kMost + 64), moving = numbered(64);
  Asker asker, of_moving;
  of_moving.slot.trust = 0;
  // Two of the oldest: one that rests, and one that is written before each use, which is not packed.
  EXPECT_EQ(of_moving.ask(*moving, 3, format({1})), -1);
  asker.slot.trust = WeightSlot::kTrust;
  for (int64_t i = 1; i < kMost; ++i)
    for (int time = 0; time < 2; ++time) asker.ask(*storage, i, format({1}), 1);
  ASSERT_EQ(entries(), kMost);
  const int packed = asker.packed;
  ASSERT_EQ(packed, kMost - 1);
  const int64_t evictions = cache.statistics().evictions;
  // The first ones are used again.
  moving->bump_version();
  EXPECT_EQ(of_moving.ask(*moving, 3, format({1})), -1);
  for (int64_t i = 1; i <= kMost / 4; ++i) EXPECT_EQ(asker.ask(*storage, i, format({1}), 1), i % 100);
  EXPECT_EQ(asker.packed, packed);
  asker.ask(*storage, kMost + 1, format({1}), 1);
  EXPECT_NEAR(static_cast<double>(entries()), kMost / 2, 4);
  EXPECT_NEAR(static_cast<double>(cache.statistics().evictions - evictions), kMost / 2, 4);
  // What was used of late is there ...
  EXPECT_EQ(of_moving.ask(*moving, 3, format({1})), 3) << "met twice in one state: it is packed";
  for (int64_t i : {int64_t{1}, kMost / 4, kMost - 1}) EXPECT_EQ(asker.ask(*storage, i, format({1}), 1), i % 100);
  EXPECT_LE(asker.packed, packed + 1);
  // ... and what was not is not.
  asker.slot.trust = WeightSlot::kTrust;
  EXPECT_EQ(asker.ask(*storage, kMost / 2, format({1}), 1), (kMost / 2) % 100);
  EXPECT_GE(asker.packed, packed + 1);
  cache.clear();
}

TEST(WeightCache, ManyThreadsAndWritersBetweenThem) {
  constexpr int kStorages = 4;
  std::vector<StoragePtr> storages;
  for (int i = 0; i < kStorages; ++i) storages.push_back(numbered(512));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      Asker asker;
      for (int i = 0; i < 2000; ++i) {
        const int64_t offset = (i * 7 + t) % 90;
        const int got = asker.ask(*storages[i % kStorages], offset, format({i % 3}));
        if (got != -1 && got != offset) ++wrong;
        if (i % 97 == 0) storages[i % kStorages]->bump_version();
        if (i % 501 == 0) WeightCache::instance().clear();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ingot::runtime
