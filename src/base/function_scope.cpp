#include "base/function_scope.h"

namespace ingot {
namespace {

thread_local const CalledFunction* called = nullptr;  // a pointer: room for thread-locals is scarce
constexpr CalledFunction kNone;

}  // namespace

const CalledFunction& called_function() { return called ? *called : kNone; }

FunctionScope::FunctionScope(const char* name, Location line) : line_(line), mine_{name}, outer_(called) {
  if (!called_function().name) called = &mine_;
}
FunctionScope::FunctionScope(const CalledFunction& function)
    : line_(Location::none()), mine_(function), outer_(called) {
  called = &mine_;
}
FunctionScope::~FunctionScope() { called = outer_; }

std::string error_text(std::string_view op, std::string_view what, Location own) {
  const CalledFunction& f = called_function();
  std::string text(f.name && f.name != op ? f.name : "");
  if (f.argument) {
    text = std::string(f.name) + ": " + f.argument + ": ";
    if (f.got)
      text.append("got ").append(f.got).append(", expected ").append(f.expected);
    else
      text.append(what.substr(what.find("got ")));
  } else {
    if (!text.empty()) text += ", in ";
    text.append(op).append(": ").append(what);
  }
  return text + place_of(own);
}

}  // namespace ingot
