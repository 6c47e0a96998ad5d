#include "base/error.h"

#include "base/module_path.h"

namespace ingot {
namespace {

thread_local Location caller = Location::none();

}  // namespace

CallerLine::CallerLine(Location line) : outer_(caller) {
  if (!outer_.line) caller = line;
}
CallerLine::CallerLine(Own) : outer_(caller) { caller = Location::none(); }
CallerLine::~CallerLine() { caller = outer_; }

Location caller_line(Location own) { return caller.line ? caller : own; }

std::string place_of(Location own) {
  std::string place = caller_line(own).str();
  if (const std::string module = module_path(); !module.empty()) place += (place.empty() ? "in " : ", in ") + module;
  return place.empty() ? place : " (" + place + ")";
}

}  // namespace ingot

namespace ingot::detail {

void fail_internal(const char* condition, const char* file, int line, const std::string& detail) {
  std::string text =
      "ingot: internal error: " + std::string(condition) + " does not hold at " + file + ":" + std::to_string(line);
  if (!detail.empty()) text += "\n" + detail;
  throw InternalError(text);
}

}  // namespace ingot::detail
