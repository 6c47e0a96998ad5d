#include "cuda_program.h"

#include <gtest/gtest.h>

#include <bit>

namespace ingot::codegen::test {
namespace {

class Runner {
 public:
  Runner(std::vector<int64_t> sizes, std::vector<char*> buffers, std::span<const double> scalars)
      : sizes_(std::move(sizes)), buffers_(std::move(buffers)), scalars_(scalars) {}

  CudaArguments loop(const LoopStep& step) const {
    CudaArguments a = space(step.space);
    for (const Argument& argument : step.arguments) a.buffers.push_back(operand(argument, true));
    for (const ScalarSource& s : step.scalars) a.scalars.push_back(scalar(s));
    return a;
  }
  CudaArguments column(const ColumnStep& step) const {
    CudaArguments a = space(step.space);
    for (const Argument& argument : step.arguments) a.buffers.push_back(operand(argument, true));
    for (const ColumnStep::Result& r : step.results) a.results.push_back(operand(r.out, false));
    for (const ScalarSource& s : step.scalars) a.scalars.push_back(scalar(s));
    return a;
  }

 private:
  int64_t value(Dim d) const { return DimTable::value_of(d, sizes_); }
  CudaArguments space(const Dims& dims) const {
    CudaArguments a;
    for (Dim d : dims) a.outer.push_back(value(d));
    a.columns = a.outer.back();
    a.outer.pop_back();
    a.rows = a.outer.back();
    a.outer.pop_back();
    return a;
  }
  CudaOperand operand(const Argument& a, bool rows) const {
    CudaOperand o{buffers_[a.buffer] + value(a.offset), 0, 0, value(a.index_stride), {}};
    for (Dim d : a.strides) o.outer.push_back(value(d));
    o.column = o.outer.back();
    o.outer.pop_back();
    if (!rows) return o;
    o.row = o.outer.back();
    o.outer.pop_back();
    return o;
  }
  uint64_t scalar(const ScalarSource& s) const {
    double x = s.kind == ScalarSource::Kind::size ? static_cast<double>(value(s.size)) : scalars_[s.number];
    switch (s.type) {
      case DType::f64:
        return std::bit_cast<uint64_t>(x);
      case DType::f32:
        return std::bit_cast<uint32_t>(static_cast<float>(x));
      default:
        return static_cast<uint64_t>(static_cast<int64_t>(x));
    }
  }

  std::vector<int64_t> sizes_;
  std::vector<char*> buffers_;
  std::span<const double> scalars_;
};

}  // namespace

std::vector<ir::ReferenceTensor> run_cuda_program(const HostUnit& unit, const ir::Graph& graph, const Program& program,
                                                  std::span<const ir::ReferenceTensor> inputs,
                                                  std::span<const double> scalars, std::span<const int64_t> symbols,
                                                  const CudaDevice& device) {
  std::vector<int64_t> sizes = program.dims.evaluate(symbols);
  std::vector<std::vector<uint64_t>> memory(program.buffers.size());
  std::vector<char*> buffers;
  std::vector<ir::ReferenceTensor> outputs;
  for (ir::ValueId v : graph.outputs) {
    Ints shape;
    for (Dim d : graph.type(v).shape) shape.push_back(DimTable::value_of(d, sizes));
    outputs.emplace_back(graph.type(v).dtype, shape);
  }
  std::vector<char*> output_data(outputs.size());
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const ProgramBuffer& buffer = program.buffers[b];
    const ir::ReferenceTensor* tensor = buffer.place == Place::input    ? &inputs[buffer.number]
                                        : buffer.place == Place::output ? &outputs[buffer.number]
                                                                        : nullptr;
    int64_t bytes = tensor ? tensor->size() * size_of(tensor->dtype) : DimTable::value_of(buffer.bytes, sizes);
    memory[b].assign(static_cast<size_t>(bytes) / 8 + 9, 0x7e7e7e7e7e7e7e7eull);
    char* data = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory[b].data()) + 63) & ~uintptr_t(63));
    if (buffer.place == Place::input) tensor->to_bytes(data);
    if (buffer.place == Place::output) output_data[buffer.number] = data;
    buffers.push_back(data);
  }
  Runner runner(sizes, buffers, scalars);
  for (const Step& step : program.steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.work))
      unit.run(*loop->kernel, runner.loop(*loop), device);
    else if (const auto* column = std::get_if<ColumnStep>(&step.work))
      unit.run(*column->kernel, runner.column(*column), device);
    else
      ADD_FAILURE() << step.name << " is a library's";
  }
  for (size_t o = 0; o < outputs.size(); ++o)
    outputs[o] = ir::ReferenceTensor::from_bytes(outputs[o].dtype, outputs[o].shape, output_data[o]);
  return outputs;
}

}  // namespace ingot::codegen::test
