#include "conformance/gradients.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "compile/compile.h"
#include "conformance/interpreter.h"
#include "conformance/judge.h"
#include "conformance/tensors.h"
#include "eager/autograd/autograd.h"
#include "eager/ops/functions.h"
#include "ir/reference.h"
#include "runtime/cpu.h"

namespace ingot::conformance {
namespace {

using Change = std::function<CaseTensor(const CaseTensor&)>;

ir::ReferenceTensor values(const CaseTensor& t) {
  return ir::ReferenceTensor::from_bytes(t.dtype, t.shape, t.bytes.data());
}

/// What one run is given. None of it is a view of anything to the tape.
struct GivenGradients {
  GivenGradients(const Case& c, Storage storage, const Change& change = {}) {
    const NoGradGuard no_grad;
    pool.emplace(storage, c, change);
    for (const auto& [output, cotangent] : c.gradients->cotangents)
      cotangents.push_back(make(change ? change(cotangent) : cotangent, storage));
    for (const CaseGradients::Value& value : c.gradients->values) {
      size_t position = 0;
      for_each_tensor(c, [&](const CaseTensor& t) {
        if (t.name == value.of) inputs.push_back(position);
        ++position;
      });
    }
    if (inputs.size() != c.gradients->values.size()) throw Error("the gradients are not of the case's arguments");
    for (size_t i : inputs) pool->tensors[i].requires_grad_();
  }
  std::vector<Tensor> all() const {
    std::vector<Tensor> tensors = pool->tensors;
    tensors.insert(tensors.end(), cotangents.begin(), cotangents.end());
    return tensors;
  }
  std::optional<Pool> pool;
  std::vector<size_t> inputs;  // positions in the pool
  std::vector<Tensor> cotangents;
};

/// The results, and behind them the gradients.
std::vector<Tensor> backward(const Case& c, const GivenGradients& given, const std::vector<Tensor>& tensors,
                             std::vector<Tensor> results) {
  if (results.size() != c.outputs.size())
    throw Error(std::to_string(results.size()) + " results, expected " + std::to_string(c.outputs.size()));
  std::vector<Tensor> roots, cotangents, inputs;
  for (size_t i = 0; i < given.cotangents.size(); ++i) {
    const Tensor& root = results.at(c.gradients->cotangents[i].first);
    if (!root.requires_grad()) continue;
    roots.push_back(root);
    cotangents.push_back(tensors[given.pool->tensors.size() + i].to(root.dtype()));
  }
  for (size_t i : given.inputs) inputs.push_back(tensors[i]);
  std::vector<Tensor> gradients(inputs.size());
  if (!roots.empty()) gradients = autograd::grad(roots, inputs, cotangents, {}, false, true);
  // None is zero, as PyTorch gives none or zeros; which of them no case depends on.
  for (size_t i = 0; i < inputs.size(); ++i)
    results.push_back(gradients[i].defined() ? gradients[i] : zeros_like(inputs[i].detach()));
  return results;
}

std::vector<CaseTensor> run_now(const Case& c, const BoundCase& bound, const GivenGradients& given) {
  const std::vector<Tensor> tensors = given.all();
  return read(backward(c, given, tensors, bound([&](const CaseTensor& t) { return given.pool->find(t, tensors); })));
}

std::vector<CaseTensor> run_compiled(const Case& c, const BoundCase& bound, const GivenGradients& given, bool whole,
                                     Outcome& outcome) {
  auto forward = [&](const std::vector<Tensor>& tensors) {
    return bound([&](const CaseTensor& t) { return given.pool->find(t, tensors); });
  };
  auto compiled = compile([&](const std::vector<Tensor>& tensors) {
    return whole ? backward(c, given, tensors, forward(tensors)) : forward(tensors);
  });
  const std::vector<Tensor> tensors = given.all();
  std::vector<Tensor> results = compiled(tensors);
  if (!whole) results = backward(c, given, tensors, std::move(results));
  std::vector<CaseTensor> all = read(results);
  outcome.results = all;
  note_source(compiled.explain(), runtime::host_target().isa, outcome);
  return all;
}

/// What gradients must be, and how near they must come to it.
struct Expected {
  std::vector<CaseTensor> gradients;
  double rtol = 0, atol = 0;
  bool overflowed = false;  // a result is past the range of its dtype: what is derived of it may be lost

