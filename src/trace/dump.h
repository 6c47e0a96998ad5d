// INGOT_DUMP=FOLDER: every stage of every compile as a file.
#pragma once
#include <string_view>

namespace ingot::trace {

class CompiledGraph;

/// Writes NNN-traced.ir, NNN-primitives.ir, NNN-program.txt and, for each kernel, NNN-KERNEL.kir and NNN-KERNEL.bin
/// into the folder that INGOT_DUMP names; nothing where it names none. A file that cannot be written is said, not
/// thrown.
void dump(const CompiledGraph& compiled);

}  // namespace ingot::trace
