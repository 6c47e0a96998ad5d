// One packed copy of a weight, whatever the functions and sizes that read it; it comes again after every change of the
// weight, and explain() says of each what became of it.
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

CacheFigures packed() {
  for (const CacheFigures& c : cache_figures())
    if (c.name == "packed weights") return c;
  ADD_FAILURE() << "no figures of packed weights";
  return {};
}

struct ResidualImpl : nn::Module {
  nn::Conv2d one{8, 8, 3, nn::ConvOptions{.padding = 1}}, two{8, 8, 3, nn::ConvOptions{.padding = 1}};
  Tensor forward(const Tensor& x) const { return relu(two(relu(one(x))) + x); }
};
INGOT_MODULE(Residual, one, two);

struct SmallNetImpl : nn::Module {
  nn::Conv2d stem{3, 8, 3};
  std::vector<Residual> blocks = std::vector<Residual>(2);
  nn::Linear head{8, 300};
  Tensor forward(const Tensor& x) const {
    Tensor y = relu(stem(x));
    for (const Residual& block : blocks) y = block(y);
    return head(y.mean({2, 3}));
  }
};
INGOT_MODULE(SmallNet, stem, blocks, head);

class PackedWeights : public ::testing::Test {
 protected:
  const NoGradGuard no_grad_;
  PackedWeights() { clear_caches(); }
};

// Few rows take panels side by side while there are full ones, from both ends in turns: of any number of columns, with
// and without what follows, they are what eager computes from the weight as it lies.
TEST_F(PackedWeights, OfFewRowsAndAnyNumberOfColumns) {
  for (DType dtype : {kFloat32, kFloat64})
    for (int64_t k : {1, 40, 256, 300, 520})
      for (int64_t n : {1, 15, 16, 31, 32, 33, 48, 63, 64, 65, 80, 96, 111, 112, 128, 143, 192, 200, 256, 257})
        for (int64_t m : {1, 2, 3}) {
          const Tensor w = randn({k, n}, dtype), bias = randn({n}, dtype), x = randn({m, k}, dtype);
          auto plain = compile([&](const Tensor& in) { return matmul(in, w); });
          auto followed = compile([&](const Tensor& in) { return relu(matmul(in, w) + bias) * 2; });
          const Tensor expected = matmul(x, w), expected_followed = relu(expected + bias) * 2;
          for (int call = 0; call < 3; ++call) {
            ASSERT_TRUE(same_bits(plain(x), expected)) << k << " " << n << " " << m;
            ASSERT_TRUE(same_bits(followed(x), expected_followed)) << k << " " << n << " " << m;
          }
        }
}

// Many rows and a long k: a block of rows goes through all panels of a group in one stretch of k before the next, from
// both ends in turns. Whether it does, how many rows there are and on how many threads does not show.
TEST_F(PackedWeights, OfManyRowsAndALongK) {
  const int threads = num_threads();
  for (DType dtype : {kFloat32, kFloat64, kBFloat16})
    for (int64_t k : {1100, 2100, 2561})
      for (int64_t n : {40, 300, 1000}) {
        const Tensor w = (randn({k, n}) * 0.1).to(dtype), bias = randn({n}).to(dtype), x = randn({200, k}).to(dtype);
        auto plain = compile([&](const Tensor& in) { return matmul(in, w); });
        auto followed = compile([&](const Tensor& in) { return relu(matmul(in, w) + bias) * 2; });
        const Tensor expected = matmul(x, w), expected_followed = relu(expected + bias) * 2;
        for (int call = 0; call < 4; ++call) {
          set_num_threads(call % 2 ? 1 : threads);
          ASSERT_TRUE(same_bits(plain(x), expected)) << k << " " << n;
          ASSERT_TRUE(same_bits(followed(x), expected_followed)) << k << " " << n;
          ASSERT_TRUE(same_bits(plain(x.slice(0, 30, 47)), expected.slice(0, 30, 47))) << k << " " << n;
          ASSERT_TRUE(same_bits(followed(x.slice(0, 3, 140)), expected_followed.slice(0, 3, 140))) << k << " " << n;
        }
        set_num_threads(threads);
      }
}

TEST_F(PackedWeights, AreOneCopyForSeveralFunctionsAndSizes) {
  SmallNet model;
  auto first = compile(model);
  Tensor x = randn({2, 3, 16, 16});
  for (int call = 0; call < 2; ++call) ASSERT_TRUE(same_bits(first(x), model(x)));
  const CacheFigures one = packed();
  EXPECT_GT(one.bytes, 0);
  auto second = compile(model, {.mode = CompileMode::frozen});
  auto third = compile([&](const Tensor& in) { return softmax(model(in), -1); });
  for (int round = 0; round < 3; ++round)
    for (int64_t size : {16, 20})
      for (int64_t batch : {2, 5}) {
        Tensor in = randn({batch, 3, size, size});
        ASSERT_TRUE(same_bits(first(in), model(in)));
        ASSERT_TRUE(same_bits(second(in), model(in)));
        ASSERT_TRUE(same_bits(third(in), softmax(model(in), -1)));
      }
  EXPECT_EQ(packed().bytes, one.bytes);
  EXPECT_EQ(packed().entries, one.entries);
}

