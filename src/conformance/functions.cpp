#include "conformance/functions.h"

#include <map>

#include "conformance/function_tables.h"

namespace ingot::conformance {
namespace {

const std::multimap<std::string, Function>& functions() {
  static const std::multimap<std::string, Function> kFunctions = [] {
    std::multimap<std::string, Function> all;
    for (auto table : {special_forms, data_functions, math_functions, nn_functions})
      for (auto& [name, function] : table()) all.emplace(std::move(name), std::move(function));
    return all;
  }();
  return kFunctions;
}

const Function* find(const std::string& name, const Case& c) {
  for (auto [f, end] = functions().equal_range(name); f != end; ++f)
    if (f->second.takes(c)) return &f->second;
  return nullptr;
}

}  // namespace

const Function* find_function(const Case& c) { return find(c.op, c); }
const Function* find_inplace_function(const Case& c) { return find(c.op + "_", c); }
bool has_function(const std::string& op) { return functions().count(op) > 0; }

}  // namespace ingot::conformance
