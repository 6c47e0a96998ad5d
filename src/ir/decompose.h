// Composites as graphs of primitives. What holds afterwards:
//
// - no composite is left;
// - a reduction reduces exactly one dim (attribute of length 1, or argmax's dim), without keepdim and dtype: dims
//   that are neighbours by number became one dim, the others nest, innermost first; an integer sum reads i64, any and
//   all read bool;
// - an op that computes (sum, prod, and all that came from a composite) sees no 16-bit float: f16 and bf16 operands are
//   cast to f32 before it and the result is cast back once, after the op that the user called. Only matmul reads bf16
//   as it is, where the user's op had bf16 operands: its result is f32 (out_dtype); and conv2d and the gradient of its
//   weight, where asked to. What the user has cast is f32;
// - the operands of matmul have two dims or more (a product of floats with a vector, or one column, is a sum of
//   products, one of depth 1 is elementwise); a stack of rows times one matrix is one product of two dims;
// - conv2d computes in f32, of f32 or bf16, or in f64; query, key and value of attention have the same number of dims
// and the same sizes
//   before the heads (with enable_gqa; key and value have as many) or before the last two dims (without);
// - a host op that computes reads f32, f64 and i64 only, and tensors only; where it moves or orders elements, positions
//   are i64 and nonzero_static reads bool;
// - the operands of cat have one dtype; self and index of gather and index_select have a dim.
#pragma once
#include "ir/builder.h"

namespace ingot::ir {

/// A call to write as primitives: operands already widened to f32, `result` what the user's op gives.
struct CompositeCall {
  const OpInfo& op;
  std::vector<Operand> operands;
  std::vector<Attr> attrs;
  DType result;  // dtype and shape of the first output before widening
  Dims shape;

  const Operand& operand(std::string_view name) const;
  const Attr& attribute(std::string_view name) const;
  int64_t integer(std::string_view name) const { return attribute(name).integer; }
  bool flag(std::string_view name) const { return attribute(name).integer != 0; }
};
using Outputs = std::vector<Operand>;

/// One function a composite, under its name: what the row's `decompose` is.
namespace decompositions {
#define OP_composite(name, ...) Outputs name(GraphBuilder& b, const CompositeCall& call);
#include "ir/ops.def"
}  // namespace decompositions

/// The dims that a call over x of `rank` dims reduces: all where it names none.
Dims reduced_dims(size_t rank, const Attr& dim);
/// x with neighbouring dims that are reduced joined to one, and their numbers then, where some dim stays.
Operand joined(GraphBuilder& b, const Operand& x, Dims& dims);
/// How many elements of a shape these dims have.
Dim element_count(DimTable& table, const Dims& shape, const Dims& dims);

/// Rewrites a functional graph. Values keep their types; their numbers change.
///
/// `convolves_bf16`: conv2d, unless each of its channels is a group, reads bf16 as matmul does.
/// `one_op`: guards may say how the graph's one op is written, as eager makes its programs.
void decompose(Graph& graph, bool convolves_bf16 = false, bool one_op = false);

}  // namespace ingot::ir
