#include "runtime/cuda/device_program.h"

#include <algorithm>

#include "base/error.h"

namespace ingot::runtime::cuda {

LoadedUnit::LoadedUnit(const std::string& source) : LoadedUnit(compile(source, device().arch)) {}

LoadedUnit::LoadedUnit(const Cubin& cubin) : module_(cubin), compile_ms_(cubin.milliseconds) {}

void add_launches(std::vector<Launch>& to, const LoadedUnit& unit, const KernelCall& call, const CudaPlan& plan,
                  char* scratch) {
  const Function function = unit.function(call.kernel->cuda->entry);
  for (const CudaLaunch& shape : plan.launches) to.push_back({function, shape, call.arguments.words(shape, scratch)});
}

void run(std::span<const Launch> launches, const Stream& stream) {
  for (const Launch& l : launches) launch(l.function, l.shape, l.words, stream);
}

DeviceProgram::DeviceProgram(const Program& program, const LoadedUnit& unit, std::span<const int64_t> symbols,
                             const DeviceData& data, CudaDevice limits) {
  if (!program.segments.empty()) throw Error("CUDA: got a program whose steps run over slices, expected whole steps");
  INGOT_CHECK(data.inputs.size() == program.inputs && data.outputs.size() == program.outputs &&
              data.scalars.size() == program.scalars.size());
  limits.shared_bytes = std::min(limits.shared_bytes, device().shared_bytes);
  const std::vector<int64_t> sizes = program.dims.evaluate(symbols);
  std::vector<char*> buffers;
  for (const ProgramBuffer& buffer : program.buffers) {
    const bool input = buffer.place == Place::input;
    if (input || buffer.place == Place::output)
      buffers.push_back((input ? data.inputs : data.outputs)[buffer.number]);
    else
      buffers.push_back(arena_.emplace_back(DimTable::value_of(buffer.bytes, sizes)).data());
  }
  std::vector<KernelCall> calls;
  std::vector<CudaPlan> plans;
  int64_t scratch_bytes = 0;
  for (const Step& step : program.steps) {
    calls.push_back(kernel_call(program, step, {sizes, buffers, data.scalars}));
    plans.push_back(calls.back().plan(limits));
    scratch_bytes = std::max(scratch_bytes, plans.back().scratch_bytes);
  }
  scratch_ = DeviceMemory(scratch_bytes);
  for (size_t s = 0; s < calls.size(); ++s) add_launches(launches_, unit, calls[s], plans[s], scratch_.data());
}

}  // namespace ingot::runtime::cuda
