// What a compiled function did and why, as data.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/export.h"
#include "trace/statistics.h"

namespace ingot {

struct Explanation {
  struct Kernel {
    std::string name, text;  // kernel IR
    int64_t code_bytes = 0;
    std::vector<uint8_t> code;
  };
  struct Group {
    std::string name;
    std::vector<std::string> members;
  };
  struct Decision {
    std::string value;
    bool fused = false;
    std::string reason;
    int64_t bytes_saved = 0;
  };
  /// A step of a program and its floor: arithmetic and memory traffic, at the sizes it was compiled with.
  struct Step {
    std::string name;
    double operations = 0, bytes = 0;
  };
  struct Program {
    std::string key;
    std::string trace;       // IR as recorded
    std::string primitives;  // IR after the passes
    std::vector<Group> groups;
    std::vector<Decision> decisions;
    std::string report;  // the lowering's own account: steps, operations, bytes
    std::vector<Step> steps;
    std::vector<Kernel> kernels;
    std::string shapes, guards;
    int64_t hits = 0, code_bytes = 0;
    double compile_ms = 0;
  };
  struct Notice {
    std::string reason, location;
    int64_t count = 0;
  };
  struct Recompile {
    std::string guard, before, after;
  };

  std::string name;
  Statistics statistics;
  std::vector<Program> programs;  // cache entries, in order of compilation
  std::vector<Notice> breaks, fallbacks;
  std::vector<Recompile> recompiles;
  std::string frozen;  // frozen mode: its state, or why it was refused
  /// All of it for a person; kernel texts only if asked for.
  INGOT_API std::string str(bool kernels = false) const;
};

}  // namespace ingot
