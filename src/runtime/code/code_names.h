// Names of generated code for the tools that look at a running process.
#pragma once
#include <cstdint>
#include <string>

namespace ingot::runtime {

/// Tells perf (a line in /tmp/perf-PID.map if INGOT_PERF is set) and gdb (its JIT interface) what lies at `address`.
/// Returns what withdraw_code takes.
void* announce_code(const void* address, int64_t bytes, const std::string& name);
void withdraw_code(void* entry) noexcept;
bool perf_watches();

}  // namespace ingot::runtime
