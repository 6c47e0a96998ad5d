// Random programs over tensors: views, broadcasts, mixed dtypes, in-place ops, sizes that change. Compiled = eager,
// bitwise.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "eager/data.h"
#include "interpreted.h"
#include "ir/reference.h"
#include "random_program.h"
#include "support.h"
#include "trace/build_graph.h"
#include "trace/recorder.h"

namespace ingot {
namespace {

using test::reference;
using test::Step;

// Before RapidCheck reads it. One seed, so that a change is judged by what it changes; tools/fuzz takes fresh ones.
const bool kMoreCases = !setenv("RC_PARAMS", "seed=20261120 max_success=2000 max_size=40", 0);

/// Runs a property; what it judged is stated, and where most programs came to nothing, it has shown nothing.
class Judged {
 public:
  ~Judged() {
    std::printf("  judged %lld of %lld\n", static_cast<long long>(judged_), static_cast<long long>(all_));
    testing::Test::RecordProperty("judged", std::to_string(judged_));
    EXPECT_GT(all_, 0);
    EXPECT_GE(judged_ * 100, all_ * percent_) << "judged " << judged_ << " of " << all_;
  }
  explicit Judged(int percent) : percent_(percent) {}
  void add(bool judged) { ++all_, judged_ += judged; }

 private:
  int percent_;
  int64_t all_ = 0, judged_ = 0;
};

std::vector<Tensor> inputs(int64_t n, int64_t m, uint64_t seed) {
  manual_seed(seed);
  return {randn({n, m}), randn({m}), randint(-5, 6, {n, 1}), randn({m, n}).t(), randn({n, 1}, kFloat64)};
}

void compiled_is_eager(Judged& judged, const std::vector<Step>& steps, uint8_t seed) {
  auto fast = compile([&](const std::vector<Tensor>& x) { return test::run(steps, x); });
  for (auto [n, m] : {std::pair{3, 5}, {3, 5}, {4, 5}, {6, 2}, {3, 5}}) {
    std::vector<Tensor> a = inputs(n, m, seed), b = inputs(n, m, seed);
    manual_seed(seed);
    std::vector<Tensor> got = fast(a);
    manual_seed(seed);
    std::vector<Tensor> expected = test::run(steps, b);
    RC_ASSERT(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      auto same = test::same_bits(got[i], expected[i]);
      if (!same) RC_FAIL("result " + std::to_string(i) + ": " + same.message());
      if (!test::same_strides(got[i], expected[i])) RC_FAIL("strides of result " + std::to_string(i));
    }
    for (size_t i = 0; i < a.size(); ++i)
      if (auto same = test::same_bits(a[i], b[i]); !same) RC_FAIL("input " + std::to_string(i) + ": " + same.message());
  }
  // Behind a break (as_strided asked for more than its tensor) views of one tensor are several from outside.
  RC_ASSERT(fast.stats().fallbacks == 0 || fast.stats().graph_breaks > 0);
  judged.add(fast.stats().compilations > 0);  // else no op of it was taken
}
TEST(RandomGraphs, CompiledIsEager) {
  Judged programs(80);
  EXPECT_TRUE(
      rc::check([&](const std::vector<Step>& steps, uint8_t seed) { compiled_is_eager(programs, steps, seed); }));
}

// Wherever neighbouring steps treat the rows apart, they run over one after another.
TEST(RandomGraphs, CompiledIsEagerInSlices) {
  setenv("INGOT_SLICE", "1", 1);
  Judged programs(80);
  EXPECT_TRUE(
      rc::check([&](const std::vector<Step>& steps, uint8_t seed) { compiled_is_eager(programs, steps, seed); }));
  unsetenv("INGOT_SLICE");
}

/// The gradients of all results by the inputs that require grad, behind the results; an error in their place.
std::vector<Tensor> with_gradients(std::vector<Tensor> results, const std::vector<Tensor>& x, std::string* error) {
  std::vector<Tensor> roots, cotangents, leaves;
  for (const Tensor& t : results)
    if (t.requires_grad()) roots.push_back(t), cotangents.push_back(ones_like(t.detach()) * 0.5);
  for (const Tensor& t : x)
    if (t.requires_grad()) leaves.push_back(t);
  if (roots.empty()) return results;
  try {
    for (const Tensor& t : autograd::grad(roots, leaves, cotangents, {}, false, true))
      results.push_back(t.defined() ? t : zeros({0}));
  } catch (const Error& e) {
    *error = e.what();
  }
  return results;
}

// Floats require grad; the backward pass is a part of the compiled function, or follows it.
void gradients_are_eagers(Judged& judged, const std::vector<Step>& steps, uint8_t seed) {
  const uint32_t choice = (seed + 1u) * 2654435761u >> 8;
  const bool whole = choice & 64;
  std::string error, eager_error;
  auto fast = compile([&](const std::vector<Tensor>& x) {
    std::vector<Tensor> results = test::run(steps, x);
    return whole ? with_gradients(std::move(results), x, &error) : results;
  });
  auto leaves = [&](int64_t n, int64_t m) {
    std::vector<Tensor> x = inputs(n, m, seed);
    for (size_t i = 0; i < x.size(); ++i)
      if (is_floating(x[i].dtype()) && (i == seed % 2 || choice >> i & 1)) x[i].requires_grad_();
    return x;
  };
  bool asked = false;
  for (auto [n, m] : {std::pair{3, 5}, {3, 5}, {4, 5}, {6, 2}, {3, 5}}) {
    const std::vector<Tensor> a = leaves(n, m), b = leaves(n, m);
    error.clear(), eager_error.clear();
    manual_seed(seed);
    std::vector<Tensor> got = fast(a);
    if (!whole) got = with_gradients(std::move(got), a, &error);
    manual_seed(seed);
    std::vector<Tensor> expected = test::run(steps, b);
    const size_t results = expected.size();
    expected = with_gradients(std::move(expected), b, &eager_error);
    if (error != eager_error) RC_FAIL("threw \"" + error + "\", not \"" + eager_error + "\"");
    RC_ASSERT(got.size() == expected.size());
    asked |= expected.size() > results || !error.empty();
    for (size_t i = 0; i < got.size(); ++i) {
      auto same = test::same_bits(got[i].detach(), expected[i].detach());
      if (!same) RC_FAIL((i < results ? "result " : "gradient ") + std::to_string(i) + ": " + same.message());
      if (!test::same_strides(got[i], expected[i])) RC_FAIL("strides of result " + std::to_string(i));
      RC_ASSERT(got[i].requires_grad() == expected[i].requires_grad());
    }
  }
  judged.add(asked && fast.stats().compilations > 0);
}
TEST(RandomGraphs, GradientsAreEagers) {
  Judged programs(60);
  EXPECT_TRUE(
      rc::check([&](const std::vector<Step>& steps, uint8_t seed) { gradients_are_eagers(programs, steps, seed); }));
}

double largest_of(const ir::ReferenceTensor& t) {
  double largest = 0;
  for (int64_t i = 0; i < t.size(); ++i)
    if (std::isfinite(t.at(i))) largest = std::max(largest, std::abs(t.at(i)));
  return largest;
}

// What each op gives in f64 is within 1e-9 of the interpreter, relative to the largest magnitude in the call. False
// where the call says nothing of that.
bool judge(const eager::OpCall& call, const std::vector<Tensor>& got) {
  // A search says nothing where the edges have no order.
  if (call.op == OpId::searchsorted || call.op == OpId::bucketize) return false;
  double largest = 1;
  for (const eager::Operand& o : call.operands) {
    if (o.kind != eager::Operand::Kind::tensor) continue;
    if (o.tensor->dtype() != kFloat64 && is_floating(o.tensor->dtype())) return false;
    largest = std::max(largest, largest_of(reference(*o.tensor)));
  }
  if (largest > 100) return false;
  if (ir::info(call.op).has(ir::kMatrices)) return false;  // a random one may have no factors
  const test::Interpreted interpreted(call);
  const std::vector<ir::ReferenceTensor>& expected = interpreted.outputs;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].dtype() != kFloat64 && is_floating(got[i].dtype())) return false;
    largest = std::max(largest, largest_of(expected[i]));
    const ir::ReferenceTensor values = reference(got[i]);
    RC_ASSERT(values.size() == expected[i].size());
    for (int64_t k = 0; k < values.size(); ++k) {
      double a = values.at(k), b = expected[i].at(k);
      if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-9 * largest) continue;
      RC_FAIL(ir::print(interpreted.graph) + "output " + std::to_string(i) + ": " + std::to_string(a) + ", not " +
              std::to_string(b));
    }
  }
  return true;
}

