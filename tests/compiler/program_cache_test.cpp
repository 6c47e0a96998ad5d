#include "compiler/program_cache.h"

#include <gtest/gtest.h>

namespace ingot::compiler {
namespace {

CompiledGraphPtr program(const std::string& key) {
  auto made = std::make_shared<CompiledGraph>();
  made->key = key;
  made->program = std::make_shared<const Program>();
  return made;
}

TEST(ProgramCache, KeepsWhatWasAskedForLast) {
  ProgramCache cache;
  const CompiledGraphPtr first = cache.keep(program("first"));
  EXPECT_EQ(cache.find("first"), first);
  EXPECT_EQ(cache.find("second"), nullptr);
  EXPECT_EQ(cache.keep(program("first")), first);  // who comes second is given what there is
  for (size_t i = 0; i < 2 * ProgramCache::kMostEntries; ++i) {
    cache.keep(program(std::to_string(i)));
    if (i % 1000 == 0) EXPECT_EQ(cache.find("first"), first);
  }
  EXPECT_EQ(cache.figures().programs, static_cast<int64_t>(ProgramCache::kMostEntries));
  EXPECT_EQ(cache.figures().evictions, static_cast<int64_t>(ProgramCache::kMostEntries) + 1);
  EXPECT_EQ(cache.find("0"), nullptr);
  EXPECT_NE(cache.find(std::to_string(2 * ProgramCache::kMostEntries - 1)), nullptr);
  cache.clear();
  EXPECT_EQ(cache.figures().programs, 0);
  EXPECT_EQ(cache.figures().bytes, 0);
  EXPECT_EQ(cache.find("first"), nullptr);
  EXPECT_EQ(first->key, "first");
}

TEST(ProgramCache, IsBoundedInBytes) {
  ProgramCache cache;
  const std::string large(ProgramCache::kMostBytes / 5, 'x');
  for (int i = 0; i < 50; ++i) {
    cache.keep(program(large + std::to_string(i)));
    EXPECT_LE(cache.figures().bytes, ProgramCache::kMostBytes);
  }
  EXPECT_EQ(cache.figures().programs, 4);
  // One that would drive out most others is not kept.
  const CompiledGraphPtr huge = program(large + large);
  EXPECT_EQ(cache.keep(huge), huge);
  EXPECT_EQ(cache.find(huge->key), nullptr);
  EXPECT_EQ(cache.figures().programs, 4);
}

}  // namespace
}  // namespace ingot::compiler
