// Derivatives of every row against finite differences of the reference interpreter in double, of first and second
// order, without a kernel; and what stands at kinks and edges, as in PyTorch.
#include "ir/derivative.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "derived_function.h"
#include "ir/passes/passes.h"
#include "reference_helper.h"
#include "samples.h"
#include "uniform.h"

namespace ingot::ir {
namespace {

/// Where an op's floats are taken from: inside of its domain, and both sides of its kinks.
std::pair<double, double> range_of(const OpInfo& op, bool wide) {
  static const std::map<std::string_view, std::pair<double, double>> ranges = {
      {"log", {.2, 2.5}},      {"log2", {.2, 2.5}},        {"log10", {.2, 2.5}},     {"log1p", {-.8, 2}},
      {"sqrt", {.2, 2.5}},     {"rsqrt", {.2, 2.5}},       {"pow", {.2, 2.5}},       {"float_power", {.2, 2.5}},
      {"xlogy", {.2, 2.5}},    {"acosh", {1.2, 3}},        {"asin", {-.9, .9}},      {"acos", {-.9, .9}},
      {"atanh", {-.9, .9}},    {"erfinv", {-.9, .9}},      {"logit", {.27, .73}},    {"binary_cross_entropy", {.1, .9}},
      {"kl_div", {.1, .9}},    {"lgamma", {.2, 3}},        {"digamma", {.2, 3}},     {"bernoulli", {.1, .9}},
      {"batch_norm", {.5, 2}}, {"instance_norm", {.5, 2}}, {"addcdiv", {.5, 2}},     {"div", {.5, 2}},
      {"fmod", {.5, 2}},       {"remainder", {.5, 2}},     {"polygamma", {-.9, -.1}}};
  auto found = ranges.find(op.name);
  if (found != ranges.end()) return found->second;
  return wide ? std::pair(-7.0, 7.0) : std::pair(-1.9, 1.9);
}

/// Floats apart from each other and from round numbers; integers that are positions.
ReferenceTensor sample_tensor(DType dtype, const Ints& shape, std::pair<double, double> range, std::mt19937& random) {
  const double start = ingot::test::uniform<double>(random, .1, .9);
  ReferenceTensor tensor(dtype, shape);
  const int64_t n = tensor.size();
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (int64_t i = 0; i < n; ++i) {
    const double share = (static_cast<double>(order[i]) + start) / static_cast<double>(n);
    if (tensor.floating())
      tensor.real[i] = range.first + (range.second - range.first) * share;
    else
      tensor.integer[i] = dtype == DType::bool_ ? static_cast<int64_t>(random() % 2) : 1 + random() % 2;
  }
  return tensor;
}

/// Samples in double, each once.
std::vector<Sample> double_samples() {
  std::vector<Sample> chosen;
  std::set<std::string> seen;
  for (Sample sample : samples()) {
    for (const char* narrow : {"bf16", "f16", "f32"})
      for (size_t at = 0; (at = sample.text.find(narrow, at)) != std::string::npos;)
        sample.text.replace(at, std::string_view(narrow).size(), "f64");
    if (seen.insert(sample.text).second) chosen.push_back(std::move(sample));
  }
  return chosen;
}

double dot(const ReferenceTensor& a, const ReferenceTensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) sum += a.real[i] * b.real[i];
  return sum;
}

void make_symmetric(ReferenceTensor* matrices) {
  const int64_t n = matrices->shape.back();
  for (int64_t i = 0; i < matrices->size(); ++i)
    if (const int64_t row = i / n % n, column = i % n; column > row)
      matrices->real[i] = matrices->real[i + (column - row) * (n - 1)];
}

/// The derivative of `f` against differences of it along random directions.
void check(const Function& f, const Tensors& at, std::mt19937& random, const std::string& text) {
  const Function derived = f.derived();
  Tensors given = at, cotangents;
  for (const ReferenceTensor& result : f(at)) given.push_back(result);
  for (const TensorType& type : f.outputs)
    if (is_floating(type.dtype)) {
      cotangents.push_back(sample_tensor(type.dtype, sizes_of(type), {-1, 1}, random));
      given.push_back(cotangents.back());
    }
  Tensors gradients;
  try {
    gradients = derived(given);
  } catch (const std::exception& e) {
    FAIL() << text << ": " << e.what();
  }

  auto weighted = [&](const Tensors& x) {
    double sum = 0;
    size_t next = 0;
    for (const ReferenceTensor& out : f(x))
      if (out.floating()) sum += dot(out, cotangents[next++]);
    return sum;
  };
  const std::vector<int> operands = f.differentiable();
  for (size_t k = 0; k < operands.size(); ++k) {
    const ValueId input = f.operands[static_cast<size_t>(operands[k])].id;
    for (int trial = 0; trial < 2; ++trial) {
      ReferenceTensor direction = at[input];
      for (double& d : direction.real) d = ingot::test::uniform<double>(random, -1, 1);
      // Of one triangle that says a symmetric matrix, the gradient is that matrix's.
      if (k == 0 && (f.op == OpId::linalg_cholesky_ex || f.op == OpId::linalg_eigh)) make_symmetric(&direction);
      auto along = [&](double step) {
        Tensors moved = at;
        for (int64_t i = 0; i < direction.size(); ++i) moved[input].real[i] += step * direction.real[i];
        return weighted(moved);
      };
      constexpr double h = 2e-5;  // of fourth order: what is left is rounding
      const double expected = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h);
      const double got = dot(gradients[k], direction);
      EXPECT_NEAR(got, expected, 2e-8 * (1 + std::abs(expected) + std::abs(weighted(at))))
          << "operand " << operands[k] << " of order " << derived.derivative->order() << ": " << text;
    }
  }
}

