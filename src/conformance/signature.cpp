#include "conformance/signature.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "conformance/row.h"

namespace ingot::conformance {

using Kind = CaseValue::Kind;

namespace {

CaseValue literal(std::string_view text) {
  const nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  if (j.is_discarded()) return plain_value(std::string(text));
  if (!j.is_array()) return plain_value(j);
  CaseValue v;
  v.kind = Kind::list;
  for (const nlohmann::json& item : j) v.items.push_back(literal(item.dump()));
  return v;
}

}  // namespace

Signature::Signature(const char* text) {
  constexpr std::string_view kBetween = ", ";
  for (std::string_view rest(text); !rest.empty();) {
    const size_t end = std::min(rest.find(kBetween), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + kBetween.size(), rest.size()));
    const size_t equals = one.find('=');
    const bool all = one.front() == '*', required = equals == std::string_view::npos;
    names_.push_back({std::string(one.substr(all, required ? one.npos : equals)),
                      required ? CaseValue() : literal(one.substr(equals + 1)), required, all});
  }
  const auto all = std::find_if(names_.begin(), names_.end(), [](const Name& n) { return n.rest; });
  positional_ = static_cast<size_t>(all - names_.begin()) + (all != names_.end());
}

bool Signature::fits(const Case& c, std::span<const Takes> parameters) const {
  if (c.args.size() > positional_ && !(positional_ && names_[positional_ - 1].rest)) return false;
  for (const auto& [name, value] : c.kwargs) {
    const auto found =
        std::find_if(names_.begin(), names_.end(), [&name = name](const Name& n) { return n.name == name; });
    if (found == names_.end() ? !changes_no_value(name)
                              : static_cast<size_t>(found - names_.begin()) < std::min(c.args.size(), positional_))
      return false;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (i < names_.size() && names_[i].required && !find(c, i)) return false;
    if (!parameters[i](given(c, i))) return false;
  }
  return true;
}

const CaseValue* Signature::find(const Case& c, size_t i) const {
  return c.find(i < positional_ ? i : c.args.size(), names_[i].name);
}

Given Signature::given(const Case& c, size_t i) const {
  static const CaseValue kNone;
  if (i >= names_.size()) return kNone;
  const CaseValue* value = find(c, i);
  if (!value || value->is(Kind::null)) return names_[i].otherwise;  // PyTorch's None stands for the default
  if (names_[i].rest && !value->is(Kind::list)) return std::span(c.args).subspan(i);
  return *value;
}

namespace parameter {

bool is_number(const Given& v) { return v.is(Kind::boolean) || v.is(Kind::integer) || v.is(Kind::number); }
bool is_list(const Given& v, bool (*takes)(const Given&)) {
  return v.is(Kind::list) && std::all_of(v.items.begin(), v.items.end(), takes);
}
Scalar number(const Given& v, const Arguments& a) {
  if (v.is(Kind::tensor)) return a.make(v.value->tensor).item();
  if (v.is(Kind::number)) return v.value->number;
  return v.is(Kind::boolean) ? Scalar(v.value->integer != 0) : Scalar(v.value->integer);
}

}  // namespace parameter
}  // namespace ingot::conformance
