#include "conformance/case.h"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "conformance/json_text.h"
#include "ir/reference.h"
#include "runtime/files/safetensors.h"

namespace ingot::conformance {

using nlohmann::json;

CaseValue plain_value(const json& j) {
  using Kind = CaseValue::Kind;
  CaseValue v;
  if (j.is_boolean()) {
    v.kind = Kind::boolean;
    v.integer = j.get<bool>();
  } else if (j.is_number_integer()) {
    v.kind = Kind::integer;
    v.integer = j.get<int64_t>();
  } else if (j.is_number_float()) {
    v.kind = Kind::number;
    v.number = j.get<double>();
  } else if (j.is_string()) {
    v.kind = Kind::text;
    v.text = j.get<std::string>();
  }
  return v;
}

namespace {

/// A case file: the cases' text and the stored tensors by name.
class CaseFile {
 public:
  explicit CaseFile(const std::string& path) : path_(path), file_(runtime::read_safetensors(path)) {
    if (metadata("format") != "conformance-1") fail("no metadata of format conformance-1");
    for (const runtime::StoredTensor& t : file_.tensors) tensors_.emplace(t.name, &t);
  }

  std::string metadata(const std::string& key) const {
    auto found = file_.metadata.find(key);
    return found == file_.metadata.end() ? std::string() : found->second;
  }

  CaseTensor get(const std::string& key) const {
    auto found = tensors_.find(key);
    if (found == tensors_.end()) fail("no tensor " + key);
    const runtime::StoredTensor& stored = *found->second;
    CaseTensor t{stored.dtype, stored.shape, {}, key};
    int64_t bytes = size_of(t.dtype);
    for (int64_t size : t.shape) bytes *= size;
    t.bytes.assign(static_cast<const char*>(stored.storage->data()), static_cast<size_t>(bytes));
    return t;
  }

  [[noreturn]] void fail(const std::string& what) const { throw Error(path_ + ": " + what); }

