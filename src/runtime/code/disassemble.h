// Listings of generated machine code.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ingot::runtime {

/// One instruction a line, in Intel syntax, of the first `code_bytes` bytes (constants follow).
std::string disassemble(const std::vector<uint8_t>& code, int64_t code_bytes);

}  // namespace ingot::runtime
