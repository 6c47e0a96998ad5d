// JSON of a file that may be hostile.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace ingot::conformance {

/// A document of at most 64 lists and objects in one another: those who read it recurse. Throws Error.
nlohmann::json parse_json(std::string_view text);
/// Of a file, whose path begins all errors.
nlohmann::json read_json(const std::string& path);

}  // namespace ingot::conformance
