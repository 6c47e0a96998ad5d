#include "conformance/arguments.h"

#include "base/error.h"

namespace ingot::conformance {

using Kind = CaseValue::Kind;

bool Arguments::has(size_t i, std::string_view name) const {
  const CaseValue* v = case_.find(i, name);
  return v && !v->is(Kind::null);
}
const CaseValue& Arguments::value(size_t i, std::string_view name) const {
  const CaseValue* v = case_.find(i, name);
  if (!v) throw Error("no argument " + std::to_string(i) + " " + std::string(name));
  return *v;
}
Tensor Arguments::tensor(size_t i, std::string_view name) const {
  const CaseValue& v = value(i, name);
  if (!v.is(Kind::tensor)) throw Error("argument " + std::to_string(i) + " is no tensor");
  return materialize_(v.tensor);
}
std::vector<Tensor> Arguments::tensors(size_t i, std::string_view name) const {
  std::vector<Tensor> result;
  for (const CaseValue& v : value(i, name).items) {
    if (!v.is(Kind::tensor)) throw Error("argument " + std::to_string(i) + " is no list of tensors");
    result.push_back(materialize_(v.tensor));
  }
  return result;
}
int64_t Arguments::integer(size_t i, std::string_view name) const {
  const CaseValue& v = value(i, name);
  // A tensor in the place of a number: its value is read.
  return v.is(Kind::tensor) ? materialize_(v.tensor).item<int64_t>() : v.integer;
}
int64_t Arguments::integer(size_t i, std::string_view name, int64_t otherwise) const {
  return has(i, name) ? integer(i, name) : otherwise;
}
std::vector<int64_t> Arguments::list(size_t i, std::string_view name) const {
  const CaseValue& v = value(i, name);
  if (v.is(Kind::integer)) return {v.integer};
  std::vector<int64_t> result;
  for (const CaseValue& item : v.items) result.push_back(item.integer);
  return result;
}
Scalar Arguments::scalar(size_t i, std::string_view name) const {
  const CaseValue& v = value(i, name);
  if (v.is(Kind::number)) return Scalar(v.number);
  return v.is(Kind::boolean) ? Scalar(v.integer != 0) : Scalar(v.integer);
}
std::optional<DType> Arguments::dtype() const {
  for (const CaseValue& v : case_.args)
    if (v.is(Kind::dtype)) return v.dtype;
  const CaseValue* v = case_.find(case_.args.size(), "dtype");
  return v && v->is(Kind::dtype) ? std::optional<DType>(v->dtype) : std::nullopt;
}

}  // namespace ingot::conformance
