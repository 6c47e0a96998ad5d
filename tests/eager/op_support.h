// What tests over the whole op table share: inputs for a sample graph, its eager run, and how results are judged.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "eager/call/call.h"
#include "eager/data.h"
#include "eager/execute/execute.h"
#include "ir/graph.h"
#include "ir/reference.h"
#include "ir/samples.h"
#include "uniform.h"

namespace ingot {

using ir::ReferenceTensor;

inline Ints shape_of(const ir::Graph& graph, ir::ValueId value) {
  Ints shape;
  for (Dim d : graph.type(value).shape) shape.push_back(graph.dims.hint(d));
  return shape;
}

/// Floats of either sign; integers that are positions in range and divisors; what the op's contract asks for: a
/// positive running variance, numbers in an interval, edges in order.
inline std::vector<ReferenceTensor> random_inputs(const ir::Graph& graph, std::string_view op, unsigned seed) {
  std::mt19937 random(seed);
  const ir::OpInfo* row = ir::find_op(op);
  std::vector<ReferenceTensor> inputs;
  for (const ir::InputInfo& input : graph.inputs) {
    ReferenceTensor tensor(graph.type(input.value).dtype, shape_of(graph, input.value));
    for (int64_t i = 0; i < tensor.size(); ++i) {
      double real = ingot::test::uniform<double>(random, -2, 2);
      if (op == "batch_norm" && inputs.size() == 2) real = std::abs(real) + 0.5;
      if (op == "cross_entropy" && inputs.size() == 1) real = std::abs(real);
      // As layers begin with: with larger ones, what goes through many steps grows without bound.
      if (row && row->form == ir::Form::recurrence && row->operand(static_cast<int>(inputs.size())).name == "weight")
        real /= 2 * std::sqrt(static_cast<double>(tensor.shape[1]));
      if (op == "multinomial" ||
          (row && row->operand(static_cast<int>(inputs.size())).check.kind == ir::DataCheck::Kind::interval))
        real = std::abs(real) / 2;
      if (tensor.floating())
        tensor.real[i] = ir::round_to(tensor.dtype, real);
      else
        tensor.integer[i] = tensor.dtype == DType::bool_ ? random() % 2 : 1 + random() % 2;
      // A sorter: the sequence is in order already.
      if (op == "searchsorted" && inputs.size() == 2) tensor.integer[i] = i % tensor.shape.back();
    }
    if ((op == "searchsorted" && inputs.empty()) || (op == "bucketize" && inputs.size() == 1)) {
      const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
      for (int64_t i = 0; row > 0 && i < tensor.size(); i += row) {
        if (tensor.floating())
          std::sort(tensor.real.begin() + i, tensor.real.begin() + i + row);
        else
          std::sort(tensor.integer.begin() + i, tensor.integer.begin() + i + row);
      }
    }
    if (row) ir::make_regular(*row, inputs.size(), &tensor);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

inline Tensor eager_tensor(const ReferenceTensor& r) {
  Tensor t = eager::make_empty(r.dtype, r.shape);
  r.to_bytes(eager::data_of(*t.impl()));
  return t;
}

inline std::vector<Tensor> eager_tensors(const std::vector<ReferenceTensor>& references) {
  std::vector<Tensor> tensors;
  for (const ReferenceTensor& r : references) tensors.push_back(eager_tensor(r));
  return tensors;
}

/// The same values in memory that runs backwards through the dims, every second element left out.
inline Tensor scattered(const Tensor& t) {
  if (t.dim() == 0) return t;
  Ints order, sizes;
  for (int64_t d = t.dim(); d-- > 0;) order.push_back(d), sizes.push_back(t.size(d));
  sizes.back() *= 2;
  Tensor view = eager::make_empty(t.dtype(), sizes).slice(t.dim() - 1, 0, {}, 2).permute(order);
  view.copy_(t);
  return view;
}

/// Runs the graph's one node eagerly: by itself, or through the chain of this thread (eager::dispatch).
inline std::vector<Tensor> run(const ir::Graph& graph, const std::vector<Tensor>& inputs,
                               void (*call)(const eager::OpCall&, std::span<Tensor>) = &eager::execute) {
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
  call({node.op, false, operands, node.attrs, Location()}, outputs);
  return outputs;
}

/// Every bit, but that all NaNs are equal.
inline std::string bytes_of(const Tensor& t) {
  Tensor dense = t.clone();
  char* data = eager::data_of(*dense.impl());
  int64_t width = dense.itemsize(), bytes = dense.nbytes();
  if (dense.is_floating_point())
    for (int64_t i = 0; i < bytes; i += width)
      if (std::isnan(eager::read_element(dense.dtype(), data + i).to_double()))
        eager::write_element(dense.dtype(), data + i, std::nan(""));
  return std::string(data, static_cast<size_t>(bytes));
}

/// Half a unit in the last place of 1.
inline double rounding_of(DType d) {
  return d == DType::bf16  ? 0x1p-8
         : d == DType::f16 ? 0x1p-11
         : d == DType::f32 ? 0x1p-24
         : d == DType::f64 ? 0x1p-53
                           : 0;
}

/// Each output has the expected dtype and sizes. Integers are the expected ones; floats lie within `roundings` of the
/// inputs' and their own dtype, relative to their value and to `magnitude`: what a sum typically has that cancels.
inline void expect_close(const std::vector<ReferenceTensor>& inputs, const std::vector<Tensor>& got,
                         const std::vector<ReferenceTensor>& expected, double roundings = 64, double magnitude = 1) {
  ASSERT_EQ(got.size(), expected.size());
  double coarsest = 0;
  for (const ReferenceTensor& r : inputs) coarsest = std::max(coarsest, rounding_of(r.dtype));
  for (size_t o = 0; o < got.size(); ++o) {
    ASSERT_EQ(got[o].dtype(), expected[o].dtype);
    ASSERT_EQ(got[o].sizes(), IntArrayRef(expected[o].shape));
    Tensor dense = got[o].contiguous();
    ReferenceTensor values = ReferenceTensor::from_bytes(dense.dtype(), expected[o].shape, dense.data_ptr());
    const double bound = values.floating() ? roundings * std::max(coarsest, rounding_of(values.dtype)) : 0;
    for (int64_t i = 0; i < values.size(); ++i) {
      if (!values.floating()) {
        ASSERT_EQ(values.integer[i], expected[o].integer[i]) << "output " << o << " element " << i;
        continue;
      }
      double a = values.real[i], b = expected[o].real[i];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      ASSERT_LE(std::abs(a - b), bound * (magnitude + std::abs(b)))
          << "output " << o << " element " << i << ": " << a << ", expected " << b;
    }
  }
}

}  // namespace ingot
