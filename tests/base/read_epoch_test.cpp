// Sections of readers: what is unlinked is held while a section that began before is in progress, and no longer.
#include "base/read_epoch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace ingot {
namespace {

bool held(uint64_t epoch) { return oldest_reader() <= epoch; }

/// A thread that is inside a section until end().
class Reader {
 public:
  Reader() {
    while (!inside_) std::this_thread::yield();
  }
  void end() {
    ends_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> inside_{false}, ends_{false};
  std::thread thread_{[this] {
    ReadSection section;
    inside_ = true;
    while (!ends_) std::this_thread::yield();
  }};
};

TEST(ReadEpoch, WhatIsUnlinkedIsHeldByOlderSectionsOnly) {
  EXPECT_FALSE(held(end_epoch()));
  std::optional<ReadSection> outer(std::in_place);
  const uint64_t first = end_epoch();
  EXPECT_TRUE(held(first));
  {
    ReadSection inner;
    EXPECT_TRUE(held(end_epoch()));
  }
  EXPECT_TRUE(held(first));
  outer.reset();
  EXPECT_FALSE(held(first));
  ReadSection later;
  EXPECT_FALSE(held(first));
}

TEST(ReadEpoch, SectionsOfOtherThreadsCount) {
  Reader reader;
  const uint64_t epoch = end_epoch();
  EXPECT_TRUE(held(epoch));
  reader.end();
  EXPECT_FALSE(held(epoch));
}

TEST(ReadEpoch, AChildHasNoOtherReaders) {
  Reader reader;
  const pid_t child = fork();
  if (child == 0) _exit(held(end_epoch()));
  int status = 0;
  waitpid(child, &status, 0);
  reader.end();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A value is poisoned where it would be freed: no reader may see it so.
TEST(ReadEpoch, NoReaderSeesWhatIsFreed) {
  struct Value {
    std::atomic<bool> freed{false};
  };
  std::vector<Value> values(2000);
  std::atomic<Value*> shown{&values[0]};
  std::atomic<bool> ends{false};
  std::atomic<int64_t> wrong{0}, reads{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t)
    readers.emplace_back([&] {
      for (; !ends; std::this_thread::yield()) {
        ReadSection section;
        const Value* value = shown.load();
        for (int i = 0; i < 20; ++i) wrong += value->freed.load();
        ++reads;
      }
    });
  while (reads < 100) std::this_thread::yield();
  std::vector<std::pair<uint64_t, Value*>> retired;
  size_t freed = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    if (i % 20 == 0) std::this_thread::yield();
    Value* old = shown.exchange(&values[i]);
    retired.emplace_back(end_epoch(), old);
    const uint64_t oldest = oldest_reader();
    std::erase_if(retired, [&](const auto& r) {
      if (r.first >= oldest) return false;
      r.second->freed = true;
      ++freed;
      return true;
    });
  }
  ends = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(freed, 0u);
}

}  // namespace
}  // namespace ingot
