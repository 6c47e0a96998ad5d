#include "cli/accuracy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "codegen/elementwise.h"
#include "codegen/generate.h"
#include "ir/op.h"
#include "ir/reference.h"
#include "runtime/code/executable_memory.h"

namespace ingot::cli {
namespace {

/// A call of the row with defaults for all but its first operand; `mode` is the value of its mode, if it has one.
std::vector<ir::Attr> attributes_of(const ir::OpInfo& row, int mode) {
  std::vector<ir::Attr> attributes;
  for (const ir::ArgInfo& argument : row.arguments)
    if (!ir::is_operand(argument.kind))
      attributes.push_back(argument.kind == ir::ArgKind::mode ? ir::Attr::mode(mode) : ir::Attr());
  return attributes;
}

codegen::Expr define(const ir::OpInfo& row, const std::vector<ir::Attr>& attributes, codegen::Expr x) {
  std::vector<codegen::Expr> operands(static_cast<size_t>(row.operand_count));
  operands[0] = x;
  return codegen::define_elementwise(row.id, {*x.builder, operands, attributes, DType::f32, DType::f32});
}

void interpret(const ir::OpInfo& row, const std::vector<ir::Attr>& attributes, std::span<const float> x,
               std::vector<double>& y) {
  const auto count = static_cast<int64_t>(x.size());
  ir::Graph graph;
  graph.add_input(DType::f32, {Dim(count)});
  std::vector<ir::Operand> operands = {ir::Operand::value(0)};
  for (int i = 1; i < row.operand_count; ++i) {
    const ir::ArgInfo& argument = row.operand(i);
    operands.push_back(argument.has_default ? ir::Operand::constant(argument.default_number) : ir::Operand::none());
  }
  graph.outputs = {graph.add(row.id, operands, attributes)};
  const ir::ReferenceTensor input = ir::ReferenceTensor::from_values(DType::f32, {count}, {x.begin(), x.end()});
  y = ir::interpret(graph, {&input, 1}, {}, {.round = false})[0].real;
}

}  // namespace

std::vector<UnaryFunction> unary_functions() {
  std::vector<UnaryFunction> functions;
  for (const ir::OpInfo& row : ir::ops()) {
    if (row.accuracy.f32 == 0) continue;
    std::vector<std::string> modes = {""};
    for (const ir::ArgInfo& argument : row.arguments)
      if (argument.kind == ir::ArgKind::mode) modes = argument.modes;
    for (size_t mode = 0; mode < modes.size(); ++mode) {
      const std::vector<ir::Attr> attributes = attributes_of(row, static_cast<int>(mode));
      UnaryFunction function;
      function.name = std::string(row.name) + (modes[mode].empty() ? "" : "(" + modes[mode] + ")");
      function.define = [&row, attributes](codegen::Expr x) { return cli::define(row, attributes, x); };
      function.exact = [&row, attributes](std::span<const float> x, std::vector<double>& y) {
        interpret(row, attributes, x, y);
      };
      function.bound = row.accuracy.f32;
      function.of_operand = row.accuracy.of_operand;
      functions.push_back(std::move(function));
    }
  }
  return functions;
}

struct UnaryKernel::Loaded {
  KernelPtr source;
  runtime::ExecutableBlock block;
  KernelEntry entry = nullptr;
  std::vector<char> scratch;
};

UnaryKernel::UnaryKernel(const UnaryFunction& function, const Target& target) : loaded_(std::make_unique<Loaded>()) {
  codegen::Kernel kernel;
  kernel.buffers = {{DType::f32}, {DType::f32, codegen::Access::dense, true}};
  codegen::Builder builder(kernel);
  codegen::Expr y = function.define(builder.load(0));
  kernel.phases = {codegen::Phase{{{1, y.value}}, {}, {}, {}}};
  codegen::verify(kernel);
  loaded_->source = codegen::generate(kernel, target, function.name);
  if (loaded_->source->code.empty()) {
    loaded_->entry = loaded_->source->interpret;
  } else {
    loaded_->block = runtime::ExecutableBlock(loaded_->source->code, function.name);
    loaded_->entry = reinterpret_cast<KernelEntry>(const_cast<void*>(loaded_->block.address()));
  }
  loaded_->scratch.resize(static_cast<size_t>(loaded_->source->scratch_bytes) + 64);
}
UnaryKernel::~UnaryKernel() = default;
UnaryKernel::UnaryKernel(UnaryKernel&&) noexcept = default;

void UnaryKernel::run(const float* x, float* y, int64_t count) const {
  char* buffers[] = {reinterpret_cast<char*>(const_cast<float*>(x)), reinterpret_cast<char*>(y)};
  const int64_t strides[] = {0, 0};
  const auto address = reinterpret_cast<uintptr_t>(loaded_->scratch.data());
  KernelFrame frame{};
  frame.buffers = buffers;
  frame.row_strides = frame.column_strides = frame.index_strides = frame.outer_index = strides;
  frame.rows = 1;
  frame.columns = count;
  frame.scratch = reinterpret_cast<char*>((address + 63) / 64 * 64);
  frame.context = loaded_->source->context.get();
  loaded_->entry(&frame);
}

void Accuracy::join(const Accuracy& other) {
  inputs += other.inputs;
  over += other.over;
  if (!(other.worst > worst)) return;
  worst = other.worst;
  input = other.input;
  result = other.result;
  exact = other.exact;
}

double error_in_ulps(float result, double exact, double operand) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  if (std::isnan(exact)) return std::isnan(result) ? 0 : kWrong;
  if (std::isnan(result)) return kWrong;
  if (result == 0 && std::signbit(result) != std::signbit(exact)) return kWrong;
  const float rounded = static_cast<float>(exact);
  if (std::isinf(exact) || (std::isinf(result) && std::isinf(rounded))) return result == rounded ? 0 : kWrong;
  // 2^-e for 2^e <= |exact|, by its bits; an infinite result counts as 2^128.
  const double size = std::fabs(operand) > std::fabs(exact) ? operand : exact;
  const uint64_t bits = std::bit_cast<uint64_t>(size) & 0x7ff0000000000000;
  const uint64_t least = uint64_t(1023 - 126) << 52, greatest = uint64_t(1023 + 127) << 52;
  const double unit = std::bit_cast<double>(std::clamp(bits, least, greatest) - (uint64_t(23) << 52));
  const double value = std::isinf(result) ? std::copysign(0x1p128, result) : static_cast<double>(result);
  return std::fabs(value - exact) / unit;
}

