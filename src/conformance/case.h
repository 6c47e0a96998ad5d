// Conformance cases as they are stored: one safetensors file an op, cases in its header.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/small_vector.h"

namespace ingot::conformance {

/// A stored tensor: dense and row-major.
struct CaseTensor {
  DType dtype = DType::f32;
  Ints shape;
  std::string bytes;
  std::string name;  // under which it is stored; empty: it is not
};

/// An argument as it is written.
struct CaseValue {
  enum class Kind { null, boolean, integer, number, text, dtype, tensor, list, slice, ellipsis } kind = Kind::null;
  int64_t integer = 0;  // boolean, integer
  double number = 0;
  DType dtype = DType::f32;
  std::string text;
  CaseTensor tensor;
  std::vector<CaseValue> items;              // list
  std::optional<int64_t> start, stop, step;  // slice
  bool is(Kind k) const { return kind == k; }
};
/// Of what JSON has a word for: a boolean, a number, text or null.
CaseValue plain_value(const nlohmann::json& j);

struct CaseOutput {
  DType dtype = DType::f32;  // that the result must have; the stored reference may be wider
  CaseTensor expected;       // a number or bool has no dims
};

/// The gradients of a case, for a cotangent of each output that has one.
struct CaseGradients {
  struct Value {
    std::string of;                      // the name of an argument
    std::optional<CaseTensor> expected;  // in double; absent: it has none
  };
  std::vector<std::pair<size_t, CaseTensor>> cotangents;  // by the number of the output
  std::vector<Value> values;
  double rtol = 0, atol = 0;
};

struct Case {
  std::string op, name;
  std::vector<CaseValue> args;
  std::vector<std::pair<std::string, CaseValue>> kwargs;
  std::vector<CaseOutput> outputs;
  bool exact = false;
  double rtol = 0, atol = 0;
  std::optional<CaseGradients> gradients;
  std::set<DType> dtypes;  // of the tensors of all cases of the op: what it takes

  /// The argument at a position or of a name; null if neither is given.
  const CaseValue* find(size_t position, std::string_view name) const;
  bool has_tensor(size_t position) const {
    return position < args.size() && args[position].is(CaseValue::Kind::tensor);
  }
};

/// Calls fn for every tensor among the arguments.
void for_each_tensor(const Case& c, const std::function<void(const CaseTensor&)>& fn);

/// The cases of one file. Throws Error for a file that is not of the format.
std::vector<Case> read_cases(const std::string& path);

}  // namespace ingot::conformance
