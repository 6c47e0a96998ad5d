#include "compile/graph_function.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/module_path.h"
#include "compiler/compiler.h"
#include "eager/call/call.h"
#include "eager/call/dispatch.h"
#include "eager/call/tensor_guard.h"
#include "eager/data.h"
#include "eager/execute/execute.h"
#include "eager/execute/numerics.h"
#include "ir/graph.h"
#include "runtime/thread_pool.h"
#include "trace/flush_point.h"
#include "trace/graph_checks.h"

namespace ingot {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& got, const std::string& expected) {
  throw Error("compiled graph: " + where + ": got " + got + ", expected " + expected);
}
[[noreturn]] void fail(size_t input, const char* what, const std::string& got, const std::string& expected) {
  fail("input " + std::to_string(input) + ": " + what, got, expected);
}

/// What a call must hold for, whatever it computes.
void check_graph(const ir::Graph& graph) {
  try {
    ir::verify(graph);
  } catch (const InternalError& e) {
    throw Error(std::string("compiled graph: ") + e.what());
  }
  if (graph.outputs.empty()) fail("outputs", "none", "one at least");
  const DimTable& dims = graph.dims;
  for (int64_t s = 0; s < dims.symbol_count(); ++s) {
    auto is_symbol = [&](Dim d) { return d == dims.symbol_dim(s); };
    const bool given = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const ir::InputInfo& input) {
      const Dims& shape = graph.type(input.value).shape;
      return std::any_of(shape.begin(), shape.end(), is_symbol) ||
             std::any_of(input.strides.begin(), input.strides.end(), is_symbol);
    });
    if (!given)
      fail("symbol " + dims.str(dims.symbol_dim(s)), "no input with a size or stride that is this symbol", "one");
  }
}

/// Every size, stride and offset that the graph names, each expression once.
std::vector<Dim> named_sizes(const ir::Graph& graph) {
  std::vector<Dim> sizes;
  std::set<int64_t> seen;
  auto add = [&](Dim d) {
    if (!d.is_constant() && seen.insert(d.index()).second) sizes.push_back(d);
  };
  for (const ir::ValueInfo& value : graph.values)
    for (Dim d : value.type.shape) add(d);
  for (const ir::InputInfo& input : graph.inputs)
    for (Dim d : input.strides) add(d);
  for (const ir::Node& node : graph.nodes) {
    for (const ir::Operand& operand : node.operands)
      if (operand.kind == ir::Operand::Kind::size) add(operand.dim);
    for (const ir::Attr& attr : node.attrs)
      for (Dim d : attr.list) add(d);
  }
  return sizes;
}

/// A graph that does as eager: with its checks on values, those of inputs and scalars before it runs, those of values
/// that it makes by flags, which are its last outputs; and with its special cases of scalars.
struct CheckedGraph {
  ir::Graph graph;
  std::vector<trace::HostCheck> host_checks;  // by node of the graph that was given

  explicit CheckedGraph(const ir::Graph& given) {
    graph.dims = given.dims;
    graph.scalars = given.scalars;
    trace::GraphChecks checks(graph);
    std::vector<ir::ValueId> renamed(given.values.size(), ir::kNoValue);
    for (const ir::InputInfo& input : given.inputs) {
      const ir::TensorType& type = given.type(input.value);
      renamed[input.value] = graph.add_input(type.dtype, type.shape, input.strides);
      graph.inputs.back().constant = input.constant;
    }
    for (size_t n = 0; n < given.nodes.size(); ++n) {
      const ir::Node& node = given.nodes[n];
      std::vector<ir::Operand> operands = node.operands;
      for (ir::Operand& operand : operands)
        if (operand.is_value()) operand = ir::Operand::value(renamed[operand.id]);
      for (const eager::ValueCheck& check : checks.of(node.op, operands, node.attrs)) {
        const auto number = static_cast<uint32_t>(check.operand);
        const ir::Operand& checked = node.operands[number];
        const bool is_made = checked.is_value() && given.values[checked.id].producer != ir::kNoValue;
        if (is_made) checks.add(check, operands, node.location);
        host_checks.push_back({n, number, -1, is_made});
      }
      const ir::ValueId first = add(node, operands);
      for (size_t i = 0; i < node.outputs.size(); ++i) renamed[node.outputs[i]] = first + static_cast<ir::ValueId>(i);
    }
    for (ir::ValueId output : given.outputs) graph.outputs.push_back(renamed[output]);
    graph.outputs.insert(graph.outputs.end(), checks.failed().begin(), checks.failed().end());
  }