  bool near(DType dtype, double got, double want) const {
    if (same_number(got, want) || same_number(got, ir::round_to(dtype, want))) return true;
    return std::abs(got - want) <= atol + rtol * std::abs(want) || (overflowed && !std::isfinite(got));
  }
};

/// Throws Error unless the gradients are near these ones.
void judge(const Case& c, std::span<const CaseTensor> gradients, const Expected& expected) {
  for (size_t i = 0; i < c.gradients->values.size(); ++i) {
    const std::string of = "the gradient of " + c.gradients->values[i].of;
    const ir::ReferenceTensor got = values(gradients[i]), want = values(expected.gradients[i]);
    if (!(got.shape == want.shape)) throw Error(of + " has another shape");
    for (int64_t k = 0; k < got.size(); ++k)
      if (!expected.near(got.dtype, got.at(k), want.at(k)))
        throw Error("element " + std::to_string(k) + " of " + of + " is " + std::to_string(got.at(k)) + ", expected " +
                    std::to_string(want.at(k)));
  }
}

void judge_bits(const CaseTensor& got, const CaseTensor& eager, const std::string& which) {
  if (got.dtype != eager.dtype || !(got.shape == eager.shape)) throw Error(which + " has another type than eager's");
  if (got.bytes == eager.bytes) return;
  const ir::ReferenceTensor g = values(got), e = values(eager);
  for (int64_t k = 0; k < g.size(); ++k) {
    const double a = g.at(k), b = e.at(k);
    if (!same_number(a, b) || (!std::isnan(a) && std::signbit(a) != std::signbit(b)))
      throw Error("element " + std::to_string(k) + " of " + which + " is " + std::to_string(a) + ", and eager's " +
                  std::to_string(b));
  }
}

CaseTensor cast(const CaseTensor& t, DType from, std::initializer_list<DType> through) {
  if (t.dtype != from) return t;
  Tensor x = make(t, Storage::dense);
  for (DType dtype : through) x = x.to(dtype);
  CaseTensor result = read({x})[0];
  result.name = t.name;
  return result;
}

Expected stored_gradients(const Case& c) {
  Expected expected{{}, c.gradients->rtol, c.gradients->atol};
  for (const CaseGradients::Value& value : c.gradients->values)
    for_each_tensor(c, [&](const CaseTensor& t) {
      if (t.name != value.of) return;
      expected.gradients.push_back(value.expected ? *value.expected : t);
      if (!value.expected) std::fill_n(expected.gradients.back().bytes.begin(), t.bytes.size(), '\0');
    });
  return expected;
}

double largest_of(const CaseTensor& t) {
  double largest = 0;
  for (double x : values(t).real)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  return largest;
}

// Two roundings of what is as large as any gradient or cotangent: of the result that a rule reads, and of the gradient.
Expected rounded_gradients(const Case& c, const BoundCase& bound, DType rounded) {
  const GivenGradients given(c, Storage::dense, [&](const CaseTensor& t) {
    return cast(t, DType::f32, {rounded, DType::f64});
  });
  const InterpretedScope scope(false);
  const std::vector<CaseTensor> all = run_now(c, bound, given);
  const auto first = all.end() - static_cast<std::ptrdiff_t>(given.inputs.size());
  const double unit = rounded == DType::f16 ? 0x1p-11 : 0x1p-8;
  Expected expected{{first, all.end()}, 2 * unit};
  double largest = 0, largest_result = 0;
  for (const CaseTensor& t : expected.gradients) largest = std::max(largest, largest_of(t));
  for (const auto& [output, t] : c.gradients->cotangents) largest = std::max(largest, largest_of(t));
  for (auto t = all.begin(); t != first; ++t) largest_result = std::max(largest_result, largest_of(*t));
  expected.overflowed = std::isinf(ir::round_to(rounded, largest_result));
  if (c.op == "logsumexp") expected.rtol *= 1 + largest_result;  // e^(x - r), where r is rounded
  expected.atol = expected.rtol * largest;
  return expected;
}

}  // namespace

bool has_gradients(const Case& c, std::optional<DType> rounded) {
  bool of_f32 = false;
  for_each_tensor(c, [&](const CaseTensor& t) { of_f32 |= t.dtype == DType::f32; });
  return c.gradients && (!rounded || (of_f32 && c.dtypes.count(*rounded)));
}

Outcome run_gradients(const Case& c, const BoundCase& bound, GradientWay way, std::optional<DType> rounded) {
  // Commands record no gradients.
  const EnableGradGuard enable_grad;
  const Change change = [&](const CaseTensor& t) { return cast(t, DType::f32, {*rounded}); };
  auto given = [&](Storage storage) { return GivenGradients(c, storage, rounded ? change : Change()); };
  const size_t results = c.outputs.size();
  Outcome outcome;
  {
    std::optional<InterpretedScope> scope;
    if (way == GradientWay::interpreted) scope.emplace(false);
    outcome.results = run_now(c, bound, given(Storage::dense));
  }
  const std::vector<CaseTensor> eager = outcome.results;
  if (way == GradientWay::eager || way == GradientWay::interpreted) {
    judge(c, std::span(eager).subspan(results), rounded ? rounded_gradients(c, bound, *rounded) : stored_gradients(c));
  } else {
    for (Storage storage : {Storage::dense, Storage::strided}) {
      const std::vector<CaseTensor> got = run_compiled(c, bound, given(storage), way == GradientWay::whole, outcome);
      for (size_t i = 0; i < eager.size(); ++i)
        judge_bits(
            got.at(i), eager[i],
            (i < results ? "output " + std::to_string(i) : "the gradient of " + c.gradients->values[i - results].of) +
                (storage == Storage::strided ? ", of strided inputs," : ""));
    }
  }
  outcome.results.resize(results);
  outcome.judged = rounded.has_value();
  return outcome;
}

}  // namespace ingot::conformance
