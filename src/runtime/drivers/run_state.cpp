#include "runtime/drivers/run_state.h"

#include "runtime/memory/allocator.h"

namespace ingot::runtime {

RunState::~RunState() {
  deallocate(arena, arena_bytes);
  deallocate(kept.memory, kept.bytes);
}

}  // namespace ingot::runtime
