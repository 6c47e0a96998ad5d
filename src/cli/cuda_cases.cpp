#include "cli/cuda_cases.h"

namespace ingot::cli {
namespace {

using ir::Attr;
using ir::Graph;
using ir::Operand;
using ir::ValueId;

ValueId call_op(Graph& g, OpId op, const std::vector<ValueId>& operands, std::vector<Attr> attributes = {}) {
  std::vector<Operand> list;
  for (ValueId v : operands) list.push_back(Operand::value(v));
  return g.add(op, std::move(list), std::move(attributes));
}

struct Shape {
  Graph& g;
  DType dtype;
  Dims dims;
  ValueId input() const { return g.add_input(dtype, dims); }
  ValueId row() const { return g.add_input(dtype, {dims.back()}); }
};

Attr along(int64_t dim) { return Attr::of(Dims{dim}); }

}  // namespace

int64_t CudaCase::elements() const {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

int64_t CudaCase::bytes_of(ValueId v) const {
  const std::vector<int64_t> values = graph.dims.evaluate(sizes);
  int64_t bytes = size_of(graph.type(v).dtype);
  for (Dim d : graph.type(v).shape) bytes *= DimTable::value_of(d, values);
  return bytes;
}

int64_t CudaCase::floor_bytes() const {
  int64_t bytes = 0;
  for (const ir::InputInfo& input : graph.inputs) bytes += bytes_of(input.value);
  for (ValueId output : graph.outputs) bytes += bytes_of(output);
  return bytes;
}

std::vector<CudaCase> cuda_cases() {
  std::vector<CudaCase> list;
  for (DType dtype : {DType::f32, DType::bf16}) {
    const double rounding = dtype == DType::f32 ? 1e-5 : 1e-2;
    auto add = [&](const char* name, std::vector<int64_t> sizes, Repeats repeats, double tolerance, auto compute) {
      CudaCase c{name, std::move(sizes), dtype, repeats, tolerance, 0, {}};
      Shape shape{c.graph, dtype, {}};
      for (int64_t size : c.sizes) shape.dims.push_back(c.graph.dims.symbol(size));
      c.graph.outputs = {compute(c.graph, shape)};
      for (const ir::InputInfo& input : c.graph.inputs)
        c.tiled_inputs += c.graph.type(input.value).shape.size() == c.sizes.size();
      list.push_back(std::move(c));
    };
    add("gelu(x) * y + z", {64 << 20}, Repeats::rows, rounding, [](Graph& g, const Shape& s) {
      const ValueId x = s.input(), y = s.input(), z = s.input();
      return call_op(g, OpId::add, {call_op(g, OpId::mul, {call_op(g, OpId::gelu, {x}), y}), z});
    });
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{8192, 4096}, {65536, 1024}, {16, 1 << 20}})
      add("softmax", {rows, columns}, Repeats::rows, rounding,
          [](Graph& g, const Shape& s) { return call_op(g, OpId::softmax, {s.input()}, {Attr::of(int64_t{1})}); });
    add("layer_norm", {8192, 4096}, Repeats::rows, rounding, [](Graph& g, const Shape& s) {
      const ValueId x = s.input(), weight = s.row(), bias = s.row();
      return call_op(g, OpId::layer_norm, {x, weight, bias}, {Attr::of(Dims{s.dims[1]})});
    });
    add("rms_norm", {8192, 4096}, Repeats::rows, rounding, [](Graph& g, const Shape& s) {
      const ValueId x = s.input(), weight = s.row();
      return call_op(g, OpId::rms_norm, {x, weight}, {Attr::of(Dims{s.dims[1]})});
    });
    add("row sum", {8192, 4096}, Repeats::rows, rounding, [](Graph& g, const Shape& s) {
      return call_op(g, OpId::sum, {s.input()}, {along(1), Attr::of(false)});
    });
    add("full sum", {64 << 20}, Repeats::sums, rounding, [](Graph& g, const Shape& s) {
      return call_op(g, OpId::sum, {s.input()}, {along(0), Attr::of(false)});
    });
    add("column sum", {65536, 1024}, Repeats::sums, rounding, [](Graph& g, const Shape& s) {
      return call_op(g, OpId::sum, {s.input()}, {along(0), Attr::of(false)});
    });
    add("transposed copy", {8192, 8192}, Repeats::columns, 0, [](Graph& g, const Shape& s) {
      return call_op(g, OpId::permute, {s.input()}, {Attr::of(Dims{1, 0})});
    });
  }
  return list;
}

}  // namespace ingot::cli