void every_op_is_near_the_interpreter(Judged& judged, const std::vector<uint32_t>& seeds, uint8_t seed) {
  std::vector<Tensor> at_hand = inputs(3, 5, seed);
  for (Tensor& t : at_hand) t = t.to(kFloat64);
  at_hand.push_back(at_hand[2].to(kInt64));
  for (uint32_t s : seeds)
    for (const Tensor& t : test::RandomOp(s, at_hand, [&](const eager::OpCall&call, const std::vector<Tensor>&got) {
                             judged.add(judge(call, got));
                           }).run())
      at_hand.push_back(is_floating(t.dtype()) ? t.to(kFloat64) : t);
}
TEST(RandomGraphs, EveryOpIsNearTheInterpreter) {
  Judged calls(40);
  EXPECT_TRUE(rc::check(
      [&](const std::vector<uint32_t>& seeds, uint8_t seed) { every_op_is_near_the_interpreter(calls, seeds, seed); }));
}

// In f64, and without ops that jump, what eager computes is within 1e-9 of the interpreter, relative to the largest
// magnitude in the program.
void eager_is_near_the_interpreter(Judged& judged, const std::vector<Step>& steps, uint8_t seed) {
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
  trace::collect_sites(recorder.segment().path(), sites);
  std::vector<int32_t> symbol_of(sites.size(), -1);
  trace::BuiltGraph built = trace::build_graph({recorder.segment().path(), live, {}, {}, {}, sites, symbol_of, 0});
  ir::verify(built.graph);
  for (uint32_t slot : built.binding.input_slots) in.push_back(reference(recorder.segment().slots()[slot]));
  for (size_t i = 0; i < built.graph.scalars.size(); ++i) {
    ir::ReferenceScalar& scalar = scalars.emplace_back();
    scalar.category = built.graph.scalars[i];
    scalar.integer = static_cast<int64_t>(recorder.segment().scalars()[i]);
    std::memcpy(&scalar.number, &recorder.segment().scalars()[i], 8);
  }
  recorder.abandon();  // runs what was recorded op by op: eager's results
  std::vector<ir::ReferenceTensor> expected = ir::interpret(built.graph, in, scalars);
  // What cancels is as exact as the largest of what went in.
  double largest = 1;
  for (const ir::ReferenceTensor& output : expected)
    for (int64_t k = 0; k < output.size(); ++k)
      if (std::isfinite(output.at(k))) largest = std::max(largest, std::abs(output.at(k)));
  int64_t compared = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const trace::LiveValue& where = built.binding.live[i];
    if (where.external) continue;
    ++compared;
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
  judged.add(compared > 0);
}
TEST(RandomGraphs, EagerIsNearTheInterpreter) {
  Judged programs(70);
  EXPECT_TRUE(rc::check(
      [&](const std::vector<Step>& steps, uint8_t seed) { eager_is_near_the_interpreter(programs, steps, seed); }));
}

}  // namespace
}  // namespace ingot
