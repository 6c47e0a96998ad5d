#include "conformance/modes.h"

#include <cmath>
#include <optional>

#include "compile/compile.h"
#include "conformance/interpreter.h"
#include "conformance/sizes.h"
#include "conformance/tensors.h"
#include "eager/autograd/autograd.h"
#include "eager/ops/functions.h"
#include "ir/reference.h"
#include "runtime/cpu.h"

namespace ingot::conformance {
namespace {

Outcome run_now(const Case& c, const BoundCase& bound, Storage storage) {
  Pool pool(storage, c);
  Outcome outcome;
  outcome.results = read(bound([&](const CaseTensor& t) { return pool.find(t, pool.tensors); }));
  return outcome;
}

/// Fills in what made the results.
void trace_source(const Explanation& e, Isa isa, Outcome& outcome) {
  bool interpreted = false, empty = true;
  for (const Explanation::Program& program : e.programs)
    for (const Explanation::Kernel& kernel : program.kernels) interpreted = interpreted || kernel.code.empty();
  for (const CaseTensor& t : outcome.results) empty = empty && t.bytes.empty();
  outcome.compiled = true;
  if (!e.fallbacks.empty() || (interpreted && isa != Isa::none)) {
    outcome.source = Source::fallback;
    outcome.reason = e.fallbacks.empty() ? "a kernel without code" : e.fallbacks[0].reason;
  } else if (!e.breaks.empty()) {
    outcome.source = Source::graph_break;
    outcome.reason = e.breaks[0].reason;
  } else if (e.statistics.library_steps > 0) {
    outcome.source = Source::library;
  } else {
    // Where there is nothing to compute, no kernel is needed.
    outcome.source = e.statistics.kernels > 0 || empty ? Source::generated : Source::view;
  }
}

Outcome run_compiled(const Case& c, const BoundCase& bound, Storage storage, Isa isa) {
  struct Restore {
    ~Restore() { runtime::set_host_target(std::nullopt); }
  } restore;
  runtime::set_host_target(runtime::target_of(isa));
  Pool pool(storage, c);
  auto compiled = compile([&](const std::vector<Tensor>& tensors) {
    return bound([&](const CaseTensor& t) { return pool.find(t, tensors); });
  });
  Outcome outcome;
  outcome.results = read(compiled(pool.tensors));
  trace_source(compiled.explain(), isa, outcome);
  return outcome;
}

/// Throws Error where a gradient is not the one of the case.
void check_gradient(const CaseGradients& all, const CaseGradients::Value& value, const Tensor& gradient) {
  if (!gradient.defined()) return;  // zero, as PyTorch gives none or zeros; which of them no case depends on
  auto values = [](const CaseTensor& t) { return ir::ReferenceTensor::from_bytes(t.dtype, t.shape, t.bytes.data()); };
  const ir::ReferenceTensor got = values(read({gradient})[0]);
  const ir::ReferenceTensor expected =
      value.expected ? values(*value.expected) : ir::ReferenceTensor(got.dtype, got.shape);
  if (!(got.shape == expected.shape)) throw Error("the gradient of " + value.of + " has another shape");
  for (int64_t i = 0; i < got.size(); ++i) {
    const double a = got.at(i), e = expected.at(i);
    if (a == e || (std::isnan(a) && std::isnan(e)) || std::abs(a - e) <= all.atol + all.rtol * std::abs(e)) continue;
    throw Error("element " + std::to_string(i) + " of the gradient of " + value.of + " is " + std::to_string(a) +
                ", expected " + std::to_string(e));
  }
}

/// Forward and backward: eager, or by the reference interpreter.
Outcome run_gradients(const Case& c, const BoundCase& bound, bool interpreted) {
  std::optional<InterpretedScope> scope;
  if (interpreted) scope.emplace(false);
  Pool pool(Storage::dense, c);
  Outcome outcome;
  std::vector<Tensor> inputs;
  if (c.gradients)
    for (const CaseGradients::Value& value : c.gradients->values)
      for_each_tensor(c, [&](const CaseTensor& t) {
        if (t.name == value.of) inputs.push_back(pool.find(t, pool.tensors).requires_grad_());
      });
  const std::vector<Tensor> results = bound([&](const CaseTensor& t) { return pool.find(t, pool.tensors); });
  outcome.results = read(results);
  // The nuclear norm is computed outside of the ops, and has no tape.
  const CaseValue* order = c.op == "norm" ? c.find(1, "p") : nullptr;
  if (!c.gradients || (order && order->text == "nuc")) return outcome;
  std::vector<Tensor> roots, cotangents;
  for (const auto& [output, cotangent] : c.gradients->cotangents) {
    if (!results.at(output).requires_grad()) continue;
    roots.push_back(results[output]);
    cotangents.push_back(make(cotangent).to(results[output].dtype()));
  }
  std::vector<Tensor> gradients(inputs.size());
  if (!roots.empty()) gradients = autograd::grad(roots, inputs, cotangents, {}, false, true);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const CaseGradients::Value& value = c.gradients->values[i];
    Tensor gradient = gradients[i];
    if (!gradient.defined() && value.expected) gradient = zeros_like(inputs[i]);
    check_gradient(*c.gradients, value, gradient);
  }
  return outcome;
}

std::string lacks(Isa isa) {
  try {
    runtime::target_of(isa);
    return {};
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

std::vector<Mode> modes() {
  std::vector<Mode> modes;
  auto now = [&](const char* name, Storage storage, bool inplace) {
    modes.push_back({name, {}, inplace, [=](const Case& c, const BoundCase& b) { return run_now(c, b, storage); }});
  };
  now("eager", Storage::dense, false);
  now("eager-strided", Storage::strided, false);
  now("eager-inplace", Storage::dense, true);
  auto interpreted = [&](const char* name, bool passes) {
    modes.push_back({name, {}, false, [=](const Case& c, const BoundCase& b) {
                       InterpretedScope scope(passes);
                       return run_now(c, b, Storage::dense);
                     }});
  };
  interpreted("interpreted", false);
  interpreted("interpreted-passes", true);
  for (bool by_reference : {true, false})
    modes.push_back(
        {by_reference ? "interpreted-gradients" : "eager-gradients", {}, false, [=](const Case& c, const BoundCase& b) {
           return run_gradients(c, b, by_reference);
         }});
  auto compiled = [&](const char* name, Storage storage, bool inplace, Isa isa) {
    modes.push_back({name, lacks(isa), inplace,
                     [=](const Case& c, const BoundCase& b) { return run_compiled(c, b, storage, isa); }});
  };
  compiled("compiled-avx512", Storage::dense, false, Isa::avx512);
  compiled("compiled-avx2", Storage::dense, false, Isa::avx2);
  compiled("compiled-none", Storage::dense, false, Isa::none);
  compiled("compiled-strided", Storage::strided, false, runtime::host_target().isa);
  compiled("compiled-inplace", Storage::dense, true, runtime::host_target().isa);
  modes.push_back({"compiled-sizes", {}, false, run_sizes});
  return modes;
}

}  // namespace ingot::conformance
