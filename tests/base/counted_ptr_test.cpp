#include "base/counted_ptr.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ingot {
namespace {

struct Counted {
  explicit Counted(int& deleted) : deleted(deleted) {}
  ~Counted() { ++deleted; }
  friend void add_reference(Counted& c) { c.references.add(); }
  friend void drop_reference(Counted& c) {
    if (c.references.drop()) delete &c;
  }
  ReferenceCount references;
  int& deleted;
};
using Ptr = CountedPtr<Counted>;

TEST(CountedPtr, LetsGoOfTheLastReferenceOnce) {
  int deleted = 0;
  {
    Ptr a = Ptr::take(new Counted(deleted)), b = a;
    EXPECT_EQ(a->references.count(), 2);
    EXPECT_TRUE(a == b);
    const Ptr c(b.get());  // one more
    EXPECT_EQ(a->references.count(), 3);
    Ptr moved = std::move(b);
    EXPECT_FALSE(b);
    EXPECT_EQ(a->references.count(), 3);
    Ptr& same = moved;
    moved = same;
    moved = std::move(same);
    EXPECT_EQ(a->references.count(), 3);
    a = Ptr();
    EXPECT_EQ(moved->references.count(), 2);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(CountedPtr, OfNothingIsNothing) {
  const Ptr nothing, copy = nothing, none(nullptr);
  EXPECT_FALSE(nothing || copy || none);
  EXPECT_TRUE(nothing == copy);
  EXPECT_EQ(Ptr().detach(), nullptr);
}

TEST(CountedPtr, GivesItsReferenceAwayAndTakesOneOver) {
  int deleted = 0;
  Ptr a = Ptr::take(new Counted(deleted));
  Counted* object = a.detach();
  EXPECT_FALSE(a);
  EXPECT_EQ(deleted, 0);
  a = Ptr::take(object);
  a = Ptr::take(new Counted(deleted));  // another in its place
  EXPECT_EQ(deleted, 1);
  a = Ptr();
  EXPECT_EQ(deleted, 2);
}

TEST(CountedPtr, ThreadsThatCopyAndDropLeaveOne) {
  int deleted = 0;
  {
    const Ptr shared = Ptr::take(new Counted(deleted));
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([mine = shared] {
        for (int i = 0; i < 20000; ++i) Ptr copy = mine;
      });
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    EXPECT_EQ(shared->references.count(), 1);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
  // The last of several threads deletes it, whichever it is.
  for (int round = 0; round < 200; ++round) {
    Ptr first = Ptr::take(new Counted(deleted)), second = first;
    std::thread other([mine = std::move(first)]() mutable { mine = Ptr(); });
    second = Ptr();
    other.join();
    ASSERT_EQ(deleted, round + 2);
  }
}

}  // namespace
}  // namespace ingot