/// Rows whose samples have no slope where differences are taken: 0 / 0, or jumps.
bool is_smooth(const OpInfo& op, const std::string& text) {
  if (op.gradient == Gradient::none || op.gradient == Gradient::constant) return false;
  return text.find("rounding_mode") == std::string::npos && text.find("p=0") == std::string::npos;
}

class EveryRow : public testing::TestWithParam<bool> {};

TEST_P(EveryRow, DifferencesOfFirstAndSecondOrder) {
  std::set<OpId> checked;
  for (const Sample& sample : double_samples()) {
    std::mt19937 random(7);  // what a sample is given does not depend on the others
    const Function f = function_of(sample.text);
    if (f.differentiable().empty() || !f.has_float_output() || !is_smooth(*sample.op, sample.text)) continue;
    Tensors at;
    for (const TensorType& type : f.inputs)
      at.push_back(sample_tensor(type.dtype, sizes_of(type), range_of(*sample.op, GetParam()), random));
    for (size_t i = 0; i < at.size(); ++i) make_regular(*sample.op, i, &at[i]);
    check(f, at, random, sample.text);
    checked.insert(f.op);

    const Function slope = f.derived();
    for (ReferenceTensor& result : f(at)) {
      // The result lies at a kink where the operand does not.
      if (sample.text.find("relu") != std::string::npos)
        for (double& x : result.real) x += 0.0123;
      at.push_back(result);
    }
    for (const TensorType& type : f.outputs)
      if (is_floating(type.dtype)) at.push_back(sample_tensor(type.dtype, sizes_of(type), {-1, 1}, random));
    check(slope, at, random, sample.text);
  }
  for (const OpInfo& op : ops())
    if (op.gradient == Gradient::rule) EXPECT_TRUE(checked.count(op.id)) << op.name;
}
INSTANTIATE_TEST_SUITE_P(Ranges, EveryRow, testing::Bool());