TEST_F(PackedWeights, ComeAgainHoweverOftenAStateIsLoaded) {
  for (int calls_between : {1, 2, 3}) {
    clear_caches();
    SmallNet model;
    auto fast = compile(model);
    Tensor x = randn({2, 3, 16, 16});
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same_bits(fast(x), model(x)));
    const int64_t bytes = packed().bytes;
    for (int load = 0; load < 3; ++load) {
      model->load_state_dict(SmallNet()->state_dict());
      for (int call = 0; call < calls_between; ++call) ASSERT_TRUE(same_bits(fast(x), model(x)));
    }
    for (int call = 0; call < 2; ++call) ASSERT_TRUE(same_bits(fast(x), model(x)));
    EXPECT_EQ(packed().bytes, bytes) << calls_between;
    for (const auto& program : fast.explain().programs)
      for (const auto& step : program.steps)
        EXPECT_TRUE(step.weight.empty() || step.weight.starts_with("packed, ")) << step.name << ": " << step.weight;
  }
}

TEST_F(PackedWeights, ExplainSaysWhatBecameOfThem) {
  Tensor x = randn({8, 64}), weight = randn({300, 64});
  auto fates = [](const auto& fast) {
    std::string text;
    for (const auto& program : fast.explain().programs)
      for (const auto& step : program.steps)
        if (!step.weight.empty()) text += step.weight + "\n";
    return text;
  };
  {
    auto fast = compile([&](const Tensor& in) { return linear(in, weight); });
    for (int call = 0; call < 2; ++call) (void)fast(x);
    EXPECT_EQ(fates(fast), "packed, 76 KB\n");
    EXPECT_NE(fast.explain().str().find("1 x  packed, 76 KB"), std::string::npos) << fast.explain().str();
  }
  {
    std::vector<float> memory(300 * 64, 0.5f);
    Tensor blob = from_blob(memory.data(), {300, 64});
    auto fast = compile([&](const Tensor& in) { return linear(in, blob); });
    (void)fast(x);
    EXPECT_EQ(fates(fast), "not packed: its owner may write to it unseen (from_blob)\n");
  }
  {
    Tensor moving = randn({300, 64});
    auto fast = compile([&](const Tensor& in) { return linear(in, moving); });
    for (int call = 0; call < 5; ++call) {
      moving = randn({300, 64});
      ASSERT_TRUE(same_bits(fast(x), linear(x, moving)));
    }
    EXPECT_EQ(fates(fast), "not packed: it was written or replaced each time it was met\n");
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same_bits(fast(x), linear(x, moving)));
    EXPECT_EQ(fates(fast), "packed, 76 KB\n");
  }
}

// Its taps are read from the last to the first: told from those of an ordinary convolution of the same weight, of a
// view of it and of what it becomes.
TEST_F(PackedWeights, OfTransposedConvolutions) {
  Tensor whole = randn({9, 16, 3, 3}), other = randn({8, 16, 3, 3});
  for (bool moved : {false, true})
    for (const Tensor& weight : {whole.narrow(0, 1, 8), other}) {
      auto f = [&](const Tensor& x) {
        Tensor y = conv_transpose2d(x, moved ? weight.transpose(2, 3) : weight, {}, 1, 1);
        return conv2d(relu(y), moved ? weight.transpose(2, 3) : weight, {}, 1, 1) + y.amax();
      };
      auto fast = compile(f), frozen = compile(f, {.mode = CompileMode::frozen});
      for (int call = 0; call < 8; ++call) {
        if (call == 3 || call == 4) weight.mul_(-0.5);
        if (call == 5) weight.narrow(2, 0, 1).add_(1);
        Tensor x = randn({call % 2 + 1, 8, call % 3 + 1, 9});
        const Tensor expected = f(x);
        ASSERT_TRUE(same_bits(fast(x), expected)) << call;
        ASSERT_TRUE(same_bits(frozen(x), expected)) << call;
      }
      EXPECT_EQ(fast.stats().fallbacks, 0);
    }
}

// One row: the same bits whether the weight is kept, is not, or is read as it lies.
TEST_F(PackedWeights, OfProductsOfOneRow) {
  for (DType dtype : {kFloat32, kFloat64, kBFloat16})
    for (auto [k, n] : {std::pair<int64_t, int64_t>{64, 300}, {700, 256}, {1300, 2100}, {5, 4096}})
      for (int turned = 0; turned < 2; ++turned)
        for (int with_bias = 0; with_bias < 2; ++with_bias) {
          Tensor x = randn({1, k}).to(dtype), weight = (turned ? randn({k, n}).t() : randn({n, k})).to(dtype);
          Tensor bias = with_bias ? randn({n}).to(dtype) : Tensor();
          auto f = [&](const Tensor& in) { return relu(with_bias ? linear(in, weight, bias) : linear(in, weight)); };
          auto fast = compile(f);
          const Tensor expected = f(x);
          for (int call = 0; call < 6; ++call) {
            if (call == 2 || call == 3) weight.mul_(1);  // not kept for a call
            ASSERT_TRUE(same_bits(fast(x), expected)) << name_of(dtype) << " " << k << " " << n;
          }
        }
}

}  // namespace
}  // namespace ingot
