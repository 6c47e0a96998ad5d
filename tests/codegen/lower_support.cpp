#include "lower_support.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "ir/passes/pipeline.h"
#include "runtime/cpu.h"
#include "runtime/program_runner.h"

namespace ingot::codegen::test {
namespace {

Ints shape_of(const DimTable& dims, std::span<const Dim> shape, std::span<const int64_t> values) {
  Ints result;
  for (Dim d : shape) result.push_back(values.empty() ? dims.hint(d) : DimTable::value_of(d, values));
  return result;
}

std::vector<int64_t> sizes_of(const DimTable& dims, std::span<const int64_t> symbols) {
  if (!symbols.empty() || dims.symbol_count() == 0) return dims.evaluate(symbols);
  return {};
}

}  // namespace

std::vector<ir::ReferenceTensor> run_program(const ir::Graph& graph, const Program& program,
                                             std::span<const ir::ReferenceTensor> inputs,
                                             std::span<const ir::ReferenceScalar> scalars,
                                             std::span<const int64_t> symbols,
                                             std::span<const SmallVector<int64_t, 6>> output_orders) {
  std::vector<int64_t> sizes = program.dims.evaluate(symbols);
  std::vector<std::vector<char>> memory;
  std::vector<void*> input_data, output_data;
  for (size_t n = 0; n < inputs.size(); ++n) {
    const ir::InputInfo& info = graph.inputs[n];
    const ir::ReferenceTensor& from = inputs[n];
    int64_t element = size_of(from.dtype), last = 0;
    for (size_t d = 0; d < info.strides.size(); ++d)
      last += std::max<int64_t>(from.shape[d] - 1, 0) * DimTable::value_of(info.strides[d], sizes);
    memory.emplace_back(static_cast<size_t>((last + 1) * element + 64));
    std::vector<char> dense(static_cast<size_t>(from.size() * element + 1));
    from.to_bytes(dense.data());
    for (int64_t i = 0; i < from.size(); ++i) {
      int64_t rest = i, at = 0;
      for (size_t d = from.shape.size(); d-- > 0;) {
        at += rest % from.shape[d] * DimTable::value_of(info.strides[d], sizes);
        rest /= from.shape[d];
      }
      std::memcpy(memory.back().data() + at * element, dense.data() + i * element, static_cast<size_t>(element));
    }
  }
  std::vector<ir::ReferenceTensor> outputs;
  for (ir::ValueId v : graph.outputs) {
    outputs.emplace_back(graph.type(v).dtype, shape_of(program.dims, graph.type(v).shape, sizes));
    // What a step forgets to write is no plausible value.
    memory.emplace_back(static_cast<size_t>(outputs.back().size() * size_of(outputs.back().dtype)) + 64, char{0x7e});
  }
  for (size_t i = 0; i < memory.size(); ++i) (i < inputs.size() ? input_data : output_data).push_back(memory[i].data());
  std::vector<uint64_t> bits;
  for (const ir::ReferenceScalar& s : scalars)
    bits.push_back(s.category == Category::floating ? std::bit_cast<uint64_t>(s.number)
                                                    : static_cast<uint64_t>(s.integer));
  runtime::LoadedProgram loaded(std::make_shared<const Program>(program));
  runtime::CallData data;
  data.inputs = input_data;
  data.outputs = output_data;
  data.scalars = bits;
  loaded.run(*loaded.bind(symbols), data);
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Ints& shape = outputs[o].shape;
    const ir::ReferenceTensor lies = ir::ReferenceTensor::from_bytes(outputs[o].dtype, shape, output_data[o]);
    if (output_orders.empty()) {
      outputs[o] = lies;
      continue;
    }
    Ints strides(shape.size());
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0; stride *= shape[static_cast<size_t>(output_orders[o][i])])
      strides[static_cast<size_t>(output_orders[o][i])] = stride;
    for (int64_t i = 0; i < lies.size(); ++i) {
      int64_t rest = i, at = 0;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at += rest % shape[d] * strides[d];
      const auto to = static_cast<size_t>(i), from = static_cast<size_t>(at);
      if (lies.real.empty())
        outputs[o].integer[to] = lies.integer[from];
      else
        outputs[o].real[to] = lies.real[from];
    }
  }
  return outputs;
}

