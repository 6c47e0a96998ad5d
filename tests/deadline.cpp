// No test waits for ever: one that takes ten minutes ends its program, with its name. An alarm and no thread, so that
// tests that fork or count threads see what they would without it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

namespace ingot::test {
namespace {

constexpr unsigned kSeconds = 600;
std::string* message = new std::string;  // made before the alarm: its handler may not allocate

extern "C" void over(int) {
  if (write(STDERR_FILENO, message->data(), message->size()) < 0) std::abort();
  _exit(1);
}

class Deadline : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    *message = std::string("\n") + test.test_suite_name() + "." + test.name() + " waits for what does not come\n";
    std::signal(SIGALRM, over);
    alarm(kSeconds);
  }
  void OnTestEnd(const testing::TestInfo&) override { alarm(0); }
};

[[maybe_unused]] const bool set = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Deadline);
  return true;
}();

}  // namespace
}  // namespace ingot::test
