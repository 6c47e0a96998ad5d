// Memory checks for generated code, which sanitizers do not see: INGOT_CHECK_MEMORY=begin or end puts every block
// against a page that may not be touched, before its first byte or after its last, and fills the rest with a pattern.
#pragma once
#include <cstdint>

namespace ingot::runtime {

/// Whether the process checks memory; fixed when it starts to allocate. Throws Error on an unknown mode.
bool checks_memory();

/// As allocate and deallocate, where memory is checked. A write into the pattern ends the process with a message when
/// the block is given back; a touch of the guarded pages, or of a block given back, is a fault. The contents are the
/// pattern, so that a read of what nobody wrote shows in the results.
void* allocate_checked(int64_t bytes);
void deallocate_checked(void* block, int64_t bytes) noexcept;

}  // namespace ingot::runtime
