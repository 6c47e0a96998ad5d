// What emits a kernel as virtual-register code, from the ground up: each part knows those before it only.
#pragma once
#include "codegen/x86/body.h"

namespace ingot::codegen::x86 {

struct Emitter {
  /// Emits the prologue and what is the same all through the call.
  Emitter(const Kernel& kernel, VCode& code);

  Analysis analysis;
  Vectors vectors;
  Frame frame;
  Streams streams;
  Memory memory;
  Values values;
  Reductions reductions;
  Body body;
};

}  // namespace ingot::codegen::x86
