#include "base/error.h"

namespace ingot::detail {

void fail_internal(const char* condition, const char* file, int line, const std::string& detail) {
  std::string text =
      "ingot: internal error: " + std::string(condition) + " does not hold at " + file + ":" + std::to_string(line);
  if (!detail.empty()) text += "\n" + detail;
  throw InternalError(text);
}

}  // namespace ingot::detail
