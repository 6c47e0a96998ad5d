// A case's arguments, as a function of PyTorch's names them.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "conformance/binding.h"
#include "eager/ops/arguments.h"

namespace ingot::conformance {

/// A case's arguments by position, or by name where PyTorch gives one.
class Arguments {
 public:
  Arguments(const Case& c, const Materialize& materialize) : case_(c), materialize_(materialize) {}
  const Case& given() const { return case_; }
  bool has(size_t i, std::string_view name = "") const;
  const CaseValue& value(size_t i, std::string_view name = "") const;
  Tensor tensor(size_t i, std::string_view name = "") const;
  std::vector<Tensor> tensors(size_t i, std::string_view name = "") const;
  int64_t integer(size_t i, std::string_view name, int64_t otherwise) const;
  int64_t integer(size_t i, std::string_view name = "") const;
  /// A list, or one integer.
  std::vector<int64_t> list(size_t i, std::string_view name = "") const;
  Scalar scalar(size_t i, std::string_view name = "") const;
  Tensor make(const CaseTensor& t) const { return materialize_(t); }
  /// The dtype that is asked for, wherever it stands.
  std::optional<DType> dtype() const;

 private:
  const Case& case_;
  const Materialize& materialize_;
};

}  // namespace ingot::conformance
