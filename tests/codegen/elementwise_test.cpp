// Every elementwise row of the op table, for every dtype that it takes: the scalar executor against the reference
// interpreter, and generated code against the scalar executor.
#include "codegen/elementwise.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <map>
#include <random>

#include "codegen/lower/cost.h"
#include "ir/graph.h"
#include "ir/reference.h"
#include "run_scalar.h"
#include "uniform.h"
#include "x86_harness.h"

namespace ingot::codegen {
namespace {

using ir::ArgInfo;
using ir::ArgKind;
using ir::Attr;
using ir::ReferenceTensor;

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                             DType::i32, DType::i16, DType::i8,  DType::u8,   DType::bool_};

/// What a row computes with: an operand is a tensor (of the case's dtype, or bool where it is a mask), a value, or
/// absent.
struct Case {
  OpId op;
  DType dtype;
  std::vector<Attr> attributes;
  std::map<std::string, double> values;  // of operands that are scalars here
  bool optional_present = true;
};

std::vector<double> special_values(DType d) {
  if (d == DType::bool_) return {0, 1};
  std::vector<double> v = {0, 1, 2, 3, 5, 7, 20, 100};
  if (d == DType::u8) {
    v.insert(v.end(), {127, 128, 255});
    return v;
  }
  v.insert(v.end(), {-1, -2, -3, -8, -100});
  if (!is_floating(d)) {
    int bits = static_cast<int>(8 * size_of(d)) - 1;
    double top = std::ldexp(1.0, std::min(bits, 62));
    v.insert(v.end(), {top - 1, -top});
    return v;
  }
  double least = d == DType::f64 ? 0x1p-1074 : d == DType::f16 ? 0x1p-24 : d == DType::bf16 ? 0x1p-133 : 0x1p-149;
  double normal = d == DType::f64 ? 0x1p-1022 : d == DType::f16 ? 0x1p-14 : 0x1p-126;
  // In f64 the interpreter has no wider range for what lies between.
  double top = d == DType::f64 ? 0x1p300 : d == DType::f16 ? 65504 : 0x1.fep127;
  for (double x : {least, 3 * least, normal, top, 0.25, 0.5, 0.75, 1.5, 2.5, 6.0, 1e-3, double(INFINITY)})
    for (double sign : {1.0, -1.0}) v.push_back(sign * x);
  v.insert(v.end(), {-0.0, NAN, 0.3, -0.9, 3.7, -5.1, 9.0, 88.5, -88.5});
  return v;
}

std::vector<double> random_values(DType d, size_t n, std::mt19937_64& rng) {
  std::vector<double> v(n);
  for (size_t i = 0; i < n; ++i) {
    double u = ingot::test::uniform<double>(rng, -1, 1);
    if (d == DType::bool_) {
      v[i] = static_cast<double>(rng() % 2);
    } else if (is_floating(d)) {
      int range = d == DType::f16 ? 12 : 30;
      v[i] = i % 2 ? 6 * u : std::ldexp(u, static_cast<int>(rng() % (2 * range)) - range);
    } else {
      double x =
          std::trunc(u * (i % 2 ? 10 : std::ldexp(1.0, std::min<int>(static_cast<int>(8 * size_of(d)) - 1, 40))));
      v[i] = d == DType::u8 ? std::abs(x) : x;
    }
  }
  return v;
}

/// Values of the tensor operands: all combinations of special values for one and two of them, then random ones.
/// `small`: integers that every float holds exactly.
std::vector<std::vector<double>> inputs_of(const std::vector<DType>& dtypes, bool small) {
  std::mt19937_64 rng(11);
  std::vector<std::vector<double>> columns(dtypes.size());
  std::vector<std::vector<double>> special;
  for (DType d : dtypes) special.push_back(special_values(d));
  // Where integers end: the first values that a cast saturates.
  if (dtypes.size() == 1 && is_floating(dtypes[0]) && dtypes[0] != DType::f16)
    for (double x : {0x1p7, 0x1p8, 0x1p15, 0x1p31, 0x1p63}) special[0].insert(special[0].end(), {x, -x});
  size_t first = special[0].size(), second = special.size() > 1 ? special[1].size() : 1;
  for (size_t i = 0; i < first * second; ++i)
    for (size_t k = 0; k < dtypes.size(); ++k)
      columns[k].push_back(k == 0   ? special[0][i % first]
                           : k == 1 ? special[1][i / first]
                                    : special[k][(i * 7 + i / 5) % special[k].size()]);
  for (size_t k = 0; k < dtypes.size(); ++k) {
    std::vector<double> more = random_values(dtypes[k], 1500, rng);
    columns[k].insert(columns[k].end(), more.begin(), more.end());
    if (small && !is_floating(dtypes[k]))
      for (double& x : columns[k]) x = std::fmod(x, 100);
  }
  return columns;
}

double ulp_of(DType d, double x) {
  int digits = d == DType::f64 ? 53 : d == DType::f32 ? 24 : d == DType::f16 ? 11 : 8;
  int least = d == DType::f64 ? -1074 : d == DType::f32 ? -149 : d == DType::f16 ? -24 : -133;
  int exponent;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - digits, least));
}

