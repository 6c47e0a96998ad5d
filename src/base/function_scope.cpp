#include "base/function_scope.h"

namespace ingot {
namespace {

thread_local CalledFunction called;

}  // namespace

const CalledFunction& called_function() { return called; }

FunctionScope::FunctionScope(const char* name, Location line) : line_(line), outer_(called) {
  if (!outer_.name) called = {name};
}
FunctionScope::FunctionScope(const CalledFunction& function) : line_(Location::none()), outer_(called) {
  called = function;
}
FunctionScope::~FunctionScope() { called = outer_; }

std::string error_text(std::string_view op, std::string_view what, Location own) {
  std::string text(called.name && called.name != op ? called.name : "");
  if (called.argument) {
    text = std::string(called.name) + ": " + called.argument + ": got " + called.got + ", expected " + called.expected;
  } else {
    if (!text.empty()) text += ", in ";
    text.append(op).append(": ").append(what);
  }
  return text + place_of(own);
}

}  // namespace ingot
