// Whole CUDA programs in the device's own memory, at sizes that fill it, against the same programs on the processor.
#include <bit>
#include <cmath>
#include <map>

#include "cuda_graphs.h"
#include "cuda_unit.h"
#include "lower_support.h"
#include "runtime/cpu.h"
#include "runtime/cuda/device_program.h"

namespace ingot::codegen::test {
namespace {

namespace cuda = runtime::cuda;

const Target kCuda{.cuda_arch = 90};

/// A program's data in the device's memory, its inputs copied there.
class Data {
 public:
  Data(const Graph& graph, const Program& program, std::span<const ir::ReferenceTensor> inputs,
       std::span<const int64_t> symbols) {
    const std::vector<int64_t> sizes = program.dims.evaluate(symbols);
    for (const ir::ReferenceTensor& x : inputs) {
      std::vector<char> bytes(static_cast<size_t>(x.size() * size_of(x.dtype)));
      x.to_bytes(bytes.data());
      memory_.emplace_back(x.size() * size_of(x.dtype));
      cuda::copy_to_device(memory_.back().data(), bytes.data(), memory_.back().bytes());
      inputs_.push_back(memory_.back().data());
    }
    for (ValueId v : graph.outputs) {
      Ints shape;
      for (Dim d : graph.type(v).shape) shape.push_back(DimTable::value_of(d, sizes));
      const ir::ReferenceTensor& y = shapes_.emplace_back(graph.type(v).dtype, shape);
      memory_.emplace_back(y.size() * size_of(y.dtype));
      outputs_.push_back(memory_.back().data());
      forget(outputs_.size() - 1);
    }
    scalars_.assign(program.scalars.size(), std::bit_cast<uint64_t>(0.75));
  }
  cuda::DeviceData addresses() const { return {inputs_, outputs_, scalars_}; }
  /// What a step forgets to write is no plausible value.
  void forget(size_t output) const {
    const cuda::DeviceMemory& m = memory_[inputs_.size() + output];
    cuda::fill(m.data(), 0x7e, m.bytes());
  }
  /// The bytes of an output, once all that was given to the default stream is done.
  std::vector<char> output(size_t o) const {
    const cuda::DeviceMemory& m = memory_[inputs_.size() + o];
    std::vector<char> bytes(static_cast<size_t>(m.bytes()));
    cuda::copy_to_host(bytes.data(), m.data(), m.bytes());
    return bytes;
  }
  ir::ReferenceTensor tensor(size_t o) const {
    return ir::ReferenceTensor::from_bytes(shapes_[o].dtype, shapes_[o].shape, output(o).data());
  }
  size_t outputs() const { return outputs_.size(); }

