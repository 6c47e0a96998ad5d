// Random programs over tensors: views, broadcasts, mixed dtypes, in-place ops, sizes that change. Compiled = eager,
// bitwise.
#include <gtest/gtest.h>
// RapidCheck's header needs GoogleTest's.
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>

#include "eager/data.h"
#include "ir/reference.h"
#include "random_program.h"
#include "support.h"
#include "trace/build_graph.h"
#include "trace/recorder.h"

namespace ingot {
namespace {

using test::Step;

const bool kMoreCases = !setenv("RC_PARAMS", "max_success=1000", 0);  // before RapidCheck reads it

std::vector<Tensor> inputs(int64_t n, int64_t m, uint64_t seed) {
  manual_seed(seed);
  return {randn({n, m}), randn({m}), randint(-5, 6, {n, 1}), randn({m, n}).t(), randn({n, 1}, kFloat64)};
}

RC_GTEST_PROP(RandomGraphs, CompiledIsEager, (const std::vector<Step>& steps, uint8_t seed)) {
  auto fast = compile([&](const std::vector<Tensor>& x) { return test::run(steps, x); });
  for (auto [n, m] : {std::pair{3, 5}, {3, 5}, {4, 5}, {6, 2}, {3, 5}}) {
    std::vector<Tensor> a = inputs(n, m, seed), b = inputs(n, m, seed);
    std::vector<Tensor> got = fast(a), expected = test::run(steps, b);
    RC_ASSERT(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      auto same = test::same_bits(got[i], expected[i]);
      if (!same) RC_FAIL("result " + std::to_string(i) + ": " + same.message());
      if (!test::same_strides(got[i], expected[i])) RC_FAIL("strides of result " + std::to_string(i));
    }
    for (size_t i = 0; i < a.size(); ++i)
      if (auto same = test::same_bits(a[i], b[i]); !same) RC_FAIL("input " + std::to_string(i) + ": " + same.message());
  }
  RC_ASSERT(fast.stats().fallbacks == 0);
}

ir::ReferenceTensor reference(const Tensor& t) {
  const detail::TensorImpl& impl = *t.impl();
  std::vector<char> bytes;
  int64_t size = size_of(impl.dtype);
  eager::for_each_offset(impl, [&](int64_t offset) {
    const char* at = eager::data_of(impl) + offset * size;
    bytes.insert(bytes.end(), at, at + size);
  });
  return ir::ReferenceTensor::from_bytes(impl.dtype, impl.sizes, bytes.data());
}

// In f64, and without ops that jump, what eager computes is within 1e-9 of the interpreter, relative to the largest
// magnitude in the program.
RC_GTEST_PROP(RandomGraphs, EagerIsNearTheInterpreter, (const std::vector<Step>& steps, uint8_t seed)) {
  std::vector<Tensor> given = inputs(4, 5, seed);
  for (Tensor& t : given) t = t.to(kFloat64);
  trace::Recorder recorder(std::make_shared<trace::Function>("random", std::vector<std::string>{}, 8));
  recorder.begin({});
  std::vector<Tensor> results = test::run(steps, given, true);
  std::vector<uint32_t> live;
  std::vector<Tensor> tensors;
  std::vector<ir::ReferenceScalar> scalars;
  std::vector<ir::ReferenceTensor> in;
  for (const Tensor& t : results)
    if (t.impl()->trace && std::find(live.begin(), live.end(), t.impl()->value) == live.end()) {
      live.push_back(t.impl()->value);
      tensors.push_back(t);
    }
  std::vector<int64_t> sites;
  trace::collect_sites(recorder.path(), sites);
  std::vector<int32_t> symbol_of(sites.size(), -1);
  trace::BuiltGraph built = trace::build_graph({recorder.path(), live, {}, {}, sites, symbol_of, 0});
  ir::verify(built.graph);
  for (uint32_t slot : built.binding.input_slots) in.push_back(reference(recorder.slots()[slot]));
  for (size_t i = 0; i < built.graph.scalars.size(); ++i) {
    ir::ReferenceScalar& scalar = scalars.emplace_back();
    scalar.category = built.graph.scalars[i];
    scalar.integer = static_cast<int64_t>(recorder.scalars()[i]);
    std::memcpy(&scalar.number, &recorder.scalars()[i], 8);
  }
  recorder.abandon();  // runs what was recorded op by op: eager's results
  std::vector<ir::ReferenceTensor> expected = ir::interpret(built.graph, in, scalars);
  // What cancels is as exact as the largest of what went in.
  double largest = 1;
  for (const ir::ReferenceTensor& output : expected)
    for (int64_t k = 0; k < output.size(); ++k)
      if (std::isfinite(output.at(k))) largest = std::max(largest, std::abs(output.at(k)));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const trace::LiveValue& where = built.binding.live[i];
    if (where.external) continue;
    // Outputs are whole storages in the order of their memory.
    const ir::ReferenceTensor& output = expected[where.number];
    const char* memory = static_cast<const char*>(tensors[i].impl()->storage->data());
    for (int64_t k = 0; k < output.size(); ++k) {
      double got = eager::read_element(output.dtype, memory + k * size_of(output.dtype)).to_double(),
             want = output.at(k);
      bool near = got == want || (std::isnan(got) && std::isnan(want)) || std::abs(got - want) <= 1e-9 * largest;
      if (!near)
        RC_FAIL("value " + std::to_string(live[i]) + ": " + std::to_string(got) + ", not " + std::to_string(want));
    }
  }
}

}  // namespace
}  // namespace ingot
