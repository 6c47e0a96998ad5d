// INGOT_DUMP=FOLDER: every stage of every compile as a file.
#pragma once
#include <string>
#include <string_view>

namespace ingot::compiler {

struct CompiledGraph;

/// The files of one compile, NNN-NAME in the folder; does nothing where INGOT_DUMP names none, or it is not wanted. A
/// file that cannot be written is said, not thrown.
class Dump {
 public:
  explicit Dump(bool wanted);
  bool on() const { return !prefix_.empty(); }
  void write(const std::string& name, std::string_view bytes) const;
  /// program.txt (groups, steps, decisions, times), steps.txt (all fields of the steps) and, for each kernel,
  /// KERNEL.kir, KERNEL.asm and KERNEL.bin.
  void write(const CompiledGraph& compiled) const;

 private:
  std::string prefix_;
};

}  // namespace ingot::compiler
