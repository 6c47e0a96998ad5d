// Writes the op API from the op table: methods of Tensor, free functions and their definitions. Run by the build:
//   generate_api FOLDER      makes FOLDER/ops_methods.inc, FOLDER/ops.h and FOLDER/ops.cpp
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "ir/op.h"

namespace {

using ingot::OpId;
using ingot::ir::ArgInfo;
using ingot::ir::ArgKind;
using ingot::ir::OpInfo;

/// Makes a tensor from nothing but numbers: what it is to be is told by TensorOptions.
bool creates(const OpInfo& op) {
  bool has_dtype = false;
  for (const ArgInfo& a : op.arguments) {
    if (a.kind == ArgKind::tensor || a.kind == ArgKind::tensors) return false;
    has_dtype |= a.kind == ArgKind::dtype;
  }
  return has_dtype;
}

std::string type_of(const ArgInfo& a) {
  auto maybe = [&](const std::string& type) { return a.optional ? "std::optional<" + type + "> " : type + " "; };
  switch (a.kind) {
    case ArgKind::tensor:
      return "const TensorArg& ";
    case ArgKind::operand:
      return "const OperandArg& ";
    case ArgKind::value:
      return "const ScalarArg& ";
    case ArgKind::tensors:
      return "const TensorList& ";
    case ArgKind::dims:
    case ArgKind::integers:
    case ArgKind::sizes:
      return "const IntList& ";
    case ArgKind::dim:
    case ArgKind::new_dim:
    case ArgKind::integer:
      return maybe("int64_t");
    case ArgKind::size:
      return maybe("SizeArg");
    case ArgKind::number:
      return maybe("double");
    case ArgKind::boolean:
      return maybe("bool");
    case ArgKind::dtype:
      return maybe("DType");
    case ArgKind::mode:
      return "Word ";
  }
  return {};
}

/// The method of detail::Call that takes an argument of this kind.
std::string adder_of(const ArgInfo& a) {
  if (!a.special.empty()) return "special_operand";
  switch (a.kind) {
    case ArgKind::tensors:
      return "tensors";
    case ArgKind::tensor:
    case ArgKind::operand:
    case ArgKind::value:
      return "operand";
    case ArgKind::size:
      return "size";
    case ArgKind::dims:
    case ArgKind::integers:
    case ArgKind::sizes:
      return "list";
    case ArgKind::mode:
      return "mode";
    default:
      return "attribute";
  }
}

/// The arguments that a caller gives: all but the seed and offset of a random op.
std::span<const ArgInfo> given_arguments(const OpInfo& op) {
  return std::span(op.arguments).first(op.arguments.size() - (op.has(ingot::ir::kRandom) ? 2 : 0));
}

bool can_omit(const ArgInfo& a) { return a.optional || a.has_default; }

std::string default_of(const ArgInfo& a) {
  if (!a.has_default) return "{}";
  if (a.kind == ArgKind::boolean) return a.default_number != 0 ? "true" : "false";
  if (a.kind == ArgKind::mode) return "\"" + a.modes[a.default_mode] + "\"";
  char buffer[64];
  if (a.default_integer) {
    std::snprintf(buffer, sizeof buffer, "%lld", static_cast<long long>(a.default_number));
    return buffer;
  }
  std::snprintf(buffer, sizeof buffer, "%.17g", a.default_number);
  std::string s = buffer;
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

/// Parameters from argument `first` on; defaults only where every later argument can be omitted.
std::string parameters(const OpInfo& op, size_t first, bool defaults, bool location) {
  std::span<const ArgInfo> arguments = given_arguments(op);
  size_t omit_from = arguments.size();
  while (omit_from > first && can_omit(arguments[omit_from - 1])) --omit_from;
  std::string text;
  for (size_t i = first; i < arguments.size(); ++i) {
    const ArgInfo& a = arguments[i];
    const bool options = creates(op) && a.kind == ArgKind::dtype;
    text += (text.empty() ? "" : ", ") + (options ? "const TensorOptions& options" : type_of(a) + a.name);
    if (defaults && i >= omit_from) text += " = " + default_of(a);
  }
  if (op.has(ingot::ir::kRandom))
    text +=
        std::string(text.empty() ? "" : ", ") + "const std::optional<Generator>& generator" + (defaults ? " = {}" : "");
  if (location) text += std::string(text.empty() ? "" : ", ") + "Location location" + (defaults ? " = Location()" : "");
  return text;
}

std::string result_type(const OpInfo& op) {
  if (op.outputs == 1) return "Tensor";
  std::string text = "std::tuple<Tensor";
  for (int i = 1; i < op.outputs; ++i) text += ", Tensor";
  return text + ">";
}

/// The signature as a comment.
std::string describe(const OpInfo& op, const std::string& name) {
  std::string text = "/// " + name + "(";
  std::span<const ArgInfo> arguments = given_arguments(op);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgInfo& a = arguments[i];
    std::string kind = type_of(a);
    if (a.kind == ArgKind::tensor || a.kind == ArgKind::value) kind = a.kind == ArgKind::tensor ? "tensor" : "scalar";
    if (a.kind == ArgKind::operand) kind = "tensor or scalar";
    if (a.kind == ArgKind::tensors) kind = "tensors";
    if (adder_of(a) == "list") kind = a.kind == ArgKind::dims ? "dims" : "integers";
    if (a.kind == ArgKind::size) kind = "integer";
    if (a.kind == ArgKind::dim || a.kind == ArgKind::new_dim) kind = "dim";
    if (a.kind == ArgKind::integer) kind = "integer";
    if (a.kind == ArgKind::number) kind = "number";
    if (a.kind == ArgKind::boolean) kind = "bool";
    if (a.kind == ArgKind::dtype) kind = "dtype";
    if (a.kind == ArgKind::mode) kind.clear();
    for (size_t m = 0; m < a.modes.size(); ++m) kind += (m ? " | " : "") + a.modes[m];
    text += (i ? ", " : "") + a.name + ": " + kind;
    if (a.has_default)
      text += " = " + default_of(a);
    else if (a.optional)
      text += ", optional";
  }
  return text + ")";
}

bool has_method(const OpInfo& op) {
  return !op.arguments.empty() && op.arguments[0].name == "self" && op.arguments[0].kind != ArgKind::tensors;
}

/// False where a required argument follows one with a default, which C++ cannot say (arange): that function is written
/// by hand.
bool has_function(const OpInfo& op) {
  bool omitted = false;
  for (const ArgInfo& a : given_arguments(op)) {
    if (!can_omit(a) && omitted) return false;
    omitted |= a.has_default;
  }
  return true;
}

/// A namespace of the library, or a function of PyTorch's with other arguments, has this name: the op is a method only.
bool is_taken(const std::string& name) { return name == "trace" || name == "normal"; }

/// Whether PyTorch calls it with a dtype alone, too: x.sum(kFloat64).
bool takes_dtype_alone(const OpInfo& op) {
  const std::span<const ArgInfo> arguments = given_arguments(op);
  return has_method(op) && arguments.size() > 2 && arguments[1].kind == ArgKind::dims &&
         arguments.back().kind == ArgKind::dtype && std::ranges::all_of(arguments.subspan(1), can_omit);
}
/// That form, which calls the whole one. A template: {} stays a list, as no type follows from it.
std::string dtype_form(const OpInfo& op, const std::string& name, bool method) {
  const std::span<const ArgInfo> arguments = given_arguments(op);
  std::string call = method ? "" : "self, ";
  for (const ArgInfo& a : arguments.subspan(1, arguments.size() - 2)) call += default_of(a) + ", ";
  return "template <std::same_as<DType> Type>\n" + result_type(op) + " " + name +
         (method ? "(Type dtype, Location location = Location()) const { return " + name + "(" + call +
                       "dtype, location); }\n"
                 : "(const TensorArg& self, Type dtype) { return " + name + "(" + call + "dtype); }\n");
}

/// Operands and attributes in the order of the signature, then the call.
std::string body(const OpInfo& op, bool method, const std::string& location, const std::string& run) {
  std::string text = "  detail::Call<" + std::to_string(op.operand_count) + ", " +
                     std::to_string(op.arguments.size() - op.operand_count) + (op.list_first ? ", true" : "") +
                     "> call(OpId::" + std::string(op.name) + ", " + location + ");\n";
  std::span<const ArgInfo> arguments = given_arguments(op);
  for (size_t i = 0; i < arguments.size(); ++i)
    text += "  call." + adder_of(arguments[i]) + "(" +
            (method && i == 0                                     ? std::string("*this")
             : creates(op) && arguments[i].kind == ArgKind::dtype ? std::string("options.type")
                                                                  : arguments[i].name) +
            ");\n";
  if (op.has(ingot::ir::kRandom)) text += "  call.draw(generator);\n";
  return text + "  " + run + ";\n}\n";
}

struct Writer {
  std::ostringstream methods, header, source;

