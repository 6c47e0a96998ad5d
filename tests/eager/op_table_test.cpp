// Every op of the table, executed eagerly: against the reference interpreter, and on other layouts to the bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "eager/call.h"
#include "eager/data.h"
#include "eager/execute.h"
#include "eager/functions.h"
#include "ir/reference.h"
#include "ir/samples.h"
#include "runtime/cpu.h"
#include "runtime/thread_pool.h"

namespace ingot {
namespace {

using ir::ReferenceTensor;

/// Floats of either sign; integers that are positions in range and divisors; a positive running variance.
std::vector<ReferenceTensor> random_inputs(const ir::Graph& graph, std::string_view op, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<ReferenceTensor> inputs;
  for (const ir::InputInfo& input : graph.inputs) {
    const ir::TensorType& type = graph.type(input.value);
    Ints shape;
    for (Dim d : type.shape) shape.push_back(graph.dims.hint(d));
    ReferenceTensor tensor(type.dtype, shape);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      double real = std::uniform_real_distribution<double>(-2, 2)(random);
      if (op == "batch_norm" && inputs.size() == 2) real = std::abs(real) + 0.5;
      if (op == "bernoulli") real = std::abs(real) / 2;
      if (tensor.floating())
        tensor.real[i] = ir::round_to(type.dtype, real);
      else
        tensor.integer[i] = type.dtype == DType::bool_ ? random() % 2 : 1 + random() % 2;
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Tensor eager_tensor(const ReferenceTensor& r) {
  Tensor t = eager::make_empty(r.dtype, r.shape);
  r.to_bytes(eager::data_of(*t.impl()));
  return t;
}

/// The same values in memory that runs backwards through the dims, every second element left out.
Tensor scattered(const Tensor& t) {
  if (t.dim() == 0) return t;
  Ints order, sizes;
  for (int64_t d = t.dim(); d-- > 0;) order.push_back(d), sizes.push_back(t.size(d));
  sizes.back() *= 2;
  Tensor view = eager::make_empty(t.dtype(), sizes).slice(t.dim() - 1, 0, {}, 2).permute(order);
  view.copy_(t);
  return view;
}

std::vector<Tensor> run(const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  const ir::Node& node = graph.nodes.at(0);
  std::vector<eager::Operand> operands;
  for (const ir::Operand& o : node.operands) {
    if (o.is_value()) {
      operands.emplace_back(inputs.at(o.id));
    } else if (o.kind == ir::Operand::Kind::constant) {
      if (o.category == Category::floating)
        operands.emplace_back(Scalar(o.number));
      else
        operands.emplace_back(o.category == Category::boolean ? Scalar(o.integer != 0) : Scalar(o.integer));
    } else {
      operands.emplace_back();
    }
  }
  std::vector<Tensor> outputs(node.outputs.size());
  eager::execute({node.op, false, operands, node.attrs, Location()}, outputs);
  return outputs;
}

/// Every bit, but that all NaNs are equal.
std::string bytes_of(const Tensor& t) {
  Tensor dense = t.clone();
  char* data = eager::data_of(*dense.impl());
  int64_t width = dense.itemsize(), bytes = dense.nbytes();
  if (dense.is_floating_point())
    for (int64_t i = 0; i < bytes; i += width)
      if (std::isnan(eager::read_element(dense.dtype(), data + i).to_double()))
        eager::write_element(dense.dtype(), data + i, std::nan(""));
  return std::string(data, static_cast<size_t>(bytes));
}

double bound_of(DType d) { return d == DType::bf16 ? 1e-2 : d == DType::f16 ? 2e-3 : d == DType::f32 ? 5e-6 : 1e-12; }

TEST(OpTable, EveryOpAgreesWithTheReference) {
  for (const ir::Sample& sample : ir::samples()) {
    SCOPED_TRACE(sample.text);
    ir::Graph graph = ir::parse(sample.text);
    std::vector<ReferenceTensor> inputs = random_inputs(graph, sample.op->name, 1);
    std::vector<ReferenceTensor> expected = ir::interpret(graph, inputs);
    std::vector<Tensor> tensors, got;
    for (const ReferenceTensor& r : inputs) tensors.push_back(eager_tensor(r));
    ASSERT_NO_THROW(got = run(graph, tensors));
    ASSERT_EQ(got.size(), expected.size());
    double bound = 0;
    for (const ReferenceTensor& r : inputs) bound = std::max(bound, bound_of(r.dtype));
    for (size_t o = 0; o < got.size(); ++o) {
      ASSERT_EQ(got[o].dtype(), expected[o].dtype);
      ASSERT_EQ(got[o].sizes(), IntArrayRef(expected[o].shape));
      Tensor dense = got[o].contiguous();
      ReferenceTensor values = ReferenceTensor::from_bytes(dense.dtype(), expected[o].shape, dense.data_ptr());
      for (int64_t i = 0; i < values.size(); ++i) {
        double a = values.at(i), b = expected[o].at(i);
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        EXPECT_LE(std::abs(a - b), std::max(bound, bound_of(values.dtype)) * (1 + std::abs(b)))
            << "output " << o << " element " << i << ": " << a << ", expected " << b;
      }
    }
  }
}

TEST(OpTable, LayoutChangesNoBit) {
  for (const ir::Sample& sample : ir::samples()) {
    if (sample.op->kind == ir::OpKind::view) continue;  // whether there is a view depends on the layout
    SCOPED_TRACE(sample.text);
    ir::Graph graph = ir::parse(sample.text);
    std::vector<Tensor> dense, other;
    for (const ReferenceTensor& r : random_inputs(graph, sample.op->name, 3)) {
      dense.push_back(eager_tensor(r));
      other.push_back(scattered(dense.back()));
    }
    std::vector<Tensor> expected, got;
    ASSERT_NO_THROW(expected = run(graph, dense));
    ASSERT_NO_THROW(got = run(graph, other));
    for (size_t o = 0; o < got.size(); ++o) {
      EXPECT_TRUE(got[o].is_contiguous());
      EXPECT_EQ(bytes_of(got[o]), bytes_of(expected[o])) << got[o] << "\n" << expected[o];
    }
  }
}

TEST(OpTable, InstructionSetsAndThreadsChangeNoBit) {
  std::vector<std::optional<Target>> targets;
  for (Isa isa : {Isa::none, Isa::avx2, Isa::avx512})
    if (isa <= runtime::detected_target().isa) targets.push_back(runtime::target_of(isa));
  int64_t fallbacks = eager::eager_statistics().fallbacks;
  int threads = num_threads();
  for (const ir::Sample& sample : ir::samples()) {
    SCOPED_TRACE(sample.text);
    ir::Graph graph = ir::parse(sample.text);
    std::vector<Tensor> inputs;
    for (const ReferenceTensor& r : random_inputs(graph, sample.op->name, 4)) inputs.push_back(eager_tensor(r));
    std::vector<std::string> expected;
    for (size_t t = 0; t < targets.size(); ++t) {
      runtime::set_host_target(targets[t]);
      set_num_threads(static_cast<int>(t) * 2 + 1);
      std::vector<Tensor> got;
      EXPECT_NO_THROW(got = run(graph, inputs));
      for (size_t o = 0; o < got.size(); ++o) {
        if (t == 0)
          expected.push_back(bytes_of(got[o]));
        else
          EXPECT_EQ(bytes_of(got[o]), expected[o]) << targets[t]->str();
      }
    }
  }
  runtime::set_host_target(std::nullopt);
  set_num_threads(threads);
  EXPECT_EQ(eager::eager_statistics().fallbacks, fallbacks);
}

TEST(OpTable, InplaceFormsGiveWhatTheOthersGive) {
  for (const ir::Sample& sample : ir::samples()) {
    if (!sample.op->has(ir::kInplace)) continue;
    SCOPED_TRACE(sample.text);
    ir::Graph graph = ir::parse(sample.text);
    const ir::Operand& self = graph.nodes[0].operands[0];
    if (!self.is_value()) continue;
    std::vector<Tensor> inputs;
    for (const ReferenceTensor& r : random_inputs(graph, sample.op->name, 5)) inputs.push_back(eager_tensor(r));
    Tensor expected = run(graph, inputs)[0], target = scattered(inputs[self.id]);
    bool fits = expected.sizes() == target.sizes() && category_of(expected.dtype()) <= category_of(target.dtype());
    std::vector<eager::Operand> operands;
    for (const ir::Operand& o : graph.nodes[0].operands) {
      if (o.is_value())
        operands.emplace_back(o.id == self.id ? target : inputs[o.id]);
      else if (o.kind == ir::Operand::Kind::constant)
        operands.emplace_back(o.category == Category::floating ? Scalar(o.number) : Scalar(o.integer));
      else
        operands.emplace_back();
    }
    Tensor out;
    eager::OpCall call{sample.op->id, true, operands, graph.nodes[0].attrs, Location()};
    if (!fits) {
      EXPECT_THROW(eager::execute(call, {&out, 1}), Error);
      continue;
    }
    ASSERT_NO_THROW(eager::execute(call, {&out, 1}));
    EXPECT_TRUE(out.is_same(target));
    EXPECT_EQ(bytes_of(target), bytes_of(expected.to(target.dtype()))) << target << "\n" << expected;
  }
}

}  // namespace
}  // namespace ingot
