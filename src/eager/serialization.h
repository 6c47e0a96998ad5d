// Tensors in safetensors files.
#pragma once
#include <map>
#include <string>

#include "eager/tensor.h"

namespace ingot {

/// Tensors by name.
using StateDict = std::map<std::string, Tensor>;

/// The tensors of a safetensors file. They share one private mapping of it: nothing is read before it is used, and
/// writing to a tensor leaves the file alone. Throws Error for a file that is not there, truncated or in any way
/// inconsistent.
INGOT_API StateDict load(const std::string& path, Location location = Location());
/// Entry `__metadata__` of a file's header.
INGOT_API std::map<std::string, std::string> load_metadata(const std::string& path, Location location = Location());
/// Writes a file under another name and renames it, so that `path` is always a whole file.
INGOT_API void save(const StateDict& tensors, const std::string& path,
                    const std::map<std::string, std::string>& metadata = {}, Location location = Location());

}  // namespace ingot