 private:
  ir::ValueId add_node(const ir::Node& like, OpId op, std::vector<ir::Operand> operands, std::vector<ir::Attr> attrs) {
    const ir::ValueId first = graph.add(op, std::move(operands), std::move(attrs), like.location);
    graph.nodes.back().module = like.module;
    return first;
  }
  // Its first output. What eager would compute for a special value of a run-time scalar is computed beside the rest,
  // and taken where it has that value.
  ir::ValueId add(const ir::Node& node, const std::vector<ir::Operand>& operands) {
    using ir::Operand;
    ir::ValueId result = add_node(node, node.op, operands, node.attrs);
    if (!is_floating(graph.type(result).dtype)) return result;  // the others are exact either way
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].is_scalar() || operands[i].kind == Operand::Kind::constant || ir::info(node.op).list_first)
        continue;
      const std::vector<double>& special = ir::info(node.op).operand(static_cast<int>(i)).special;
      if (special.empty()) continue;
      const ir::ValueId scalar =
          add_node(node, OpId::full, {operands[i]}, {ir::Attr::of(Dims{}), ir::Attr::of(DType::f64)});
      for (double value : special) {
        std::vector<Operand> known = operands;
        known[i] = Operand::constant(value);
        const ir::ValueId is = add_node(node, OpId::eq, {Operand::value(scalar), known[i]}, {});
        const ir::ValueId then = add_node(node, node.op, std::move(known), node.attrs);
        result = add_node(node, OpId::where, {Operand::value(is), Operand::value(then), Operand::value(result)}, {});
      }
    }
    return result;
  }
};

/// What the guards say of single symbols is better said by the graph, as for recorded graphs: a symbol that must be a
/// constant is that constant, two that must be equal are one. True if it changed anything.
bool pin_symbols(ir::Graph* graph, const DimTable& guards) {
  const std::vector<int64_t> becomes = guards.pinned_symbols();
  bool changed = false;
  for (size_t s = 0; s < becomes.size(); ++s) changed = changed || becomes[s] != static_cast<int64_t>(s);
  if (!changed) return false;
  const DimTable old = std::move(graph->dims);
  graph->dims = {};
  std::vector<Dim> symbols(becomes.size());
  for (size_t s = 0; s < becomes.size(); ++s)
    if (const int64_t hint = old.symbol_hint(static_cast<int64_t>(s)); becomes[s] < 0)
      symbols[s] = hint;
    else if (becomes[s] == static_cast<int64_t>(s))
      symbols[s] = graph->dims.symbol(hint);
  for (size_t s = 0; s < becomes.size(); ++s)
    if (becomes[s] >= 0) symbols[s] = symbols[static_cast<size_t>(becomes[s])];
  const std::vector<Dim> imported = graph->dims.import(old, symbols);
  auto translate = [&](Dims& list) {
    for (Dim& d : list) d = DimTable::translated(d, imported);
  };
  for (ir::ValueInfo& value : graph->values) translate(value.type.shape);
  for (ir::InputInfo& input : graph->inputs) translate(input.strides);
  for (ir::Node& node : graph->nodes) {
    for (ir::Operand& operand : node.operands) operand.dim = DimTable::translated(operand.dim, imported);
    for (ir::Attr& attr : node.attrs) translate(attr.list);
  }
  return true;
}

