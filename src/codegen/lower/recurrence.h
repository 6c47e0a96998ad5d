// Ops that go through a sequence step by step: the steps of a program that one of them takes, once for the first of the
// sequence and as a segment for all others.
#pragma once
#include "codegen/lower/steps.h"

namespace ingot::codegen::lowering {

void write_recurrence(StepWriter& w, uint32_t group);

}  // namespace ingot::codegen::lowering
