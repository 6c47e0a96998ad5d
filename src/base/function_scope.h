// The function written over ops that is being called on this thread: errors of its ops name it.
#pragma once
#include <string>
#include <string_view>

#include "base/error.h"

namespace ingot {

/// What the user called, for errors of the ops that it is made of: texts that stay.
struct CalledFunction {
  const char* name = nullptr;
  /// Said in place of what the op says, where the op stands for a check of an argument of the function. With an
  /// argument alone, what the op got and expected is said of that.
  const char *argument = nullptr, *got = nullptr, *expected = nullptr;
};
const CalledFunction& called_function();

/// While it lives, errors of ops are those of this function.
class FunctionScope {
 public:
  /// A call at the user's line, of which CallerLine holds as well. The outermost function is the one that errors name.
  FunctionScope(const char* name, Location line);
  /// Whatever is being called outside.
  explicit FunctionScope(const CalledFunction& function);
  ~FunctionScope();
  FunctionScope(const FunctionScope&) = delete;
  FunctionScope& operator=(const FunctionScope&) = delete;

 private:
  CallerLine line_;
  CalledFunction mine_;
  const CalledFunction* outer_;
};

/// "OP: WHAT (FILE:LINE)"; where a function is called, "FUNCTION, in OP: WHAT ...", or what it says itself.
std::string error_text(std::string_view op, std::string_view what, Location own);

}  // namespace ingot
