// compile(ir::Graph) against eager, for every op of the table: the same bits where eager takes the arguments, the same
// error where it does not, whether the op's operands are inputs, made by the graph, or run-time scalars.
#include <limits>
#include <optional>
#include <set>

#include "eager/call/check_values.h"
#include "eager/op_support.h"
#include "ir/samples.h"
#include "support.h"

namespace ingot {
namespace {

/// What a call gives: the bytes of its results, or what it was refused with, without the line.
struct Outcome {
  std::vector<std::string> bytes;
  std::string error;
  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Outcome& o) {
    return out << (o.error.empty() ? std::to_string(o.bytes.size()) + " results" : o.error);
  }
};

template <class F>
Outcome outcome_of(F&& f) {
  Outcome o;
  try {
    for (const Tensor& t : f()) {
      std::string text = std::string(name_of(t.dtype()));
      for (int64_t n : t.sizes()) text += " " + std::to_string(n);
      o.bytes.push_back(text + ": " + bytes_of(t));
    }
  } catch (const Error& e) {
    o.bytes.clear();
    o.error = e.what();
    if (const size_t line = o.error.rfind(" (");
        o.error.ends_with(")") && o.error.find(".h:", line) != std::string::npos)
      o.error.resize(line);
  }
  return o;
}

std::string all_bytes(const std::vector<Tensor>& tensors) {
  std::string bytes;
  for (const Tensor& t : tensors) bytes += bytes_of(t) + "|";
  return bytes;
}

enum class Form {
  inputs,   // operands are inputs
  made,     // operands are made by the graph
  scalars,  // inputs, and run-time scalars where the sample has constants
};
constexpr Form kForms[] = {Form::inputs, Form::made, Form::scalars};

/// The sample's call in a graph of this form; `scalars` takes the constants that became run-time scalars.
ir::Graph in_form(const ir::Graph& sample, Form form, std::vector<Scalar>* scalars) {
  ir::Graph graph;
  std::vector<ir::ValueId> value_of;
  for (const ir::InputInfo& input : sample.inputs) {
    const ir::TensorType& type = sample.type(input.value);
    value_of.push_back(graph.add_input(type.dtype, type.shape));
  }
  if (form == Form::made)
    for (ir::ValueId& value : value_of) value = graph.add(OpId::clone, {ir::Operand::value(value)});
  const ir::Node& node = sample.nodes.at(0);
  const ir::OpInfo& row = ir::info(node.op);
  std::vector<ir::Operand> operands = node.operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    ir::Operand& o = operands[i];
    if (o.is_value()) {
      o = ir::Operand::value(value_of.at(o.id));
    } else if (form == Form::scalars && o.kind == ir::Operand::Kind::constant && !row.list_first &&
               row.operand(static_cast<int>(i)).special.empty()) {
      scalars->push_back(o.category == Category::floating  ? Scalar(o.number)
                         : o.category == Category::boolean ? Scalar(o.integer != 0)
                                                           : Scalar(o.integer));
      o = ir::Operand::scalar(graph.add_scalar(o.category), o.category);
    }
  }
  const ir::ValueId first = graph.add(node.op, operands, node.attrs);
  for (size_t i = 0; i < node.outputs.size(); ++i) graph.outputs.push_back(first + static_cast<ir::ValueId>(i));
  return graph;
}

TEST(GraphChecks, EveryOpGivesWhatEagerGives) {
  int judged = 0;
  for (const ir::Sample& sample : ir::samples()) {
    SCOPED_TRACE(sample.text);
    const ir::Graph graph = ir::parse(sample.text);
    const std::vector<Tensor> inputs = eager_tensors(random_inputs(graph, sample.op->name, 11));
    const Outcome expected = outcome_of([&] { return run(graph, inputs); });
    EXPECT_EQ(expected.error, "");
    for (Form form : kForms) {
      std::vector<Scalar> scalars;
      const CompiledGraphFunction f = compile(in_form(graph, form, &scalars));
      EXPECT_EQ(outcome_of([&] { return f(inputs, scalars); }), expected) << static_cast<int>(form);
      ++judged;
    }
  }
  RecordProperty("judged", judged);
  EXPECT_GE(judged, 3 * kOpCount);
}