/// What derivative_reads says suffices; and the text of a derivative comes back.
TEST(Derivative, WhatIsReadSufficesAndTextComesBack) {
  std::mt19937 random(7);
  for (const Sample& sample : double_samples()) {
    Function f = function_of(sample.text);
    Tensors at;
    for (const TensorType& type : f.inputs)
      at.push_back(sample_tensor(type.dtype, sizes_of(type), range_of(*sample.op, false), random));
    for (int order = 1; order <= 2; ++order) {
      if (f.differentiable().empty() || !f.has_float_output()) break;
      const Function derived = f.derived();
      for (const ReferenceTensor& result : f(at)) at.push_back(result);
      for (const TensorType& type : f.outputs)
        if (is_floating(type.dtype)) at.push_back(sample_tensor(type.dtype, sizes_of(type), {-1, 1}, random));
      const std::string text = print(derived.graph());
      EXPECT_EQ(print(parse(text)), text);

      std::vector<OperandType> types;
      for (const Operand& o : derived.operands) {
        OperandType type;
        if (o.is_value())
          type = {OperandType::Kind::tensor, derived.inputs[o.id].dtype, Category::floating,
                  &derived.inputs[o.id].shape};
        if (o.is_scalar()) type = {OperandType::Kind::scalar, DType::f32, o.category, nullptr};
        types.push_back(type);
      }
      const DerivativeReads reads = derivative_reads(derived.op, *derived.derivative, types, f.attrs);
      Function reduced = derived;
      for (size_t i = 0; i < derived.operands.size(); ++i) {
        if (!derived.operands[i].is_value() || reads.operands[i]) continue;
        const TensorType& type = derived.inputs[derived.operands[i].id];
        reduced.operands[i] = Operand::none();
        if (i < f.operands.size()) reduced.attrs[f.attrs.size() + i] = Attr::shape_of(type.dtype, type.shape);
      }
      const std::string reduced_text = print(reduced.graph());
      EXPECT_EQ(print(parse(reduced_text)), reduced_text);
      Tensors whole, part;
      try {
        whole = derived(at), part = reduced(at);
      } catch (const std::exception& e) {
        ADD_FAILURE() << sample.text << ": " << e.what();
        break;
      }
      for (size_t i = 0; i < whole.size(); ++i)
        for (int64_t j = 0; j < whole[i].size(); ++j)
          ASSERT_TRUE(whole[i].real[j] == part[i].real[j] || std::isnan(whole[i].real[j])) << sample.text;
      f = derived;
    }
  }
}

/// A call and its derivative in one graph, as a training step has them: whatever can be computed again is, once without
/// a threshold of bytes.
TEST(Derivative, RecomputingChangesNoBit) {
  std::set<OpId> changed;
  for (const Sample& sample : samples()) {
    const Function f = function_of(sample.text);
    if (f.differentiable().empty() || !f.has_float_output()) continue;
    const Function derived = f.derived();
    std::mt19937 random(7);
    Graph graph;
    std::vector<ValueId> values;  // by number of a tensor of `derived`
    Tensors at;
    auto add_input = [&](const TensorType& type, std::pair<double, double> range) {
      at.push_back(sample_tensor(type.dtype, sizes_of(type), range, random));
      return graph.add_input(type.dtype, type.shape);
    };
    for (const TensorType& type : f.inputs) values.push_back(add_input(type, range_of(*sample.op, true)));
    std::vector<ValueId> cotangents;
    for (const TensorType& type : f.outputs)
      if (is_floating(type.dtype)) cotangents.push_back(add_input(type, {-1, 1}));
    const ValueId first = graph.add(f.op, f.operands, f.attrs);
    for (size_t i = 0; i < f.outputs.size(); ++i) values.push_back(first + static_cast<ValueId>(i));
    values.insert(values.end(), cotangents.begin(), cotangents.end());
    std::vector<Operand> operands = derived.operands;
    for (Operand& o : operands)
      if (o.is_value()) o.id = values[o.id];
    const ValueId gradient =
        graph.add(derived.op, operands, derived.attrs, Location::none(), false, derived.derivative);
    for (size_t i = 0; i < derived.outputs.size(); ++i) graph.outputs.push_back(gradient + static_cast<ValueId>(i));
    decompose(graph);
    eliminate_common_subexpressions(graph);
    eliminate_dead_code(graph);
    Graph again = graph;
    recompute(again, {}, 0);
    verify(again);
    if (print(again) == print(graph)) continue;
    changed.insert(f.op);
    const Tensors expected = interpret(graph, at), got = interpret(again, at);
    for (size_t i = 0; i < expected.size(); ++i)
      for (int64_t j = 0; j < expected[i].size(); ++j)
        ASSERT_TRUE(std::bit_cast<uint64_t>(expected[i].real[j]) == std::bit_cast<uint64_t>(got[i].real[j]) ||
                    (std::isnan(expected[i].real[j]) && std::isnan(got[i].real[j])))
            << sample.text << print(again);
  }
  EXPECT_GT(changed.size(), 15u);
}

