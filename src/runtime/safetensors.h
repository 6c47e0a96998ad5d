// The safetensors format: named tensors in one file, mapped when read.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/small_vector.h"
#include "runtime/storage.h"

namespace ingot::runtime {

/// A tensor of a file: dense, row-major.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  Ints shape;
  StoragePtr storage;  // its bytes; keeps the mapped file alive. Writing to it does not change the file.
};

struct SafetensorsFile {
  std::vector<StoredTensor> tensors;  // in order of name
  std::map<std::string, std::string> metadata;
};

/// Throws Error, with path and reason, for a file that cannot be read or is not in every detail what the format
/// demands.
SafetensorsFile read_safetensors(const std::string& path);

struct TensorBytes {
  std::string name;
  DType dtype = DType::f32;
  Ints shape;
  const void* data = nullptr;  // dense, row-major
};

/// Writes to a temporary file beside `path`, which then takes its name. Throws Error for names that are double,
/// reserved or not UTF-8, for dtypes that the format lacks, and for any failure to write.
void write_safetensors(const std::string& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace ingot::runtime