/// How far a definition may be from the exact result, in units in the last place; where terms cancel, in those of the
/// largest operand. The default is one rounding more than a correctly rounded function.
struct Bound {
  double f32 = 1, f64 = 1;
  bool of_operands = false;
  bool any_zero = false;  // fused sums: the sign of a zero is not that of the unfused ones
};

Bound bound_of(OpId op) {
  switch (op) {
    case OpId::tanhshrink:
      return {1, 4, true, true};  // what is below the smallest number keeps its sign; the reference cancels in f64
    case OpId::xlogy:
      return {1.5, 2};  // a logarithm and a product
    case OpId::atan2:
      return {1, 3};
    case OpId::ldexp:
      return {2, 2};  // a power of two and a product
    case OpId::logaddexp:
    case OpId::logaddexp2:
      return {4, 4, true};
    case OpId::lerp:
    case OpId::addcmul:
    case OpId::addcdiv:
      return {4, 4, true, true};
    case OpId::add:
    case OpId::sub:
      return {1, 1, false, true};
    case OpId::pow:
      return {1.5, 2};  // exponents of -2 and 3 are products and quotients
    default:
      break;
  }
  // The reference interpreter has an error of its own in f64: half a unit of the C library's, and more where it joins
  // two functions. tests/codegen/math_test.cpp has the row's own bounds, against MPFR.
  const ir::Accuracy& accuracy = ir::info(op).accuracy;
  if (accuracy.f32 == 0) return {};
  return {std::max(accuracy.f32, 1.0), accuracy.f64 + 1, accuracy.of_operand};
}

struct Outcome {
  bool applies = false;
  DType result = DType::f32;
  double worst = 0;     // units in the last place
  std::string message;  // of the first result that is wrong altogether
};

/// Error of `got` against the exact `expected`, in units in the last place; infinite where it is wrong altogether.
double error_of(DType d, double got, double expected, double scale, bool any_zero) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) == std::isnan(expected) ? 0 : INFINITY;
  double rounded = ir::round_to(d, expected), top = d == DType::f16 ? 65504 : d == DType::f64 ? DBL_MAX : 0x1.fep127;
  // Near the limit a value between may overflow already.
  if (std::isinf(got) || std::isinf(rounded))
    return got == rounded || (std::signbit(got) == std::signbit(expected) && std::abs(expected) >= top / 4 &&
                              std::abs(got) >= top)
               ? 0
               : INFINITY;
  if (rounded == 0 && got == 0)
    return std::signbit(got) == std::signbit(expected) || is_half(d) || any_zero ? 0 : INFINITY;
  // What is lost in a denormal between, times an operand.
  double slack = d == DType::f64 ? 0x1p-1060 : 0x1p-140;
  return std::max(0.0, std::abs(got - expected) - slack) / ulp_of(d, std::max(std::abs(expected), scale));
}

