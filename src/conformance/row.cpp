#include "conformance/row.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/graph.h"

namespace ingot::conformance {
namespace {

using ir::ArgInfo;
using ir::ArgKind;
using ir::Attr;
using Kind = CaseValue::Kind;

[[noreturn]] void refuse(const ArgInfo& argument, const char* what) {
  throw Error("the row's argument " + argument.name + " does not take " + what);
}

Dim raw(int64_t value) {
  Dim d;
  d.code = value;  // negative ones are settled when the call is made
  return d;
}

Dims dims_of(const ArgInfo& argument, const CaseValue& v) {
  Dims dims;
  if (v.is(Kind::integer)) {
    dims.push_back(raw(v.integer));
  } else if (v.is(Kind::list)) {
    for (const CaseValue& item : v.items) {
      if (!item.is(Kind::integer)) refuse(argument, "a list of anything but integers");
      dims.push_back(raw(item.integer));
    }
  } else {
    refuse(argument, "anything but integers");
  }
  return dims;
}

Attr attribute_of(const ArgInfo& argument, const CaseValue& v) {
  if (v.is(Kind::null)) {
    if (!argument.optional && !argument.has_default) refuse(argument, "null");
    return {};
  }
  switch (argument.kind) {
    case ArgKind::dims:
    case ArgKind::integers:
    case ArgKind::size:
    case ArgKind::sizes:
      return Attr::of(dims_of(argument, v));
    case ArgKind::boolean:
      if (!v.is(Kind::boolean)) refuse(argument, "anything but a bool");
      return Attr::of(v.integer != 0);
    case ArgKind::dtype:
      if (!v.is(Kind::dtype)) refuse(argument, "anything but a dtype");
      return Attr::of(v.dtype);
    case ArgKind::number:
      if (!v.is(Kind::number) && !v.is(Kind::integer)) refuse(argument, "anything but a number");
      return Attr::number(v.is(Kind::number) ? v.number : static_cast<double>(v.integer));
    case ArgKind::mode: {
      auto word = std::find(argument.modes.begin(), argument.modes.end(), v.text);
      if (!v.is(Kind::text) || word == argument.modes.end()) refuse(argument, "this word");
      return Attr::mode(static_cast<int>(word - argument.modes.begin()));
    }
    default:
      if (!v.is(Kind::integer)) refuse(argument, "anything but an integer");
      return Attr::of(v.integer);
  }
}

const CaseValue* operand_of(const ArgInfo& argument, const CaseValue& v) {
  if (v.is(Kind::null)) return nullptr;
  bool scalar = v.is(Kind::boolean) || v.is(Kind::integer) || v.is(Kind::number);
  bool fits = argument.kind == ArgKind::value    ? scalar
              : argument.kind == ArgKind::tensor ? v.is(Kind::tensor)
                                                 : scalar || v.is(Kind::tensor);
  if (!fits) refuse(argument, "a value of this kind");
  return &v;
}

}  // namespace

bool changes_no_value(std::string_view name) {
  static const std::set<std::string_view> kNames = {"requires_grad", "device", "layout",       "pin_memory",
                                                    "memory_format", "sparse", "non_blocking", "driver"};
  return kNames.count(name) > 0;
}

RowCall place(const ir::OpInfo& row, const Case& c) {
  if (c.args.size() > row.arguments.size()) throw Error("the row takes fewer arguments");
  for (const auto& [name, value] : c.kwargs) {
    bool known = changes_no_value(name) || std::any_of(row.arguments.begin(), row.arguments.end(),
                                                       [&name = name](const ArgInfo& a) { return a.name == name; });
    if (!known) throw Error("the row has no argument " + name);
  }
  RowCall call{row.id, {}, {}};
  static const CaseValue kNull;
  for (size_t i = 0; i < row.arguments.size(); ++i) {
    const ArgInfo& argument = row.arguments[i];
    const CaseValue* v = c.find(i, argument.name);
    if (argument.kind == ArgKind::tensors) {
      if (!v || !v->is(Kind::list)) refuse(argument, "anything but a list");
      for (const CaseValue& member : v->items) call.operands.push_back(operand_of(argument, member));
    } else if (ir::is_operand(argument.kind)) {
      call.operands.push_back(operand_of(argument, v ? *v : kNull));
    } else {
      Attr given = v ? attribute_of(argument, *v) : Attr();
      call.attrs.push_back(given.present() ? given : ir::default_attribute(argument));
    }
  }
  return call;
}

}  // namespace ingot::conformance
