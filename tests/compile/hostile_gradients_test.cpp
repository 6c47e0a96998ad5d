// Gradients where operands are NaN, infinite, zero, equal, subnormal or huge: every differentiable row of the op table,
// compiled against eager on every instruction set and against the reference interpreter; and what PyTorch gives at
// kinks and edges.
#include "hostile_values.h"
#include "interpreted.h"
#include "ir/derived_function.h"
#include "ir/samples.h"
#include "lacks.h"
#include "support.h"

namespace ingot {
namespace {

namespace F = nn::functional;

using test::Hostile;
using test::same_bits;

/// The graph's one node, through the chain.
std::vector<Tensor> record(const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  const ir::Node& node = graph.nodes.at(0);
  std::vector<eager::Operand> operands;
  for (const ir::Operand& o : node.operands) {
    if (o.is_value())
      operands.emplace_back(inputs.at(o.id));
    else if (o.kind != ir::Operand::Kind::constant)
      operands.emplace_back();
    else if (o.category == Category::floating)
      operands.emplace_back(Scalar(o.number));
    else
      operands.emplace_back(o.category == Category::boolean ? Scalar(o.integer != 0) : Scalar(o.integer));
  }
  std::vector<Tensor> outputs(node.outputs.size());
  eager::dispatch({node.op, false, operands, node.attrs, Location()}, outputs);
  return outputs;
}

/// Gradients of all floats for these cotangents, or of the sum of all results where there are none.
auto gradients_of(const ir::Graph& graph) {
  return [&graph](const std::vector<Tensor>& given, const std::vector<Tensor>& cotangents) {
    std::vector<Tensor> inputs, leaves, roots;
    for (const Tensor& t : given) {
      inputs.push_back(t.is_floating_point() ? t.detach().requires_grad_() : t);
      if (t.is_floating_point()) leaves.push_back(inputs.back());
    }
    for (const Tensor& t : record(graph, inputs))
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
  void TearDown() override {
    runtime::set_host_target(std::nullopt);
    set_numerics(Numerics::default_);
  }
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

/// What a graph is made of once it is expanded.
bool has(const ir::Graph& graph, auto f) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& n) { return f(ir::info(n.op)); });
}

// NaN and infinities where the rule has them, computed in double primitive by primitive; all else within rounding.
// Sums that overflow on the way do so in their own order, and convolutions meet the zeros that they pad with: those are
// compared where operands are small, or finite.
TEST_F(HostileGradients, AreThoseOfTheReference) {
  int64_t compared = 0;
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.text);
    const ir::Function derived = ir::function_of(subject.text).derived();
    ir::Graph expanded = derived.graph();
    ir::decompose(expanded);
    using ir::Form;
    auto is = [&](Form form) { return has(expanded, [=](const ir::OpInfo& op) { return op.form == form; }); };
    const bool convolves = is(Form::window);
    const bool sums = convolves || is(Form::product) || is(Form::attention) ||
                      has(expanded, [](const ir::OpInfo& op) { return op.kind == ir::OpKind::reduction; });
    for (size_t trial = 0; trial < subject.trials.size(); ++trial) {
      const std::vector<ReferenceTensor> cotangents = subject.cotangents(trial);
      std::vector<ReferenceTensor> given = subject.trials[trial];
      const std::vector<Tensor> inputs = eager_tensors(given);
      for (const Tensor& t : record(subject.graph, inputs)) given.push_back(test::reference(t));
      given.insert(given.end(), cotangents.begin(), cotangents.end());
      bool huge = false, finite = true;
      for (const ReferenceTensor& t : given)
        for (double x : t.real)
          huge = huge || (std::isfinite(x) && std::abs(x) > 1e4), finite = finite && std::isfinite(x);
      if ((sums && huge) || (convolves && !finite)) continue;

      const std::vector<ReferenceTensor> expected = derived(given);
      const std::vector<Tensor> got = gradients_of(subject.graph)(inputs, eager_tensors(cotangents));
      if (got.empty()) continue;  // constant
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i, ++compared) {
        const ReferenceTensor values = test::reference(got[i]);
        double largest = 1;
        for (double x : expected[i].real)
          if (sums && std::isfinite(x)) largest = std::max(largest, std::abs(x));
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

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
using Numbers = std::vector<double>;
using Function = Tensor (*)(const std::vector<Tensor>&);

struct Convention {
  const char* name;
  Function f;
  std::vector<Numbers> at, expected;  // gradients of the sum
};
#define OF(name, ...) name, [](const std::vector<Tensor>& x) -> Tensor { return __VA_ARGS__; }

// PyTorch 2.15's, looked up, but for what is said.
const std::vector<Convention>& conventions() {
  static const std::vector<Convention> all = {
      {OF("abs", x[0].abs()), {{-1, 0, kNaN, -kInfinity}}, {{-1, 0, 0, -1}}},
      {OF("relu", F::relu(x[0])), {{-1, 0, -0.0, kNaN, kInfinity}}, {{0, 0, 0, 1, 1}}},
      {OF("relu6", F::relu6(x[0])), {{0, 6, 3, kNaN}}, {{0, 0, 1, 1}}},
      {OF("hardtanh", F::hardtanh(x[0])), {{-1, 1, 0, kNaN}}, {{0, 0, 1, 1}}},
      {OF("leaky_relu", F::leaky_relu(x[0], 0.5)), {{0, 1, -1, kNaN}}, {{0.5, 1, 0.5, 0.5}}},
      {OF("elu", F::elu(x[0])), {{0, -kInfinity, kInfinity}}, {{1, 0, 1}}},
      {OF("softplus", F::softplus(x[0])), {{-kInfinity, kInfinity, kNaN}}, {{0, 1, kNaN}}},
      {OF("sigmoid", x[0].sigmoid()), {{-kInfinity, kInfinity, kNaN}}, {{0, 0, kNaN}}},
      {OF("tanh", x[0].tanh()), {{-kInfinity, kInfinity, kNaN}}, {{0, 0, kNaN}}},
      {OF("hardswish", F::hardswish(x[0])), {{-3, 3, 0}}, {{0, 1, 0.5}}},
      {OF("hardshrink", F::hardshrink(x[0])), {{0.5, -0.5, kNaN}}, {{0, 0, 1}}},
      {OF("softshrink", F::softshrink(x[0])), {{0.5, -0.5, kNaN}}, {{0, 0, 1}}},
      // PyTorch 2.15 has 0 at the bounds; those before it 1.
      {OF("clamp", x[0].clamp(-1, 1)), {{-2, -1, 0, 1, 2, kNaN}}, {{0, 1, 1, 1, 0, 0}}},
      {OF("sqrt", x[0].sqrt()), {{0, -0.0, -1, kInfinity}}, {{kInfinity, -kInfinity, kNaN, 0}}},
      {OF("rsqrt", x[0].rsqrt()), {{0, kInfinity, -1}}, {{-kInfinity, 0, kNaN}}},
      {OF("reciprocal", x[0].reciprocal()), {{0, kInfinity}}, {{-kInfinity, 0}}},
      {OF("log", x[0].log()), {{0, -1, kInfinity}}, {{kInfinity, -1, 0}}},
      {OF("log1p", x[0].log1p()), {{-1, kInfinity}}, {{kInfinity, 0}}},
      {OF("pow 0", x[0].pow(0)), {{0, kNaN, kInfinity}}, {{0, 0, 0}}},
      {OF("pow 1/2", x[0].pow(0.5)), {{0, -1}}, {{kInfinity, kNaN}}},
      {OF("pow 1", x[0].pow(1)), {{0, kNaN}}, {{1, 1}}},
      {OF("pow 2", x[0].pow(2)), {{0, kInfinity}}, {{0, kInfinity}}},
      {OF("pow 3", x[0].pow(3)), {{0, -kInfinity}}, {{0, kInfinity}}},
      {OF("pow -1", x[0].pow(-1)), {{0, kInfinity}}, {{-kInfinity, 0}}},
      {OF("pow", pow(x[0], x[1])),
       {{0, 0, 0, -1, 1, kNaN}, {0, 2, -1, 2, kNaN, 0}},
       {{0, 0, -kInfinity, -2, kNaN, 0}, {0, 0, -kInfinity, kNaN, 0, kNaN}}},
      {OF("0^x", pow(0.0, x[0])), {{0, 1, -1}}, {{0, 0, -kInfinity}}},
      {OF("xlogy", xlogy(x[0], x[1])),
       {{0, 0, 1, 1}, {0, kNaN, 0, -1}},
       {{0, kNaN, -kInfinity, kNaN}, {kNaN, kNaN, kInfinity, -1}}},
      {OF("div", x[0] / x[1]), {{1, 0, 1}, {0, 0, kInfinity}}, {{kInfinity, kInfinity, 0}, {-kInfinity, kNaN, 0}}},
      {OF("remainder", remainder(x[0], x[1])),
       {{5, -5, 5, 2}, {3, 3, kInfinity, -kInfinity}},
       {{1, 1, 1, 1}, {-1, 2, 0, 1}}},
      {OF("fmod", fmod(x[0], x[1])), {{5, -5, 5}, {3, 3, kInfinity}}, {{1, 1, 1}, {-1, 1, 0}}},
      {OF("maximum", maximum(x[0], x[1])),
       {{1, kNaN, -0.0, kInfinity}, {1, 0, 0, kInfinity}},
       {{0.5, 1, 0.5, 0.5}, {0.5, 1, 0.5, 0.5}}},
      {OF("minimum", minimum(x[0], x[1])),
       {{1, kNaN, -0.0, kInfinity}, {1, 0, 0, kInfinity}},
       {{0.5, 1, 0.5, 0.5}, {0.5, 1, 0.5, 0.5}}},
      {OF("amax", x[0].amax()), {{2, 1, 2}}, {{0.5, 0, 0.5}}},
      {OF("amax of NaN", x[0].amax()), {{2, kNaN, 2}}, {{kNaN, kNaN, kNaN}}},
      {OF("amin", x[0].amin()), {{-kInfinity, -kInfinity, 0}}, {{0.5, 0.5, 0}}},
      {OF("max", std::get<0>(max(x[0], 0))), {{2, 1, 2}}, {{1, 0, 0}}},
      {OF("max of NaN", std::get<0>(max(x[0], 0))), {{2, kNaN, kNaN}}, {{0, 1, 0}}},
      {OF("cummax", std::get<0>(cummax(x[0], 0))), {{1, 1, 0, kNaN, 2}}, {{1, 2, 0, 2, 0}}},
      {OF("norm 1/2", vector_norm(x[0], 0.5)), {{0, 0}}, {{0, 0}}},
      {OF("norm 1", vector_norm(x[0], 1)), {{0, 0}}, {{0, 0}}},
      {OF("norm 2", vector_norm(x[0], 2)), {{0, 0}}, {{0, 0}}},
      {OF("norm 3", vector_norm(x[0], 3)), {{0, 0}}, {{0, 0}}},
      {OF("norm inf", vector_norm(x[0], kInfinity)), {{0, 0}}, {{0, 0}}},
      {OF("norm -inf", vector_norm(x[0], -kInfinity)), {{0, 0}}, {{0, 0}}},
      {OF("norm inf, ties", vector_norm(x[0], kInfinity)), {{-2, 1, 2}}, {{-0.5, 0, 0.5}}},
      {OF("norm of infinity", vector_norm(x[0], 2)), {{kInfinity, 1}}, {{kNaN, 0}}},
      {OF("norm of NaN", vector_norm(x[0], 2)), {{kNaN, 1}}, {{kNaN, kNaN}}},
      {OF("prod, a zero", x[0].prod()), {{2, 0, 4}}, {{0, 8, 0}}},
      {OF("prod, two zeros", x[0].prod()), {{0, 0, 4}}, {{0, 0, 0}}},
      {OF("cumprod", x[0].cumprod(0)), {{2, 0, 4, 0, 5}}, {{1, 10, 0, 0, 0}}},
      {OF("logsumexp", x[0].logsumexp(0)), {{-kInfinity, -kInfinity}}, {{kNaN, kNaN}}},
      {OF("logsumexp, inf", x[0].logsumexp(0)), {{kInfinity, 1}}, {{kNaN, 0}}},
      {OF("softmax", x[0].softmax(0)[0]), {{-kInfinity, -kInfinity}}, {{kNaN, kNaN}}},
      {OF("softmax, one -inf", x[0].softmax(0)[0]), {{-kInfinity, 1}}, {{0, 0}}},
      {OF("log_softmax", x[0].log_softmax(0)[0]), {{-kInfinity, -kInfinity}}, {{kNaN, kNaN}}},
      {OF("logcumsumexp", x[0].logcumsumexp(0)), {{-kInfinity, -kInfinity, 1}}, {{kNaN, kNaN, 1}}},
      {OF("logaddexp", logaddexp(x[0], x[1])),
       {{-kInfinity, kInfinity, -kInfinity}, {-kInfinity, kInfinity, 1}},
       {{kNaN, kNaN, 0}, {kNaN, kNaN, 1}}},
      {OF("var of one", x[0].var()), {{3}}, {{kNaN}}},
      {OF("std of one", x[0].std()), {{3}}, {{kNaN}}},
      {OF("var of equals", x[0].var()), {{3, 3}}, {{0, 0}}},
      {OF("std of equals", x[0].std()), {{3, 3, 3}}, {{0, 0, 0}}},
      {OF("atan2", atan2(x[0], x[1])),
       {{0, -0.0, 0, 1, kInfinity}, {0, 0, -1, 0, kInfinity}},
       {{0, 0, -1, 0, kNaN}, {0, 0, 0, -1, kNaN}}},
      {OF("hypot", hypot(x[0], x[1])), {{0, kInfinity}, {0, 1}}, {{kNaN, kNaN}, {kNaN, 0}}},
      {OF("sinc", sinc(x[0])), {{0, kInfinity}}, {{0, kNaN}}},
      {OF("asin", x[0].asin()), {{1, -1, 2}}, {{kInfinity, kInfinity, kNaN}}},
      {OF("acos", x[0].acos()), {{1, -1}}, {{-kInfinity, -kInfinity}}},
      {OF("atanh", x[0].atanh()), {{1, -1}}, {{kInfinity, kInfinity}}},
      {OF("acosh", x[0].acosh()), {{1, 0}}, {{kInfinity, kNaN}}},
      {OF("erfinv", x[0].erfinv()), {{1, -1, 2}}, {{kInfinity, kInfinity, kNaN}}},
      {OF("logit", logit(x[0])), {{0, 1, 2, kNaN}}, {{kInfinity, kInfinity, kNaN, kNaN}}},
      {OF("logit, eps", logit(x[0], 0.25)), {{0, 1, kNaN}}, {{0, 0, kNaN}}},
      {OF("lgamma", x[0].lgamma()), {{0, kInfinity}}, {{-kInfinity, kInfinity}}},
      {OF("digamma", x[0].digamma()), {{0}}, {{kInfinity}}},
      {OF("atan", x[0].atan()), {{kInfinity, kNaN}}, {{0, kNaN}}},
      {OF("where", where(x[2] > 0, x[0], x[1])), {{kNaN, 1}, {1, kInfinity}, {0, 1}}, {{0, 1}, {1, 0}, {}}},
      // What is masked before a function stays hidden, what is masked behind it does not: 0 times NaN.
      {OF("sqrt of where", where(x[0] > 0, x[0], 0.0).sqrt() * (x[0] > 0)), {{-1, 4}}, {{0, 0.25}}},
      {OF("where of sqrt", where(x[0] > 0, x[0].sqrt(), 0.0)), {{-1, 4}}, {{kNaN, 0.25}}},
      {OF("masked_fill", x[0].masked_fill(x[0].isnan(), 0)), {{kNaN, 1}}, {{0, 1}}},
      {OF("nan_to_num", x[0].nan_to_num()), {{kNaN, kInfinity, 1}}, {{0, 0, 1}}},
      {OF("frac", x[0].frac()), {{0.5, kNaN}}, {{1, 1}}},
      {OF("max_pool", F::max_pool1d(x[0].reshape({1, 1, -1}), 3, 1, 1)), {{7, 7, 7, 1, 7}}, {{2, 1, 1, 0, 1}}},
      {OF("max_pool of -inf", F::max_pool1d(x[0].reshape({1, 1, -1}), 3, 1, 1)),
       {{-kInfinity, -kInfinity, -kInfinity, -kInfinity}},
       {{2, 1, 1, 0}}},
      {OF("smooth_l1_loss", F::smooth_l1_loss(x[0], x[1])),
       {{kInfinity, 1}, {kInfinity, 2}},
       {{kNaN, -0.5}, {kNaN, 0.5}}},
      {OF("huber_loss", F::huber_loss(x[0], x[1])), {{kInfinity, 1}, {kInfinity, 2}}, {{kNaN, -0.5}, {kNaN, 0.5}}},
      {OF("l1_loss", F::l1_loss(x[0], x[1])), {{1, kNaN}, {1, 0}}, {{0, 0}, {0, 0}}},
      {OF("cross_entropy", F::cross_entropy(x[0].reshape({1, 3}), zeros({1}, kInt64))),
       {{-kInfinity, 1, 1}},
       {{-1, 0.5, 0.5}}},
      {OF("cdist", cdist(x[0].reshape({1, 2}), x[1].reshape({1, 2}))), {{1, 2}, {1, 2}}, {{0, 0}, {0, 0}}},
      {OF("sub", x[0] - x[1]), {{kNaN, kInfinity}, {1, kInfinity}}, {{1, 1}, {-1, -1}}},
  };
  return all;
}

TEST_F(HostileGradients, AreByConvention) {
  for (const Convention& c : conventions()) {
    SCOPED_TRACE(c.name);
    std::vector<Tensor> at;
    for (const Numbers& numbers : c.at) at.push_back(tensor(numbers).to(kFloat32));
    auto eager = [f = c.f](const std::vector<Tensor>& given) {
      std::vector<Tensor> leaves;
      for (const Tensor& t : given) leaves.push_back(t.detach().requires_grad_());
      std::vector<Tensor> found = autograd::grad({f(leaves).sum()}, leaves, {}, {}, false, true);
      for (Tensor& t : found)
        if (!t.defined()) t = empty({0});
      return found;
    };
    auto fast = compile(eager);
    for (const std::vector<Tensor>& got : {eager(at), fast(at), fast(at)})
      for (size_t i = 0; i < c.expected.size(); ++i) {
        const ReferenceTensor values = test::reference(got[i]);
        ASSERT_EQ(values.real.size(), c.expected[i].size());
        for (size_t j = 0; j < values.real.size(); ++j)
          EXPECT_TRUE(values.real[j] == c.expected[i][j] ||
                      (std::isnan(values.real[j]) && std::isnan(c.expected[i][j])))
              << "gradient " << i << "\n"
              << got[i];
      }
  }
}

}  // namespace
}  // namespace ingot
