// What the stages of lowering work on, one after another.
#pragma once
#include <optional>

#include "codegen/lower/fusion.h"

namespace ingot::codegen::lowering {

struct Lowering {
  const ir::Graph& graph;
  const LowerOptions& options;
  LowerResult& result;
  std::optional<Layouts> layouts = {};
  std::optional<Fusion> fusion = {};
  Plan plan = {};
};

// What follows from a stage, as text: a line a value or group, the program.
std::string layouts_text(const Lowering& lowering);
std::string groups_text(const Lowering& lowering);
std::string schedule_text(const Lowering& lowering);
std::string program_text(const Lowering& lowering);
std::string device_text(const Lowering& lowering);

}  // namespace ingot::codegen::lowering
