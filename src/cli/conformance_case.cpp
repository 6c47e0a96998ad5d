#include "cli/conformance_case.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"

namespace ingot::cli {
namespace {

using nlohmann::json;

/// The tensors of a safetensors file by name.
class Tensors {
 public:
  explicit Tensors(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    bytes_ = text.str();
    uint64_t length = 0;
    if (bytes_.size() < sizeof length) fail("no header");
    std::memcpy(&length, bytes_.data(), sizeof length);
    if (length > bytes_.size() - sizeof length) fail("a header longer than the file");
    header_ = json::parse(bytes_.substr(sizeof length, length), nullptr, false);
    if (!header_.is_object()) fail("a header that is not JSON");
    data_ = sizeof length + length;
  }

  const json& metadata() const {
    if (!header_.contains("__metadata__") || header_["__metadata__"].value("format", "") != "conformance-1")
      fail("no metadata of format conformance-1");
    return header_["__metadata__"];
  }

  CaseTensor get(const std::string& key) const {
    if (!header_.contains(key)) fail("no tensor " + key);
    const json& entry = header_[key];
    CaseTensor t;
    std::string dtype = entry["dtype"];
    for (char& c : dtype) c = static_cast<char>(std::tolower(c));
    if (!parse_dtype(dtype, &t.dtype)) fail("dtype " + dtype);
    int64_t count = 1;
    for (int64_t size : entry["shape"]) {
      t.shape.push_back(size);
      count *= size;
    }
    uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    if (begin > end || end > bytes_.size() - data_ || end - begin != static_cast<uint64_t>(count * size_of(t.dtype)))
      fail("data of " + key + " outside the file");
    t.bytes = bytes_.substr(data_ + begin, end - begin);
    return t;
  }

  [[noreturn]] void fail(const std::string& what) const { throw Error(path_ + ": " + what); }

 private:
  std::string path_, bytes_;
  json header_;
  uint64_t data_ = 0;
};

double named_number(const std::string& name) {
  double infinity = std::numeric_limits<double>::infinity();
  return name == "inf" ? infinity : name == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

std::optional<int64_t> optional_integer(const json& j) {
  return j.is_null() ? std::nullopt : std::optional<int64_t>(j.get<int64_t>());
}

CaseValue read_value(const json& j, const Tensors& tensors) {
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
  } else if (j.is_array()) {
    v.kind = Kind::list;
    for (const json& item : j) v.items.push_back(read_value(item, tensors));
  } else if (j.is_object() && j.contains("tensor")) {
    v.kind = Kind::tensor;
    v.tensor = tensors.get(j["tensor"]);
  } else if (j.is_object() && j.contains("dtype")) {
    v.kind = Kind::dtype;
    if (!parse_dtype(j["dtype"].get<std::string>(), &v.dtype)) tensors.fail("dtype " + j.dump());
  } else if (j.is_object() && j.contains("float")) {
    v.kind = Kind::number;
    v.number = named_number(j["float"]);
  } else if (j.is_object() && j.contains("slice")) {
    v.kind = Kind::slice;
    v.start = optional_integer(j["slice"][0]);
    v.stop = optional_integer(j["slice"][1]);
    v.step = optional_integer(j["slice"][2]);
  } else if (j.is_object() && j.contains("ellipsis")) {
    v.kind = Kind::ellipsis;
  } else if (!j.is_null()) {
    tensors.fail("a value of an unknown form: " + j.dump());
  }
  return v;
}

Case read_case(const json& j, const std::string& op, const Tensors& tensors) {
  Case c;
  c.op = op;
  c.name = j["name"];
  for (const json& a : j["args"]) c.args.push_back(read_value(a, tensors));
  for (const auto& [name, a] : j["kwargs"].items()) c.kwargs.emplace_back(name, read_value(a, tensors));
  for (const json& o : j["outputs"]) {
    CaseOutput output;
    output.expected = read_value(o.contains("value") ? o["value"] : json{{"tensor", o["tensor"]}}, tensors);
    if (o.contains("dtype") && !parse_dtype(o["dtype"].get<std::string>(), &output.dtype)) tensors.fail(o.dump());
    c.outputs.push_back(std::move(output));
  }
  // No rule at all: integers and bools, which compare exactly.
  c.exact = j.value("exact", !j.contains("rtol"));
  c.rtol = j.value("rtol", 0.0);
  c.atol = j.value("atol", 0.0);
  return c;
}

}  // namespace

const CaseValue* Case::find(size_t position, std::string_view wanted) const {
  if (position < args.size()) return &args[position];
  for (const auto& [key, value] : kwargs)
    if (key == wanted) return &value;
  return nullptr;
}

std::vector<Case> read_cases(const std::string& path) {
  Tensors tensors(path);
  try {
    std::string op = tensors.metadata()["op"];
    json cases = json::parse(tensors.metadata()["cases"].get<std::string>());
    std::vector<Case> result;
    for (const json& j : cases) result.push_back(read_case(j, op, tensors));
    return result;
  } catch (const json::exception& e) {
    tensors.fail(e.what());
  }
}

}  // namespace ingot::cli
