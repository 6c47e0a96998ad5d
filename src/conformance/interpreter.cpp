#include "conformance/interpreter.h"

#include <cstring>

#include "eager/data.h"
#include "ir/decompose.h"
#include "ir/graph.h"
#include "ir/passes/pipeline.h"
#include "ir/reference.h"

namespace ingot::conformance {
namespace {

ir::ReferenceTensor numbers_of(const Tensor& tensor) {
  const ingot::detail::TensorImpl& t = *tensor.impl();
  std::string bytes;
  bytes.reserve(eager::count(t.sizes) * size_of(t.dtype));
  const char* data = eager::data_of(t);
  eager::for_each_offset(t, [&](int64_t offset) { bytes.append(data + offset * size_of(t.dtype), size_of(t.dtype)); });
  return ir::ReferenceTensor::from_bytes(t.dtype, t.sizes, bytes.data());
}

void write(const ir::ReferenceTensor& from, const Tensor& tensor) {
  const ingot::detail::TensorImpl& t = *tensor.impl();
  std::string bytes(from.size() * size_of(t.dtype), '\0');
  from.to_bytes(bytes.data());
  const char* next = bytes.data();
  eager::for_each_offset(t, [&](int64_t offset) {
    std::memcpy(eager::data_of(t) + offset * size_of(t.dtype), next, size_of(t.dtype));
    next += size_of(t.dtype);
  });
}

ir::Operand constant(const eager::Operand& scalar) {
  if (scalar.category == Category::floating) return ir::Operand::constant(scalar.number);
  if (scalar.category == Category::boolean) return ir::Operand::constant(scalar.integer != 0);
  return ir::Operand::constant(scalar.integer);
}

}  // namespace

InterpretedScope::InterpretedScope(bool passes)
    : Interceptor(eager::Stage::record), passes_(passes), previous_(eager::set_interceptor(stage(), this)) {}
InterpretedScope::~InterpretedScope() { eager::set_interceptor(stage(), previous_); }

/// A view, to which others may write: eager's, of the values that the reference has.
void InterpretedScope::give_view(const eager::OpCall& call, const ir::ReferenceTensor& expected,
                                 std::span<Tensor> outputs) {
  eager::set_interceptor(stage(), previous_);
  eager::dispatch(call, outputs);
  eager::set_interceptor(stage(), this);
  const ir::ReferenceTensor got = numbers_of(outputs[0]);
  if (!(got.shape == expected.shape)) throw Error("a view of another shape than the reference's");
  for (int64_t i = 0; i < got.size(); ++i)
    if (got.at(i) != expected.at(i) && got.at(i) == got.at(i))
      throw Error("a view of other values than the reference's");
}

void InterpretedScope::call(const eager::OpCall& call, std::span<Tensor> outputs) {
  ir::Graph graph;
  std::vector<ir::Operand> operands;
  std::vector<ir::ReferenceTensor> inputs;
  for (const eager::Operand& o : call.operands) {
    if (o.kind == eager::Operand::Kind::none) {
      operands.push_back(ir::Operand::none());
    } else if (o.kind == eager::Operand::Kind::scalar) {
      operands.push_back(constant(o));
    } else {
      inputs.push_back(numbers_of(*o.tensor));
      const Ints& shape = inputs.back().shape;
      operands.push_back(ir::Operand::value(graph.add_input(inputs.back().dtype, Dims(shape.begin(), shape.end()))));
    }
  }
  ir::ValueId first = graph.add(call.op, operands, {call.attrs.begin(), call.attrs.end()}, call.location, call.inplace,
                                call.derivative);
  for (size_t i = 0; i < outputs.size(); ++i) graph.outputs.push_back(first + static_cast<ir::ValueId>(i));
  if (passes_) {
    ir::PipelineOptions options;
    options.verify = true;
    graph.nodes[0].inplace = false;
    ir::run_pipeline(graph, options);
  }
  if (call.derivative) ir::decompose(graph);  // which defines it
  std::vector<ir::ReferenceTensor> results = ir::interpret(graph, inputs);
  if (ir::info(call.op).kind == ir::OpKind::view && !call.derivative) {
    give_view(call, results[0], outputs);
    return;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = call.inplace ? *call.operands[0].tensor : eager::make_empty(results[i].dtype, results[i].shape);
    write(results[i], outputs[i]);
  }
}

}  // namespace ingot::conformance
