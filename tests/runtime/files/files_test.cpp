// Hostile places and failing disks. Calls whose order or failure matters are watched: this program's own symbols stand
// before the C library's.
#include "runtime/files/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"

namespace {

struct Watch {
  std::mutex mutex;
  bool on = false;
  std::vector<std::string> calls;
  std::string failing;  // this call fails with EIO
};
Watch& watch() {
  static Watch* watch = new Watch;
  return *watch;
}
// Whether the call is to fail.
bool watched(const std::string& call) {
  Watch& w = watch();
  std::lock_guard lock(w.mutex);
  if (!w.on) return false;
  w.calls.push_back(call);
  if (call != w.failing) return false;
  errno = EIO;
  return true;
}
std::string fsync_of(int file) {
  struct stat status;
  return fstat(file, &status) == 0 && S_ISDIR(status.st_mode) ? "sync folder" : "sync file";
}

}  // namespace

extern "C" {
int fsync(int file) { return watched(fsync_of(file)) ? -1 : static_cast<int>(syscall(SYS_fsync, file)); }
int renameat(int from, const char* a, int to, const char* b) noexcept {
  return watched("rename") ? -1 : static_cast<int>(syscall(SYS_renameat, from, a, to, b));
}
mode_t umask(mode_t mask) noexcept {
  watched("umask");
  return static_cast<mode_t>(syscall(SYS_umask, mask));
}
}

namespace ingot::runtime {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  std::string folder_ = testing::TempDir() + "ingot-files-" + std::to_string(getpid());
  std::string path_ = folder_ + "/file";
  mode_t mask_ = 0;
  Files() {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    mask_ = umask(022);
  }
  ~Files() override {
    umask(mask_);
    fs::remove_all(folder_);
  }

  static void save(const std::string& path, const std::string& text) {
    OutputFile file(path, "test: " + path);
    file.write(text.data(), static_cast<int64_t>(text.size()));
    file.commit();
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status;
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& entry : fs::directory_iterator(folder_)) list.push_back(entry.path().filename());
    std::sort(list.begin(), list.end());
    return list;
  }
  // What `attempt` refuses with, in bounded time; `release` lets go of a call that waits.
  static std::string refusal(
      const std::function<void()>& attempt, const std::function<void()>& release = [] {}) {
    auto said = std::async(std::launch::async, [&]() -> std::string {
      try {
        attempt();
        return "accepted";
      } catch (const Error& error) {
        return error.what();
      }
    });
    if (said.wait_for(std::chrono::seconds(30)) == std::future_status::ready) return said.get();
    release();
    return "waits; then " + said.get();
  }
};

TEST_F(Files, TheFileIsSyncedBeforeTheRenameAndItsFolderAfter) {
  watch().on = true;
  save(path_, "abc");
  watch().on = false;
  EXPECT_EQ(std::exchange(watch().calls, {}), (std::vector<std::string>{"sync file", "rename", "sync folder"}));
  EXPECT_EQ(text_of(path_), "abc");
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
}