Outcome run_case(const Case& c) {
  const ir::OpInfo& row = ir::info(c.op);
  ir::Graph graph;
  std::vector<DType> dtypes;
  std::vector<ir::Operand> operands;
  std::vector<ir::OperandType> operand_types;
  const Dims shape = {Dim(1)};
  for (int i = 0; i < row.operand_count; ++i) {
    const ArgInfo& a = row.operand(i);
    auto given = c.values.find(a.name);
    if (a.optional && !c.optional_present) {
      operands.push_back(ir::Operand::none());
      operand_types.emplace_back();
    } else if (given == c.values.end() && a.kind != ArgKind::value) {
      dtypes.push_back(a.mask ? DType::bool_ : c.dtype);
      operands.push_back(ir::Operand::value(static_cast<ir::ValueId>(dtypes.size() - 1)));
      operand_types.push_back({ir::OperandType::Kind::tensor, dtypes.back(), Category::floating, &shape});
    } else {
      double x = given == c.values.end() ? a.default_number : given->second;
      operands.push_back(is_floating(c.dtype) ? ir::Operand::constant(x)
                                              : ir::Operand::constant(static_cast<int64_t>(x)));
      operand_types.push_back({ir::OperandType::Kind::scalar, DType::f32, operands.back().category, nullptr});
    }
  }
  std::vector<ir::TensorType> types(1);
  ir::RuleContext rules{c.op, operand_types, c.attributes, graph.dims, Location::none(), types};
  try {
    ir::infer(rules);
  } catch (const Error&) {
    return {};  // the row does not take this dtype
  }
  const DType result = types[0].dtype;

  std::vector<std::vector<double>> columns = inputs_of(dtypes, is_floating(result) && c.op != OpId::cast);
  const int64_t n = static_cast<int64_t>(columns[0].size());
  // The interpreter refuses integer division by zero; the definition gives 0, and callers check first.
  bool divides = c.op == OpId::div || c.op == OpId::floor_divide || c.op == OpId::fmod || c.op == OpId::remainder;
  if (divides && !is_floating(result))
    for (double& x : columns[1]) x = x == 0 ? 1 : x;
  std::vector<ReferenceTensor> inputs;
  for (size_t k = 0; k < dtypes.size(); ++k) {
    graph.add_input(dtypes[k], {Dim(n)});
    inputs.push_back(ReferenceTensor::from_values(dtypes[k], {n}, columns[k]));
  }
  graph.outputs = {graph.add(c.op, operands, c.attributes)};
  // It is defined by its steps in working precision.
  bool stepwise = c.op == OpId::round;
  ReferenceTensor expected = ir::interpret(graph, inputs, {}, {.round = stepwise})[0];

  Kernel k;
  Builder b(k);
  std::vector<Expr> exprs;
  std::vector<std::vector<char>> memory;
  for (size_t i = 0; i < operands.size(); ++i) {
    const ir::Operand& o = operands[i];
    if (o.is_value()) {
      const ReferenceTensor& t = inputs[o.id];
      memory.emplace_back(static_cast<size_t>(n * size_of(t.dtype)));
      t.to_bytes(memory.back().data());
      k.buffers.push_back({t.dtype});
      Expr x = b.load(o.id);
      exprs.push_back(row.operand(static_cast<int>(i)).mask ? x : convert_element(x, rules.compute));
    } else if (o.present()) {
      Type type = register_type(rules.compute);
      exprs.push_back(o.category == Category::floating ? b.constant(type, o.number) : b.constant(type, o.integer));
    } else {
      exprs.push_back({});
    }
  }
  memory.emplace_back(static_cast<size_t>(n * size_of(result)));
  k.buffers.push_back({result, Access::dense, true});
  Expr y = define_elementwise(c.op, {b, exprs, c.attributes, rules.compute, result, false, operands});
  EXPECT_EQ(y.type(), register_type(result)) << row.name;
  k.phases = {Phase{{{static_cast<uint32_t>(k.buffers.size() - 1), y.value}}, {}, {}, {}}};
  test::Call call;
  for (auto& m : memory) call.buffers.push_back(m.data());
  call.columns = n;
  call.run(k);
  ReferenceTensor got = ReferenceTensor::from_bytes(result, {n}, memory.back().data());

  for (Isa isa : {Isa::avx512, Isa::avx2}) {
    if (!test::cpu_has(isa)) continue;
    std::vector<char> scalar = memory.back();
    std::fill(memory.back().begin(), memory.back().end(), char(0x55));
    KernelPtr source = generate(k, {isa, false}, std::string(row.name));
    test::Code code(*source);
    call.run(code.entry(), source->scratch_bytes);
    ReferenceTensor generated = ReferenceTensor::from_bytes(result, {n}, memory.back().data());
    for (int64_t i = 0; i < n; ++i) {
      if (is_floating(result) && std::isnan(generated.at(i)) && std::isnan(got.at(i))) continue;
      const int64_t bytes = size_of(result);
      EXPECT_EQ(std::memcmp(&memory.back()[i * bytes], &scalar[i * bytes], bytes), 0)
          << row.name << " " << name_of(c.dtype) << (isa == Isa::avx512 ? " avx512" : " avx2") << " at "
          << inputs[0].at(i) << ": " << generated.at(i) << " instead of " << got.at(i);
    }
    memory.back() = scalar;
  }

  Outcome outcome;
  outcome.applies = true;
  outcome.result = result;
  for (int64_t i = 0; i < n; ++i) {
    double error;
    if (is_floating(result)) {
      double scale = 0;
      for (const ReferenceTensor& t : inputs)
        if (bound_of(c.op).of_operands && std::isfinite(t.at(i))) scale = std::max(scale, std::abs(t.at(i)));
      error = error_of(result, got.at(i), expected.at(i), scale, bound_of(c.op).any_zero);
    } else {
      error = got.integer[i] == ir::wrap_to(result, expected.integer[i]) ? 0 : INFINITY;
    }
    outcome.worst = std::max(outcome.worst, error);
    if (std::isinf(error) && outcome.message.empty()) {
      outcome.message = "at";
      for (const ReferenceTensor& t : inputs) outcome.message += fmt::format(" {}", t.at(i));
      outcome.message += fmt::format(": got {}, expected {}", got.at(i), expected.at(i));
    }
  }
  return outcome;
}

