// A case's stored tensors as tensors of a run, and back.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "conformance/case.h"
#include "eager/tensor.h"

namespace ingot::conformance {

/// How the tensors of a case lie in memory: dense, or as views with gaps.
enum class Storage { dense, strided };

/// The tensors of one run: the same stored tensor is the same argument.
class Pool {
 public:
  /// `change` gives what stands for a stored tensor in this run.
  Pool(Storage storage, const Case& c, const std::function<CaseTensor(const CaseTensor&)>& change = {});
  /// Throws Error for what is no tensor among the case's arguments.
  const Tensor& find(const CaseTensor& t, const std::vector<Tensor>& among) const;
  std::vector<Tensor> tensors;

 private:
  std::map<const CaseTensor*, size_t> numbers_;
};

/// A stored tensor.
Tensor make(const CaseTensor& t, Storage storage = Storage::dense);
std::vector<CaseTensor> read(const std::vector<Tensor>& tensors);

}  // namespace ingot::conformance
