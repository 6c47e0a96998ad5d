#include "base/log.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hash.h"

namespace ingot {
namespace {

TEST(Log, TopicsAreTurnedOnByName) {
  set_log_topics("graph,asm");
  EXPECT_TRUE(log_enabled(Topic::graph));
  EXPECT_TRUE(log_enabled(Topic::asm_));
  EXPECT_FALSE(log_enabled(Topic::cache));
  set_log_topics("");
  EXPECT_FALSE(log_enabled(Topic::graph));
}

TEST(Log, MessagesGoToStderrUnderTheirTopic) {
  set_log_topics("cache");
  testing::internal::CaptureStderr();
  log(Topic::cache, "one {entry}");
  log(Topic::graph, "silent");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[ingot] cache: one {entry}\n");
  set_log_topics("");
}

TEST(Log, AnUnknownTopicListsWhatExistsAndChangesNothing) {
  set_log_topics("fusion");
  try {
    set_log_topics("graph,nonsense");
    FAIL();
  } catch (const Error& error) {
    std::string text = error.what();
    EXPECT_NE(text.find("nonsense"), std::string::npos);
    EXPECT_NE(text.find("graph,guards,recompiles,breaks,fusion,kernels,asm,cache,timings"), std::string::npos);
  }
  EXPECT_TRUE(log_enabled(Topic::fusion));
  EXPECT_FALSE(log_enabled(Topic::graph));
  set_log_topics("");
}

TEST(Hash, DependsOnEveryByteAndOnLength) {
  std::string text(37, 'a');
  uint64_t whole = hash_text(text);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] ^= 1;
    EXPECT_NE(hash_text(other), whole) << i;
    EXPECT_NE(hash_text(text.substr(0, i)), whole) << i;
  }
  EXPECT_NE(hash_text(std::string(1, '\0')), hash_text(std::string(2, '\0')));
  EXPECT_EQ(hash_text(text), hash_text(std::string(37, 'a')));
}

}  // namespace
}  // namespace ingot
