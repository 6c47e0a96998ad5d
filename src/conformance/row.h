// A case's arguments placed in the signature of an op's row: PyTorch's positions, names and defaults.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "conformance/case.h"
#include "ir/op.h"

namespace ingot::conformance {

/// Operands and attributes in the order of the row. Attributes stand as the user wrote them: negative dims and sizes
/// are not yet settled; those not given have the row's default.
struct RowCall {
  OpId op;
  std::vector<const CaseValue*> operands;  // null: absent, or the row's default; borrowed from the case
  std::vector<ir::Attr> attrs;
};

/// Whether PyTorch's argument of this name changes no value: where and how a result is stored, how it is computed.
bool changes_no_value(std::string_view name);

/// Throws Error for an argument that the row does not have or that is of another kind.
RowCall place(const ir::OpInfo& row, const Case& c);
}  // namespace ingot::conformance
