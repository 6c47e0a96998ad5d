// How free compiled and eager code is with the last bits of a result.
#pragma once
#include <cstdint>
#include <string_view>

namespace ingot {

enum class Numerics : uint8_t {
  strict,    // the same bits on every machine and instruction set
  default_,  // as strict, but products of bf16 may use the processor's own instruction for them, which rounds
             // differently
  fast       // as default, and 16-bit floats stay f32 between the ops that one kernel computes (eager rounds after
             // each), and convolutions of 3x3 taps may be computed from transformed tiles (Winograd)
};

constexpr std::string_view name_of(Numerics level) {
  return level == Numerics::strict ? "strict" : level == Numerics::fast ? "fast" : "default";
}

}  // namespace ingot
