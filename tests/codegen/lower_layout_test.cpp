// Where values would lie, and how the steps after them read them.
#include "codegen/lower/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lower_support.h"

namespace ingot::codegen {
namespace {
using namespace test;

// A part that is a transposed view (an image's patches as tokens) leaves no trace in what is joined.
TEST(LowerLayout, WhatIsJoinedIsRowMajorWhateverTheOrderOfItsParts) {
  for (Dims order : {Dims{0, 1, 2}, Dims{0, 2, 1}, Dims{1, 0, 2}, Dims{2, 1, 0}, Dims{1, 2, 0}, Dims{2, 0, 1}})
    for (int64_t along : {0, 1, 2})
      for (bool first : {false, true})
        for (bool broadcast : {false, true}) {
          Graph g;
          const Dims shape{3, 4, 5};
          Dims base(3), other = shape;
          for (size_t d = 0; d < 3; ++d) base[static_cast<size_t>(order[d].code)] = shape[d];
          const ValueId turned = g.add(OpId::permute, {val(g.add_input(DType::f32, base))}, {Attr::of(order)});
          other[static_cast<size_t>(along)] = 1;
          ValueId token = g.add_input(DType::f32, broadcast ? Dims{1, 1, 1} : other);
          if (broadcast) token = g.add(OpId::expand, {val(token)}, {Attr::of(other)});
          const Operand parts[] = {val(token), val(turned)};
          const ValueId joined = g.add(OpId::cat, {parts[first ? 1 : 0], parts[first ? 0 : 1]}, {dim(along)});
          const ValueId next = g.add(OpId::add, {val(joined), val(joined), Operand::constant(int64_t{1})});
          g.outputs = {g.add(OpId::sum, {val(next)}, {ints({2})})};
          const lowering::Layouts layouts(g, g.dims, true);
          for (ValueId v : {joined, next})
            EXPECT_EQ(layouts.of(v).strides, ir::contiguous_strides(g.dims, g.type(v).shape)) << along;
        }
}

/// A class token before an image's patches, then layer norms, as a vision transformer begins.
TEST(LowerLayout, ANormAfterAJoinReadsUnitStride) {
  for (int64_t batch : {1, 3}) {
    Graph g;
    const int64_t width = 24, patches = 6;
    auto parameter = [&](Dims shape) {
      const ValueId v = g.add_input(DType::f32, std::move(shape));
      g.inputs.back().constant = true;
      return val(v);
    };
    const ValueId image = g.add_input(DType::f32, {batch, 3, 4, 6});
    ValueId x = g.add(OpId::conv2d, {val(image), parameter({width, 3, 2, 2}), Operand::none()},
                      {ints({2}), ints({0}), ints({1}), dim(1)});
    x = g.add(OpId::view, {val(x)}, {ints({batch, width, patches})});
    x = g.add(OpId::permute, {val(x)}, {ints({0, 2, 1})});
    const ValueId token = g.add(OpId::expand, {parameter({1, 1, width})}, {ints({batch, 1, width})});
    const ValueId joined = g.add(OpId::cat, {val(token), val(x)}, {dim(1)});
    x = g.add(OpId::add, {val(joined), parameter({1, patches + 1, width}), Operand::constant(int64_t{1})});
    const ValueId weight = g.add(OpId::matmul, {val(x), parameter({width, width})});
    x = g.add(OpId::add, {val(x), val(weight), Operand::constant(int64_t{1})});
    g.outputs = {g.add(OpId::layer_norm, {val(x), parameter({width}), parameter({width}), Operand::constant(1e-5)},
                       {ints({width})})};
    const LowerResult r = check_compiled(g, 1e-5);
    const Step& norm = r.program.steps.back();
    ASSERT_TRUE(norm.is<LoopStep>());
    EXPECT_GE(norm.as<LoopStep>().arguments.size(), 3u);
    for (const Argument& a : norm.as<LoopStep>().arguments)
      EXPECT_EQ(a.strides.back(), Dim(4)) << batch << ": " << norm.name;
  }
}

}  // namespace
}  // namespace ingot::codegen