 private:
  std::string path_;
  runtime::SafetensorsFile file_;
  std::map<std::string, const runtime::StoredTensor*, std::less<>> tensors_;
};

double named_number(const std::string& name) {
  double infinity = std::numeric_limits<double>::infinity();
  return name == "inf" ? infinity : name == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

std::optional<int64_t> optional_integer(const json& j) {
  return j.is_null() ? std::nullopt : std::optional<int64_t>(j.get<int64_t>());
}

DType read_dtype(const json& j, const CaseFile& file) {
  DType dtype = DType::f32;
  if (!parse_dtype(j.get<std::string>(), &dtype)) file.fail("dtype " + j.dump());
  return dtype;
}

CaseValue read_value(const json& j, const CaseFile& file) {
  using Kind = CaseValue::Kind;
  if (j.is_primitive()) return plain_value(j);
  CaseValue v;
  if (j.is_array()) {
    v.kind = Kind::list;
    for (const json& item : j) v.items.push_back(read_value(item, file));
  } else if (j.is_object() && j.contains("tensor")) {
    v.kind = Kind::tensor;
    v.tensor = file.get(j.at("tensor"));
  } else if (j.is_object() && j.contains("dtype")) {
    v.kind = Kind::dtype;
    v.dtype = read_dtype(j.at("dtype"), file);
  } else if (j.is_object() && j.contains("float")) {
    v.kind = Kind::number;
    v.number = named_number(j.at("float"));
  } else if (j.is_object() && j.contains("slice")) {
    v.kind = Kind::slice;
    v.start = optional_integer(j.at("slice").at(0));
    v.stop = optional_integer(j.at("slice").at(1));
    v.step = optional_integer(j.at("slice").at(2));
  } else if (j.is_object() && j.contains("ellipsis")) {
    v.kind = Kind::ellipsis;
  } else {
    file.fail("a value of an unknown form: " + j.dump());
  }
  return v;
}

/// A number or bool as a zero-dim tensor.
CaseTensor tensor_of(const CaseValue& v, const CaseFile& file) {
  using Kind = CaseValue::Kind;
  if (v.is(Kind::tensor)) return v.tensor;
  if (!v.is(Kind::boolean) && !v.is(Kind::integer) && !v.is(Kind::number))
    file.fail("an output that is no tensor, number or bool");
  const DType dtype = v.is(Kind::boolean) ? DType::bool_ : v.is(Kind::integer) ? DType::i64 : DType::f64;
  ir::ReferenceTensor value(dtype, {});
  if (value.floating())
    value.real[0] = v.number;
  else
    value.integer[0] = v.integer;
  CaseTensor t{dtype, {}, std::string(static_cast<size_t>(size_of(dtype)), '\0'), {}};
  value.to_bytes(t.bytes.data());
  return t;
}

CaseGradients read_gradients(const json& j, const CaseFile& file) {
  CaseGradients g;
  for (const json& c : j.at("cotangents")) g.cotangents.emplace_back(c.at("output"), file.get(c.at("tensor")));
  for (const json& v : j.at("values")) {
    CaseGradients::Value value{v.at("of"), {}};
    if (!v.at("tensor").is_null()) value.expected = file.get(v.at("tensor"));
    g.values.push_back(std::move(value));
  }
  g.rtol = j.at("rtol");
  g.atol = j.at("atol");
  return g;
}

Case read_case(const json& j, const std::string& op, const CaseFile& file) {
  Case c;
  c.op = op;
  c.name = j.at("name");
  for (const json& a : j.at("args")) c.args.push_back(read_value(a, file));
  for (const auto& [name, a] : j.at("kwargs").items()) c.kwargs.emplace_back(name, read_value(a, file));
  for (const json& o : j.at("outputs")) {
    CaseOutput output;
    output.expected =
        tensor_of(read_value(o.contains("value") ? o.at("value") : json{{"tensor", o.at("tensor")}}, file), file);
    output.dtype = o.contains("dtype") ? read_dtype(o.at("dtype"), file) : output.expected.dtype;
    c.outputs.push_back(std::move(output));
  }
  if (c.outputs.empty()) file.fail("a case without outputs: " + c.name);
  // No rule at all: integers and bools, which compare exactly.
  c.exact = j.value("exact", !j.contains("rtol"));
  c.rtol = j.value("rtol", 0.0);
  c.atol = j.value("atol", 0.0);
  if (j.contains("grad") && !j.at("grad").is_null()) c.gradients = read_gradients(j.at("grad"), file);
  return c;
}

}  // namespace

const CaseValue* Case::find(size_t position, std::string_view wanted) const {
  if (position < args.size()) return &args[position];
  for (const auto& [key, value] : kwargs)
    if (key == wanted) return &value;
  return nullptr;
}

void for_each_tensor(const Case& c, const std::function<void(const CaseTensor&)>& fn) {
  std::function<void(const CaseValue&)> visit = [&](const CaseValue& v) {
    if (v.is(CaseValue::Kind::tensor)) fn(v.tensor);
    for (const CaseValue& item : v.items) visit(item);
  };
  for (const CaseValue& v : c.args) visit(v);
  for (const auto& [name, v] : c.kwargs) visit(v);
}

std::vector<Case> read_cases(const std::string& path) {
  CaseFile file(path);
  try {
    std::vector<Case> result;
    json cases;
    try {
      cases = parse_json(file.metadata("cases"));
    } catch (const Error& e) {
      file.fail(e.what());
    }
    if (!cases.is_array() || cases.empty()) file.fail("no list of cases");
    for (const json& j : cases) result.push_back(read_case(j, file.metadata("op"), file));
    std::set<DType> dtypes;
    for (const Case& c : result) for_each_tensor(c, [&](const CaseTensor& t) { dtypes.insert(t.dtype); });
    for (Case& c : result) c.dtypes = dtypes;
    return result;
  } catch (const json::exception& e) {
    file.fail(e.what());
  }
}

}  // namespace ingot::conformance
