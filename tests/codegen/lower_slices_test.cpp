// Batches computed a slice at a time: which programs may be, that the others are not, and the same bits.
#include <gtest/gtest.h>

#include <functional>

#include "codegen/lower_support.h"
#include "ir/passes/pipeline.h"
#include "runtime/cpu.h"

namespace ingot::codegen {
namespace {

using namespace test;

using Build = std::function<void(Graph&, Dim batch)>;

/// A row-major value with these sizes, as an op of its own.
ValueId relu(Graph& g, ValueId x) { return g.add(OpId::relu, {val(x)}); }
/// Something that a group of its own computes, so that steps follow each other.
ValueId normalized(Graph& g, ValueId x, int64_t d) { return g.add(OpId::softmax, {val(x)}, {dim(d)}); }
ValueId weight(Graph& g, Dims shape) {
  const ValueId w = g.add_input(DType::f32, std::move(shape));
  g.inputs.back().constant = true;
  return w;
}
ValueId convolution(Graph& g, ValueId x, ValueId w, int64_t padding) {
  return g.add(OpId::conv2d, {val(x), val(w), Operand::none()},
               {ints({1}), ints({padding}), ints({1}), Attr::of(int64_t{1})});
}
/// How many the only segment has; 1 where there is none.
int64_t slices(const LowerResult& r) {
  EXPECT_LE(r.program.segments.size(), 1u);
  return r.program.segments.empty() ? 1 : r.program.dims.hint(r.program.segments[0].slices);
}

size_t steps_in_slices(const LowerResult& r) {
  size_t steps = 0;
  for (const Program::Segment& s : r.program.segments) steps += s.end_step - s.first_step;
  return steps;
}

/// The graph in slices of that size: against the reference, and with the bits of the whole.
LowerResult sliced(const Build& build, Dim batch_size, int64_t slice, bool symbolic = false) {
  Graph g;
  std::vector<int64_t> symbols;
  Dim batch = batch_size;
  if (symbolic) batch = g.dims.symbol(batch_size.code), symbols = {batch_size.code};
  build(g, batch);
  LowerOptions options, whole;
  options.slice_size = slice;
  const LowerResult r = check_compiled(g, 1e-5, options, symbols);
  Graph lowered = g;
  ir::run_pipeline(lowered);
  std::vector<std::vector<int64_t>> tried{symbols};
  if (symbolic) tried.insert(tried.end(), {{0}, {1}, {batch_size.code + 3}});
  for (const auto& values : tried)
    for (const Target& target : {Target{}, runtime::detected_target()}) {
      std::vector<ir::ReferenceTensor> inputs;
      for (size_t i = 0; i < g.inputs.size(); ++i)
        inputs.push_back(random_tensor(lowered, lowered.inputs[i].value, static_cast<uint32_t>(i + 5), 3, values));
      const auto a = run_program(lowered, lower(lowered, target, options).program, inputs, {}, values),
                 b = run_program(lowered, lower(lowered, target, whole).program, inputs, {}, values);
      for (size_t o = 0; o < a.size(); ++o)
        for (int64_t i = 0; i < a[o].size(); ++i) EXPECT_EQ(a[o].at(i), b[o].at(i)) << "output " << o << ", " << i;
    }
  return r;
}

const std::pair<const char*, Build> kApart[] = {
    {"rows",
     [](Graph& g, Dim n) {
       const ValueId x = g.add_input(DType::f32, {n, 5, 7});
       g.outputs = {normalized(g, relu(g, normalized(g, x, 2)), 1)};
     }},
    {"two results, and an input that lies otherwise",
     [](Graph& g, Dim n) {
       const ValueId x = g.add_input(DType::f32, {n, 5, 7}, {70, 1, 5});
       const ValueId y = normalized(g, x, 2);
       g.outputs = {y, g.add(OpId::sum, {val(normalized(g, y, 1))}, {ints({1, 2})})};
     }},
    {"layers",
     [](Graph& g, Dim n) {
       const ValueId x = g.add_input(DType::f32, {n, 5}), w = weight(g, {9, 5}), b = weight(g, {9}),
                     v = weight(g, {4, 9});
       const ValueId y = g.add(OpId::gelu, {val(g.add(OpId::linear, {val(x), val(w), val(b)}))});
       g.outputs = {normalized(g, g.add(OpId::linear, {val(normalized(g, y, 1)), val(v)}), 1)};
     }},
    {"convolutions with a residual, pooling and a layer",
     [](Graph& g, Dim n) {
       const ValueId x = g.add_input(DType::f32, {n, 3, 9, 8}), w = weight(g, {6, 3, 3, 3}),
                     u = weight(g, {6, 6, 3, 3}), v = weight(g, {4, 6});
       const ValueId y = relu(g, convolution(g, x, w, 1));
       const ValueId z = relu(g, g.add(OpId::add, {val(convolution(g, y, u, 1)), val(y)}));
       const ValueId p = g.add(OpId::max_pool2d, {val(z)}, {ints({3}), ints({2}), ints({1})});
       g.outputs = {g.add(OpId::linear, {val(g.add(OpId::mean, {val(p)}, {ints({2, 3})})), val(v)})};
     }},
    {"attention",
     [](Graph& g, Dim n) {
       const ValueId x = g.add_input(DType::f32, {n, 6, 8}), w = weight(g, {24, 8});
       const ValueId parts = g.add(OpId::linear, {val(x), val(w)});
       std::vector<Operand> qkv;
       for (int64_t i = 0; i < 3; ++i) {
         const ValueId part = g.add(OpId::slice, {val(parts)}, {dim(2), ints({8 * i}), ints({8 * i + 8})});
         const ValueId heads = g.add(OpId::view, {val(part)}, {ints({n, 6, 2, 4})});
         qkv.push_back(val(g.add(OpId::permute, {val(heads)}, {ints({0, 2, 1, 3})})));
       }
       g.outputs = {relu(g, g.add(OpId::scaled_dot_product_attention, qkv))};
     }},
    {"a first row from a weight",
     [](Graph& g, Dim n) {
       const ValueId x = g.add_input(DType::f32, {n, 4, 6}), first = weight(g, {1, 1, 6});
       const ValueId all = g.add(OpId::expand, {val(first)}, {ints({n, 1, 6})});
       g.outputs = {
           normalized(g, normalized(g, g.add(OpId::cat, {val(all), val(normalized(g, x, 2))}, {dim(1)}), 2), 1)};
     }},
    {"tokens and their positions",
     [](Graph& g, Dim n) {
       const ValueId tokens = g.add_input(DType::i64, {n, 6}), table = weight(g, {9, 8}), places = weight(g, {6, 8});
       const ValueId at = g.add(OpId::arange, {Operand::constant(int64_t{0}), Operand::constant(int64_t{1})},
                                {ints({6}), Attr::of(DType::i64)});
       const ValueId x = g.add(OpId::add, {val(g.add(OpId::embedding, {val(table), val(tokens)})),
                                           val(g.add(OpId::embedding, {val(places), val(at)}))});
       g.outputs = {normalized(g, g.add(OpId::tril, {val(normalized(g, x, 2))}), 1)};
     }},
    {"sums over the middle",
     [](Graph& g, Dim n) {
       const ValueId x = g.add_input(DType::f32, {n, 40, 70});
       g.outputs = {normalized(g, g.add(OpId::sum, {val(normalized(g, x, 2))}, {ints({1})}), 1)};
     }},
};

TEST(LowerSlices, PartsThatDoNotMeetAreComputedOneAfterAnother) {
  for (const auto& [name, build] : kApart) {
    SCOPED_TRACE(name);
    const LowerResult r = sliced(build, 6, 1);
    EXPECT_EQ(slices(r), 6);
    EXPECT_EQ(steps_in_slices(r), r.program.steps.size());
    EXPECT_EQ(slices(sliced(build, 6, 2)), 3);
    EXPECT_EQ(slices(sliced(build, 6, 4)), 1);  // does not divide it
    EXPECT_EQ(slices(sliced(build, 6, 1, true)), 6);
  }
}

TEST(LowerSlices, PartsThatMeetAreNot) {
  auto with_rows = [](const std::function<ValueId(Graph&, ValueId)>& meet) {
    return [meet](Graph& g, Dim n) {
      const ValueId x = normalized(g, g.add_input(DType::f32, {n, 6}), 1);
      g.outputs = {normalized(g, meet(g, x), 1)};
    };
  };
  const std::pair<const char*, Build> meeting[] = {
      {"a sum over them", with_rows([](Graph& g, ValueId x) {
         return g.add(OpId::sub, {val(x), val(g.add(OpId::sum, {val(x)}, {ints({0})}))});
       })},
      {"a softmax over them", with_rows([](Graph& g, ValueId x) { return normalized(g, x, 0); })},
      {"a sum of all", with_rows([](Graph& g, ValueId x) {
         return g.add(OpId::mul, {val(x), val(g.add(OpId::amax, {val(x)}, {ints({0, 1})}))});
       })},
      {"a running sum", with_rows([](Graph& g, ValueId x) { return g.add(OpId::cumsum, {val(x)}, {dim(0)}); })},
      {"a host op of each", with_rows([](Graph& g, ValueId x) { return g.add(OpId::cumsum, {val(x)}, {dim(1)}); })},
      {"the other way round", with_rows([](Graph& g, ValueId x) { return g.add(OpId::flip, {val(x)}, {ints({0})}); })},
      {"turned in a circle", with_rows([](Graph& g, ValueId x) {
         return g.add(OpId::roll, {val(x)}, {ints({1}), ints({0})});
       })},
      {"transposed", with_rows([](Graph& g, ValueId x) {
         return g.add(OpId::permute, {val(x)}, {ints({1, 0})});
       })},
      {"some of them", with_rows([](Graph& g, ValueId x) {
         const ValueId first = g.add(OpId::slice, {val(x)}, {dim(0), ints({0}), ints({1})});
         return g.add(OpId::add, {val(x), val(first)});
       })},
      {"all products of two", with_rows([](Graph& g, ValueId x) {
         const ValueId t = g.add(OpId::permute, {val(x)}, {ints({1, 0})});
         return g.add(OpId::matmul, {val(g.add(OpId::matmul, {val(x), val(t)})), val(x)});
       })},
      {"their numbers", with_rows([](Graph& g, ValueId x) { return g.add(OpId::tril, {val(x)}); })},
      {"chosen among them",
       [](Graph& g, Dim n) {
         const ValueId x = normalized(g, g.add_input(DType::f32, {n, 6}), 1), i = g.add_input(DType::i64, {n});
         g.outputs = {normalized(g, g.add(OpId::index_select, {val(x), val(i)}, {dim(0)}), 1)};
       }},
      {"one behind another",
       [](Graph& g, Dim n) {
         const ValueId x = normalized(g, g.add_input(DType::f32, {n, 6}), 1);
         g.outputs = {normalized(g, g.add(OpId::cat, {val(x), val(relu(g, x))}, {dim(0)}), 1)};
       }},
      {"in the middle of a result",
       [](Graph& g, Dim n) {
         const ValueId x = normalized(g, g.add_input(DType::f32, {n, 3, 4}), 1);
         g.outputs = {normalized(g, g.add(OpId::permute, {val(x)}, {ints({1, 0, 2})}), 2)};
       }},
      {"a result without them",
       [](Graph& g, Dim n) {
         const ValueId x = g.add_input(DType::f32, {n, 6}), w = weight(g, {6, 6});
         g.outputs = {normalized(g, normalized(g, x, 1), 1), normalized(g, w, 0)};
       }},
      {"a weight of as many rows, that is none",
       [](Graph& g, Dim n) {
         const ValueId x = g.add_input(DType::f32, {n, 6}), w = g.add_input(DType::f32, {6, 6});
         g.outputs = {normalized(g, g.add(OpId::matmul, {val(normalized(g, x, 1)), val(w)}), 1)};
       }},
  };
  for (const auto& [name, build] : meeting) {
    SCOPED_TRACE(name);
    const LowerResult r = sliced(build, 6, 1);
    EXPECT_LT(steps_in_slices(r), r.program.steps.size());
    sliced(build, 6, 2);
  }
}

// What is computed a slice at a time: where intermediate results are beyond the caches, and weights are not.
TEST(LowerSlices, ChosenByWhatMemoryMoves) {
  auto model = [](int64_t width, int64_t weights) {
    return [=](Graph& g, Dim n) {
      ValueId x = g.add_input(DType::f32, {n, width});
      x = g.add(OpId::matmul, {val(x), val(weight(g, {width, weights}))});
      x = g.add(OpId::layer_norm, {val(x)}, {ints({weights})});
      x = g.add(OpId::matmul, {val(x), val(weight(g, {weights, width}))});
      g.outputs = {normalized(g, x, 1)};
    };
  };
  auto number = [](const Build& build, Dim batch, int64_t cache_bytes, int64_t least) {
    Graph g;
    build(g, batch);
    ir::run_pipeline(g);
    LowerOptions options;
    options.cache_bytes = cache_bytes, options.least_slice = least;
    return slices(lower(g, Target{}, options));
  };
  EXPECT_EQ(number(model(64, 64), 64, 0, 1), 1);
  EXPECT_EQ(number(model(64, 64), 64, 1 << 20, 1), 1);    // all of it fits
  EXPECT_GT(number(model(64, 64), 4096, 1 << 18, 1), 2);  // nothing but the weights fits
  EXPECT_EQ(number(model(64, 64), 4096, 1 << 19, 2048), 2);
  EXPECT_LT(number(model(64, 64), 4096, 1 << 18, 1), 100);  // short steps cost, too
  EXPECT_EQ(number(model(1024, 1024), 8, 1 << 15, 1), 1);   // the weights would be read again
  Graph g;
  const ValueId x = g.add_input(DType::f32, {g.dims.symbol(8), 512, 128});
  g.outputs = {normalized(g, normalized(g, normalized(g, x, 2), 1), 2)};
  ir::run_pipeline(g);
  LowerOptions options;
  options.cache_bytes = 1 << 20;
  EXPECT_EQ(slices(lower(g, Target{}, options)), 8);  // of a size that is not known, one at a time
}

}  // namespace
}  // namespace ingot::codegen
