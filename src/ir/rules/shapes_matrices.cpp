// Shape rules of functions of matrices.
#include <initializer_list>

#include "ir/rules/rules.h"

namespace ingot::ir::shapes {
namespace {

std::string operand_shape(RuleContext& context, size_t i) { return given_shape(context, shape_of(context, i)); }

/// The matrices of operand 0: their sizes, and the dims before them.
struct Matrices {
  Dims batch;
  Dim rows, columns;
  Dims with(std::initializer_list<Dim> sizes) const {
    Dims shape = batch;
    for (Dim size : sizes) shape.push_back(size);
    return shape;
  }
};
Matrices matrices_of(RuleContext& context, bool square) {
  const Dims& A = shape_of(context, 0);
  if (A.size() < 2) context.fail(operand_name(context, 0), operand_shape(context, 0), "matrices: at least two dims");
  const Matrices m{{A.begin(), A.end() - 2}, A[A.size() - 2], A.back()};
  if (square) check_size(context, operand_name(context, 0), A, A.size() - 1, m.rows, "square matrices");
  return m;
}

}  // namespace

void square_matrices(RuleContext& context) {
  const Matrices m = matrices_of(context, true);
  context.outputs[0].shape = shape_of(context, 0);
  if (context.outputs.size() > 1) context.outputs[1].shape = m.batch;
}

void linear_system(RuleContext& context) {
  const Matrices m = matrices_of(context, true);
  const Dims& B = shape_of(context, 1);
  if (B.size() != m.batch.size() + 2) context.fail("B", operand_shape(context, 1), "as many dims as A has");
  for (size_t d = 0; d < m.batch.size(); ++d) check_size(context, "B", B, d, m.batch[d], "the batch of A");
  check_size(context, "B", B, B.size() - 2, m.rows, "the rows of A");
  context.outputs[0].shape = B;
  context.outputs[1].shape = m.batch;
}

void determinants(RuleContext& context) {
  const Matrices m = matrices_of(context, true);
  for (TensorType& output : context.outputs) output.shape = m.batch;
}

void eliminated(RuleContext& context) {
  const Matrices m = matrices_of(context, false);
  context.outputs[0].shape = shape_of(context, 0);
  context.outputs[1].shape = m.with({context.dims.min(m.rows, m.columns)});
  context.outputs[2].shape = m.batch;
}

void pivot_order(RuleContext& context) {
  Dims shape = shape_of(context, 0);
  if (shape.empty()) context.fail("pivots", operand_shape(context, 0), "at least one dim");
  const Dim n = attribute(context, "n").list[0];
  if (context.dims.less(n, shape.back()))
    context.fail("n", context.dims.str(n), "no fewer than pivots, " + context.dims.str(shape.back()));
  shape.back() = n;
  context.outputs[0].shape = std::move(shape);
}

void orthogonal(RuleContext& context) {
  const Matrices m = matrices_of(context, false);
  if (context.dims.less(m.rows, m.columns))
    context.fail(operand_name(context, 0), operand_shape(context, 0), "no more columns than rows");
  const Dim q_columns = boolean_attribute(context, "complete") ? m.rows : m.columns;
  context.outputs[0].shape = m.with({m.rows, q_columns});
  context.outputs[1].shape = m.with({q_columns, m.columns});
}

void eigenvectors(RuleContext& context) {
  const Matrices m = matrices_of(context, true);
  context.outputs[0].shape = m.with({m.rows});
  context.outputs[1].shape = m.with({m.rows, boolean_attribute(context, "vectors") ? m.rows : Dim(0)});
}

void singular_vectors(RuleContext& context) {
  const Matrices m = matrices_of(context, false);
  const Dim k = context.dims.min(m.rows, m.columns);
  const bool full = boolean_attribute(context, "full_matrices"), none = !boolean_attribute(context, "vectors");
  context.outputs[0].shape = m.with({m.rows, none ? Dim(0) : full ? m.rows : k});
  context.outputs[1].shape = m.with({k});
  context.outputs[2].shape = m.with({none ? Dim(0) : full ? m.columns : k, m.columns});
}

}  // namespace ingot::ir::shapes
