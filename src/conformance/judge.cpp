#include "conformance/judge.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "ir/reference.h"

namespace ingot::conformance {
namespace {

using ir::ReferenceTensor;

ReferenceTensor numbers_of(const CaseTensor& t) {
  return ReferenceTensor::from_bytes(t.dtype, t.shape, t.bytes.data());
}

std::string text(const Ints& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

std::string text(double x) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", x);
  return buffer;
}

bool close(const Case& c, DType dtype, double got, double expected) {
  // What rounding makes of the reference is right, whatever the bound: it may overflow to infinity.
  if (same_number(got, expected) || same_number(got, ir::round_to(dtype, expected))) return true;
  return !c.exact && std::fabs(got - expected) <= c.atol + c.rtol * std::fabs(expected);
}

/// Outputs 1 of these ops are indices along a dim; among equal values PyTorch leaves the choice open.
const std::set<std::string, std::less<>> kOpenChoice = {"max", "min", "topk", "sort", "median", "kthvalue", "mode"};

bool choice_is_open(const Case& c, size_t output) {
  const CaseValue* stable = c.find(c.args.size(), "stable");
  return output == 1 && kOpenChoice.count(c.op) && c.has_tensor(0) && !(stable && stable->integer);
}

/// True if every index selects the value that stands beside it.
bool selects(const Case& c, const ReferenceTensor& values, const ReferenceTensor& indices) {
  const ReferenceTensor input = numbers_of(c.args[0].tensor);
  const CaseValue* given = c.find(c.op == "topk" ? 2 : c.op == "kthvalue" ? 2 : 1, "dim");
  int64_t rank = static_cast<int64_t>(input.shape.size());
  int64_t dim = given && given->is(CaseValue::Kind::integer) ? given->integer : -1;
  if (dim < 0) dim += rank;
  int64_t inner = 1, size = rank ? input.shape[dim] : 1;
  for (int64_t d = dim + 1; d < rank; ++d) inner *= input.shape[d];
  int64_t lines = size ? input.size() / size : 0;
  int64_t chosen = lines ? indices.size() / lines : 0;
  for (int64_t i = 0; i < indices.size(); ++i) {
    int64_t outer = i / inner / chosen, index = indices.integer[i];
    if (index < 0 || index >= size) return false;
    if (!same_number(input.at((outer * size + index) * inner + i % inner), values.at(i))) return false;
  }
  return true;
}

std::string judge_values(const Case& c, const CaseOutput& output, const ReferenceTensor& got) {
  const ReferenceTensor expected = numbers_of(output.expected);
  for (int64_t i = 0; i < got.size(); ++i) {
    bool right = got.floating() ? close(c, got.dtype, got.real[i], expected.at(i))
                                : !expected.floating() && got.integer[i] == expected.integer[i];
    if (!right)
      return "element " + std::to_string(i) + " of " + text(got.shape) + " is " + text(got.at(i)) + ", expected " +
             text(expected.at(i));
  }
  return {};
}

}  // namespace

std::string judge(const Case& c, std::span<const CaseTensor> results) {
  if (results.size() != c.outputs.size())
    return std::to_string(results.size()) + " results, expected " + std::to_string(c.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const CaseOutput& output = c.outputs[i];
    const CaseTensor& result = results[i];
    std::string which = results.size() > 1 ? "output " + std::to_string(i) + ": " : "";
    if (result.dtype != output.dtype)
      return which + "dtype " + std::string(name_of(result.dtype)) + ", expected " + std::string(name_of(output.dtype));
    if (!(result.shape == output.expected.shape))
      return which + "shape " + text(result.shape) + ", expected " + text(output.expected.shape);
    ReferenceTensor got = numbers_of(result);
    std::string wrong = judge_values(c, output, got);
    if (!wrong.empty() && choice_is_open(c, i) && selects(c, numbers_of(results[0]), got)) wrong.clear();
    if (!wrong.empty()) return which + wrong;
  }
  return {};
}

}  // namespace ingot::conformance
