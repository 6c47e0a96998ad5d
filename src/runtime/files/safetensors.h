// The safetensors format: named tensors in one file.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/small_vector.h"
#include "runtime/memory/storage.h"

namespace ingot::runtime {

/// A tensor of a file: dense, row-major.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  Ints shape;
  StoragePtr storage;  // its bytes. Writing to it does not change the file.
};

struct SafetensorsFile {
  std::vector<StoredTensor> tensors;  // in order of name
  std::map<std::string, std::string> metadata;
};

/// Throws Error, with path and reason, for what cannot be read, is no regular file or is not in every detail what the
/// format demands. The storages lie in a mapping of the file where `mapped` (a page that is cut off the file later
/// raises SIGBUS when it is touched), else in memory of their own.
SafetensorsFile read_safetensors(const std::string& path, bool mapped = true);

struct TensorBytes {
  std::string name;
  DType dtype = DType::f32;
  Ints shape;
  const void* data = nullptr;  // dense, row-major
};

/// `path` holds what it held before, or all of it (runtime/files/files.h). Throws Error for names that are double,
/// reserved or not UTF-8, for dtypes that the format lacks, and for any failure to write.
void write_safetensors(const std::string& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace ingot::runtime
