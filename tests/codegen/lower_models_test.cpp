// The demo's models in small: which steps they become.
#include <gtest/gtest.h>

#include "lower_support.h"

namespace ingot::codegen {
namespace {
using namespace test;

class Model {
 public:
  Graph g;
  ValueId parameter(Dims shape) {
    ValueId v = g.add_input(DType::f32, std::move(shape));
    g.inputs.back().constant = true;
    return v;
  }
  ValueId call(OpId op, std::vector<ValueId> operands, std::vector<Attr> attrs = {}) {
    std::vector<Operand> list;
    for (ValueId v : operands) list.push_back(Operand::value(v));
    return g.add(op, std::move(list), std::move(attrs));
  }
  ValueId linear(ValueId x, Dim in, Dim out) { return call(OpId::linear, {x, parameter({out, in}), parameter({out})}); }
  ValueId layer_norm(ValueId x, Dim size) {
    return call(OpId::layer_norm, {x, parameter({size}), parameter({size})}, {Attr::of(Dims{size})});
  }
};
Attr at(int64_t dim) { return Attr::of(dim); }
Attr list(Dims d) { return Attr::of(std::move(d)); }

TEST(LowerModels, MlpIsThreeProducts) {
  Model m;
  Dim n = m.g.dims.symbol(8);
  ValueId x = m.g.add_input(DType::f32, {n, 16});
  x = m.call(OpId::gelu, {m.linear(x, 16, 32)});
  x = m.call(OpId::gelu, {m.linear(x, 32, 32)});
  m.g.outputs = {m.linear(x, 32, 10)};
  LowerResult r = check_compiled(m.g, 1e-5, {}, {3});
  EXPECT_EQ(r.program.steps.size(), 3u);
  EXPECT_EQ(count_steps<MatmulStep>(r.program), 3);
  for (const Step& s : r.program.steps) EXPECT_TRUE(s.as<MatmulStep>().b_is_weight);
}

TEST(LowerModels, TransformerBlockIsSevenSteps) {
  Model m;
  Dim n = m.g.dims.symbol(2), t = m.g.dims.symbol(6);
  int64_t width = 16, heads = 2;
  ValueId tokens = m.g.add_input(DType::i64, {n, t});
  ValueId table = m.parameter({7, width}), places = m.parameter({8, width});
  ValueId x = m.call(OpId::add, {m.call(OpId::embedding, {table, tokens}),
                                 m.call(OpId::slice, {places}, {at(0), list({0}), list({t})})});
  ValueId qkv = m.linear(m.layer_norm(x, width), width, 3 * width);
  auto head = [&](int64_t which) {
    ValueId part = m.call(OpId::slice, {qkv}, {at(2), list({which * width}), list({(which + 1) * width})});
    return m.call(OpId::permute, {m.call(OpId::view, {part}, {list({n, t, heads, width / heads})})},
                  {list({0, 2, 1, 3})});
  };
  ValueId q = head(0), k = head(1), v = head(2);
  ValueId a = m.g.add(OpId::scaled_dot_product_attention, {Operand::value(q), Operand::value(k), Operand::value(v)},
                      {Attr::number(0), Attr::of(true)});
  a = m.call(OpId::clone, {m.call(OpId::permute, {a}, {list({0, 2, 1, 3})})});
  x = m.call(OpId::add, {x, m.linear(m.call(OpId::view, {a}, {list({n, t, width})}), width, width)});
  ValueId h =
      m.g.add(OpId::gelu, {Operand::value(m.linear(m.layer_norm(x, width), width, 4 * width))}, {Attr::mode(1)});
  x = m.call(OpId::add, {x, m.linear(h, 4 * width, width)});
  m.g.outputs = {x};
  LowerResult r = check_compiled(m.g, 1e-5, {}, {3, 5});
  // embedding + norm, qkv, attention, out + residual, norm, up + gelu, down + residual.
  EXPECT_EQ(r.program.steps.size(), 7u);
  EXPECT_EQ(count_steps<MatmulStep>(r.program), 4);
}

TEST(LowerModels, ConvolutionTakesNormAndActivation) {
  Model m;
  Dim n = m.g.dims.symbol(2);
  ValueId input = m.g.add_input(DType::f32, {n, 1, 8, 8});
  auto block = [&](ValueId x, int64_t in, int64_t out) {
    ValueId c = m.call(OpId::conv2d, {x, m.parameter({out, in, 3, 3}), m.parameter({out})}, {list({1}), list({1})});
    ValueId square = m.parameter({out});
    ValueId variance = m.call(OpId::exp, {square});
    ValueId b = m.call(OpId::batch_norm, {c, m.parameter({out}), variance, m.parameter({out}), m.parameter({out})});
    return m.call(OpId::relu, {b});
  };
  ValueId x = block(input, 1, 4);
  x = m.call(OpId::max_pool2d, {block(x, 4, 6)}, {list({2, 2})});
  x = m.call(OpId::add, {block(x, 6, 6), x});
  ValueId pooled = m.call(OpId::mean, {x}, {list({2, 3})});
  m.g.outputs = {m.linear(pooled, 6, 10)};
  LowerResult r = check_compiled(m.g, 1e-5, {}, {3});
  EXPECT_EQ(count_steps<Conv2dStep>(r.program), 3);
  for (const Step& s : r.program.steps)
    if (const auto* conv = std::get_if<Conv2dStep>(&s.work)) {
      EXPECT_FALSE(conv->epilogue.kernels.empty()) << "norm, activation and residual are part of it";
    }
}

}  // namespace
}  // namespace ingot::codegen