/// The gradients of a call's float tensors, for these cotangents (of ones where none are given).
Tensors gradients(const std::string& inputs_and_call, const Tensors& at, Tensors cotangents = {}) {
  const Function f = function_of("ingot.ir 1\n" + inputs_and_call);
  Tensors given = at;
  for (const ReferenceTensor& result : f(at)) given.push_back(result);
  if (cotangents.empty())
    for (const TensorType& type : f.outputs)
      if (is_floating(type.dtype)) {
        cotangents.emplace_back(type.dtype, sizes_of(type));
        cotangents.back().real.assign(cotangents.back().real.size(), 1);
      }
  given.insert(given.end(), cotangents.begin(), cotangents.end());
  return f.derived()(given);
}
std::vector<double> gradient_of(const std::string& call, std::vector<double> x, std::vector<double> cotangent = {}) {
  const int64_t n = static_cast<int64_t>(x.size());
  Tensors cotangents;
  if (!cotangent.empty()) {
    const int64_t m = static_cast<int64_t>(cotangent.size());
    cotangents.push_back(real({m}, std::move(cotangent), DType::f64));
  }
  return gradients("input %0 = f64[" + std::to_string(n) + "]\n" + call + "\noutput %1\n",
                   {real({n}, std::move(x), DType::f64)}, std::move(cotangents))[0]
      .real;
}
using Numbers = std::vector<double>;
const double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::nan("");

TEST(Derivative, AtKinks) {
  const Numbers x{-1, 0, 1};
  EXPECT_EQ(gradient_of("%1 = relu(%0)", x), (Numbers{0, 0, 1}));
  EXPECT_EQ(gradient_of("%1 = abs(%0)", x), (Numbers{-1, 0, 1}));
  EXPECT_EQ(gradient_of("%1 = clamp(%0, -1.0, 0.0)", x), (Numbers{0, 0, 0}));
  EXPECT_EQ(gradient_of("%1 = hardtanh(%0)", x), (Numbers{0, 1, 0}));
  EXPECT_EQ(gradient_of("%1 = maximum(%0, 0.0)", x), (Numbers{0, .5, 1}));
  EXPECT_EQ(gradient_of("%1 = leaky_relu(%0, 0.5)", x), (Numbers{.5, .5, 1}));
  EXPECT_EQ(gradient_of("%1 = pow(%0, 0)", x), (Numbers{0, 0, 0}));
  EXPECT_EQ(gradient_of("%1 = pow(%0, 1)", x), (Numbers{1, 1, 1}));
  EXPECT_EQ(gradient_of("%1 = sign(%0)", x), (Numbers{0, 0, 0}));
  EXPECT_EQ(gradient_of("%1 = copysign(%0, -1.0)", x), (Numbers{1, 0, -1}));
}

