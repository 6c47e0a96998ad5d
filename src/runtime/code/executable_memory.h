// Memory for generated code: never writable and executable at once.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace ingot::runtime {

/// Code that can be run, at an address aligned to 64; given back when the object dies.
class ExecutableBlock {
 public:
  ExecutableBlock() = default;
  /// Copies position-independent code; `name` is shown by perf (INGOT_PERF=1) and gdb. Throws Error if the system
  /// refuses executable memory.
  ExecutableBlock(std::span<const uint8_t> code, const std::string& name);
  ExecutableBlock(ExecutableBlock&& other) noexcept;
  ExecutableBlock& operator=(ExecutableBlock&& other) noexcept;
  ~ExecutableBlock();

  const void* address() const { return address_; }
  int64_t bytes() const { return bytes_; }

 private:
  const void* address_ = nullptr;
  int64_t bytes_ = 0;
  void* arena_ = nullptr;
  void* debugger_entry_ = nullptr;
};

/// Whether this process may have executable memory at all; where not, kernels are interpreted.
bool executable_memory_available();

}  // namespace ingot::runtime