bool check(const Case& c) {
  Outcome o = run_case(c);
  Bound bound = bound_of(c.op);
  // 16-bit results are rounded once from f32.
  double limit = o.result == DType::f64 ? bound.f64 : is_half(o.result) ? 0.5 + bound.f32 / 8 : bound.f32;
  EXPECT_LE(o.worst, limit) << ir::info(c.op).name << " " << name_of(c.dtype) << " "
                            << (c.attributes.empty() ? 0 : c.attributes[0].integer) << " " << o.message;
  return o.applies;
}

std::vector<std::vector<Attr>> attributes_of(OpId op) {
  switch (op) {
    case OpId::div:
      return {{Attr::mode(0)}, {Attr::mode(1)}, {Attr::mode(2)}};
    case OpId::gelu:
      return {{Attr::mode(0)}, {Attr::mode(1)}};
    case OpId::random_bits:
      return {{Attr::of(int64_t{0})}, {Attr::of(int64_t{1})}};
    case OpId::round:
      return {{Attr::of(int64_t(0))}, {Attr::of(int64_t(2))}, {Attr::of(int64_t(-1))}};
    case OpId::cast: {
      std::vector<std::vector<Attr>> all;
      for (DType d : kDTypes) all.push_back({Attr::of(d)});
      return all;
    }
    default:
      return {{}};
  }
}

/// Quotients that are rounded before they are made whole differ from the exact ones; see the tests of their own.
bool whole_quotient(OpId op, const std::vector<Attr>& attributes) {
  return op == OpId::floor_divide || (op == OpId::div && attributes[0].integer != 0);
}

TEST(Elementwise, DivisionsAndRootsWeighAsFour) {
  EXPECT_EQ(lowering::op_cost(OpId::add, DType::f32), 1);
  EXPECT_EQ(lowering::op_cost(OpId::div, DType::f32), 4);
  EXPECT_EQ(lowering::op_cost(OpId::sqrt, DType::f64), 4);
}

TEST(Elementwise, APowerOfASpecialExponentWeighsAsItsCode) {
  const auto cost = [](ir::Operand exponent) {
    ir::Node node;
    node.op = OpId::pow;
    node.operands = {ir::Operand::value(0), exponent};
    return lowering::op_cost(node, DType::f32);
  };
  EXPECT_EQ(cost(ir::Operand::constant(2.0)), 1);
  EXPECT_EQ(cost(ir::Operand::constant(int64_t{3})), 2);
  EXPECT_EQ(cost(ir::Operand::constant(-1.0)), 4);
  EXPECT_EQ(cost(ir::Operand::scalar(0, Category::floating)), lowering::op_cost(OpId::pow, DType::f32));
  EXPECT_GE(cost(ir::Operand::constant(2.5)), lowering::kExpensive);
}

