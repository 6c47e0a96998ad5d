// Tensors in safetensors files.
#pragma once
#include <map>
#include <string>

#include "eager/tensor.h"

namespace ingot {

/// Tensors by name.
using StateDict = std::map<std::string, Tensor>;

struct LoadOptions {
  /// The tensors share one private mapping of the file: nothing is read before it is used. Whoever may cut the file
  /// short in the meantime ends the process by SIGBUS. Without it, all is read at once, and a short file is an Error.
  bool mapped = true;
};

/// The tensors of a safetensors file. Writing to one leaves the file alone. Throws Error for what is not there, no
/// regular file (none is waited for), truncated or in any way inconsistent.
INGOT_API StateDict load(const std::string& path, const LoadOptions& options = {}, Location location = Location());
/// Entry `__metadata__` of a file's header.
INGOT_API std::map<std::string, std::string> load_metadata(const std::string& path, Location location = Location());
/// Writes under another name in the same folder, syncs and renames, so that `path` is always a whole file. What it
/// replaces gives its permissions, else the umask does; a link is replaced. Throws Error, and leaves nothing, where it
/// cannot be written or `path` is something else than a file.
INGOT_API void save(const StateDict& tensors, const std::string& path,
                    const std::map<std::string, std::string>& metadata = {}, Location location = Location());

}  // namespace ingot
