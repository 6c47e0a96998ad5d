#include "conformance/modes.h"

#include <optional>

#include "compile/compile.h"
#include "conformance/gradients.h"
#include "conformance/interpreter.h"
#include "conformance/sizes.h"
#include "conformance/tensors.h"
#include "runtime/cpu.h"

namespace ingot::conformance {
namespace {

Outcome run_now(const Case& c, const BoundCase& bound, Storage storage) {
  Pool pool(storage, c);
  Outcome outcome;
  outcome.results = read(bound([&](const CaseTensor& t) { return pool.find(t, pool.tensors); }));
  return outcome;
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
  note_source(compiled.explain(), isa, outcome);
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

void note_source(const Explanation& e, Isa isa, Outcome& outcome) {
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
  } else if (e.statistics.host_steps > 0) {
    outcome.source = Source::host;
  } else {
    // Where there is nothing to compute, no kernel is needed.
    outcome.source = e.statistics.kernels > 0 || empty ? Source::generated : Source::view;
  }
}

std::vector<Mode> modes() {
  std::vector<Mode> modes;
  auto add = [&](std::string name, auto run) -> Mode& {
    modes.push_back({std::move(name), {}, false, false, {}, run});
    return modes.back();
  };
  auto now = [&](const char* name, Storage storage) -> Mode& {
    return add(name, [=](const Case& c, const BoundCase& b) { return run_now(c, b, storage); });
  };
  now("eager", Storage::dense);
  now("eager-strided", Storage::strided);
  now("eager-inplace", Storage::dense).inplace = true;
  auto interpreted = [&](const char* name, bool passes) {
    add(name, [=](const Case& c, const BoundCase& b) {
      InterpretedScope scope(passes);
      return run_now(c, b, Storage::dense);
    });
  };
  interpreted("interpreted", false);
  interpreted("interpreted-passes", true);
  auto compiled = [&](const char* name, Storage storage, Isa isa) -> Mode& {
    Mode& mode = add(name, [=](const Case& c, const BoundCase& b) { return run_compiled(c, b, storage, isa); });
    mode.unavailable = lacks(isa);
    return mode;
  };
  compiled("compiled-avx512", Storage::dense, Isa::avx512);
  compiled("compiled-avx2", Storage::dense, Isa::avx2);
  compiled("compiled-none", Storage::dense, Isa::none);
  compiled("compiled-strided", Storage::strided, runtime::host_target().isa);
  compiled("compiled-inplace", Storage::dense, runtime::host_target().isa).inplace = true;
  add("compiled-sizes", run_sizes);
  auto gradients = [&](const std::string& name, GradientWay way, std::optional<DType> rounded) {
    Mode& mode = add(rounded ? name + "-" + std::string(name_of(*rounded)) : name,
                     [=](const Case& c, const BoundCase& b) { return run_gradients(c, b, way, rounded); });
    mode.gradients = true;
    mode.takes = [=](const Case& c) { return has_gradients(c, rounded); };
  };
  gradients("interpreted-gradients", GradientWay::interpreted, {});
  for (std::optional<DType> rounded : {std::optional<DType>(), {DType::f16}, {DType::bf16}}) {
    gradients("eager-gradients", GradientWay::eager, rounded);
    gradients("compiled-gradients", GradientWay::whole, rounded);
    gradients("compiled-alone-gradients", GradientWay::alone, rounded);
  }
  return modes;
}

}  // namespace ingot::conformance
