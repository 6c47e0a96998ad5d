// The loops that measure the machine's roof: arithmetic peak, reads, copies.
#pragma once
#include "base/program.h"

namespace ingot::cli {

/// What a ceiling loop is called with. `bytes` is a multiple of 1024; of copy_lines, what a row of the square has, and
/// a multiple of 64.
struct CeilingFrame {
  const char* source;
  char* destination;
  int64_t bytes;
  int64_t repeats;
};

enum class CeilingLoop : uint8_t {
  fma_f32,         // independent multiply-adds, kFmaOperations each repeat
  dot_bf16,        // vdpbf16ps, twice as many operations
  read,            // reads source
  copy,            // source to destination
  copy_streaming,  // the same past the caches
  copy_lines       // the same in the order of a transpose: lines of 16 rows in turns, each to a row of its own
};
/// Floating-point operations of one repeat of fma_f32 on this target; dot_bf16 does twice as many.
int64_t fma_operations(const Target& target);
/// Machine code for the loop; null where the target has no such instruction.
KernelPtr ceiling_kernel(CeilingLoop loop, const Target& target);

}  // namespace ingot::cli
