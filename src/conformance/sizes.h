// A case with other sizes: what a program with symbols gives.
#pragma once
#include "conformance/modes.h"

namespace ingot::conformance {

/// Tiles the case's tensors along each dim that the op leaves free (one that eager takes with another size) and calls
/// one compiled function with three sizes of it. Each result must be eager's to the bit and the interpreter's within
/// the case's tolerance, with at most two compilations a dim of the same ops; what is wrong is thrown as Error. Returns
/// the case's own results, from the last program.
Outcome run_sizes(const Case& c, const BoundCase& bound);

}  // namespace ingot::conformance