// Data that an op may not take: positions outside, zeros as divisors, numbers outside of an interval.
TEST(GraphChecks, ValuesThatEagerRefusesAreRefusedInItsWords) {
  int refused = 0, judged = 0;
  std::set<OpId> ops;
  for (const ir::Sample& sample : ir::samples()) {
    SCOPED_TRACE(sample.text);
    const ir::Graph graph = ir::parse(sample.text);
    const ir::Node& node = graph.nodes.at(0);
    std::vector<ir::OperandType> types;
    for (const ir::Operand& o : node.operands) {
      ir::OperandType& type = types.emplace_back();
      if (o.is_value()) {
        type.kind = ir::OperandType::Kind::tensor;
        type.dtype = graph.type(o.id).dtype;
        type.shape = &graph.type(o.id).shape;
      } else if (o.is_scalar()) {
        type.kind = ir::OperandType::Kind::scalar;
        type.category = o.category;
      }
    }
    for (const eager::ValueCheck& check : eager::value_checks(node.op, types, node.attrs)) {
      const size_t number = check.operand;
      const ir::Operand& operand = node.operands[number];
      for (double bad : {1000.0, -1000.0, 0.0, -0.5, 3.0, std::numeric_limits<double>::quiet_NaN()}) {
        std::vector<Tensor> inputs = eager_tensors(random_inputs(graph, sample.op->name, 11));
        ir::Graph spoilt = graph;
        if (operand.is_value()) {
          Tensor& target = inputs.at(operand.id);
          if (!is_floating(target.dtype()) && (bad != bad || target.dtype() == kBool || target.dtype() == kUInt8))
            continue;
          // The last element only.
          Tensor flat = target.reshape({-1});
          if (flat.numel() == 0) continue;
          flat.slice(0, flat.numel() - 1, flat.numel()).copy_(tensor(bad, kFloat64));
          target = flat.reshape(target.sizes());
        } else if (operand.kind == ir::Operand::Kind::constant) {
          ir::Operand& constant = spoilt.nodes.at(0).operands[number];
          if (operand.category == Category::floating)
            constant = ir::Operand::constant(bad);
          else if (operand.category == Category::integer && bad == bad)
            constant = ir::Operand::constant(static_cast<int64_t>(bad));
          else
            continue;
        } else {
          continue;
        }
        const Outcome expected = outcome_of([&] { return run(spoilt, inputs); });
        for (Form form : kForms) {
          std::vector<Scalar> scalars;
          const CompiledGraphFunction f = compile(in_form(spoilt, form, &scalars));
          const std::string before = all_bytes(inputs);
          EXPECT_EQ(outcome_of([&] { return f(inputs, scalars); }), expected)
              << bad << " in form " << static_cast<int>(form);
          EXPECT_EQ(all_bytes(inputs), before);
          ++judged;
        }
        if (!expected.error.empty()) ++refused, ops.insert(node.op);
      }
    }
  }
  RecordProperty("judged", judged);
  EXPECT_GT(judged, 500);
  EXPECT_GT(refused, 100);
  EXPECT_GE(ops.size(), 20u);  // of those that check values
}

/// The sample with a symbol for each dim of each input (dims of one size have one, as a trace would have it), or
/// nothing where its attributes do not let it be built.
std::optional<ir::Graph> with_symbols(const ir::Graph& sample) {
  ir::Graph graph;
  std::map<int64_t, Dim> symbols;
  for (const ir::InputInfo& input : sample.inputs) {
    Dims shape;
    for (Dim d : sample.type(input.value).shape) {
      auto [it, fresh] = symbols.try_emplace(d.code);
      if (fresh) it->second = graph.dims.symbol(d.code);
      shape.push_back(it->second);
    }
    graph.add_input(sample.type(input.value).dtype, shape);
  }
  const ir::Node& node = sample.nodes.at(0);
  try {
    const ir::ValueId first = graph.add(node.op, node.operands, node.attrs);
    for (size_t i = 0; i < node.outputs.size(); ++i) graph.outputs.push_back(first + static_cast<ir::ValueId>(i));
  } catch (const Error&) {
    return std::nullopt;
  }
  return graph;
}

// At other sizes a graph answers as eager does, or says why it is not for them: never a wrong result.
TEST(GraphChecks, OtherSizesAreRightOrRefused) {
  int judged = 0, answered = 0, refused = 0;
  for (const ir::Sample& sample : ir::samples()) {
    SCOPED_TRACE(sample.text);
    const ir::Graph graph = ir::parse(sample.text);
    if (graph.inputs.empty()) continue;
    const std::optional<ir::Graph> symbolic = with_symbols(graph);
    if (!symbolic) continue;
    std::optional<CompiledGraphFunction> f;
    try {
      f.emplace(compile(*symbolic));
    } catch (const Error&) {
      ++refused;  // sizes that its lowering cannot do with symbols
      continue;
    }
    std::vector<std::map<int64_t, int64_t>> changes = {{}};
    std::set<int64_t> sizes;
    for (const ir::InputInfo& input : graph.inputs)
      for (Dim d : graph.type(input.value).shape) sizes.insert(d.code);
    for (int64_t size : sizes)
      for (int64_t other : {size + 1, size * 2, int64_t{1}, int64_t{0}}) changes.push_back({{size, other}});
    for (const auto& change : changes) {
      ir::Graph changed = graph;
      for (const ir::InputInfo& input : changed.inputs)
        for (Dim& d : changed.values[input.value].type.shape)
          if (auto it = change.find(d.code); it != change.end()) d = it->second;
      const std::vector<Tensor> inputs = eager_tensors(random_inputs(changed, sample.op->name, 5));
      const Outcome expected = outcome_of([&] { return run(changed, inputs); });
      const std::string before = all_bytes(inputs);
      const Outcome got = outcome_of([&] { return (*f)(inputs); });
      std::string what;
      for (auto [from, to] : change) what += std::to_string(from) + " -> " + std::to_string(to);
      EXPECT_EQ(all_bytes(inputs), before) << what;
      ++judged;
      if (got.error.empty() || change.empty()) {
        EXPECT_EQ(got, expected) << what;
      }
      answered += got.error.empty();
    }
  }
  RecordProperty("judged", judged);
  RecordProperty("answered", answered);
  EXPECT_LT(refused, 5);
  EXPECT_GT(judged, 1000);
  EXPECT_GT(answered, judged / 4);
}

}  // namespace
}  // namespace ingot
