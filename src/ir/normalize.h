// Reductions and structured ops in the one form that decompose.h promises.
#pragma once
#include "ir/builder.h"

namespace ingot::ir {

struct Normalizer {
  GraphBuilder& b;

  /// Operands are complete and widened; `declared` is what the call gives.
  std::vector<Operand> call(const OpInfo& op, std::vector<Operand> operands, std::vector<Attr> attrs,
                            const std::vector<TensorType>& declared);

 private:
  Operand reduction(OpId op, Operand x, const Attr& dim, const Dims& result);
  Operand matmul(Operand self, Operand other, const Dims& result);
  Operand cat(std::vector<Operand> tensors, const Attr& dim, DType dtype);
  std::vector<Operand> attention(const OpInfo& op, std::vector<Operand> operands, std::vector<Attr> attrs);
  Operand scatter(const std::vector<Operand>& operands, const std::vector<Attr>& attrs);
  Operand searchsorted(std::vector<Operand> operands, std::vector<Attr> attrs);
  Operand indexed(OpId op, Operand self, Operand index, const Attr& dim, const Dims& result);
};

}  // namespace ingot::ir