  void write(const OpInfo& op, const std::string& name) {
    std::string result = result_type(op), comment = describe(op, name);
    std::string run = op.outputs == 1 ? "return call.run()" : "return call.run_" + std::to_string(op.outputs) + "()";
    // A first argument that is no operand does not record the caller's line.
    bool located = op.arguments.empty() || !ingot::ir::is_operand(op.arguments[0].kind);
    const std::string location = located ? "location" : "Location::none()";
    if (creates(op)) run = "return eager::as_asked(call.run(), options, " + location + ")";
    if (!is_taken(name)) {
      header << comment << "\nINGOT_API " << result << " " << name << "(" << parameters(op, 0, true, located) << ");\n";
      source << result << " " << name << "(" << parameters(op, 0, false, located) << ") {\n"
             << body(op, false, location, run);
      if (takes_dtype_alone(op)) header << dtype_form(op, name, false);
    }
    if (!has_method(op)) return;
    methods << comment << "\n" << result << " " << name << "(" << parameters(op, 1, true, true) << ") const;\n";
    source << result << " Tensor::" << name << "(" << parameters(op, 1, false, true) << ") const {\n"
           << body(op, true, "location", run);
    if (takes_dtype_alone(op)) methods << dtype_form(op, name, true);
    if (!op.has(ingot::ir::kInplace)) return;
    methods << "/// " << name << ", written to this tensor.\nconst Tensor& " << name << "_("
            << parameters(op, 1, true, true) << ") const;\n";
    source << "const Tensor& Tensor::" << name << "_(" << parameters(op, 1, false, true) << ") const {\n"
           << body(op, true, "location", "call.run_inplace();\n  return *this");
    const auto with_self = [](const std::string& others) {
      return "_(const TensorArg& self" + (others.empty() ? "" : ", " + others) + ")";
    };
    header << "/// " << name << ", written to self.\nINGOT_API const Tensor& " << name
           << with_self(parameters(op, 1, true, false)) << ";\n";
    source << "const Tensor& " << name << with_self(parameters(op, 1, false, false)) << " {\n"
           << body(op, false, location, "call.run_inplace();\n  return self.get()");
  }
};

struct Alias {
  std::string name;
  OpId op;
};
const std::vector<Alias>& aliases() {
  static const std::vector<Alias> all = {
#define OP(...)
#define ALIAS(other, name) {other, OpId::name},
#include "ir/ops.def"
  };
  return all;
}

/// A file that has this text already stays as old as it is: nothing that includes it is compiled again.
bool put(const std::string& path, const std::string& text) {
  std::ostringstream old;
  if (std::ifstream file(path); file && old << file.rdbuf() && old.str() == text) return true;
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) std::cerr << "generate_api: cannot write to " << path << "\n";
  return bool(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: generate_api FOLDER\n";
    return 2;
  }
  std::string folder = argv[1];
  Writer writer;
  writer.methods << "// The ops as methods of Tensor. Generated from the op table.\n";
  writer.header
      << "// The ops as functions. Generated from the op table.\n#pragma once\n#include \"eager/tensor.h\"\n\n"
         "namespace ingot {\n\n";
  writer.source << "// Generated from the op table.\n#include \"eager/ops.h\"\n\n#include \"eager/call/call.h\"\n\n"
                   "namespace ingot {\n\n";
  for (const OpInfo& op : ingot::ir::ops())
    if (has_function(op)) writer.write(op, std::string(op.name));
  for (const Alias& alias : aliases())
    if (alias.name.find('.') == std::string::npos) writer.write(ingot::ir::info(alias.op), alias.name);
  writer.header << "\n}  // namespace ingot\n";
  writer.source << "\n}  // namespace ingot\n";
  const bool good = put(folder + "/ops_methods.inc", writer.methods.str()) &&
                    put(folder + "/ops.h", writer.header.str()) && put(folder + "/ops.cpp", writer.source.str());
  return good ? 0 : 1;
}
