#include "runtime/files/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/error.h"

namespace ingot::runtime {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a link";
  return "a device";
}

[[noreturn]] void fail_errno(const std::string& where, const char* what) {
  throw Error(where + ": " + what + ": " + std::strerror(errno));
}

[[noreturn]] void fail_kind(const std::string& where, mode_t mode) {
  throw Error(where + ": got " + kind_of(mode) + ", expected a regular file");
}

template <class F>
auto repeated(F&& call) {
  while (true) {
    auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// Opened without waiting for a pipe's other end, and without becoming the terminal of the process.
FileHandle open_input(const std::string& path, const std::string& where) {
  FileHandle file(repeated([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (file) return file;
  struct stat status;
  const int error = errno;
  if (error == ENXIO && stat(path.c_str(), &status) == 0) fail_kind(where, status.st_mode);
  errno = error;
  fail_errno(where, "cannot open");
}

FileHandle open_folder(const std::string& path, const std::string& where) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  FileHandle file(repeated([&] { return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!file) fail_errno(where, "cannot open its folder");
  return file;
}

}  // namespace

FileHandle::~FileHandle() {
  if (number_ >= 0) close(number_);
}

Mapping::~Mapping() {
  if (data) munmap(data, static_cast<size_t>(bytes));
}

InputFile::InputFile(const std::string& path, std::string where)
    : where_(std::move(where)), file_(open_input(path, where_)) {
  struct stat status;
  if (fstat(file_.number(), &status) != 0) fail_errno(where_, "cannot look at it");
  if (!S_ISREG(status.st_mode)) fail_kind(where_, status.st_mode);
  bytes_ = status.st_size;
}

void InputFile::read(int64_t at, void* to, int64_t bytes) const {
  char* data = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = repeated([&] { return pread(file_.number(), data, static_cast<size_t>(bytes), at); });
    if (got < 0) fail_errno(where_, "cannot read");
    if (got == 0) throw Error(where_ + ": truncated: " + std::to_string(bytes) + " bytes are missing");
    data += got, at += got, bytes -= got;
  }
}

std::shared_ptr<const Mapping> InputFile::map() const {
  auto mapping = std::make_shared<Mapping>();
  if (bytes_ == 0) return mapping;
  void* data = mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                    file_.number(), 0);
  if (data == MAP_FAILED) fail_errno(where_, "cannot map");
  mapping->data = static_cast<char*>(data), mapping->bytes = bytes_;
  return mapping;
}

std::string read_file(const std::string& path, std::string where) {
  const InputFile file(path, std::move(where));
  std::string bytes(static_cast<size_t>(file.bytes()), '\0');
  file.read(0, bytes.data(), file.bytes());
  return bytes;
}

OutputFile::NoSignal::NoSignal() {
  sigset_t limit, waiting;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  sigpending(&waiting);
  pending = sigismember(&waiting, SIGXFSZ) == 1;
  pthread_sigmask(SIG_BLOCK, &limit, &before);
}

OutputFile::NoSignal::~NoSignal() {
  if (!pending) {
    sigset_t limit;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    const timespec now{};
    sigtimedwait(&limit, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

OutputFile::OutputFile(const std::string& path, std::string where)
    : where_(std::move(where)), name_(path.substr(path.rfind('/') + 1)), folder_(open_folder(path, where_)) {
  if (name_.empty()) throw Error(where_ + ": got a folder, expected a file's name");
  mode_t mode = 0666;  // the system takes the umask from it
  struct stat status;
  const bool replaces = fstatat(folder_.number(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  const bool regular = replaces && S_ISREG(status.st_mode);
  if (replaces && !regular && !S_ISLNK(status.st_mode)) fail_kind(where_, status.st_mode);
  if (regular) mode = status.st_mode & 0777;
  for (int attempt = 0; attempt < 100 && !file_; ++attempt) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) continue;
    char name[32];
    std::snprintf(name, sizeof name, ".ingot-%016llx", static_cast<unsigned long long>(random));
    file_ = FileHandle(repeated(
        [&] { return openat(folder_.number(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode); }));
    if (file_) temporary_.name = name;
    if (!file_ && errno != EEXIST) break;
  }
  if (!file_) fail_errno(where_, "cannot create");
  if (regular && fchmod(file_.number(), mode) != 0) fail_errno(where_, "cannot set its permissions");
}

OutputFile::Temporary::~Temporary() {
  if (!name.empty()) unlinkat(folder.number(), name.c_str(), 0);
}

void OutputFile::write(const void* data, int64_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = repeated([&] { return ::write(file_.number(), at, static_cast<size_t>(bytes)); });
    if (written < 0) fail_errno(where_, "cannot write");
    at += written, bytes -= written;
  }
}

void OutputFile::commit() {
  if (fsync(file_.number()) != 0) fail_errno(where_, "cannot write");
  if (renameat(folder_.number(), temporary_.name.c_str(), folder_.number(), name_.c_str()) != 0)
    fail_errno(where_, "cannot write");
  temporary_.name.clear();
  // Some file systems have no such call for folders.
  if (fsync(folder_.number()) != 0 && errno != EINVAL) fail_errno(where_, "written, but its folder cannot be synced");
}

}  // namespace ingot::runtime