compiler::ReadyProgram compile_graph(ir::Graph graph, const CompileOptions& options) {
  eager::NumericsScope scope(options.numerics);
  const compiler::Settings settings{.level = eager::code_level(),
                                    .disabled = options.disable,
                                    .threads = num_threads(),
                                    .pack_weights_only = options.pack_weights_only};
  const std::string key = compiler::key_of(graph, settings);
  return compiler::compile(key, std::move(graph), settings, options.name.empty() ? "compiled graph" : options.name);
}

}  // namespace

struct CompiledGraphFunction::State {
  State(ir::Graph graph, CheckedGraph checked, const CompileOptions& options)
      : given(std::move(graph)),
        sizes(named_sizes(given)),
        host_checks(std::move(checked.host_checks)),
        numerics(options.numerics),
        program(compile_graph(std::move(checked.graph), options)) {}

  ir::Graph given;
  std::vector<Dim> sizes;  // that must not fall below zero
  std::vector<trace::HostCheck> host_checks;
  std::optional<Numerics> numerics;
  compiler::ReadyProgram program;
};

/// One call: the arguments, and the graph's sizes for them.
class CompiledGraphFunction::Call {
 public:
  Call(const State& state, std::span<const Tensor> inputs, std::span<const Scalar> scalars)
      : s_(state), inputs_(inputs), scalars_(scalars) {
    check_arguments();
    bind_symbols();
  }

  std::vector<Tensor> run() {
    if (!host_checks_pass()) return run_one_by_one();
    std::vector<void*> in, out;
    std::vector<runtime::InputIdentity> identities;
    for (const Tensor& t : inputs_) {
      in.push_back(eager::data_of(*t.impl()));
      identities.push_back(runtime::InputIdentity::of(*t.impl()->storage));
    }
    std::vector<uint64_t> bits;
    for (size_t i = 0; i < scalars_.size(); ++i)
      bits.push_back(s_.given.scalars[i] == Category::floating
                         ? std::bit_cast<uint64_t>(scalars_[i].to_double())
                         : static_cast<uint64_t>(scalars_[i].to_int64_saturated()));
    std::vector<Tensor> results;
    for (ir::ValueId output : s_.given.outputs)
      results.push_back(eager::make_empty(s_.given.type(output).dtype, sizes_of(output)));
    const size_t flags = s_.program.compiled->graph.outputs.size() - results.size();
    for (const Tensor& t : results) out.push_back(eager::data_of(*t.impl()));
    std::vector<Tensor> failed(flags);
    for (Tensor& flag : failed) {
      flag = eager::make_empty(DType::bool_, {});
      out.push_back(eager::data_of(*flag.impl()));
    }
    const runtime::LoadedProgram& program = *s_.program.loaded;
    program.run(*program.bind(symbols_), {in, identities, out, bits});
    for (const Tensor& flag : failed)
      if (*eager::data_of(*flag.impl())) return run_one_by_one();
    return results;
  }