 private:
  std::vector<cuda::DeviceMemory> memory_;
  std::vector<char*> inputs_, outputs_;
  std::vector<uint64_t> scalars_;
  std::vector<ir::ReferenceTensor> shapes_;
};

std::vector<ir::ReferenceTensor> random_inputs(const Graph& graph, std::span<const int64_t> symbols) {
  std::vector<ir::ReferenceTensor> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    inputs.push_back(random_tensor(graph, graph.inputs[i].value, static_cast<uint32_t>(i + 1), 7, symbols));
  return inputs;
}

/// Same bits (of NaN: any); `tolerance`, where it is not 0: of the largest magnitude.
void expect_close(const ir::ReferenceTensor& got, const ir::ReferenceTensor& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 0;
  for (int64_t i = 0; i < expected.size(); ++i) largest = std::max(largest, std::abs(expected.at(i)));
  for (int64_t i = 0; i < got.size(); ++i) {
    const double x = got.at(i), y = expected.at(i);
    if (std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) || (std::isnan(x) && std::isnan(y))) continue;
    ASSERT_LE(std::abs(x - y), tolerance * largest) << "element " << i << ": " << x << ", expected " << y;
  }
}

/// Sizes of the symbols of a graph: millions of elements, more rows and planes than a grid's second dim, rows of
/// millions.
std::vector<std::vector<int64_t>> large_sizes(int64_t symbols) {
  if (symbols == 1) return {{1'200'007}};
  if (symbols == 2) return {{70'001, 43}, {2, 3'000'001}, {1031, 4096}};
  return {{70'001, 3, 11}, {2, 70'001, 13}, {2, 3, 500'003}};
}

using CudaDevicePrograms = ingot::test::NeedsDevice;

TEST_F(CudaDevicePrograms, GiveWhatTheProcessorGives) {
  // Sums of floats are taken in another order on a device; everything else has the same bits.
  const std::map<std::string, double> sums{
      {"softmax", 1e-5}, {"layer_norm", 1e-2}, {"row_sum", 1e-5}, {"column_sum", 1e-5}};
  const CudaDevice limits[] = {cuda::device().limits(), {1, 40 * 1024}, {400, 16 * 1024}};
  for (const CudaGraph& sample : cuda_graphs()) {
    const Graph graph = sample.make();
    const Program program = lower(graph, kCuda).program, host = lower(graph, runtime::host_target()).program;
    if (count_steps<LoopStep>(program) + count_steps<ColumnStep>(program) < static_cast<int>(program.steps.size()))
      continue;  // a library's
    const cuda::LoadedUnit unit(program.device_source);
    for (const std::vector<int64_t>& symbols : large_sizes(program.dims.symbol_count())) {
      SCOPED_TRACE(sample.name + std::string(" at ") + std::to_string(symbols[0]));
      const std::vector<ir::ReferenceTensor> inputs = random_inputs(graph, symbols);
      const std::vector<ir::ReferenceScalar> scalars(graph.scalars.size(), 0.75);
      const auto expected = run_program(graph, host, inputs, scalars, symbols);
      const Data data(graph, program, inputs, symbols);
      std::vector<std::vector<char>> first;
      for (const CudaDevice& limit : limits) {
        const cuda::DeviceProgram bound(program, unit, symbols, data.addresses(), limit);
        bound.run();
        for (size_t o = 0; o < data.outputs(); ++o) {
          if (first.size() == o) {
            first.push_back(data.output(o));
            auto sum = sums.find(sample.name);
            expect_close(data.tensor(o), expected[o], sum == sums.end() ? 0 : sum->second);
          } else {
            EXPECT_TRUE(data.output(o) == first[o]) << limit.multiprocessors << " multiprocessors: other bits";
          }
          data.forget(o);
        }
        if (HasFailure()) return;
      }
    }
  }
}

/// x + 1, to and fro between two buffers: each launch reads what the one before wrote.
TEST_F(CudaDevicePrograms, LaunchesFollowOneAnother) {
  Graph graph;
  ValueId x = graph.add_input(DType::f32, {graph.dims.symbol(64)});
  graph.outputs = {graph.add(OpId::add, {val(x), Operand::constant(1.0)})};
  const Program program = lower(graph, kCuda).program;
  const cuda::LoadedUnit unit(program.device_source);
  for (int64_t n : {1000, 1'000'003}) {
    std::vector<float> values(static_cast<size_t>(n));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 4096);
    const int64_t bytes = n * 4, symbols[] = {n};
    const cuda::DeviceMemory a(bytes), b(bytes);
    cuda::copy_to_device(a.data(), values.data(), bytes);
    char *const at_a[] = {a.data()}, *const at_b[] = {b.data()};
    const cuda::DeviceProgram there(program, unit, symbols, {at_a, at_b, {}}),
        back(program, unit, symbols, {at_b, at_a, {}});
    const cuda::Stream stream = cuda::Stream::make();
    constexpr int kTimes = 2000;
    for (int i = 0; i < kTimes; ++i) {
      there.run(stream);
      back.run(stream);
    }
    cuda::synchronize(stream);
    std::vector<float> got(values.size());
    cuda::copy_to_host(got.data(), a.data(), bytes);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], values[i] + 2.0f * kTimes) << i;
  }
}

/// A row divided over blocks, whose two launches share scratch memory, and columns in several: a thousand runs in a row
/// give the bits of the first.
TEST_F(CudaDevicePrograms, RunsInARowShareScratch) {
  for (const CudaGraph& sample : cuda_graphs()) {
    if (sample.name != std::string("row_sum") && sample.name != std::string("column_sum")) continue;
    SCOPED_TRACE(sample.name);
    const Graph graph = sample.make();
    const Program program = lower(graph, kCuda).program;
    const cuda::LoadedUnit unit(program.device_source);
    const bool rows = sample.name == std::string("row_sum");
    const std::vector<int64_t> symbols = rows ? std::vector<int64_t>{3, 300'001} : std::vector<int64_t>{30'001, 40};
    const Data data(graph, program, random_inputs(graph, symbols), symbols);
    const cuda::DeviceProgram bound(program, unit, symbols, data.addresses());
    EXPECT_GE(bound.launches(), 2u);
    EXPECT_GT(bound.scratch_bytes(), 0);
    bound.run();
    const std::vector<char> first = data.output(0);
    for (int i = 0; i < 1000; ++i) bound.run();
    EXPECT_TRUE(data.output(0) == first);
    data.forget(0);
    bound.run();
    EXPECT_TRUE(data.output(0) == first);
  }
}

TEST(CudaSteps, OfALibraryAreAnError) {
  for (const CudaGraph& sample : cuda_graphs()) {
    const Program program = lower(sample.make(), kCuda).program;
    const std::vector<int64_t> sizes = program.dims.evaluate(std::vector<int64_t>(program.dims.symbol_count(), 5));
    char memory = 0;
    const std::vector<char*> buffers(program.buffers.size(), &memory);
    const std::vector<uint64_t> scalars(program.scalars.size());
    for (const Step& step : program.steps) {
      if (step.is<LoopStep>() || step.is<ColumnStep>()) {
        EXPECT_TRUE(cuda::kernel_call(program, step, {sizes, buffers, scalars}).kernel);
        continue;
      }
      try {
        (void)cuda::kernel_call(program, step, {sizes, buffers, scalars});
        ADD_FAILURE() << step.name;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(step.name), std::string::npos) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace ingot::codegen::test
