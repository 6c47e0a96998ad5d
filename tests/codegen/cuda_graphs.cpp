#include "cuda_graphs.h"

#include "ir/passes/pipeline.h"

namespace ingot::codegen::test {
namespace {

using ir::Attr;
using ir::Graph;
using ir::Operand;
using ir::ValueId;

Operand val(ValueId v) { return Operand::value(v); }
ValueId call(Graph& g, OpId op, std::vector<ValueId> operands, std::vector<Attr> attrs = {}) {
  std::vector<Operand> list;
  for (ValueId v : operands) list.push_back(val(v));
  return g.add(op, std::move(list), std::move(attrs));
}
Attr dims(Dims d) { return Attr::of(std::move(d)); }

/// z = tanh(x) * x + 0.5 with run-time sizes and a run-time scalar.
Graph pointwise() {
  Graph g;
  Dim n = g.dims.symbol(100);
  ValueId x = g.add_input(DType::f32, {n});
  g.scalars = {Category::floating};
  ValueId y = call(g, OpId::mul, {call(g, OpId::tanh, {x}), x});
  g.outputs = {g.add(OpId::add, {val(y), Operand::scalar(0, Category::floating)})};
  return g;
}

/// A bf16 bias over rows, a mask and a cast: several outputs of several types.
Graph mixed_types() {
  Graph g;
  Dim n = g.dims.symbol(7), m = g.dims.symbol(40);
  ValueId x = g.add_input(DType::bf16, {n, m}), b = g.add_input(DType::bf16, {m}), h = g.add_input(DType::f16, {n, 1});
  ValueId y = call(g, OpId::relu, {call(g, OpId::add, {x, b})});
  ValueId mask = call(g, OpId::gt, {y, h});
  g.outputs = {y, mask, call(g, OpId::cast, {y}, {Attr::of(DType::i64)}),
               call(g, OpId::cast, {h}, {Attr::of(DType::i8)})};
  return g;
}

/// sin: an argument far from zero takes the branch of its own.
Graph rare_branch() {
  Graph g;
  ValueId x = g.add_input(DType::f32, {g.dims.symbol(33)});
  g.outputs = {call(g, OpId::sin, {x})};
  return g;
}

/// A transposed operand and dims that do not merge.
Graph strided() {
  Graph g;
  Dim a = g.dims.symbol(3), b = g.dims.symbol(5), c = g.dims.symbol(6);
  ValueId x = g.add_input(DType::f64, {a, b, c}), y = g.add_input(DType::f64, {b, 1, c});
  ValueId t = call(g, OpId::permute, {x}, {dims({1, 0, 2})});
  g.outputs = {call(g, OpId::add, {t, y})};
  return g;
}

/// A matrix that lies the other way round, beside one that does not and a number for each row.
Graph turned() {
  Graph g;
  Dim n = g.dims.symbol(40), m = g.dims.symbol(70);
  ValueId x = g.add_input(DType::bf16, {m, n}), y = g.add_input(DType::f32, {n, m});
  ValueId each = g.add_input(DType::f32, {n, 1});
  ValueId t = call(g, OpId::permute, {x}, {dims({1, 0})});
  g.outputs = {call(g, OpId::add, {call(g, OpId::mul, {t, y}), each})};
  return g;
}

/// Rows of a table at run-time places.
Graph embedding() {
  Graph g;
  Dim n = g.dims.symbol(9);
  ValueId table = g.add_input(DType::f32, {20, 24}), at = g.add_input(DType::i64, {n});
  g.outputs = {call(g, OpId::embedding, {table, at})};
  return g;
}

Graph softmax() {
  Graph g;
  ValueId x = g.add_input(DType::f32, {g.dims.symbol(5), g.dims.symbol(130)});
  g.outputs = {call(g, OpId::softmax, {x}, {Attr::of(int64_t{1})})};
  return g;
}

Graph layer_norm() {
  Graph g;
  Dim n = g.dims.symbol(5), m = g.dims.symbol(96);
  ValueId x = g.add_input(DType::bf16, {n, m}), w = g.add_input(DType::bf16, {m}), b = g.add_input(DType::bf16, {m});
  g.outputs = {call(g, OpId::layer_norm, {x, w, b}, {dims({m})})};
  return g;
}

Graph row_sum() {
  Graph g;
  ValueId x = g.add_input(DType::f32, {g.dims.symbol(5), g.dims.symbol(130)});
  g.outputs = {call(g, OpId::sum, {call(g, OpId::mul, {x, x})}, {dims({1}), Attr::of(false)})};
  return g;
}

Graph column_sum() {
  Graph g;
  ValueId x = g.add_input(DType::f32, {g.dims.symbol(70), g.dims.symbol(50)});
  g.outputs = {call(g, OpId::sum, {x}, {dims({0}), Attr::of(false)})};
  return g;
}

/// Along the rows of a batch.
Graph column_argmax() {
  Graph g;
  ValueId x = g.add_input(DType::f16, {g.dims.symbol(3), g.dims.symbol(70), g.dims.symbol(50)});
  g.outputs = {call(g, OpId::argmax, {x}, {Attr::of(int64_t{1}), Attr::of(false)})};
  return g;
}

/// A product, a library's, and the loop that follows it.
Graph product() {
  Graph g;
  ValueId x = g.add_input(DType::f32, {g.dims.symbol(8), 16}), w = g.add_input(DType::f32, {12, 16}),
          b = g.add_input(DType::f32, {12});
  g.outputs = {call(g, OpId::relu, {call(g, OpId::linear, {x, w, b})})};
  return g;
}

Graph prepared(Graph g) {
  ir::run_pipeline(g);
  return g;
}

}  // namespace

const std::vector<CudaGraph>& cuda_graphs() {
  static const std::vector<CudaGraph> list{
      {"pointwise", [] { return prepared(pointwise()); }},
      {"mixed_types", [] { return prepared(mixed_types()); }},
      {"rare_branch", [] { return prepared(rare_branch()); }},
      {"strided", [] { return prepared(strided()); }},
      {"turned", [] { return prepared(turned()); }},
      {"embedding", [] { return prepared(embedding()); }},
      {"softmax", [] { return prepared(softmax()); }},
      {"layer_norm", [] { return prepared(layer_norm()); }},
      {"row_sum", [] { return prepared(row_sum()); }},
      {"column_sum", [] { return prepared(column_sum()); }},
      {"column_argmax", [] { return prepared(column_argmax()); }},
      {"product", [] { return prepared(product()); }},
  };
  return list;
}

}  // namespace ingot::codegen::test
