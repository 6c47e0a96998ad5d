#include "conformance/json_text.h"

#include "base/error.h"
#include "runtime/files/files.h"

namespace ingot::conformance {

nlohmann::json parse_json(std::string_view text) {
  using nlohmann::json;
  constexpr int kDeepest = 64;
  try {
    return json::parse(text, [](int depth, json::parse_event_t, json&) {
      if (depth > kDeepest) throw Error("JSON: lists and objects deeper than " + std::to_string(kDeepest));
      return true;
    });
  } catch (const json::exception& e) {
    throw Error(std::string("JSON: ") + e.what());
  }
}

nlohmann::json read_json(const std::string& path) {
  const std::string text = runtime::read_file(path, path);
  try {
    return parse_json(text);
  } catch (const Error& e) {
    throw Error(path + ": " + e.what());
  }
}

}  // namespace ingot::conformance
