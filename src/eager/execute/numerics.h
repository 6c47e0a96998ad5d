// The level of numerics.
#pragma once
#include "base/export.h"
#include "base/numerics.h"

namespace ingot {

/// Sets the level for all threads, eager code and compiled functions that have none of their own. A function that was
/// compiled under another level is compiled again when it is next called.
INGOT_API void set_numerics(Numerics level);
/// The level that holds here: inside a compiled function with a level of its own, that one.
INGOT_API Numerics numerics();

}  // namespace ingot
