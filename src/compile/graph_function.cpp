// compile(ir::Graph): the same compiler without a tracer.
#include <bit>

#include "compile/compile.h"
#include "eager/data.h"
#include "eager/dispatch.h"
#include "ir/graph.h"
#include "trace/compile_graph.h"

namespace ingot {
namespace {

std::string place(size_t input, const char* what) {
  return "compiled graph: input " + std::to_string(input) + ": " + what;
}

[[noreturn]] void fail(const std::string& where, const std::string& got, const std::string& expected) {
  throw Error(where + ": got " + got + ", expected " + expected);
}

}  // namespace

struct CompiledGraphFunction::State {
  State(ir::Graph graph, const CompileOptions& options)
      : inputs(graph.inputs),
        scalars(graph.scalars),
        compiled(std::move(graph), settings_of(options), options.name.empty() ? "compiled graph" : options.name) {}
  static trace::CompileSettings settings_of(const CompileOptions& options) {
    eager::NumericsScope scope(options.numerics);
    return {options.disable};
  }
  std::vector<ir::InputInfo> inputs;
  std::vector<Category> scalars;
  trace::CompiledGraph compiled;

  std::vector<int64_t> symbols(std::span<const Tensor> tensors) const;
};

// Sizes that are a symbol give it its value; all sizes and strides are then compared with what the graph says.
std::vector<int64_t> CompiledGraphFunction::State::symbols(std::span<const Tensor> tensors) const {
  const DimTable& dims = compiled.program().dims;
  std::vector<int64_t> symbols(static_cast<size_t>(dims.symbol_count()), 0);
  auto each = [&](auto&& visit) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ir::TensorType& type = compiled.graph().type(inputs[i].value);
      const detail::TensorImpl& impl = *tensors[i].impl();
      if (impl.dtype != type.dtype)
        fail(place(i, "dtype"), std::string(name_of(impl.dtype)), std::string(name_of(type.dtype)));
      if (impl.sizes.size() != type.shape.size())
        fail(place(i, "rank"), std::to_string(impl.sizes.size()), std::to_string(type.shape.size()));
      for (size_t d = 0; d < impl.sizes.size(); ++d) {
        visit(i, "size", type.shape[d], impl.sizes[d]);
        if (impl.sizes[d] > 1) visit(i, "stride", inputs[i].strides[d], impl.strides[d]);
      }
    }
  };
  each([&](size_t, const char*, Dim dim, int64_t value) {
    for (int64_t s = 0; s < dims.symbol_count(); ++s)
      if (dims.symbol_dim(s) == dim) symbols[static_cast<size_t>(s)] = value;
  });
  std::vector<int64_t> values = dims.evaluate(symbols);
  each([&](size_t i, const char* what, Dim dim, int64_t value) {
    if (DimTable::value_of(dim, values) != value)
      fail(place(i, what), std::to_string(value), std::to_string(DimTable::value_of(dim, values)));
  });
  for (const DimGuard& guard : dims.guards())
    if (!dims.holds(guard, values))
      fail("compiled graph: sizes",
           dims.str(guard.a) + " = " + std::to_string(DimTable::value_of(guard.a, values)) + " with " +
               dims.str(guard.b) + " = " + std::to_string(DimTable::value_of(guard.b, values)),
           "sizes related as when it was compiled");
  return symbols;
}

CompiledGraphFunction::CompiledGraphFunction(ir::Graph graph, const CompileOptions& options)
    : state_(std::make_shared<const State>(std::move(graph), options)) {}

std::vector<Tensor> CompiledGraphFunction::operator()(std::span<const Tensor> inputs,
                                                      std::span<const Scalar> scalars) const {
  const State& s = *state_;
  if (inputs.size() != s.inputs.size())
    fail("compiled graph: inputs", std::to_string(inputs.size()), std::to_string(s.inputs.size()));
  if (scalars.size() != s.scalars.size())
    fail("compiled graph: scalars", std::to_string(scalars.size()), std::to_string(s.scalars.size()));
  std::vector<void*> in, out;
  std::vector<runtime::InputIdentity> identities;
  for (const Tensor& t : inputs) {
    eager::settle(t, "compiled graph", Location::none());
    in.push_back(eager::data_of(*t.impl()));
    identities.push_back(runtime::InputIdentity::of(*t.impl()->storage));
  }
  std::vector<int64_t> symbols = s.symbols(inputs);
  std::vector<uint64_t> bits;
  for (size_t i = 0; i < scalars.size(); ++i) {
    if (s.scalars[i] == Category::floating) {
      bits.push_back(std::bit_cast<uint64_t>(scalars[i].to_double()));
    } else {
      bits.push_back(static_cast<uint64_t>(scalars[i].to_int64_saturated()));
    }
  }
  std::vector<int64_t> values = s.compiled.program().dims.evaluate(symbols);
  std::vector<Tensor> results;
  for (ir::ValueId output : s.compiled.graph().outputs) {
    const ir::TensorType& type = s.compiled.graph().type(output);
    Ints sizes;
    for (Dim d : type.shape) sizes.push_back(DimTable::value_of(d, values));
    results.push_back(eager::make_empty(type.dtype, sizes));
    out.push_back(eager::data_of(*results.back().impl()));
  }
  const runtime::LoadedProgram& program = s.compiled.loaded();
  program.run(*program.bind(symbols), {in, identities, out, bits});
  return results;
}

CompiledGraphFunction compile(ir::Graph graph, const CompileOptions& options) {
  return CompiledGraphFunction(std::move(graph), options);
}

}  // namespace ingot
