// Instruction sets that the machine of the tests may not have.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>

#include "runtime/cpu.h"

namespace ingot::test {

/// Whether no code for `isa` runs here. Said where it is so: what was not run is no part of what was shown.
inline bool lacks(Isa isa) {
  if (isa <= runtime::detected_target().isa) return false;
  const char* const name = isa == Isa::avx512 ? "AVX-512" : "AVX2";
  testing::Test::RecordProperty("not_run", name);
  std::printf("  not run: %s\n", name);
  return true;
}

}  // namespace ingot::test