ir::ReferenceTensor random_tensor(const ir::Graph& graph, ir::ValueId v, uint32_t seed, int64_t bound,
                                  std::span<const int64_t> symbols) {
  std::vector<int64_t> sizes = sizes_of(graph.dims, symbols);
  ir::ReferenceTensor t(graph.type(v).dtype, shape_of(graph.dims, graph.type(v).shape, sizes));
  std::mt19937 random(seed);
  for (double& x : t.real) x = ir::round_to(t.dtype, static_cast<double>(random() % 4096) / 1024.0 - 2.0);
  for (int64_t& x : t.integer)
    x = t.dtype == DType::bool_ ? random() % 2 : static_cast<int64_t>(random() % static_cast<uint32_t>(bound));
  return t;
}

namespace {

/// `lowered` is what runs, `graph` what it means.
LowerResult check(const ir::Graph& lowered, const ir::Graph& graph, double tolerance, const LowerOptions& options,
                  const std::vector<int64_t>& symbols, const std::vector<ir::ReferenceScalar>& scalars) {
  LowerResult result = lower(lowered, Target{}, options);
  std::vector<ir::ReferenceTensor> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    inputs.push_back(random_tensor(graph, graph.inputs[i].value, static_cast<uint32_t>(i + 1), 7, symbols));
  std::vector<ir::ReferenceTensor> got = run_program(lowered, result.program, inputs, scalars, symbols);
  Target machine = runtime::detected_target();
  machine.bf16_dot = false;
  std::vector<ir::ReferenceTensor> generated =
      run_program(lowered, lower(lowered, machine, options).program, inputs, scalars, symbols);
  for (size_t o = 0; o < got.size(); ++o)
    for (int64_t i = 0; i < got[o].size(); ++i) {
      double a = got[o].at(i), b = generated[o].at(i);
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
          << "output " << o << " element " << i << ": " << a << " interpreted, " << b << " generated";
    }
  ir::ReferenceOptions reference;
  reference.symbols = symbols;
  std::vector<ir::ReferenceTensor> expected = ir::interpret(graph, inputs, scalars, reference);
  for (size_t o = 0; o < expected.size(); ++o) {
    EXPECT_EQ(got[o].shape, expected[o].shape);
    double largest = 1e-30;
    for (int64_t i = 0; i < expected[o].size(); ++i)
      if (std::isfinite(expected[o].at(i))) largest = std::max(largest, std::abs(expected[o].at(i)));
    int wrong = 0;
    for (int64_t i = 0; i < expected[o].size() && wrong < 3; ++i) {
      double a = got[o].at(i), b = expected[o].at(i);
      bool same = std::isnan(b) ? std::isnan(a) : a == b || std::abs(a - b) <= tolerance * largest;
      if (!same) {
        ++wrong;
        ADD_FAILURE() << "output " << o << " element " << i << ": " << a << ", expected " << b << "\n"
                      << ir::print(lowered) << result.explanation.str(lowered, result.program);
      }
    }
  }
  return result;
}

}  // namespace

LowerResult check_against_reference(const ir::Graph& graph, double tolerance, LowerOptions options,
                                    std::vector<int64_t> symbols, std::vector<ir::ReferenceScalar> scalars) {
  return check(graph, graph, tolerance, options, symbols, scalars);
}

LowerResult check_compiled(const ir::Graph& graph, double tolerance, LowerOptions options, std::vector<int64_t> symbols,
                           std::vector<ir::ReferenceScalar> scalars) {
  ir::Graph lowered = graph;
  ir::run_pipeline(lowered);
  return check(lowered, graph, tolerance, options, symbols, scalars);
}

int how_many(int usual) {
  const char* said = std::getenv("INGOT_CONVOLUTIONS");
  return said ? std::atoi(said) : usual;
}

std::vector<uint64_t> bits_of(const std::vector<double>& numbers) {
  std::vector<uint64_t> bits;
  for (double x : numbers) bits.push_back(std::isnan(x) ? ~uint64_t{0} : std::bit_cast<uint64_t>(x));
  return bits;
}

}  // namespace ingot::codegen::test
