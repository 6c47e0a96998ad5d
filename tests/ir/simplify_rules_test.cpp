// Every simplification rule over generated graphs and hostile values: what comes out must not change by a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "ir/passes/passes.h"
#include "ir/reference.h"

namespace ingot::ir {
namespace {

using Random = std::mt19937;

template <class T>
const T& one_of(Random& random, const std::vector<T>& choices) {
  return choices[random() % choices.size()];
}

std::string text_of(const Ints& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// Attributes of the ops that have some that matter to a rule, for an operand of this shape; any may be refused.
std::string attributes(OpId op, const Ints& shape, Random& random) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  auto dim = [&] { return std::to_string(random() % std::max<int64_t>(rank, 1)); };
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  Ints strides(shape.size());
  for (int64_t i = rank, step = 1; i-- > 0; step *= shape[i]) strides[i] = step;
  switch (op) {
    case OpId::cast:
      return ", dtype=" +
             one_of<std::string>(random, {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"});
    case OpId::view:
      return ", size=" +
             one_of<std::string>(random, {text_of(shape), text_of({count}), text_of({1, count}), text_of({count, 1})});
    case OpId::squeeze:
      return random() % 2 ? "" : ", dim=[" + dim() + "]";
    case OpId::unsqueeze:
      return ", dim=" + dim();
    case OpId::permute: {
      Ints order;
      for (int64_t i = 0; i < rank; ++i) order.push_back(i);
      std::shuffle(order.begin(), order.end(), random);
      return ", dims=" + text_of(order);
    }
    case OpId::expand: {
      Ints size = shape;
      for (int64_t& n : size) n = n == 1 && random() % 2 ? 3 : n;
      if (random() % 2) size.insert(0, 2);
      return ", size=" + text_of(size);
    }
    case OpId::slice:
      return ", dim=" + dim() + (random() % 2 ? "" : ", start=1") + (random() % 2 ? "" : ", step=2");
    case OpId::as_strided:
    case OpId::as_strided_scatter:
      if (op == OpId::as_strided && random() % 2) return ", size=" + text_of({count}) + ", stride=[1]";
      return ", size=" + text_of(shape) + ", stride=" + text_of(strides);
    case OpId::div:
      return random() % 3 ? "" : ", rounding_mode=" + one_of<std::string>(random, {"floor", "trunc"});
    case OpId::sum:
    case OpId::prod:
    case OpId::amax:
    case OpId::amin:
    case OpId::any:
    case OpId::all:
      return ", dim=[" + dim() + "]" + (random() % 2 ? ", keepdim=true" : "");
    default:
      return "";
  }
}

/// A chain of one to three nodes of the op and its neighbours, over one or two inputs. Throws Error where it is
/// refused.
Graph chain(OpId op, Random& random) {
  const std::string dtype =
      one_of<std::string>(random, {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"});
  const Ints shape = one_of<Ints>(random, {{2, 3}, {1, 3}, {3, 1}, {1, 1}, {4}, {1}, {2, 1, 3}, {3, 3}, {}});
  static const std::vector<std::string> constants = {"0",   "1",   "-1",  "2",    "true", "0.0",   "-0.0", "1.0",
                                                     "0.5", "8.0", "3.0", "-4.0", "nan",  "1e-30", "inf"};
  std::string text =
      "ingot.ir 1\ninput %0 = " + dtype + text_of(shape) + "\ninput %1 = " + dtype + text_of(shape) + "\n";
  if (random() % 4 == 0) {
    text += "%2 = full(" + one_of(random, constants) + ", size=" + text_of(shape) + ", dtype=" + dtype + ")\n";
  } else {
    text += "%2 = add(%0, %1)\n";
  }
  int last = static_cast<int>(random() % 3);
  Ints now = shape;
  for (int number = 3, end = 4 + static_cast<int>(random() % 3); number < end; ++number) {
    const OpInfo& row = info(random() % 4 ? op : one_of<OpId>(random, {op, OpId::cast, OpId::view, OpId::neg}));
    std::string operands;
    for (const ArgInfo& argument : row.arguments) {
      if (!is_operand(argument.kind)) continue;
      std::string operand = "%" + std::to_string(last);
      if (argument.mask) {
        text += "%" + std::to_string(number) + " = full(" + (random() % 2 ? "true" : "false") + ", size=[])\n";
        operand = "%" + std::to_string(number++), ++end;
      } else if (!operands.empty()) {
        if (argument.kind == ArgKind::value && random() % 4) break;  // the default
        const bool scalar = argument.kind == ArgKind::value || (argument.kind == ArgKind::operand && random() % 2);
        operand = scalar ? one_of(random, constants) : random() % 2 ? operand : "%" + std::to_string(random() % 3);
      }
      operands += (operands.empty() ? "" : ", ") + operand;
    }
    const std::string line = std::string(row.name) + "(" + operands + attributes(row.id, now, random) + ")";
    text += "%" + std::to_string(number) + " = " + line + "\n";
    last = number;
    Graph graph = parse(text + "output %" + std::to_string(last) + "\n");
    now.clear();
    for (Dim d : graph.type(graph.outputs[0]).shape) now.push_back(graph.dims.hint(d));
  }
  return parse(text + "output %" + std::to_string(last) + "\n");
}

/// NaN, infinities, zeros of either sign, denormals, the limits; an integer's extremes.
ReferenceTensor hostile(const TensorType& type, const Graph& graph, Random& random) {
  Ints shape;
  for (Dim d : type.shape) shape.push_back(graph.dims.hint(d));
  ReferenceTensor tensor(type.dtype, shape);
  static const std::vector<double> reals = {0.0, -0.0,  1.0,   -1.0, 0.1,     -2.5,  INFINITY, -INFINITY,
                                            NAN, 1e-40, -1e-8, 6e4,  -3.3e38, 1e300, 0x1p-149, 5e-324};
  static const std::vector<int64_t> integers = {0,     1,      -1,        2,         127,       -128,      255,
                                                32767, -32768, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1 << 24};
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.floating())
      tensor.real[i] = round_to(type.dtype, one_of(random, reals));
    else
      tensor.integer[i] = wrap_to(type.dtype, one_of(random, integers));
  }
  return tensor;
}

void expect_same_bits(const ReferenceTensor& a, const ReferenceTensor& b) {
  ASSERT_EQ(a.dtype, b.dtype);
  ASSERT_TRUE(a.shape == b.shape);
  for (int64_t i = 0; i < a.size(); ++i) {
    if (!a.floating()) {
      ASSERT_EQ(a.integer[i], b.integer[i]) << i;
    } else if (!std::isnan(a.real[i]) || !std::isnan(b.real[i])) {
      ASSERT_EQ(a.real[i], b.real[i]) << i;
      ASSERT_EQ(std::signbit(a.real[i]), std::signbit(b.real[i])) << i;
    }
  }
}

TEST(SimplifyRules, EachKeepsEveryBitOfHostileValues) {
  Random random(20260801);
  for (OpId op : simplified_ops()) {
    int changed = 0;
    for (int round = 0; round < 1500; ++round) {
      Graph graph;
      try {
        graph = chain(op, random);
      } catch (const Error&) {
        continue;  // the op does not take this dtype or these attributes
      }
      Graph simpler = graph;
      simplify(simpler);
      eliminate_dead_code(simpler);
      Graph plain = graph;
      eliminate_dead_code(plain);
      if (print(simpler) == print(plain)) continue;
      ++changed;
      SCOPED_TRACE(print(graph) + "became\n" + print(simpler));
      std::vector<ReferenceTensor> inputs;
      for (const InputInfo& input : graph.inputs) inputs.push_back(hostile(graph.type(input.value), graph, random));
      std::vector<ReferenceTensor> expected;
      try {
        expected = interpret(graph, inputs);
      } catch (const Error&) {
        continue;  // an integer division by zero
      }
      expect_same_bits(interpret(simpler, inputs)[0], expected[0]);
      if (HasFatalFailure()) return;
    }
    EXPECT_GE(changed, 20) << info(op).name;
  }
}

// Sums of tensors side by side: pieces of numbers, -0.0 and now and then +0.0, cut at the same places or at others.
TEST(SimplifyRules, SumsOfWhatLiesSideBySideKeepEveryBit) {
  Random random(20261125);
  int joined = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string dtype = one_of<std::string>(random, {"f64", "f32", "bf16"});
    const int parts = 2 + static_cast<int>(random() % 3), count = 2 + static_cast<int>(random() % 3);
    std::string text = "ingot.ir 1\ninput %0 = " + dtype + "[2, 2]\ninput %1 = " + dtype + "[2, 2]\n";
    int next = 2;
    auto line = [&](const std::string& node) {
      text += "%" + std::to_string(next) + " = " + node + "\n";
      return "%" + std::to_string(next++);
    };
    std::string sum;
    for (int t = 0; t < count; ++t) {
      std::string pieces;
      const int mine = random() % 4 ? t % parts : static_cast<int>(random() % parts);
      for (int at = 0; at < parts;) {
        const int fills = at == mine ? 0 : 1 + static_cast<int>(random() % (at < mine ? mine - at : parts - at));
        pieces += pieces.empty() ? "" : ", ";
        if (fills == 0) {
          pieces += "%" + std::to_string(random() % 2);
        } else {
          pieces += line("full(" + std::string(random() % 16 ? "-0.0" : "0.0") + ", size=[2, " +
                         std::to_string(2 * fills) + "], dtype=" + dtype + ")");
        }
        at += std::max(fills, 1);
      }
      const std::string term = line("cat(" + pieces + ", dim=1)");
      sum = sum.empty() ? term : line("add(" + sum + ", " + term + ")");
    }
    Graph graph = parse(text + "output " + sum + "\n"), simpler = graph;
    simplify(simpler);
    eliminate_dead_code(simpler);
    verify(simpler);
    joined += print(simpler).find("add(") == std::string::npos;
    SCOPED_TRACE(print(graph) + "became\n" + print(simpler));
    std::vector<ReferenceTensor> inputs;
    for (const InputInfo& input : graph.inputs) inputs.push_back(hostile(graph.type(input.value), graph, random));
    expect_same_bits(interpret(simpler, inputs)[0], interpret(graph, inputs)[0]);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(joined, 200);
}

}  // namespace
}  // namespace ingot::ir
