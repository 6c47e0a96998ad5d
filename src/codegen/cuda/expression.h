// A node of kernel IR as a C++ expression.
#pragma once
#include <string>

#include "codegen/kernel_ir.h"

namespace ingot::codegen::cuda {

/// Of a register ("float"), and of an element in memory ("unsigned short" for the 16-bit floats).
const char* type_name(Type type);
const char* memory_name(DType dtype);

/// A node by name, or a constant as a literal.
std::string operand(const Kernel& kernel, Value v);
/// What a node computes from its operands; for loads, locals and rare nodes see print.cpp.
std::string expression(const Kernel& kernel, const Node& node);

/// An element in memory as a register, and back.
std::string from_memory(DType dtype, const std::string& element);
std::string to_memory(DType dtype, const std::string& value);

}  // namespace ingot::codegen::cuda
