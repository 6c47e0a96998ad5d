// Whole processes, each a program of its own (package/project/process.cpp): what it does while it ends and in children.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/sanitizer.h"

extern char** environ;

namespace ingot {
namespace {

struct Ended {
  bool in_time = false;
  int status = 0;
  std::string output;  // of both streams, the end
};

/// Runs a case; ends it where it takes more than two minutes.
Ended run_case(const std::string& name, const std::vector<std::string>& settings = {}) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int stream : {1, 2}) posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], stream);
  for (int end : pipe_ends) posix_spawn_file_actions_addclose(&actions, end);
  std::vector<char*> arguments{const_cast<char*>(INGOT_PROCESS_CASES), const_cast<char*>(name.c_str()), nullptr};
  std::vector<char*> environment;
  for (char** variable = environ; *variable; ++variable) environment.push_back(*variable);
  for (const std::string& setting : settings) environment.push_back(const_cast<char*>(setting.c_str()));
  environment.push_back(nullptr);
  pid_t process = 0;
  EXPECT_EQ(posix_spawn(&process, INGOT_PROCESS_CASES, &actions, nullptr, arguments.data(), environment.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  Ended ended;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point latest = Clock::now() + std::chrono::minutes(2);
  for (;;) {
    pollfd readable{pipe_ends[0], POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(latest - Clock::now()).count();
    if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) <= 0) break;
    char bytes[4096];
    ssize_t count = read(pipe_ends[0], bytes, sizeof bytes);
    if (count <= 0) {
      ended.in_time = true;
      break;
    }
    ended.output.append(bytes, static_cast<size_t>(count));
    if (ended.output.size() > 1 << 20) ended.output.erase(0, 1 << 19);
  }
  close(pipe_ends[0]);
  if (!ended.in_time) kill(process, SIGKILL);
  EXPECT_EQ(waitpid(process, &ended.status, 0), process);
  return ended;
}

std::string last_lines(const std::string& output) {
  return output.size() < 2000 ? output : output.substr(output.size() - 2000);
}

void expect_whole(const std::string& name, const std::vector<std::string>& settings = {}) {
  const Ended ended = run_case(name, settings);
  EXPECT_TRUE(ended.in_time) << name << " hangs\n" << last_lines(ended.output);
  EXPECT_TRUE(WIFEXITED(ended.status)) << name << " ended by a signal\n" << last_lines(ended.output);
  EXPECT_EQ(WEXITSTATUS(ended.status), 0) << name << "\n" << last_lines(ended.output);
  // The main process's own destructors come last.
  EXPECT_NE(ended.output.find("whole\n"), std::string::npos) << name << "\n" << last_lines(ended.output);
}

TEST(Process, EndsWithCompiledFunctionsAtNamespaceScope) { expect_whole("exit"); }
TEST(Process, EndsWithExitHandlersThatCall) { expect_whole("handlers"); }
TEST(Process, EndsWithThreadLocalObjectsThatCall) { expect_whole("threads"); }
TEST(Process, EndsWhileBackgroundCompilesRun) {
  for (int time = 0; time < 5; ++time) {
    expect_whole("background");
    expect_whole("background-thread");
  }
}
TEST(Process, EndsWhileThreadsCall) {
  for (int time = 0; time < 5; ++time) expect_whole("detached");
}
TEST(Process, EndsInTheMiddleOfACall) { expect_whole("inside"); }

#if !INGOT_TSAN  // it refuses threads in children
#if INGOT_ASAN
// Its allocator is locked for ever in a child, if another thread of the parent held it.
constexpr bool kAllocatesInChildren = false;
#else
constexpr bool kAllocatesInChildren = true;
#endif
// What the parent's other threads held is out of reach in a child, which a leak checker would count.
const std::string kNoLeakCheck = "ASAN_OPTIONS=detect_leaks=0";

TEST(Process, ChildrenComputeCompileAndEnd) { expect_whole("fork", {kNoLeakCheck}); }
TEST(Process, ChildrenOfAProcessWhoseThreadsCall) {
  if (!kAllocatesInChildren) GTEST_SKIP() << "AddressSanitizer's allocator does not hold over fork";
  expect_whole("fork-busy", {kNoLeakCheck});
  expect_whole("fork-busy", {kNoLeakCheck, "INGOT_NUM_THREADS=4"});
  // Every lock of the logs is taken all the time.
  expect_whole("fork-busy", {kNoLeakCheck, "INGOT_LOGS=graph,guards,breaks,recompiles,cache,timings"});
}
TEST(Process, ChildrenOfChildren) { expect_whole("fork-twice", {kNoLeakCheck}); }
#endif

// 0x1f80 is how a process starts: nearest, all exceptions masked. 0x8000 flushes results, 0x0040 takes subnormal
// operands for zero, 0x6000 is the direction of rounding; 0x1900 traps invalid operations, division by zero, overflow.
TEST(Process, ResultsDoNotDependOnTheModesOfTheCaller) {
  auto expect_whole_with = [](const std::string& modes, const std::string& isa) {
    expect_whole("modes=" + modes, {"INGOT_ISA=" + isa, "INGOT_NUM_THREADS=4"});
  };
  for (const char* modes : {"9f80", "1fc0", "9fc0", "3f80", "5f80", "7f80", "ffc0", "1900", "f940"})
    expect_whole_with(modes, "");
  for (const char* modes : {"9fc0", "7f80", "ffc0"}) expect_whole_with(modes, "none");
}

}  // namespace
}  // namespace ingot
