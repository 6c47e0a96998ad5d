#include "eager/serialization.h"

#include <vector>

#include "eager/data.h"
#include "runtime/files/safetensors.h"

namespace ingot {
namespace {

/// What the reader and writer say, with the caller's line.
template <class F>
auto located(Location location, F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    throw Error(e.what() + place_of(location));
  }
}

}  // namespace

StateDict load(const std::string& path, const LoadOptions& options, Location location) {
  StateDict tensors;
  for (runtime::StoredTensor& t :
       located(location, [&] { return runtime::read_safetensors(path, options.mapped); }).tensors)
    tensors[t.name] = eager::make_tensor(t.dtype, t.shape, eager::contiguous_strides(t.shape), 0, t.storage.get());
  return tensors;
}

std::map<std::string, std::string> load_metadata(const std::string& path, Location location) {
  return located(location, [&] { return runtime::read_safetensors(path); }).metadata;
}

void save(const StateDict& tensors, const std::string& path, const std::map<std::string, std::string>& metadata,
          Location location) {
  std::vector<Tensor> dense;
  std::vector<runtime::TensorBytes> bytes;
  for (const auto& [name, tensor] : tensors) {
    dense.push_back(tensor.contiguous(location));
    const Tensor& t = dense.back();
    bytes.push_back({name, t.dtype(), t.impl()->sizes, t.data_ptr(location)});
  }
  located(location, [&] { runtime::write_safetensors(path, bytes, metadata); });
}

}  // namespace ingot
