#include "runtime/code/executable_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "bounded.h"

namespace ingot::runtime {
namespace {

// mov eax, value; ret; padded to `bytes`.
std::vector<uint8_t> returns(int32_t value, size_t bytes = 6) {
  std::vector<uint8_t> code(bytes, 0x90);
  code[0] = 0xb8;
  std::memcpy(&code[1], &value, 4);
  code[5] = 0xc3;
  return code;
}
int call(const ExecutableBlock& block) { return reinterpret_cast<int (*)()>(const_cast<void*>(block.address()))(); }

TEST(ExecutableMemory, RunsWhatWasCopied) {
  std::vector<ExecutableBlock> blocks;
  for (int i = 0; i < 300; ++i) blocks.emplace_back(returns(i, 6 + i * 37), "test");
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(call(blocks[i]), i);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks[i].address()) % 64, 0u);
  }
}

TEST(ExecutableMemory, SpaceIsGivenBack) {
  std::optional<ExecutableBlock> a(std::in_place, returns(1, 500), "a"), b(std::in_place, returns(2, 500), "b");
  const void* first = a->address();
  a.reset();
  ExecutableBlock c(returns(3, 500), "c");
  EXPECT_EQ(c.address(), first);
  EXPECT_EQ(call(c), 3);
  EXPECT_EQ(call(*b), 2);
  ExecutableBlock moved = std::move(c);
  EXPECT_EQ(call(moved), 3);
}

TEST(ExecutableMemory, LargerThanAnArena) {
  ExecutableBlock block(returns(7, 3 << 20), "large");
  EXPECT_EQ(call(block), 7);
}

TEST(ExecutableMemory, NothingIsWritableAndExecutable) {
  ExecutableBlock block(returns(5), "test");
  std::ifstream maps("/proc/self/maps");
  std::string line;
  int executable = 0;
  while (std::getline(maps, line)) {
    std::string permissions = line.substr(line.find(' ') + 1, 4);
    EXPECT_FALSE(permissions[1] == 'w' && permissions[2] == 'x') << line;
    executable += line.find("ingot-code") != std::string::npos && permissions[2] == 'x';
  }
  EXPECT_GE(executable, 1);
}

// The choice is made once a process, so this has one of its own.
int with_perf() {
  setenv("INGOT_PERF", "1", 1);
  ExecutableBlock a(returns(5), "first"), b(returns(6, 5000), "second");
  if (call(a) != 5 || call(b) != 6) return 1;
  std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map", line, text;
  for (std::ifstream file(path); std::getline(file, line);) text += line + "\n";
  unlink(path.c_str());
  if (text.find("ingot::first\n") == std::string::npos || text.find("ingot::second\n") == std::string::npos) return 2;
  for (std::ifstream maps("/proc/self/maps"); std::getline(maps, line);) {
    if (line.find("wx") != std::string::npos) return 3;
    if (line.find("ingot-code") != std::string::npos) return 4;
  }
  return 0;
}
TEST(ExecutableMemoryDeathTest, PerfSeesNamesInPrivatePages) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(with_perf()), testing::ExitedWithCode(0), "");
}

// The pages are shared after fork(): neither side may overwrite what the other runs.
TEST(ExecutableMemory, ParentAndChildDoNotDisturbEachOther) {
  std::optional<ExecutableBlock> before(std::in_place, returns(11), "before");
  pid_t child = fork();
  if (child == 0) {
    ExecutableBlock mine(returns(22), "child");
    before.reset();
    ExecutableBlock again(returns(33), "child");
    _exit(call(mine) == 22 && call(again) == 33 ? 0 : 1);
  }
  EXPECT_EQ(test::exit_code_of(child), 0);
  EXPECT_EQ(call(*before), 11);
  ExecutableBlock after(returns(44), "after");
  EXPECT_EQ(call(after), 44);
}

}  // namespace
}  // namespace ingot::runtime