Accuracy measure(const UnaryFunction& function, const UnaryKernel& kernel, std::span<const float> inputs) {
  std::vector<float> results(inputs.size());
  std::vector<double> exact(inputs.size());
  kernel.run(inputs.data(), results.data(), static_cast<int64_t>(inputs.size()));
  function.exact(inputs, exact);
  Accuracy accuracy;
  accuracy.inputs = inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double error = error_in_ulps(results[i], exact[i], function.of_operand ? inputs[i] : 0);
    accuracy.over += !(error <= function.bound);
    if (!(error > accuracy.worst)) continue;
    accuracy.worst = error;
    accuracy.input = inputs[i];
    accuracy.result = results[i];
    accuracy.exact = exact[i];
  }
  return accuracy;
}

Accuracy measure(const UnaryFunction& function, const UnaryKernel& kernel, uint64_t first, uint64_t end,
                 uint64_t step) {
  constexpr uint64_t kBlock = 1 << 14;
  std::vector<float> inputs;
  Accuracy accuracy;
  for (uint64_t at = first; at < end;) {
    inputs.clear();
    for (; at < end && inputs.size() < kBlock; at += step)
      inputs.push_back(std::bit_cast<float>(static_cast<uint32_t>(at)));
    accuracy.join(measure(function, kernel, inputs));
  }
  return accuracy;
}

std::vector<float> sample_inputs(int mantissas, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> inputs;
  for (uint32_t high = 0; high < 512; ++high) {
    auto add = [&](uint32_t mantissa) { inputs.push_back(std::bit_cast<float>(high << 23 | (mantissa & 0x7fffff))); };
    for (uint32_t edge : {0u, 1u, 0x7fffffu, 0x7ffffeu, 0x400000u}) add(edge);
    for (int i = 5; i < mantissas; ++i) add(static_cast<uint32_t>(random()));
  }
  return inputs;
}

}  // namespace ingot::cli
