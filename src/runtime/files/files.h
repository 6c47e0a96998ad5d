// Files that the library reads and writes: regular ones only to read, whole ones only for others to see.
#pragma once
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace ingot::runtime {

/// A descriptor that is closed in the end.
class FileHandle {
 public:
  explicit FileHandle(int number = -1) : number_(number) {}
  FileHandle(FileHandle&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileHandle();
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

/// Bytes of a file in memory. Private: writing to them does not change the file.
struct Mapping {
  char* data = nullptr;
  int64_t bytes = 0;
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
};

/// A regular file, opened to be read. Errors begin with `where`.
class InputFile {
 public:
  /// Throws Error where there is no such file, or where it is a folder, pipe, socket or device: none is waited for.
  InputFile(const std::string& path, std::string where);
  /// Its length when it was opened.
  int64_t bytes() const { return bytes_; }
  /// Throws Error where the file ends before.
  void read(int64_t at, void* to, int64_t bytes) const;
  /// The whole file. A page that the file lacks by the time it is touched raises SIGBUS.
  std::shared_ptr<const Mapping> map() const;

 private:
  std::string where_;
  FileHandle file_;
  int64_t bytes_ = 0;
};

/// All of a regular file. Errors begin with `where`.
std::string read_file(const std::string& path, std::string where);

/// A file that gets its name once it is whole: others see what was there before, or all of it, after a crash of the
/// system too. A link of that name is replaced, what it points to is left alone. Permissions are those of the file that
/// is replaced, or what the process's umask leaves of 0666. Errors begin with `where`.
class OutputFile {
 public:
  /// Throws Error where the name is that of something else than a file or a link.
  OutputFile(const std::string& path, std::string where);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(const void* data, int64_t bytes);
  /// Without it, nothing is left.
  void commit();

 private:
  // A limit on file sizes is an error of write(), not the end of the process.
  struct NoSignal {
    NoSignal();
    ~NoSignal();
    sigset_t before;
    bool pending;
  };
  struct Temporary {
    const FileHandle& folder;
    std::string name;  // empty: there is none
    ~Temporary();
  };

  NoSignal no_signal_;
  std::string where_, name_;
  FileHandle folder_;
  Temporary temporary_{folder_, {}};
  FileHandle file_;
};

}  // namespace ingot::runtime