TEST(Derivative, OfPowersByTheExponent) {
  const Tensors at{real({4}, {0, 0, 0, 2}, DType::f64), real({4}, {0, 2, -1, 3}, DType::f64)};
  const Tensors both = gradients("input %0 = f64[4]\ninput %1 = f64[4]\n%2 = pow(%0, %1)\noutput %2\n", at);
  EXPECT_EQ(both[0].real, (Numbers{0, 0, -kInfinity, 12}));
  EXPECT_EQ(both[1].real[0], 0);
  EXPECT_EQ(both[1].real[1], 0);
  EXPECT_EQ(both[1].real[2], -kInfinity);
  EXPECT_NEAR(both[1].real[3], 8 * std::log(2.0), 1e-14);
}

TEST(Derivative, NaNBehindAMaskStaysThere) {
  const Tensors at{whole({2}, {1, 0}, DType::bool_), real({2}, {1, 2}, DType::f64), real({2}, {3, 4}, DType::f64)};
  const Tensors cotangents{real({2}, {kNaN, kInfinity}, DType::f64)};
  const Tensors both = gradients(
      "input %0 = bool[2]\ninput %1 = f64[2]\ninput %2 = f64[2]\n%3 = where(%0, %1, %2)\noutput %3\n", at, cotangents);
  EXPECT_TRUE(std::isnan(both[0].real[0]));
  EXPECT_EQ(both[0].real[1], 0);
  EXPECT_EQ(both[1].real[0], 0);
  EXPECT_EQ(both[1].real[1], kInfinity);
  EXPECT_EQ(gradient_of("%1 = relu(%0)", {-1, 2}, {kNaN, 3}), (Numbers{0, 3}));
}

TEST(Derivative, ProductsWithZeros) {
  EXPECT_EQ(gradient_of("%1 = prod(%0)", {2, 3, 4}), (Numbers{12, 8, 6}));
  EXPECT_EQ(gradient_of("%1 = prod(%0)", {2, 0, 4}), (Numbers{0, 8, 0}));
  EXPECT_EQ(gradient_of("%1 = prod(%0)", {0, 0, 4}), (Numbers{0, 0, 0}));
  EXPECT_EQ(gradient_of("%1 = cumprod(%0, dim=0)", {2, 3, 4}), (Numbers{1 + 3 + 12, 2 + 8, 6}));
  EXPECT_EQ(gradient_of("%1 = cumprod(%0, dim=0)", {2, 0, 4, 0, 5}), (Numbers{1, 2 + 8, 0, 0, 0}));
}

TEST(Derivative, OfNormsAndDeviationsThatAreZero) {
  for (const char* p : {"0", "0.5", "1", "1.5", "2", "3", "inf"})
    EXPECT_EQ(gradient_of(std::string("%1 = norm(%0, p=") + p + ")", {0, 0}), (Numbers{0, 0})) << p;
  EXPECT_EQ(gradient_of("%1 = std(%0)", {3, 3, 3}), (Numbers{0, 0, 0}));
  EXPECT_EQ(gradient_of("%1 = norm(%0, p=inf)", {-2, 1, 2}), (Numbers{-.5, 0, .5}));
  EXPECT_EQ(gradient_of("%1 = norm(%0, p=-1.5)", {0, 2}), (Numbers{0, 0}));
}