TEST_F(Files, AFailureLeavesWhatWasThereAndNothingElse) {
  save(path_, "old");
  for (const char* call : {"sync file", "rename"}) {
    watch().on = true, watch().failing = call;
    EXPECT_NE(refusal([&] { save(path_, "new"); }).find("test: " + path_ + ": cannot write: Input/output error"),
              std::string::npos);
    watch().on = false, watch().failing = "", watch().calls.clear();
    EXPECT_EQ(text_of(path_), "old");
    EXPECT_EQ(names(), std::vector<std::string>{"file"});
  }
  // Dropped before it is whole.
  try {
    OutputFile file(path_, "test");
    file.write("new", 3);
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(text_of(path_), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
}

TEST_F(Files, ALimitOnFileSizesIsAnErrorWhateverItsSignalDoes) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 4096;
  save(path_, "old");
  setrlimit(RLIMIT_FSIZE, &small);
  std::string said = refusal([&] { save(path_, std::string(100'000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(said.find("File too large"), std::string::npos) << said;
  EXPECT_EQ(text_of(path_), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
  sigset_t blocked, waiting;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  sigpending(&waiting);
  EXPECT_EQ(sigismember(&blocked, SIGXFSZ), 0);
  EXPECT_EQ(sigismember(&waiting, SIGXFSZ), 0);
}

TEST_F(Files, PermissionsAreThoseOfTheUmaskOrOfTheFileReplaced) {
  for (mode_t mask : {022, 077, 027, 0}) {
    umask(mask);
    save(path_, "abc");
    EXPECT_EQ(mode_of(path_), 0666u & ~mask);
    fs::remove(path_);
  }
  umask(077);
  for (mode_t mode : {0600, 0644, 0444, 0660}) {
    save(path_, "abc");
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    save(path_, "new");
    EXPECT_EQ(mode_of(path_), mode);
    EXPECT_EQ(text_of(path_), "new");
    fs::remove(path_);
  }
}

// Threads that save never change what another thread's new files may be: the process's umask is not touched.
TEST_F(Files, SavingLeavesTheUmaskAlone) {
  umask(077);
  watch().on = true;
  std::atomic<bool> stop = false;
  std::vector<std::thread> savers;
  for (int i = 0; i < 4; ++i)
    savers.emplace_back([&, i] {
      for (int n = 0; !stop || n < 10; ++n) save(folder_ + "/saved" + std::to_string(i), std::to_string(n));
    });
  int wrong = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string path = folder_ + "/other" + std::to_string(i);
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    wrong += file < 0 || mode_of(path) != 0600;
    close(file);
  }
  stop = true;
  for (std::thread& saver : savers) saver.join();
  watch().on = false;
  EXPECT_EQ(wrong, 0);
  const auto calls = std::exchange(watch().calls, {});
  EXPECT_GE(std::count(calls.begin(), calls.end(), "rename"), 40);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "umask"), 0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(mode_of(folder_ + "/saved" + std::to_string(i)), 0600u);
}

TEST_F(Files, SeveralThreadsSaveOneFileWhole) {
  std::vector<std::thread> savers;
  for (int i = 0; i < 4; ++i)
    savers.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) save(path_, std::string(50'000, static_cast<char>('a' + i)));
    });
  for (std::thread& saver : savers) saver.join();
  const std::string text = text_of(path_);
  EXPECT_EQ(text.size(), 50'000u);
  EXPECT_EQ(text.find_first_not_of(text[0]), std::string::npos);
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
}

TEST_F(Files, ALinkIsReplacedAndItsTargetLeftAlone) {
  const std::string target = folder_ + "/target";
  std::ofstream(target) << "precious";
  fs::create_symlink(target, path_);
  save(path_, "abc");
  EXPECT_EQ(text_of(target), "precious");
  EXPECT_FALSE(fs::is_symlink(path_));
  EXPECT_EQ(text_of(path_), "abc");
  fs::remove(path_);
  fs::create_symlink(folder_ + "/nowhere", path_);
  save(path_, "abc");
  EXPECT_EQ(names(), (std::vector<std::string>{"file", "target"}));
}

TEST_F(Files, WhatIsNoRegularFileIsNeitherReadNorReplaced) {
  const std::string pipe = folder_ + "/pipe", socket_path = folder_ + "/socket", link = folder_ + "/link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink(pipe, link);
  const int socket_file = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(socket_path.size(), sizeof address.sun_path);
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket_file, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  int opened = -1;
  auto release = [&] { opened = open(pipe.c_str(), O_RDWR | O_NONBLOCK); };
  struct Case {
    std::string path, kind;
  };
  for (const Case& c : {Case{pipe, "a pipe"}, Case{socket_path, "a socket"}, Case{folder_, "a folder"},
                        Case{"/dev/zero", "a device"}, Case{"/dev/tty", ""}}) {
    const std::string read = refusal([&] { InputFile file(c.path, "test: " + c.path); }, release);
    const std::string written = refusal([&] { save(c.path, "abc"); }, release);
    const std::string expected = c.kind.empty() ? "test: " + c.path : c.kind + ", expected a regular file";
    EXPECT_NE(read.find(expected), std::string::npos) << read;
    EXPECT_NE(written.find(expected), std::string::npos) << written;
  }
  const std::string through = refusal([&] { InputFile file(link, "test"); }, release);
  EXPECT_NE(through.find("a pipe, expected a regular file"), std::string::npos) << through;
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_socket(socket_path));
  EXPECT_EQ(names(), (std::vector<std::string>{"link", "pipe", "socket"}));
  close(socket_file);
  if (opened >= 0) close(opened);
}

TEST_F(Files, PathsWithoutAFolderOrAName) {
  EXPECT_NE(refusal([&] { save(folder_ + "/none/file", "abc"); }).find("cannot open its folder"), std::string::npos);
  EXPECT_NE(refusal([&] { save(folder_ + "/", "abc"); }).find("got a folder"), std::string::npos);
  EXPECT_NE(refusal([&] { save("", "abc"); }).find("got a folder"), std::string::npos);
  EXPECT_NE(refusal([&] { InputFile("", "test"); }).find("cannot open"), std::string::npos);
  const std::string name = "ingot-files-here-" + std::to_string(getpid());
  save(name, "abc");
  EXPECT_EQ(text_of(name), "abc");
  fs::remove(name);
  save(folder_ + "/" + std::string(255, 'n'), "abc");  // the longest name that there is
  EXPECT_EQ(names(), std::vector<std::string>{std::string(255, 'n')});
}

TEST_F(Files, AWholeFileAsText) {
  const std::string bytes("a\0b\n", 4);
  save(path_, bytes);
  EXPECT_EQ(read_file(path_, "test"), bytes);
  save(path_, "");
  EXPECT_EQ(read_file(path_, "test"), "");
  EXPECT_NE(refusal([&] { read_file(folder_, "test"); }).find("test: got a folder"), std::string::npos);
  EXPECT_NE(refusal([&] { read_file(path_ + "x", "test"); }).find("test: cannot open"), std::string::npos);
}

TEST_F(Files, AFileThatWasCutShortIsAnErrorOfReading) {
  std::ofstream(path_) << std::string(10'000, 'x');
  InputFile file(path_, "test");
  EXPECT_EQ(file.bytes(), 10'000);
  ASSERT_EQ(truncate(path_.c_str(), 5'000), 0);
  std::string text(10'000, ' ');
  file.read(0, text.data(), 5'000);
  EXPECT_EQ(text.substr(0, 5'000), std::string(5'000, 'x'));
  EXPECT_NE(refusal([&] { file.read(1'000, text.data(), 9'000); }).find("truncated: 5000 bytes are missing"),
            std::string::npos);
}

}  // namespace
}  // namespace ingot::runtime
