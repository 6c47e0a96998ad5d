// Derivatives: the vector-Jacobian product of a call (ir::Derivative) as a graph of primitives.
//
// A call is written as primitives, and these are walked from the last to the first. Each adds to the gradients of its
// operands, in this order, so the order of sums follows from the decomposition alone. A composite or a reduction with a
// rule of its own is one step of the walk. Inside, nothing is a 16-bit float: operands and cotangents are widened once,
// results are rounded once. A derivative of higher order is the same walk again.
#pragma once
#include "ir/builder.h"

namespace ingot::ir {

/// A call whose operands' gradients a rule is asked for.
struct DerivedCall {
  const OpInfo& op;
  std::vector<Operand> operands;
  std::vector<Attr> attrs;
  std::vector<Operand> results;  // its outputs; a rule that reads these rather than operands makes the tape keep them
  std::vector<Operand> cotangents;  // one for each output, with its dtype and shape; absent: zero
  std::vector<bool> wanted;         // of the operands

  const Operand& operand(std::string_view name) const;
  const Attr& attribute(std::string_view name) const;
  int64_t integer(std::string_view name) const { return attribute(name).integer; }
  bool flag(std::string_view name) const { return attribute(name).integer != 0; }
  /// Those of an op with one output.
  const Operand& result() const { return results[0]; }
  const Operand& cotangent() const { return cotangents[0]; }
};

/// One for each operand, absent where it is zero or not wanted. An empty list: the rule leaves this call to its
/// decomposition.
using Gradients = std::vector<Operand>;

/// One function a row whose derivative is a rule, under the name that its row gives. A gradient has the shape that the
/// operands broadcast to, or that of its operand, and any float dtype: it is summed and cast afterwards.
namespace derivatives {
using Rule = Gradients(GraphBuilder& b, const DerivedCall& call);
// arithmetic.cpp
Rule add, sub, rsub, mul, div, remainder, fmod, pow, maximum, minimum, fmax, fmin, clamp, clamp_min, clamp_max, lerp,
    addcmul, addcdiv, neg, abs, square, reciprocal, same, nextafter, copysign, ldexp, nan_to_num, where, masked_fill,
    replaced;
// functions.cpp
Rule sqrt, rsqrt, exp, exp2, expm1, log, log2, log10, log1p, xlogy, logaddexp, logaddexp2, logit, hypot, sin, cos, tan,
    asin, acos, atan, atan2, sinh, cosh, tanh, asinh, acosh, atanh, sinc, deg2rad, rad2deg, erf, erfc, erfcx, erfinv,
    lgamma, digamma, polygamma;
// activations.cpp
Rule sigmoid, relu, relu6, hardtanh, gelu, silu, mish, hardsigmoid, hardswish, elu, celu, selu, leaky_relu, softplus,
    softsign, logsigmoid, threshold, shrink, tanhshrink, prelu;
// views.cpp
Rule reshaped, permute, expand, select, slice, diagonal, unfold, as_strided, as_strided_scatter, cat, tril, triu, flip;
// indexing.cpp
Rule index_select, gather, embedding, scatter, scatter_reduce;
// order.cpp
Rule chosen, found, running_extreme, cumsum, cumprod, logcumsumexp;
// reductions.cpp
Rule sum, prod, extreme, var, std, logsumexp, norm, cdist, softmax, log_softmax;
// products.cpp
Rule matmul, conv2d, conv2d_weight_backward, scaled_dot_product_attention, scaled_dot_product_attention_backward;
// matrices.cpp
Rule linalg_cholesky_ex, linalg_inv_ex, linalg_solve_ex, linalg_det, linalg_cofactors, linalg_lu_factor_ex, linalg_qr,
    linalg_eigh, linalg_svd, linalg_matrix_exp;
// recurrent.cpp
Rule rnn_sequence, lstm_sequence, gru_sequence, rnn_sequence_backward, lstm_sequence_backward, gru_sequence_backward;
// windows.cpp
Rule max_pool, avg_pool, im2col, col2im;
// norms.cpp
Rule batch_norm;
// losses.cpp
Rule smooth_l1_loss, huber_loss, binary_cross_entropy, nll_loss, cross_entropy;
}  // namespace derivatives

/// `gradient` summed over the dims that broadcasting gave it, in one sum.
Operand sum_to(GraphBuilder& b, const Operand& gradient, Dims shape);

/// What a derived call reads of its operands, told by its graph: what is not read need not be kept.
struct DerivativeReads {
  std::vector<bool> operands;  // of the derived call
  std::vector<int> copies;     // of each result: the operand that it is just a copy of, or -1
};
/// `attrs` are those of the call that is derived; all its operands, outputs and cotangents that may be there are given.
/// `known`: of the first operands, the constants that scalars among them are; none: given at run time.
DerivativeReads derivative_reads(OpId op, const Derivative& derivative, std::span<const OperandType> operands,
                                 std::span<const Attr> attrs, std::span<const Operand> known = {});

}  // namespace ingot::ir
