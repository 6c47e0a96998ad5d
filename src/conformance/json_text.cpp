#include "conformance/json_text.h"

#include "base/error.h"

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

}  // namespace ingot::conformance
