// Memory is given back: what compiled functions and models took goes with them, and what is kept free has a bound.
#include "support.h"

namespace ingot {
namespace {

using test::error_of;
using test::same_bits;
using test::without_line;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kWidth = 1024, kLayers = 48;
constexpr int64_t kModel = kLayers * kWidth * kWidth * 4;  // 192 MiB
// Code, small blocks, the heap of the C library.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int64_t kSlack = kMiB * kMiB;  // and the sanitizer's own, which is as much again and stays
#else
constexpr int64_t kSlack = 48 * kMiB;
#endif

struct DeepImpl : nn::Module {
  std::vector<nn::Linear> layers;
  DeepImpl() {
    for (int64_t i = 0; i < kLayers; ++i) layers.emplace_back(kWidth, kWidth);
  }
  Tensor forward(const Tensor& x) const {
    Tensor y = x;
    for (const nn::Linear& layer : layers) y = relu(layer(y)) + y;
    return y;
  }
};
INGOT_MODULE(Deep, layers);

int64_t resident() { return memory_stats().resident_bytes; }

/// What a function of the model computes for lengths that grow.
template <class F>
void call_with_lengths(const F& fast, const Deep& model) {
  for (int64_t length : {2, 3, 40, 80, 120, 160, 200}) {
    Tensor x = randn({length, kWidth}) * 0.01;
    Tensor y = fast(x);
    if (length < 4) {
      EXPECT_TRUE(same_bits(y, model(x)));
    }
    (void)fast(x);
  }
}

class Memory : public ::testing::Test {
 protected:
  const NoGradGuard no_grad_;
  Memory() {
    clear_caches();
    small_ = memory_stats().cached_bytes;
  }
  ~Memory() override { clear_caches(); }
  /// Free bytes beyond the small blocks of before.
  int64_t cached() const { return memory_stats().cached_bytes - small_; }

 private:
  int64_t small_ = 0;
};

TEST_F(Memory, GoesWithFunctionsAndModels) {
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    clear_caches();
    const int64_t before = resident();
    {
      Deep model;
      const int64_t with_model = resident();
      {
        auto one = compile(model, {.mode = mode});
        auto two = compile([&](const Tensor& x) { return model(x) * 2; }, {.mode = mode});
        call_with_lengths(one, model);
        call_with_lengths([&](const Tensor& x) { return two(x) * 0.5; }, model);
        EXPECT_EQ(memory_stats().packed_bytes, kModel) << "one packed copy, whatever the functions and lengths";
        EXPECT_LT(resident() - before, 2 * kModel + kSlack + 64 * kMiB);
      }
      EXPECT_EQ(memory_stats().packed_bytes, 0) << "nobody can use it any more";
      EXPECT_LT(resident() - with_model, kSlack + 64 * kMiB);
    }
    EXPECT_LT(resident() - before, kSlack + 64 * kMiB);
    trim_memory();
    EXPECT_LT(resident() - before, kSlack);
  }
}

// A copy that another function reads stays.
TEST_F(Memory, APackedCopyStaysAsLongAsAFunctionReadsIt) {
  nn::Linear layer(512, 256);
  Tensor x = randn({8, 512});
  const Tensor expected = layer(x);
  auto lasting = compile(layer);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(lasting(x), expected));
  const int64_t packed = memory_stats().packed_bytes;
  EXPECT_EQ(packed, 512 * 256 * 4);
  for (int round = 0; round < 3; ++round) {
    auto passing = compile([&](const Tensor& in) { return layer(in) + 1; });
    EXPECT_TRUE(same_bits(passing(x), expected + 1));
    EXPECT_EQ(memory_stats().packed_bytes, packed);
  }
  EXPECT_EQ(memory_stats().packed_bytes, packed);
  EXPECT_TRUE(same_bits(lasting(x), expected));
}

TEST_F(Memory, FreeBlocksFollowWhatIsUsedAtOnce) {
  // Rounds that need much at once find it again ...
  auto round = [](int64_t mebibytes) {
    std::vector<Tensor> tensors;
    for (int64_t i = 0; i < mebibytes / 4; ++i) tensors.push_back(empty({kMiB}));
  };
  round(256);
  EXPECT_GE(cached(), 256 * kMiB);
  // ... and once they need less, no more than that and 64 MiB is kept.
  for (int i = 0; i < 100; ++i) round(32);
  EXPECT_LE(cached(), (32 + 64 + 16) * kMiB);
}

TEST_F(Memory, TheBoundOnFreeBlocksIsTheUsers) {
  const int64_t before = memory_stats().cached_limit;
  set_cached_memory_limit(8 * kMiB);
  { std::vector<Tensor> tensors{empty({32 * kMiB}), empty({kMiB}), empty({kMiB})}; }
  EXPECT_LE(memory_stats().cached_limit, 8 * kMiB);
  EXPECT_LE(cached(), 16 * kMiB);
  EXPECT_EQ(without_line(error_of([] { set_cached_memory_limit(-1); })),
            "set_cached_memory_limit: bytes: got -1, expected a number of bytes, 0 or more");
  EXPECT_LE(memory_stats().cached_limit, 8 * kMiB);
  set_cached_memory_limit(int64_t{1} << 40);
  EXPECT_GE(memory_stats().cached_limit, before);
}

TEST_F(Memory, StatsSayWhatIsInUse) {
  const MemoryStats before = memory_stats();
  Tensor t = ones({4 * kMiB});
  const MemoryStats with = memory_stats();
  EXPECT_GE(with.allocated_bytes - before.allocated_bytes, 16 * kMiB);
  EXPECT_GE(with.resident_bytes, 16 * kMiB);
  t = Tensor();
  EXPECT_LT(memory_stats().allocated_bytes, with.allocated_bytes);
}

}  // namespace
}  // namespace ingot
