// Graphs, views, reductions and composites of the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "ir/reference_helper.h"

namespace ingot::ir {
namespace {

using Reals = std::vector<double>;
using Wholes = std::vector<int64_t>;

ReferenceTensor counting(Ints shape) {
  ReferenceTensor t(DType::f32, std::move(shape));
  std::iota(t.real.begin(), t.real.end(), 0);
  return t;
}
Attr list(std::initializer_list<Dim> items) { return Attr::of(Dims(items)); }
Attr integer(int64_t i) { return Attr::of(i); }

TEST(ReferenceGraph, SymbolsTakeTheirValues) {
  Graph graph;
  Dim rows = graph.dims.symbol(2);
  ValueId x = graph.add_input(DType::f32, {rows, Dim(3)});
  ValueId count = graph.add(OpId::mul, {Operand::value(x), Operand::size(rows)});
  graph.outputs.push_back(graph.add(OpId::sum, {Operand::value(count)}, {list({Dim(1)})}));
  std::vector<int64_t> symbols = {4};
  ReferenceOptions options;
  options.symbols = symbols;
  ReferenceTensor in = counting({4, 3});
  EXPECT_EQ(interpret(graph, {&in, 1}, {}, options)[0].real, (Reals{12, 48, 84, 120}));
  ReferenceTensor hinted = counting({2, 3});
  EXPECT_EQ(interpret(graph, {&hinted, 1})[0].real, (Reals{6, 24}));
}

TEST(ReferenceGraph, ScalarsAreInWorkingPrecision) {
  Graph graph;
  ValueId x = graph.add_input(DType::f32, {Dim(1)});
  Operand scalar = Operand::scalar(graph.add_scalar(Category::floating), Category::floating);
  graph.outputs.push_back(graph.add(OpId::eq, {Operand::value(x), scalar}));
  ReferenceTensor in = real({1}, {0.1});
  ReferenceScalar tenth(0.1);
  EXPECT_EQ(interpret(graph, {&in, 1}, {&tenth, 1})[0].integer, (Wholes{1}));
}

TEST(ReferenceGraph, Views) {
  ReferenceTensor x = counting({2, 3});
  EXPECT_EQ(apply(OpId::permute, {x}, {}, {list({Dim(1), Dim(0)})}).real, (Reals{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(apply(OpId::select, {x}, {}, {integer(1), list({Dim(2)})}).real, (Reals{2, 5}));
  EXPECT_EQ(apply(OpId::slice, {x}, {}, {integer(1), list({Dim(0)}), list({Dim(3)}), integer(2)}).real,
            (Reals{0, 2, 3, 5}));
  EXPECT_EQ(apply(OpId::expand, {counting({2, 1})}, {}, {list({Dim(2), Dim(2)})}).real, (Reals{0, 0, 1, 1}));
  EXPECT_EQ(apply(OpId::diagonal, {x}, {}, {integer(1)}).real, (Reals{1, 5}));
  EXPECT_EQ(apply(OpId::unfold, {counting({4})}, {}, {integer(0), list({Dim(2)}), integer(1)}).real,
            (Reals{0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(apply(OpId::as_strided_scatter, {counting({4}), real({2}, {7, 8})}, {},
                  {list({Dim(2)}), list({Dim(2)}), list({Dim(1)})})
                .real,
            (Reals{0, 7, 2, 8}));
}

TEST(ReferenceGraph, Reductions) {
  ReferenceTensor x = real({2, 3}, {3, 1, 3, std::nan(""), 5, 2});
  EXPECT_EQ(apply(OpId::argmax, {x}, {}, {integer(1)}).integer, (Wholes{0, 0}));  // the first of equals; NaN
  EXPECT_EQ(apply(OpId::argmin, {x}, {}, {integer(1)}).integer, (Wholes{1, 0}));
  EXPECT_TRUE(std::isnan(apply(OpId::amax, {x}).real[0]));
  EXPECT_EQ(apply(OpId::sum, {whole({3}, {1, 1, 1}, DType::bool_)}).integer, (Wholes{3}));
  EXPECT_EQ(apply(OpId::sum, {real({2}, {1.7, 1.7})}, {}, {Attr(), Attr(), Attr::of(DType::i64)}).integer, (Wholes{2}));
  EXPECT_EQ(apply(OpId::sum, {ReferenceTensor(DType::f32, {0})}).real, (Reals{0}));
  EXPECT_EQ(apply(OpId::var, {real({4}, {1, 2, 3, 4})}, {}, {Attr(), Attr::number(0)}).real, (Reals{1.25}));
  EXPECT_EQ(apply(OpId::cumsum, {counting({2, 3})}, {}, {integer(1)}).real, (Reals{0, 1, 3, 3, 7, 12}));
  // In double the cancelled digits are still there.
  EXPECT_EQ(apply(OpId::sum, {real({3}, {1e8, 1, -1e8})}).real, (Reals{1}));
}

TEST(ReferenceGraph, BothOutputsOfMax) {
  Graph graph;
  ReferenceTensor x = real({2, 2}, {1, 4, 6, 6});
  ValueId first = graph.add(OpId::max, {Operand::value(graph.add_input(DType::f32, {2, 2}))}, {integer(1)});
  graph.outputs = {first, first + 1};
  std::vector<ReferenceTensor> out = interpret(graph, {&x, 1});
  EXPECT_EQ(out[0].real, (Reals{4, 6}));
  EXPECT_EQ(out[1].integer, (Wholes{1, 0}));
}

TEST(ReferenceGraph, Indexing) {
  ReferenceTensor x = counting({3, 2});
  EXPECT_EQ(apply(OpId::index_select, {x, whole({2}, {2, 0})}, {}, {integer(0)}).real, (Reals{4, 5, 0, 1}));
  EXPECT_EQ(apply(OpId::gather, {x, whole({1, 2}, {2, 1})}, {}, {integer(0)}).real, (Reals{4, 3}));
  EXPECT_EQ(apply(OpId::embedding, {x, whole({2}, {1, 1})}).real, (Reals{2, 3, 2, 3}));
  EXPECT_THROW(apply(OpId::embedding, {x, whole({1}, {3})}), Error);
  EXPECT_THROW(apply(OpId::index_select, {x, whole({1}, {-1})}, {}, {integer(0)}), Error);
  EXPECT_EQ(apply(OpId::index_copy, {real({}, {7}), whole({2}, {0, 0}), real({2}, {1, 2})}, {}, {integer(0)}).real,
            (Reals{2}));
  EXPECT_EQ(apply(OpId::cat, {x, counting({1, 2})}, {}, {integer(0)}).real, (Reals{0, 1, 2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(apply(OpId::constant_pad_nd, {counting({2})}, {Operand::constant(9.0)}, {list({Dim(1), Dim(2)})}).real,
            (Reals{9, 0, 1, 9, 9}));
}

TEST(ReferenceGraph, Products) {
  ReferenceTensor a = real({2, 2}, {1, 2, 3, 4}), v = real({2}, {1, 10});
  EXPECT_EQ(apply(OpId::matmul, {a, a}).real, (Reals{7, 10, 15, 22}));
  EXPECT_EQ(apply(OpId::matmul, {a, v}).real, (Reals{21, 43}));
  EXPECT_EQ(apply(OpId::matmul, {v, a}).real, (Reals{31, 42}));
  EXPECT_EQ(apply(OpId::linear, {v, a, real({2}, {100, 200})}).real, (Reals{121, 243}));
  EXPECT_EQ(apply(OpId::linear, {a, a, real({2, 1}, {100, 200})}).real, (Reals{105, 111, 211, 225}));
  ReferenceTensor batch = real({2, 1, 2}, {1, 0, 0, 1});
  EXPECT_EQ(apply(OpId::matmul, {batch, a}).real, (Reals{1, 2, 3, 4}));
  // beta 0: what stands in self does not count, not even NaN.
  ReferenceTensor nothing = real({2, 2}, Reals(4, std::nan("")));
  EXPECT_EQ(apply(OpId::addmm, {nothing, a, a}, {Operand::constant(int64_t{0})}).real, (Reals{7, 10, 15, 22}));
}

TEST(ReferenceGraph, ConvolutionAndPooling) {
  ReferenceTensor x = counting({1, 1, 3, 3}), weight = real({1, 1, 2, 2}, {1, 0, 0, 10});
  EXPECT_EQ(apply(OpId::conv2d, {x, weight}).real, (Reals{40, 51, 73, 84}));
  EXPECT_EQ(apply(OpId::conv2d, {x, weight}, {Operand::none()}, {list({Dim(2)}), list({Dim(1)})}).real,
            (Reals{0, 20, 60, 84}));
  EXPECT_EQ(apply(OpId::max_pool2d, {x}, {}, {list({Dim(2)}), list({Dim(1)})}).real, (Reals{4, 5, 7, 8}));
  EXPECT_EQ(apply(OpId::avg_pool2d, {x}, {}, {list({Dim(2)}), list({Dim(2)}), list({Dim(1)})}).real,
            (Reals{0, 0.75, 2.25, 6}));
  EXPECT_EQ(apply(OpId::adaptive_avg_pool2d, {x}, {}, {list({Dim(2), Dim(1)})}).real, (Reals{2.5, 5.5}));
}

TEST(ReferenceGraph, SoftmaxSumsToOneAndIgnoresShifts) {
  ReferenceTensor x = real({2, 3}, {1, 2, 3, 1001, 1002, 1003}, DType::f64);
  ReferenceTensor y = apply(OpId::softmax, {x}, {}, {integer(1)});
  EXPECT_NEAR(y.real[0] + y.real[1] + y.real[2], 1, 1e-15);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(y.real[i], y.real[i + 3], 1e-15);
  EXPECT_NEAR(y.real[2] / y.real[1], std::exp(1.0), 1e-14);
  ReferenceTensor log = apply(OpId::log_softmax, {x}, {}, {integer(1)});
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(log.real[i], std::log(y.real[i]), 1e-13);
}

TEST(ReferenceGraph, NormsHaveMeanZeroAndVarianceOne) {
  ReferenceTensor x = real({2, 4}, {1, 2, 3, 10, -5, 0, 5, 100}, DType::f64);
  ReferenceTensor y =
      apply(OpId::layer_norm, {x}, {Operand::none(), Operand::none(), Operand::constant(0.0)}, {list({Dim(4)})});
  for (int row = 0; row < 2; ++row) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 4; ++i) {
      sum += y.real[row * 4 + i];
      squares += y.real[row * 4 + i] * y.real[row * 4 + i];
    }
    EXPECT_NEAR(sum, 0, 1e-14);
    EXPECT_NEAR(squares, 4, 1e-13);
  }
  ReferenceTensor r = apply(OpId::rms_norm, {real({1, 2}, {3, 4}, DType::f64)},
                            {Operand::none(), Operand::constant(0.0)}, {list({Dim(2)})});
  EXPECT_NEAR(r.real[0], 3 / std::sqrt(12.5), 1e-15);
}

TEST(ReferenceGraph, Attention) {
  ReferenceTensor query = real({1, 2, 2}, {0, 0, 0, 0}), key = counting({1, 2, 2}), value = real({1, 2, 1}, {2, 6});
  // A zero query looks at all keys alike; causally, the first row sees the first value only.
  EXPECT_EQ(apply(OpId::scaled_dot_product_attention, {query, key, value}).real, (Reals{4, 4}));
  EXPECT_EQ(apply(OpId::scaled_dot_product_attention, {query, key, value}, {}, {Attr::number(0), Attr::of(true)}).real,
            (Reals{2, 4}));
  ReferenceTensor mask = whole({2, 2}, {0, 1, 0, 0}, DType::bool_);
  EXPECT_EQ(apply(OpId::scaled_dot_product_attention, {query, key, value, mask}).real, (Reals{6, 0}));
}

TEST(ReferenceGraph, Losses) {
  ReferenceTensor flat(DType::f64, {2, 5});
  ReferenceTensor target = whole({2}, {1, 4});
  EXPECT_NEAR(apply(OpId::cross_entropy, {flat, target}).real[0], std::log(5.0), 1e-15);
  ReferenceTensor ignored = whole({2}, {1, -100});
  EXPECT_NEAR(apply(OpId::cross_entropy, {flat, ignored}).real[0], std::log(5.0), 1e-15);
  EXPECT_THROW(apply(OpId::cross_entropy, {flat, whole({2}, {1, 5})}), Error);
  EXPECT_EQ(apply(OpId::mse_loss, {real({2}, {1, 3}), real({2}, {0, 0})}).real, (Reals{5}));
  ReferenceTensor infinite =
      apply(OpId::binary_cross_entropy_with_logits, {real({3}, {INFINITY, INFINITY, -INFINITY}), real({3}, {1, 0, 1})},
            {Operand::none(), Operand::none()}, {Attr::mode(0)});
  EXPECT_TRUE(std::isnan(infinite.real[0]));
  EXPECT_EQ(infinite.real[1], INFINITY);
  EXPECT_TRUE(std::isnan(infinite.real[2]));
}

}  // namespace
}  // namespace ingot::ir