TEST(Derivative, OfEqualElements) {
  EXPECT_EQ(gradient_of("%1 = amax(%0)", {2, 1, 2}), (Numbers{.5, 0, .5}));
  EXPECT_EQ(gradient_of("%1, %2 = max(%0, dim=0)", {2, 1, 2}), (Numbers{1, 0, 0}));
  EXPECT_EQ(gradient_of("%1, %2 = cummax(%0, dim=0)", {1, 1, 0}), (Numbers{1, 2, 0}));
  const std::string pool =
      "input %0 = f64[1, 1, 5]\n%1 = max_pool1d(%0, kernel_size=[3], stride=[1], padding=[1])\noutput %1\n";
  EXPECT_EQ(gradients(pool, {real({1, 1, 5}, {7, 7, 7, 1, 7}, DType::f64)})[0].real, (Numbers{2, 1, 1, 0, 1}));
  // Not evenly over two dims one after the other.
  const Tensors whole_plane = gradients("input %0 = f64[2, 1, 2]\n%1 = amax(%0, dim=[0, 2])\noutput %1\n",
                                        {real({2, 1, 2}, {5, 5, 5, 0}, DType::f64)});
  EXPECT_EQ(whole_plane[0].real, (Numbers{1. / 3, 1. / 3, 1. / 3, 0}));
}

TEST(Derivative, OfWhatIsWrittenTwice) {
  const Tensors at{real({3}, {1, 2, 3}, DType::f64), whole({2}, {1, 1}), real({2}, {4, 5}, DType::f64)};
  const std::string inputs = "input %0 = f64[3]\ninput %1 = i64[2]\ninput %2 = f64[2]\n";
  const Tensors cotangent{real({3}, {10, 20, 30}, DType::f64)};
  // The last one stays.
  Tensors both = gradients(inputs + "%3 = scatter(%0, %1, %2, dim=0)\noutput %3\n", at, cotangent);
  EXPECT_EQ(both[0].real, (Numbers{10, 0, 30}));
  EXPECT_EQ(both[1].real, (Numbers{0, 20}));
  both = gradients(inputs + "%3 = index_add(%0, %1, %2, dim=0)\noutput %3\n", at, cotangent);
  EXPECT_EQ(both[1].real, (Numbers{20, 20}));
}

/// Who was the last one is told by places along a line, which are narrow, in any number of dims.
TEST(Derivative, OfScatterNumbersPlacesAlongItsDim) {
  Graph graph = parse(
      "ingot.ir 1\ninput %0 = f32[2, 3, 4]\ninput %1 = i64[2, 3, 4]\ninput %2 = f32[2, 3, 4]\n"
      "%3 = vjp[001] scatter(%0, %1, %0, none, %2, dim=1)\noutput %3\n");
  decompose(graph);
  int scatters = 0;
  for (const Node& node : graph.nodes) {
    if (node.op == OpId::scatter) {
      ++scatters;
      EXPECT_EQ(graph.type(node.outputs[0]).dtype, DType::i32) << print(graph);
    }
    if (node.op == OpId::arange) {
      EXPECT_EQ(graph.type(node.outputs[0]).shape[0], Dim(3)) << print(graph);
    }
  }
  EXPECT_EQ(scatters, 1);
}

TEST(Derivative, OfOneTensorAsTwoOperands) {
  Graph graph = parse(
      "ingot.ir 1\ninput %0 = f64[2]\ninput %1 = f64[2]\n"
      "%2, %3 = vjp[11] mul(%0, %0, none, %1)\n%4 = vjp[01] mul(%0, %0, none, %1)\n"
      "%5, %6, %7 = vjp[11][1101] mul(%0, %0, none, %1, none, none, %1, %1)\noutput %2, %3, %4, %5\n");
  decompose(graph);
  const Tensors found = interpret(graph, Tensors{real({2}, {3, 5}, DType::f64), real({2}, {1, 2}, DType::f64)});
  for (int i : {0, 1, 2}) EXPECT_EQ(found[i].real, (Numbers{3, 10}));
  EXPECT_EQ(found[3].real, (Numbers{1, 4}));
}

/// What slices leave out is -0, the identity of a sum: added up, they are the joined pieces bit for bit.
TEST(Derivative, OfSlicesIsMinusZeroElsewhere) {
  const Numbers found = gradient_of("%1 = slice(%0, dim=0, start=1, end=2)", {1, 2, 3});
  EXPECT_EQ(found, (Numbers{0, 1, 0}));
  EXPECT_TRUE(std::signbit(found[0]) && std::signbit(found[2]));
  const Numbers stepped = gradient_of("%1 = slice(%0, dim=0, start=0, end=3, step=2)", {1, 2, 3});
  EXPECT_EQ(stepped, (Numbers{1, 0, 1}));
  EXPECT_TRUE(std::signbit(stepped[1]));
}

