#include "cuda_program.h"

#include <bit>

#include "runtime/cuda/step_arguments.h"

namespace ingot::codegen::test {

std::vector<ir::ReferenceTensor> run_cuda_program(const CudaUnit& unit, const ir::Graph& graph, const Program& program,
                                                  std::span<const ir::ReferenceTensor> inputs,
                                                  std::span<const double> scalars, std::span<const int64_t> symbols,
                                                  const CudaDevice& device) {
  std::vector<int64_t> sizes = program.dims.evaluate(symbols);
  std::vector<CudaVector<uint64_t>> memory(program.buffers.size());
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
  std::vector<uint64_t> bits;
  for (double scalar : scalars) bits.push_back(std::bit_cast<uint64_t>(scalar));
  for (const Step& step : program.steps) {
    const runtime::cuda::KernelCall call = runtime::cuda::kernel_call(program, step, {sizes, buffers, bits});
    unit.run(*call.kernel, call.arguments, device);
  }
  for (size_t o = 0; o < outputs.size(); ++o)
    outputs[o] = ir::ReferenceTensor::from_bytes(outputs[o].dtype, outputs[o].shape, output_data[o]);
  return outputs;
}

}  // namespace ingot::codegen::test
