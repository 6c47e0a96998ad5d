#include "runtime/code/code_names.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ingot::runtime {
namespace {

std::string map_path() { return "/tmp/perf-" + std::to_string(getpid()) + ".map"; }
std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
void announce(const char* name) {
  setenv("INGOT_PERF", "1", 1);
  withdraw_code(announce_code(reinterpret_cast<void*>(0x1000), 16, name));
}

// What stands at the map's place, made by someone else, is neither written through nor waited for. The choice of
// writing is made once a process, so each case has one of its own.
int through_a_link(bool dangling) {
  const std::string target = map_path() + ".target";
  if (!dangling) std::ofstream(target) << "precious";
  std::filesystem::create_symlink(target, map_path());
  announce("linked");
  const bool left = dangling ? !std::filesystem::exists(target) : text_of(target) == "precious";
  unlink(map_path().c_str());
  unlink(target.c_str());
  return left ? 0 : 1;
}
int through_a_second_name() {
  const std::string target = map_path() + ".target";
  std::ofstream(target) << "precious";
  std::filesystem::create_hard_link(target, map_path());
  announce("linked");
  const bool left = text_of(target) == "precious";
  unlink(map_path().c_str());
  unlink(target.c_str());
  return left ? 0 : 1;
}
int into_a_pipe() {
  if (mkfifo(map_path().c_str(), 0600) != 0) return 2;
  alarm(30);  // ends this process, if it waits
  announce("piped");
  unlink(map_path().c_str());
  return 0;
}
int into_another_users_file() {
  if (geteuid() != 0) return 0;  // only root can make one
  std::ofstream(map_path()) << "precious";
  if (chown(map_path().c_str(), 12345, 12345) != 0) return 2;
  announce("foreign");
  const bool left = text_of(map_path()) == "precious";
  unlink(map_path().c_str());
  return left ? 0 : 1;
}
int after_another_generator() {
  std::ofstream(map_path()) << "1 2 other\n";
  announce("first");
  announce("second");
  const std::string text = text_of(map_path());
  unlink(map_path().c_str());
  return text == "1 2 other\n1000 10 ingot::first\n1000 10 ingot::second\n" ? 0 : 1;
}
int fresh() {
  announce("first");
  struct stat status;
  const bool made = stat(map_path().c_str(), &status) == 0;
  const bool right = text_of(map_path()) == "1000 10 ingot::first\n";
  unlink(map_path().c_str());
  return made && right && (status.st_mode & 07777) == 0600 ? 0 : 1;
}

class CodeNamesDeathTest : public testing::Test {
 protected:
  CodeNamesDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

constexpr char kWarning[] = "INGOT_PERF: .* is no file of this user's alone";

TEST_F(CodeNamesDeathTest, TheMapFollowsNoLink) {
  EXPECT_EXIT(std::_Exit(through_a_link(false)), testing::ExitedWithCode(0), kWarning);
  EXPECT_EXIT(std::_Exit(through_a_link(true)), testing::ExitedWithCode(0), kWarning);
  EXPECT_EXIT(std::_Exit(through_a_second_name()), testing::ExitedWithCode(0), kWarning);
}
TEST_F(CodeNamesDeathTest, TheMapIsAFileOfThisUser) {
  EXPECT_EXIT(std::_Exit(into_a_pipe()), testing::ExitedWithCode(0), kWarning);
  EXPECT_EXIT(std::_Exit(into_another_users_file()), testing::ExitedWithCode(0), geteuid() == 0 ? kWarning : "");
}
TEST_F(CodeNamesDeathTest, TheMapIsMadeOrContinued) {
  EXPECT_EXIT(std::_Exit(fresh()), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::_Exit(after_another_generator()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ingot::runtime