/// 16-bit floats are widened once and rounded once; products read bf16 as it is.
TEST(Derivative, OfBf16ProductsReadsThemAsTheyAre) {
  Graph graph = parse(
      "ingot.ir 1\ninput %0 = bf16[4, 3]\ninput %1 = bf16[2, 3]\ninput %2 = bf16[4, 2]\n"
      "%3, %4 = vjp[110] linear(%0, %1, none, none, %2)\noutput %3, %4\n");
  decompose(graph);
  int products = 0;
  for (const Node& node : graph.nodes)
    if (node.op == OpId::matmul) {
      ++products;
      for (const Operand& o : node.operands) EXPECT_EQ(graph.type(o.id).dtype, DType::bf16);
    }
  EXPECT_EQ(products, 2);
  std::mt19937 random(3);
  Tensors at;
  for (const InputInfo& input : graph.inputs) {
    const TensorType& type = graph.type(input.value);
    at.push_back(sample_tensor(type.dtype, sizes_of(type), {-1, 1}, random));
    for (double& x : at.back().real) x = round_to(DType::bf16, x);
  }
  const Tensors found = interpret(graph, at);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 4; ++k) sum += at[2].real[k * 2 + i] * at[0].real[k * 3 + j];
      EXPECT_NEAR(found[1].real[i * 3 + j], sum, 0.01 * (1 + std::abs(sum)));
    }
}

/// Equal sizes are one symbol; the results are those for constant sizes, bit for bit.
TEST(Derivative, OfSymbolicSizes) {
  std::mt19937 random(7);
  int checked = 0;
  for (const Sample& sample : double_samples()) {
    const Function f = function_of(sample.text);
    const Function constant = f.derived();
    if (constant.outputs.empty() || !f.has_float_output()) continue;
    Graph graph;
    std::map<int64_t, Dim> symbols;
    for (const TensorType& type : constant.inputs) {
      Dims shape;
      for (Dim d : type.shape) {
        if (!symbols.count(d.code)) symbols[d.code] = d.code < 2 ? d : graph.dims.symbol(d.code);
        shape.push_back(symbols[d.code]);
      }
      graph.add_input(type.dtype, shape);
    }
    try {
      const ValueId first =
          graph.add(f.op, constant.operands, constant.attrs, Location::none(), false, constant.derivative);
      for (size_t i = 0; i < constant.outputs.size(); ++i) graph.outputs.push_back(first + static_cast<ValueId>(i));
      decompose(graph);
    } catch (const Error&) {
      continue;  // a size of the call itself is a number
    } catch (const InternalError& e) {
      ADD_FAILURE() << sample.text << ": " << e.what();
      continue;
    }
    Tensors at;
    for (const TensorType& type : f.inputs)
      at.push_back(sample_tensor(type.dtype, sizes_of(type), range_of(*sample.op, false), random));
    for (const ReferenceTensor& result : f(at)) at.push_back(result);
    for (const TensorType& type : f.outputs)
      if (is_floating(type.dtype)) at.push_back(sample_tensor(type.dtype, sizes_of(type), {-1, 1}, random));
    const Tensors got = interpret(graph, at), expected = constant(at);
    for (size_t i = 0; i < got.size(); ++i)
      for (int64_t j = 0; j < got[i].size(); ++j)
        EXPECT_TRUE(got[i].real[j] == expected[i].real[j] || std::isnan(expected[i].real[j])) << sample.text;
    ++checked;
  }
  EXPECT_GT(checked, 150);
}

}  // namespace
}  // namespace ingot::ir