 private:
  void check_arguments() const {
    const ir::Graph& graph = s_.given;
    if (inputs_.size() != graph.inputs.size())
      fail("inputs", std::to_string(inputs_.size()), std::to_string(graph.inputs.size()));
    if (scalars_.size() != graph.scalars.size())
      fail("scalars", std::to_string(scalars_.size()), std::to_string(graph.scalars.size()));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].defined()) fail(i, "tensor", "an undefined one", "a tensor");
      eager::materialize(inputs_[i], "compiled graph", Location::none());
      const ir::TensorType& type = graph.type(graph.inputs[i].value);
      const detail::TensorImpl& impl = *inputs_[i].impl();
      const eager::TensorFacts expected(type.dtype, type.shape.size()), met(impl.dtype, impl.sizes.size());
      if (auto m = eager::mismatch(expected, met)) fail(i, m->fact, m->after, m->before);
    }
    constexpr const char* categories[] = {"a boolean", "an integer", "a number", "a complex number"};
    for (size_t i = 0; i < scalars_.size(); ++i)
      if (scalars_[i].category() > graph.scalars[i])
        fail("scalar " + std::to_string(i),
             scalars_[i].category() == Category::floating ? std::to_string(scalars_[i].to_double())
                                                          : std::to_string(scalars_[i].to_int64_saturated()),
             categories[static_cast<int>(graph.scalars[i])]);
  }

  static constexpr const char *kSize = "size", *kStride = "stride";

  // What a size or stride is in the graph, and what it is here. Where nothing is stepped over, a stride says nothing.
  template <class Visit>
  void each_size(Visit&& visit) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ir::InputInfo& input = s_.given.inputs[i];
      const Dims& shape = s_.given.type(input.value).shape;
      const detail::TensorImpl& impl = *inputs_[i].impl();
      const bool empty = eager::count(impl.sizes) == 0;
      for (size_t d = 0; d < shape.size(); ++d) {
        visit(i, kSize, shape[d], impl.sizes[d]);
        if (impl.sizes[d] > 1 && !empty) visit(i, kStride, input.strides[d], impl.strides[d]);
      }
    }
  }

  // A size that is a symbol gives it its value; all sizes and strides are then compared with what the graph says.
  void bind_symbols() {
    const DimTable& dims = s_.given.dims;
    for (int64_t s = 0; s < dims.symbol_count(); ++s) symbols_.push_back(dims.symbol_hint(s));
    each_size([&](size_t, const char*, Dim dim, int64_t value) {
      for (int64_t s = 0; s < dims.symbol_count(); ++s)
        if (dims.symbol_dim(s) == dim) symbols_[static_cast<size_t>(s)] = value;
    });
    try {
      values_ = dims.evaluate(symbols_);
      for (const char* now : {kSize, kStride})  // a wrong size makes strides wrong, too
        each_size([&](size_t i, const char* what, Dim dim, int64_t value) {
          if (what == now && size(dim) != value) fail(i, what, std::to_string(value), std::to_string(size(dim)));
        });
      if (!dims.divides(values_)) fail("sizes", "a division by zero", "positive divisors");
      for (Dim d : s_.sizes)
        if (size(d) < 0) fail("sizes", dims.str(d) + " = " + std::to_string(size(d)), "no negative size");
      const DimTable& compiled = s_.program.compiled->program->dims;
      const std::vector<int64_t> all = compiled.evaluate(symbols_);
      auto text = [&](Dim d) { return compiled.str(d) + " = " + std::to_string(DimTable::value_of(d, all)); };
      for (const DimGuard& guard : compiled.guards())
        if (!compiled.holds(guard, all))
          fail("sizes", text(guard.a) + " with " + text(guard.b), "sizes related as when it was compiled");
    } catch (const SizeOverflow& e) {
      throw SizeOverflow(std::string("compiled graph: ") + e.what());
    }
  }

  int64_t size(Dim d) const { return DimTable::value_of(d, values_); }
  Ints sizes_of(ir::ValueId value) const {
    Ints sizes;
    for (Dim d : s_.given.type(value).shape) sizes.push_back(size(d));
    return sizes;
  }

  // The node as a call of eager's, on these tensors.
  struct NodeCall {
    const ir::Node& node;
    std::vector<eager::Operand> operands;
    std::vector<ir::Attr> attrs;
    eager::OpCall call() const { return {node.op, false, operands, attrs, node.location}; }
  };
  NodeCall call_of(const ir::Node& node, std::span<const Tensor> tensors) const {
    NodeCall made{node, {}, node.attrs};
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ir::Operand& operand = node.operands[i];
      eager::Operand& o = made.operands.emplace_back();
      switch (operand.kind) {
        case ir::Operand::Kind::none:
          break;
        case ir::Operand::Kind::value:
          o = eager::Operand(tensors[operand.id]);
          break;
        case ir::Operand::Kind::scalar:
          o = eager::Operand(scalars_[operand.id]);
          o.category = operand.category;
          break;
        case ir::Operand::Kind::size:
          o = eager::Operand(Scalar(size(operand.dim)));
          break;
        case ir::Operand::Kind::constant:
          o = eager::Operand(operand.category == Category::floating  ? Scalar(operand.number)
                             : operand.category == Category::boolean ? Scalar(operand.integer != 0)
                                                                     : Scalar(operand.integer));
          break;
      }
      if (o.kind == eager::Operand::Kind::scalar && !ir::info(node.op).list_first)
        eager::note_special(node.op, static_cast<int>(i), &o);
    }
    for (ir::Attr& attr : made.attrs)
      for (Dim& d : attr.list) d = size(d);
    return made;
  }

  // As far as that can be known before the program runs.
  bool host_checks_pass() const {
    if (s_.host_checks.empty()) return true;
    std::vector<Tensor> tensors(s_.given.values.size());
    for (size_t i = 0; i < inputs_.size(); ++i) tensors[s_.given.inputs[i].value] = inputs_[i];
    for (const trace::HostCheck& check : s_.host_checks) {
      const ir::Node& node = s_.given.nodes[check.node];
      // Of what the program makes, sizes are known.
      for (const ir::Operand& operand : node.operands)
        if (operand.is_value() && !tensors[operand.id].defined()) {
          const Ints sizes = sizes_of(operand.id);
          tensors[operand.id] =
              eager::make_tensor(s_.given.type(operand.id).dtype, sizes, eager::contiguous_strides(sizes), 0, nullptr);
        }
      const NodeCall made = call_of(node, tensors);
      if (check.sizes_only) {
        if (!eager::positions_have_room(made.call(), eager::value_check(made.call(), check.operand))) return false;
        continue;
      }
      try {
        eager::check_operand(made.call(), eager::value_check(made.call(), check.operand));
      } catch (const Error&) {
        return false;
      }
    }
    return true;
  }

  // Eager's error comes from eager; nothing that a caller holds is written.
  std::vector<Tensor> run_one_by_one() const {
    const eager::WithoutInterceptors without_chain;
    const eager::NumericsScope level(s_.numerics);
    std::vector<Tensor> tensors(s_.given.values.size());
    for (size_t i = 0; i < inputs_.size(); ++i) tensors[s_.given.inputs[i].value] = inputs_[i];
    for (const ir::Node& node : s_.given.nodes) {
      // In a graph its positions count through the value, wherever that lies.
      if (ir::info(node.op).has(ir::kOfMemory))
        tensors[node.operands[0].id] = tensors[node.operands[0].id].contiguous();
      std::vector<Tensor> outputs(node.outputs.size());
      const ModulePathScope path(node.module);
      eager::execute(call_of(node, tensors).call(), outputs);
      for (size_t i = 0; i < outputs.size(); ++i) tensors[node.outputs[i]] = outputs[i];
    }
    std::vector<Tensor> results;
    for (ir::ValueId output : s_.given.outputs) results.push_back(tensors[output].clone());
    return results;
  }

  const State& s_;
  std::span<const Tensor> inputs_;
  std::span<const Scalar> scalars_;
  std::vector<int64_t> symbols_, values_;
};

CompiledGraphFunction::CompiledGraphFunction(ir::Graph graph, const CompileOptions& options) {
  check_graph(graph);
  CheckedGraph checked(graph);
  while (pin_symbols(&graph, checked.graph.dims)) checked = CheckedGraph(graph);
  state_ = std::make_shared<const State>(std::move(graph), std::move(checked), options);
}

std::vector<Tensor> CompiledGraphFunction::operator()(std::span<const Tensor> inputs,
                                                      std::span<const Scalar> scalars) const {
  const std::shared_ptr<const State> held = state_;  // another thread may replace this handle meanwhile
  return Call(*held, inputs, scalars).run();
}

CompiledGraphFunction compile(ir::Graph graph, const CompileOptions& options) {
  return CompiledGraphFunction(std::move(graph), options);
}

}  // namespace ingot