TEST(Elementwise, EveryRowAgreesWithTheInterpreter) {
  int checked = 0;
  for (const ir::OpInfo& row : ir::ops()) {
    if (row.kind != ir::OpKind::elementwise) continue;
    for (DType d : kDTypes)
      for (const auto& attributes : attributes_of(row.id)) {
        if (is_floating(d) && whole_quotient(row.id, attributes)) continue;
        checked += check({row.id, d, attributes, {}});
      }
  }
  EXPECT_GT(checked, 700);
}

TEST(Elementwise, ScalarsAndAbsentOperands) {
  for (DType d : {DType::f64, DType::f32, DType::bf16}) {
    for (double exponent : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5, -3.0})
      check({OpId::pow, d, {}, {{"exponent", exponent}}});
    for (double alpha : {2.0, -0.5}) {
      check({OpId::add, d, {}, {{"alpha", alpha}}});
      check({OpId::sub, d, {}, {{"alpha", alpha}}});
    }
    check({OpId::clamp, d, {}, {{"min", -0.75}, {"max", 2.0}}});
    check({OpId::nan_to_num, d, {}, {}, false});
    check({OpId::logit, d, {}, {}, false});
    check({OpId::leaky_relu, d, {}, {{"negative_slope", 0.25}}});
    check({OpId::softplus, d, {}, {{"beta", 2.0}, {"threshold", 5.0}}});
    check({OpId::threshold, d, {}, {{"threshold", 0.5}, {"value", -3.0}}});
  }
  for (DType d : {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8})
    for (double exponent : {0.0, 1.0, 2.0, 3.0, 7.0, 31.0}) check({OpId::pow, d, {}, {{"exponent", exponent}}});
}

/// One op on two f32 vectors.
std::vector<float> run_f32(OpId op, std::vector<Attr> attributes, std::vector<float> x, std::vector<float> y) {
  Kernel k;
  k.buffers = {{DType::f32}, {DType::f32}, {DType::f32, Access::dense, true}};
  Builder b(k);
  const Expr operands[] = {b.load(0), b.load(1)};
  Expr result = define_elementwise(op, {b, operands, attributes, DType::f32, DType::f32});
  k.phases = {Phase{{{2, result.value}}, {}, {}, {}}};
  std::vector<float> out(x.size());
  test::Call call;
  call.columns = static_cast<int64_t>(x.size());
  call.buffers = {x.data(), y.data(), out.data()};
  call.run(k);
  return out;
}

TEST(Elementwise, WholeQuotientsInWorkingPrecision) {
  std::vector<float> x, y;
  for (double a : special_values(DType::f32))
    for (double b : special_values(DType::f32)) {
      x.push_back(static_cast<float>(a));
      y.push_back(static_cast<float>(b));
    }
  std::mt19937_64 rng(5);
  for (double a : random_values(DType::f32, 4000, rng)) x.push_back(static_cast<float>(a));
  for (double b : random_values(DType::f32, 4000, rng)) y.push_back(static_cast<float>(b));
  auto truncated = run_f32(OpId::div, {Attr::mode(2)}, x, y), floored = run_f32(OpId::floor_divide, {}, x, y);
  auto same = [](float a, float b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
  };
  for (size_t i = 0; i < x.size(); ++i) {
    float a = x[i], b = y[i];
    EXPECT_TRUE(same(truncated[i], std::trunc(a / b))) << a << " " << b << ": " << truncated[i];
    // PyTorch's definition, step by step.
    float m = std::fmod(a, b), q = (a - m) / b;
    if (m != 0 && (b < 0) != (m < 0)) q -= 1;
    float whole = q == 0 ? std::copysign(0.0f, a / b) : std::floor(q);
    if (q - whole > 0.5f) whole += 1;
    if (b == 0) whole = a / b;
    EXPECT_TRUE(same(floored[i], whole)) << a << " " << b << ": " << floored[i] << " " << whole;
  }
}

TEST(Elementwise, ExactRemaindersOverTheWholeRange) {
  std::vector<float> x, y;
  std::mt19937_64 rng(6);
  for (int i = 0; i < 20000; ++i) {
    auto any = [&] { return std::bit_cast<float>(static_cast<uint32_t>(rng())); };
    x.push_back(any());
    y.push_back(any());
  }
  auto got = run_f32(OpId::fmod, {}, x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    float expected = std::fmod(x[i], y[i]);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got[i]));
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected)) << x[i] << " " << y[i];
    }
  }
}

}  // namespace
}  // namespace ingot::codegen
