// Objects that are made when they are first asked for.
#include "base/first_use.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ingot {
namespace {

TEST(FirstUse, IsMadeOnceWhoeverAsks) {
  static constinit FirstUse<std::string> text;
  std::atomic<int> made{0};
  std::vector<const std::string*> seen(8);
  std::vector<std::thread> threads;
  for (auto& mine : seen)
    threads.emplace_back([&] {
      mine = &text.get([&] {
        ++made;
        return std::string("once");
      });
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  for (const std::string* mine : seen) EXPECT_EQ(mine, seen[0]);
  EXPECT_EQ(*text, "once");
  text->push_back('!');
  EXPECT_EQ(*text, "once!");
}

TEST(FirstUse, WhatThrowsIsTriedAgain) {
  static constinit FirstUse<const int> number;
  EXPECT_THROW(number.get([]() -> int { throw std::runtime_error("not now"); }), std::runtime_error);
  EXPECT_EQ(number.get([] { return 7; }), 7);
  EXPECT_EQ(number.get([] { return 8; }), 7);
}

// A static object of a function would be half made in the child for ever: the child would wait for a thread that it has
// not.
TEST(FirstUse, AForkWhileItIsMadeWaitsForIt) {
  static constinit FirstUse<const int> slow;
  std::atomic<bool> begun{false};
  std::thread maker([&] {
    slow.get([&] {
      begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return 7;
    });
  });
  while (!begun) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(slow.get([] { return 8; }));
  }
  maker.join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace ingot
