// Gradients where operands are NaN, infinite, zero, equal, subnormal or huge: every differentiable row of the op table,
// compiled against eager on every instruction set and against the reference interpreter.
#include "eager/dispatch_node.h"
#include "hostile_values.h"
#include "interpreted.h"
#include "ir/derived_function.h"
#include "ir/samples.h"
#include "lacks.h"
#include "support.h"

namespace ingot {
namespace {

using test::Hostile;
using test::same_bits;

/// Gradients of all floats for these cotangents, or of the sum of all results where there are none.
auto gradients_of(const ir::Graph& graph) {
  return [&graph](const std::vector<Tensor>& given, const std::vector<Tensor>& cotangents) {
    std::vector<Tensor> inputs, leaves, roots;
    for (const Tensor& t : given) {
      inputs.push_back(t.is_floating_point() ? t.detach().requires_grad_() : t);
      if (t.is_floating_point()) leaves.push_back(inputs.back());
    }
    for (const Tensor& t : test::dispatch_node(graph, inputs))
      if (t.requires_grad()) roots.push_back(cotangents.empty() ? t.sum() : t);
    std::vector<Tensor> found;
    if (roots.empty()) return found;
    for (const Tensor& g : autograd::grad(roots, leaves, cotangents, {}, false, true))
      if (g.defined()) found.push_back(g);
    return found;
  };
}

/// Of [2, 3] and [3], wide enough for whole vectors and what is left of them.
std::string widened(const ir::Sample& sample) {
  std::string text = sample.text;
  if (sample.op->kind != ir::OpKind::elementwise || text.find("[2, 3, ") != std::string::npos) return text;
  for (size_t at = 0; (at = text.find("3]", at)) != std::string::npos; at += 3) text.replace(at, 1, "37");
  return text;
}

/// A differentiable sample and what it is fed.
struct Subject {
  std::string text;
  ir::Graph graph;
  std::vector<std::vector<ReferenceTensor>> trials;

  explicit Subject(const ir::Sample& sample) : text(widened(sample)), graph(ir::parse(text)) {
    for (int trial = 0; trial < 2 * test::kHostileKinds; ++trial) {
      std::mt19937 random(static_cast<unsigned>(trial));
      std::vector<ReferenceTensor> inputs = random_inputs(graph, sample.op->name, 1);
      for (size_t i = 0; i < inputs.size(); ++i) {
        // All of one kind, then in each mixture.
        int kind = trial % test::kHostileKinds;
        if (i > 0 && trial >= test::kHostileKinds) kind = static_cast<int>(random() % test::kHostileKinds);
        ReferenceTensor& t = inputs[i];
        if (!t.floating()) continue;
        const bool share = sample.op->operand(static_cast<int>(i)).check.kind == ir::DataCheck::Kind::interval;
        for (int64_t j = 0; j < t.size(); ++j) {
          double x = test::hostile(static_cast<Hostile>(kind), t.dtype, j, random);
          if (share) x = std::isnan(x) ? 0.5 : std::clamp(x, 0.0, 1.0);
          t.real[j] = ir::round_to(t.dtype, x);
        }
      }
      trials.push_back(std::move(inputs));
    }
  }
  /// One for each float that the op gives, with a kind of its own in every third trial.
  std::vector<ReferenceTensor> cotangents(size_t trial) const {
    std::mt19937 random(static_cast<unsigned>(trial) + 1000);
    const Hostile kind = trial % 3 == 2 ? Hostile::special : trial % 3 == 1 ? Hostile::kinks : Hostile::calm;
    std::vector<ReferenceTensor> found;
    for (ir::ValueId v : graph.outputs) {
      if (!is_floating(graph.type(v).dtype)) continue;
      ReferenceTensor t(graph.type(v).dtype, shape_of(graph, v));
      for (int64_t j = 0; j < t.size(); ++j) t.real[j] = ir::round_to(t.dtype, test::hostile(kind, t.dtype, j, random));
      found.push_back(std::move(t));
    }
    return found;
  }
};

std::vector<Subject> subjects() {
  std::vector<Subject> found;
  for (const ir::Sample& sample : ir::samples()) {
    if (sample.op->gradient == ir::Gradient::none) continue;
    const ir::Function f = ir::function_of(sample.text);
    if (!f.differentiable().empty() && f.has_float_output()) found.emplace_back(sample);
  }
  return found;
}

struct HostileGradients : testing::Test {
  const test::RestoredSettings restored;
};

TEST_F(HostileGradients, HaveEagersBitsOnEveryInstructionSet) {
  set_numerics(Numerics::strict);  // by default products of bf16 may be the processor's own
  int64_t compared = 0;
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.text);
    std::vector<std::string> expected;
    for (Isa isa : {Isa::none, Isa::avx2, Isa::avx512}) {
      if (test::lacks(isa)) continue;
      runtime::set_host_target(runtime::target_of(isa));
      auto eager = gradients_of(subject.graph);
      auto fast = compile(eager);
      size_t at = 0;
      for (size_t trial = 0; trial < subject.trials.size(); ++trial) {
        const std::vector<Tensor> inputs = eager_tensors(subject.trials[trial]);
        for (const bool of_sum : {false, true}) {
          const std::vector<Tensor> cotangents =
              of_sum ? std::vector<Tensor>() : eager_tensors(subject.cotangents(trial));
          const std::vector<Tensor> a = eager(inputs, cotangents), b = fast(inputs, cotangents);
          ASSERT_EQ(a.size(), b.size());
          for (size_t i = 0; i < a.size(); ++i, ++at, ++compared) {
            ASSERT_TRUE(same_bits(b[i], a[i])) << "trial " << trial << ", gradient " << i;
            if (expected.size() == at) expected.push_back(bytes_of(a[i]));
            ASSERT_EQ(bytes_of(a[i]), expected[at]) << "trial " << trial << ", gradient " << i << a[i];
          }
        }
      }
      EXPECT_EQ(fast.stats().fallbacks, 0);
      EXPECT_EQ(fast.stats().graph_breaks, 0);
    }
  }
  EXPECT_GT(compared, 30000);
}

