// The three kinds of failure: a user's error, a bug of ours; a fallback reason is data, never thrown.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/export.h"

namespace ingot {

/// A line of the caller's source. (Clang 14 has no std::source_location.)
struct Location {
  const char* file = "";
  int line = 0;
  constexpr Location(const char* f = __builtin_FILE(), int l = __builtin_LINE()) : file(f), line(l) {}
  static constexpr Location none() { return {"", 0}; }
  std::string str() const { return line ? std::string(file) + ":" + std::to_string(line) : std::string(); }
};

/// While it lives, `line` is the caller's line in errors and records of this thread, whatever line of the library's own
/// code calls an op. The outermost holds; an absent line changes nothing.
class INGOT_API CallerLine {
 public:
  /// Code of the user's that the library calls: its own lines count again.
  struct Own {};
  explicit CallerLine(Location line);
  explicit CallerLine(Own);
  ~CallerLine();
  CallerLine(const CallerLine&) = delete;
  CallerLine& operator=(const CallerLine&) = delete;

 private:
  Location outer_;
};
/// The caller's line of a call that stands at `own`.
INGOT_API Location caller_line(Location own);
/// How errors end: " (FILE:LINE, in layer3.1.bn2)", the caller's line and the module that is being called; empty where
/// neither is known.
INGOT_API std::string place_of(Location own);

/// What a user did wrong: what was given, what was expected, op and source line. Nothing was changed.
class INGOT_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A size that does not fit into 63 bits; who asked for it names op and line.
class INGOT_API SizeOverflow : public Error {
 public:
  using Error::Error;
};

/// Memory that the machine does not have; names the bytes.
class INGOT_API OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// A bug of ours, with what reproduces it.
class INGOT_API InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] INGOT_API void fail_internal(const char* condition, const char* file, int line,
                                          const std::string& detail = {});
}

}  // namespace ingot

/// Invariants of ours. Always on: a wrong answer is worse than a check.
#define INGOT_CHECK(condition, ...)      \
  (static_cast<bool>(condition) ? void() \
                                : ::ingot::detail::fail_internal(#condition, __FILE__, __LINE__, ##__VA_ARGS__))
