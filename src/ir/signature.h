// The signatures of the op table, parsed once.
#pragma once
#include <string_view>

#include "ir/op.h"

namespace ingot::ir {

/// Fills arguments, operand_count, list_first and outputs from "self: tensor, dim: dims?, keepdim: boolean = 0 -> 2".
void parse_signature(std::string_view text, OpInfo* op);
/// The word for a kind in signatures and messages.
std::string_view name_of(ArgKind kind);

}  // namespace ingot::ir