double most_of(const ReferenceTensor& t) {
  double most = 1;
  for (double x : t.real)
    if (std::isfinite(x)) most = std::max(most, std::abs(x));
  return most;
}

/// How large the gates of a recurrent layer may be, whose rounding its slopes follow: those of the input and the bias,
/// and of as many products of state and weight as there are columns. 1 for another op.
double gates_of(const Subject& subject, const std::vector<ReferenceTensor>& inputs) {
  if (ir::info(subject.graph.nodes.back().op).form != ir::Form::recurrence) return 1;
  double state = 1, rest = 0;
  int64_t columns = 1;
  for (const ReferenceTensor& t : inputs)
    if (t.shape.size() == 2)
      state *= most_of(t), columns = t.shape[1];
    else
      rest += most_of(t);
  return rest + static_cast<double>(columns) * state;
}

/// What a graph is made of once it is expanded.
bool has(const ir::Graph& graph, auto f) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& n) { return f(ir::info(n.op)); });
}

// NaN and infinities where the rule has them, computed in double primitive by primitive; all else within rounding.
// Sums that overflow on the way do so in their own order; convolutions meet the zeros that they pad with, attention the
// weights of what is hidden: those are compared where operands are small, or finite.
TEST_F(HostileGradients, AreThoseOfTheReference) {
  int64_t compared = 0;
  for (const Subject& subject : subjects()) {
    // What is given of a matrix that has no factors has no meaning.
    if (ir::info(subject.graph.nodes.back().op).has(ir::kMatrices)) continue;
    SCOPED_TRACE(subject.text);
    const ir::Function derived = ir::function_of(subject.text).derived();
    ir::Graph expanded = derived.graph();
    ir::decompose(expanded);
    using ir::Form;
    auto is = [&](Form form) { return has(expanded, [=](const ir::OpInfo& op) { return op.form == form; }); };
    const bool convolves = is(Form::window) || is(Form::window_weight);
    const bool attends = is(Form::attention) || is(Form::attention_backward);
    const bool sums = convolves || attends || is(Form::product) || is(Form::recurrence) ||
                      has(expanded, [](const ir::OpInfo& op) { return op.kind == ir::OpKind::reduction; });
    for (size_t trial = 0; trial < subject.trials.size(); ++trial) {
      const std::vector<ReferenceTensor> cotangents = subject.cotangents(trial);
      std::vector<ReferenceTensor> given = subject.trials[trial];
      const std::vector<Tensor> inputs = eager_tensors(given);
      for (const Tensor& t : test::dispatch_node(subject.graph, inputs)) given.push_back(test::reference(t));
      given.insert(given.end(), cotangents.begin(), cotangents.end());
      bool huge = false, finite = true;
      double size = 1;  // of what attention multiplies, and then subtracts
      auto multiply = [&](const std::vector<ReferenceTensor>& tensors) {
        for (const ReferenceTensor& t : tensors) size *= most_of(t);
      };
      multiply(subject.trials[trial]), multiply(cotangents);
      for (const ReferenceTensor& t : given)
        for (double x : t.real)
          huge = huge || (std::isfinite(x) && std::abs(x) > 1e4), finite = finite && std::isfinite(x);
      if ((sums && huge) || ((convolves || attends) && !finite)) continue;

      const std::vector<ReferenceTensor> expected = derived(given);
      const std::vector<Tensor> got = gradients_of(subject.graph)(inputs, eager_tensors(cotangents));
      if (got.empty()) continue;  // constant
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i, ++compared) {
        const ReferenceTensor values = test::reference(got[i]);
        double largest = attends ? size : 1;
        for (double x : expected[i].real)
          if (sums && std::isfinite(x)) largest = std::max(largest, std::abs(x));
        largest *= gates_of(subject, subject.trials[trial]);
        for (int64_t j = 0; j < values.size(); ++j) {
          const double a = values.real[j], b = expected[i].real[j];
          if (a == b || (std::isnan(a) && std::isnan(b))) continue;
          ASSERT_LE(std::abs(a - b), 64 * rounding_of(values.dtype) * (largest + std::abs(b)))
              << "trial " << trial << ", gradient " << i << ", element " << j << ": " << a << ", expected " << b;
        }
      }
    }
  }
  EXPECT_GT(compared, 5000);
}

}  // namespace
}  // namespace ingot
