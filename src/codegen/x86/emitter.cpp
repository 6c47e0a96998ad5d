#include "codegen/x86/emitter.h"

namespace ingot::codegen::x86 {

Emitter::Emitter(const Kernel& kernel, VCode& code)
    : analysis(kernel),
      vectors(code),
      frame(analysis, vectors),
      streams(analysis, frame, code),
      memory(analysis, vectors, frame, streams),
      values(analysis, vectors, frame, memory),
      reductions(analysis, vectors, frame, values),
      body(analysis, vectors, frame, streams, memory, values, reductions) {
  values.emit_call_level();
  memory.prepare_gathers();
}

}  // namespace ingot::codegen::x86
