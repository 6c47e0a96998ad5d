#include "cli/conformance_modes.h"

#include <cstring>
#include <map>

#include "cli/conformance_interpreter.h"
#include "compile/compile.h"
#include "eager/data.h"
#include "runtime/cpu.h"

namespace ingot::cli {
namespace {

/// How the tensors of a case lie in memory.
enum class Storage { dense, strided };

/// Offset and strides of a view with gaps: dims in reverse order for every other tensor, every second element, an
/// offset.
Tensor strided_view(const CaseTensor& t, bool reversed) {
  size_t rank = t.shape.size();
  Ints strides(rank, 0);
  int64_t step = 2, offset = 3;
  for (size_t i = 0; i < rank; ++i) {
    size_t d = reversed ? i : rank - 1 - i;
    strides[d] = step;
    step *= std::max<int64_t>(t.shape[d], 1);
  }
  Tensor base = eager::make_empty(t.dtype, Ints{step + offset});
  std::memset(eager::data_of(*base.impl()), 1, (step + offset) * size_of(t.dtype));
  return base.as_strided(t.shape, strides, offset);
}

Tensor make_tensor(const CaseTensor& t, Storage storage, bool reversed) {
  Tensor result = storage == Storage::dense ? eager::make_empty(t.dtype, t.shape) : strided_view(t, reversed);
  const char* next = t.bytes.data();
  int64_t size = size_of(t.dtype);
  char* data = eager::data_of(*result.impl());
  eager::for_each_offset(*result.impl(), [&](int64_t offset) {
    std::memcpy(data + offset * size, next, size);
    next += size;
  });
  return result;
}

CaseTensor read(const Tensor& tensor) {
  eager::settle(tensor, "conformance", Location());
  const detail::TensorImpl& t = *tensor.impl();
  CaseTensor result{t.dtype, t.sizes, {}};
  int64_t size = size_of(t.dtype);
  result.bytes.reserve(eager::count(t.sizes) * size);
  const char* data = eager::data_of(t);
  eager::for_each_offset(t, [&](int64_t offset) { result.bytes.append(data + offset * size, size); });
  return result;
}
std::vector<CaseTensor> read(const std::vector<Tensor>& tensors) {
  std::vector<CaseTensor> results;
  for (const Tensor& t : tensors) results.push_back(read(t));
  return results;
}

/// The tensors of one run: the same stored tensor is the same argument.
class Pool {
 public:
  Pool(Storage storage, const Case& c) : storage_(storage), reversible_(c.op != "view") {
    for (const CaseValue& v : c.args) add(v);
    for (const auto& [name, v] : c.kwargs) add(v);
  }
  const Tensor& find(const CaseTensor& t, const std::vector<Tensor>& among) const { return among[numbers_.at(&t)]; }
  std::vector<Tensor> tensors;

 private:
  void add(const CaseValue& v) {
    if (v.is(CaseValue::Kind::tensor) && numbers_.emplace(&v.tensor, tensors.size()).second)
      tensors.push_back(make_tensor(v.tensor, storage_, reversible_ && tensors.size() % 2 == 0));
    for (const CaseValue& item : v.items) add(item);
  }
  Storage storage_;
  bool reversible_;  // view refuses, as PyTorch's does, strides that its sizes cannot describe
  std::map<const CaseTensor*, size_t> numbers_;
};

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

std::string lacks(Isa isa) {
  try {
    runtime::target_of(isa);
    return {};
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

std::vector<Mode> conformance_modes() {
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
  auto compiled = [&](const char* name, Storage storage, bool inplace, Isa isa) {
    modes.push_back({name, lacks(isa), inplace,
                     [=](const Case& c, const BoundCase& b) { return run_compiled(c, b, storage, isa); }});
  };
  compiled("compiled-avx512", Storage::dense, false, Isa::avx512);
  compiled("compiled-avx2", Storage::dense, false, Isa::avx2);
  compiled("compiled-none", Storage::dense, false, Isa::none);
  compiled("compiled-strided", Storage::strided, false, runtime::host_target().isa);
  compiled("compiled-inplace", Storage::dense, true, runtime::host_target().isa);
  return modes;
}

}  // namespace ingot::cli
