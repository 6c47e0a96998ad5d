#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "runtime/hand_kernels.h"

namespace ingot::runtime {
namespace {

using namespace testing_kernels;

enum class Mask { none, boolean, additive };

struct Attention {
  int64_t batch, heads, key_heads, queries, keys, depth, value_depth;
  bool causal = false;
  Mask mask = Mask::none;
  bool scaled = false;

  // Softmax in place, row by row; a row without a visible key becomes zeros.
  KernelPtr softmax() const {
    Mask kind = mask;
    return loop_kernel([kind](const KernelFrame& f) {
      for (int64_t r = 0; r < f.rows; ++r) {
        float* e = reinterpret_cast<float*>(f.scratch);
        float top = -std::numeric_limits<float>::infinity(), sum = 0;
        for (int64_t c = 0; c < f.columns; ++c) {
          e[c] = element<float>(f, 0, r, c) * scalar_f32(f, 0);
          if (kind == Mask::additive) e[c] += element<float>(f, 2, r, c);
          if (kind == Mask::boolean && !element<uint8_t>(f, 2, r, c)) e[c] = -std::numeric_limits<float>::infinity();
          top = std::max(top, e[c]);
        }
        for (int64_t c = 0; c < f.columns; ++c) sum += e[c] = std::isinf(top) ? 0.0f : std::exp(e[c] - top);
        for (int64_t c = 0; c < f.columns; ++c) element<float>(f, 1, r, c) = sum > 0 ? e[c] / sum : 0.0f;
      }
    });
  }

  std::shared_ptr<Program> program() const {
    auto p = std::make_shared<Program>();
    p->inputs = 4, p->outputs = 1;
    p->buffers = {input(0), input(1), input(2), input(3), output(0)};
    AttentionStep step;
    auto strides = [](int64_t h, int64_t rows, int64_t columns) {  // [batch, rows, heads, columns] in memory
      return Dims{h * rows * columns * 4, columns * 4, h * columns * 4, 4};
    };
    AttentionProbabilities& probabilities = step.probabilities;
    probabilities.batch = batch, probabilities.heads = heads, probabilities.key_heads = key_heads,
    probabilities.queries = queries, probabilities.keys = keys;
    probabilities.depth = depth, step.value_depth = value_depth;
    step.out = {4, 0, strides(heads, queries, value_depth), 0};
    probabilities.query = {0, 0, strides(heads, queries, depth), 0, true};
    probabilities.key = {1, 0, strides(key_heads, keys, depth), 0, true};
    step.value = {2, 0, strides(key_heads, keys, value_depth), 0, true};
    const int64_t cell = mask == Mask::boolean ? 1 : 4;
    if (mask != Mask::none)  // the same for all heads
      probabilities.mask = Argument{3, 0, {queries * keys * cell, 0, keys * cell, cell}, 0, true};
    probabilities.causal = causal;
    if (scaled) {
      p->scalars = {Category::floating};
      probabilities.scale = ScalarSource{ScalarSource::Kind::call, 0, 0, DType::f32};
    }
    probabilities.products = step.products = std::make_shared<const ProductKernels>(product_kernels());
    probabilities.softmax = softmax();
    probabilities.local_bytes = 4;
    p->steps = {costly_step("attention", std::move(step))};
    return p;
  }
};

void check(const Attention& a) {
  std::vector<float> q = random_floats(a.batch * a.heads * a.queries * a.depth, 1);
  std::vector<float> k = random_floats(a.batch * a.key_heads * a.keys * a.depth, 2);
  std::vector<float> v = random_floats(a.batch * a.key_heads * a.keys * a.value_depth, 3);
  std::vector<float> add = random_floats(a.batch * a.queries * a.keys, 4);
  std::vector<uint8_t> seen(add.size());
  for (size_t i = 0; i < add.size(); ++i) seen[i] = add[i] > -0.5f;
  void* mask = a.mask == Mask::boolean ? static_cast<void*>(seen.data()) : add.data();
  std::vector<uint64_t> scalars;
  if (a.scaled) scalars = {std::bit_cast<uint64_t>(0.3)};
  std::vector<float> first;
  for (int threads : kThreadCounts) {
    Threads scope(threads);
    LoadedProgram program(a.program());
    std::vector<float> out(a.batch * a.heads * a.queries * a.value_depth, 7);
    run(program, {}, {q.data(), k.data(), v.data(), mask}, {out.data()}, scalars);
    if (threads == 1) first = out;
    ASSERT_EQ(out, first) << "threads " << threads;
  }
  const double scale = a.scaled ? 0.3 : 1 / std::sqrt(static_cast<double>(a.depth));
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t t = 0; t < a.queries; ++t) {
        const int64_t kh = h / (a.heads / a.key_heads);
        std::vector<double> p(a.keys);
        double top = -INFINITY, sum = 0;
        for (int64_t s = 0; s < a.keys; ++s) {
          for (int64_t d = 0; d < a.depth; ++d)
            p[s] += static_cast<double>(q[((b * a.queries + t) * a.heads + h) * a.depth + d]) *
                    k[((b * a.keys + s) * a.key_heads + kh) * a.depth + d];
          p[s] *= scale;
          const size_t cell = (b * a.queries + t) * a.keys + s;
          if (a.mask == Mask::additive) p[s] += add[cell];
          if ((a.mask == Mask::boolean && !seen[cell]) || (a.causal && s > t)) p[s] = -INFINITY;
          top = std::max(top, p[s]);
        }
        for (double& x : p) sum += x = std::isinf(top) ? 0 : std::exp(x - top);
        for (int64_t d = 0; d < a.value_depth; ++d) {
          double expected = 0;
          for (int64_t s = 0; s < a.keys; ++s)
            expected += sum > 0 ? p[s] / sum * v[((b * a.keys + s) * a.key_heads + kh) * a.value_depth + d] : 0;
          ASSERT_NEAR(first[((b * a.queries + t) * a.heads + h) * a.value_depth + d], expected, 1e-5);
        }
      }
}

TEST(Attention, AgreesWithTheDefinitionOnAnyThreads) {
  check({2, 3, 3, 20, 20, 8, 8});
  check({1, 4, 4, 70, 40, 16, 20});
  check({1, 4, 2, 33, 65, 5, 3});
  check({1, 2, 1, 3, 1100, 4, 33});
  check({1, 1, 1, 5, 7, 600, 4});
}

TEST(Attention, Causal) {
  check({2, 2, 2, 50, 50, 8, 8, true});
  check({1, 2, 1, 40, 17, 8, 8, true});
  check({1, 2, 1, 17, 600, 8, 8, true});
  check({1, 3, 3, 1, 9, 8, 8, true});
  check({1, 1, 1, 600, 600, 4, 4, true});
}

TEST(Attention, MasksAndScale) {
  for (Mask mask : {Mask::boolean, Mask::additive})
    for (bool causal : {false, true}) {
      check({2, 2, 1, 20, 33, 8, 8, causal, mask, true});
      check({2, 4, 2, 1, 33, 8, 8, causal, mask});
      check({1, 1, 1, 3, 1, 8, 8, causal, mask});
    }
}

TEST(Attention, OneQueryAGroupOfHeads) {
  check({3, 8, 2, 1, 100, 16, 16});
  check({1, 8, 8, 1, 5, 16, 16});
}

}  // namespace
}  // namespace ingot::runtime
