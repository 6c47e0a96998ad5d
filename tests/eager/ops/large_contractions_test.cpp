// Products, convolutions and attention with every dim past its block, so that tiles, blocks of k and shares of threads
// have edges: threads, instruction set, layout and batch change no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "eager/execute/numerics.h"
#include "eager/op_support.h"
#include "eager/ops/functions.h"
#include "ir/samples.h"
#include "runtime/cpu.h"
#include "runtime/thread_pool.h"

namespace ingot {
namespace {

struct Contraction {
  const char* inputs;  // one a line
  const char* call;
  int64_t terms;  // of each sum
  int results = 1;
  bool batched = true;  // the first dim is that of the inputs
  friend std::ostream& operator<<(std::ostream& out, const Contraction& c) { return out << c.call; }
};

const Contraction kContractions[] = {
    {"f32[203, 1031]; f32[1031, 137]", "mm(%0, %1)", 1031},
    {"f32[67, 1031]; f32[1031, 300]", "mm(%0, %1)", 1031},
    {"f32[610, 1100]; f32[1100, 290]", "mm(%0, %1)", 1100},
    {"f64[67, 515]; f64[515, 71]", "mm(%0, %1)", 515},
    {"f64[301, 615]; f64[615, 140]", "mm(%0, %1)", 615},
    {"bf16[131, 517]; bf16[517, 267]", "mm(%0, %1)", 517},
    {"i32[131, 257]; i32[257, 67]", "mm(%0, %1)", 257},
    {"f32[1, 2051]; f32[2051, 515]", "mm(%0, %1)", 2051},
    {"bf16[1, 1031]; bf16[1031, 4299]", "mm(%0, %1)", 1031},
    {"f64[3, 1, 130]; f64[3, 130, 300]", "bmm(%0, %1)", 130},
    {"f32[300]; f32[1, 517]; f32[517, 300]", "addmm(%0, %1, %2)", 517},
    {"f32[2051, 515]; f32[515]", "mv(%0, %1)", 515},
    {"f32[5, 67, 131]; f32[5, 131, 97]", "bmm(%0, %1)", 131},
    {"f32[7, 31, 259]; f32[203, 259]; f32[203]", "linear(%0, %1, %2)", 259},
    {"f32[1, 1031]; f32[515, 1031]; f32[515]", "linear(%0, %1, %2)", 1031},
    {"f32[7, 700]; f32[300, 700]", "linear(%0, %1, none)", 700},
    {"f32[100, 1500]; f32[170, 1500]; f32[170]", "linear(%0, %1, %2)", 1500},
    {"f32[128, 600]; f32[4400, 600]; f32[4400]", "linear(%0, %1, %2)", 600},
    {"f32[40, 5300]; f32[100, 5300]", "linear(%0, %1, none)", 5300},
    {"bf16[120, 2100]; bf16[2100, 150]", "mm(%0, %1)", 2100},
    {"f64[50, 1300]; f64[1300, 90]", "mm(%0, %1)", 1300},
    {"f32[3, 90, 1500]; f32[3, 1500, 70]", "bmm(%0, %1)", 1500},
    {"f32[3, 16, 33, 35]; f32[24, 16, 3, 3]; f32[24]", "conv2d(%0, %1, %2, padding=[1])", 144},
    {"f32[3, 16, 33, 35]; f32[24, 8, 3, 2]", "conv2d(%0, %1, none, stride=[2, 3], dilation=[1, 2], groups=2)", 48},
    {"f32[3, 64, 67, 35]; f32[64, 1, 3, 3]", "conv2d(%0, %1, none, padding=[1], groups=64)", 9},
    {"f32[3, 32, 1031]; f32[40, 32, 5]", "conv1d(%0, %1, none, padding=[2])", 160},
    {"f32[3, 16, 17, 19]; f32[16, 24, 3, 3]", "conv_transpose2d(%0, %1, none, stride=[2])", 144},
    {"f32[5, 24, 19, 17]; f32[5, 70, 19, 17]", "conv2d_weight_backward(%0, %1, kernel_size=[3], padding=[1])", 1615, 1,
     false},
    {"f32[7, 32, 16, 16]; f32[7, 36, 8, 6]",
     "conv2d_weight_backward(%0, %1, kernel_size=[3, 2], stride=[2], padding=[1, 0], dilation=[1, 5], groups=2)", 336,
     1, false},
    {"f64[3, 16, 21, 13]; f64[3, 16, 19, 11]", "conv2d_weight_backward(%0, %1, kernel_size=[3], groups=16)", 627, 1,
     false},
    {"f32[9, 67, 11, 12]; f32[9, 33, 11, 12]", "conv2d_weight_backward(%0, %1, kernel_size=[1])", 1188, 1, false},
    {"f32[3, 150, 13, 11]; f32[3, 170, 13, 11]", "conv2d_weight_backward(%0, %1, kernel_size=[3], padding=[1])", 429, 1,
     false},
    {"f32[3, 160, 13, 11]; f32[3, 150, 13, 11]", "conv2d_weight_backward(%0, %1, kernel_size=[3], padding=[1])", 429, 1,
     false},
    {"f32[9, 130, 7, 7]; f32[9, 100, 7, 7]", "conv2d_weight_backward(%0, %1, kernel_size=[3], padding=[1])", 441, 1,
     false},
    {"f32[2, 600, 9, 10]; f32[2, 90, 9, 10]", "conv2d_weight_backward(%0, %1, kernel_size=[3], padding=[1])", 180, 1,
     false},
    {"f32[7, 90, 9, 10]; f32[7, 700, 9, 10]", "conv2d_weight_backward(%0, %1, kernel_size=[3], padding=[1])", 630, 1,
     false},
    {"f32[3, 192, 20, 18]; f32[3, 224, 20, 18]",
     "conv2d_weight_backward(%0, %1, kernel_size=[3], padding=[2], dilation=[2], groups=2)", 1080, 1, false},
    {"f32[9, 80, 31, 9]; f32[9, 66, 16, 5]", "conv2d_weight_backward(%0, %1, kernel_size=[5], stride=[2], padding=[2])",
     720, 1, false},
    {"f32[5, 64, 5, 6]; f32[5, 64, 11, 12]", "conv2d_weight_backward(%0, %1, kernel_size=[3], padding=[4])", 660, 1,
     false},
    {"f32[300, 64, 1, 3]; f32[300, 64, 1, 3]", "conv2d_weight_backward(%0, %1, kernel_size=[3], padding=[1])", 900, 1,
     false},
    {"f64[4, 72, 12, 13]; f64[4, 40, 10, 13]", "conv2d_weight_backward(%0, %1, kernel_size=[3, 3], padding=[0, 1])",
     520, 1, false},
    {"f64[2, 140, 12, 12]; f64[2, 1100, 12, 12]", "conv2d_weight_backward(%0, %1, kernel_size=[1])", 288, 1, false},
    {"f32[4, 90, 19, 17]; f32[4, 90, 19, 17]",
     "conv2d_weight_backward(%0, %1, kernel_size=[7], padding=[3], groups=90)", 1292, 1, false},
    {"f32[3, 170, 13, 11]; f32[3, 58, 7, 6]",
     "conv2d_weight_backward(%0, %1, kernel_size=[2, 1], stride=[2], padding=[1, 0])", 126, 1, false},
    {"f64[5, 140, 9, 8]; f64[5, 180, 5, 4]",
     "conv2d_weight_backward(%0, %1, kernel_size=[3], stride=[2], padding=[1], groups=2)", 100, 1, false},
    {"f32[40, 3, 40, 40]; f32[40, 5, 36, 36]", "conv2d_weight_backward(%0, %1, kernel_size=[5])", 51840, 1, false},
    {"f32[3, 4, 131, 32]; f32[3, 2, 150, 32]; f32[3, 2, 150, 24]",
     "scaled_dot_product_attention(%0, %1, %2, none, 0.3, enable_gqa=true)", 150},
    {"f32[3, 4, 131, 32]; f32[3, 4, 150, 32]; f32[3, 4, 150, 32]; f32[131, 150]",
     "scaled_dot_product_attention(%0, %1, %2, %3)", 150},
    {"f32[3, 4, 131, 32]; f32[3, 4, 131, 32]; f32[3, 4, 131, 32]",
     "scaled_dot_product_attention(%0, %1, %2, is_causal=true)", 131},
    {"f32[3, 4, 131, 32]; f32[3, 2, 550, 32]; f32[3, 2, 550, 24]; f32[3, 4, 131, 24]",
     "scaled_dot_product_attention_backward(%0, %1, %2, none, 0.3, %3, enable_gqa=true)", 550, 3},
    {"f32[3, 4, 131, 32]; f32[3, 4, 150, 32]; f32[3, 4, 150, 40]; f32[131, 150]; f32[3, 4, 131, 40]",
     "scaled_dot_product_attention_backward(%0, %1, %2, %3, none, %4)", 150, 3},
    {"f32[3, 2, 131, 32]; f32[3, 2, 131, 32]; f32[3, 2, 131, 32]; f32[3, 2, 131, 32]",
     "scaled_dot_product_attention_backward(%0, %1, %2, none, none, %3, is_causal=true)", 131, 3},
    {"f64[3, 2, 65, 17]; f64[3, 2, 70, 17]; f64[3, 2, 70, 17]; bool[3, 1, 65, 70]; f64[3, 2, 65, 17]",
     "scaled_dot_product_attention_backward(%0, %1, %2, %3, none, %4)", 70, 3},
};

class LargeContractions : public testing::TestWithParam<Contraction> {
 protected:
  void SetUp() override {
    threads_ = num_threads();
    level_ = numerics();
    set_numerics(Numerics::strict);  // the default lets a processor with bf16 products use them
    std::string text = "ingot.ir 1\n", inputs = GetParam().inputs;
    int number = 0;
    for (size_t at = 0, end; at < inputs.size(); at = end + 2) {
      end = std::min(inputs.find("; ", at), inputs.size());
      text += "input %" + std::to_string(number++) + " = " + inputs.substr(at, end - at) + "\n";
    }
    std::string results;
    for (int i = 0; i < GetParam().results; ++i) results += (i ? ", %" : "%") + std::to_string(number + i);
    graph_ = ir::parse(text + results + " = " + GetParam().call + "\noutput " + results + "\n");
    references_ = random_inputs(graph_, "", 11);
    inputs_ = eager_tensors(references_);
    set_num_threads(1);
    expected_ = run(graph_, inputs_);
  }
  void TearDown() override {
    set_num_threads(threads_);
    set_numerics(level_);
    runtime::set_host_target(std::nullopt);
  }
  void expect_same(const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected, const std::string& what) {
    const std::vector<Tensor> got = run(graph_, inputs);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(got[i].sizes(), expected[i].sizes()) << what;
      EXPECT_TRUE(bytes_of(got[i]) == bytes_of(expected[i])) << what << ", result " << i;
    }
  }

  ir::Graph graph_;
  std::vector<ReferenceTensor> references_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> expected_;

 private:
  int threads_ = 1;
  Numerics level_ = Numerics::default_;
};

// In blocks of 256 terms that are added in order, partial sums are about sqrt(256), and as many roundings add up.
TEST_P(LargeContractions, AgreeWithTheReference) {
  expect_close(references_, expected_, ir::interpret(graph_, references_), 64,
               std::sqrt(static_cast<double>(GetParam().terms)));
}

TEST_P(LargeContractions, ThreadsInstructionSetLayoutAndBatchChangeNoBit) {
  for (int threads : {2, 3, 7}) {
    set_num_threads(threads);
    expect_same(inputs_, expected_, std::to_string(threads) + " threads");
  }
  for (Isa isa : {Isa::none, Isa::avx2}) {
    if (isa >= runtime::detected_target().isa) continue;
    runtime::set_host_target(runtime::target_of(isa));
    expect_same(inputs_, expected_, runtime::target_of(isa).str());
  }
  runtime::set_host_target(std::nullopt);
  std::vector<Tensor> other;
  for (const Tensor& t : inputs_) other.push_back(scattered(t));
  expect_same(other, expected_, "scattered");

  if (!GetParam().batched) return;
  const int64_t batch = expected_[0].size(0);
  for (int64_t size : {int64_t{1}, std::min<int64_t>(batch - 1, 5)}) {
    if (size < 1) continue;
    std::vector<Tensor> some;
    for (const Tensor& t : inputs_) some.push_back(t.size(0) == batch ? t.narrow(0, batch - size, size) : t);
    std::vector<Tensor> expected;
    for (const Tensor& t : expected_) expected.push_back(t.narrow(0, batch - size, size));
    expect_same(some, expected, std::to_string(size) + " of the batch");
  }
}

// A weight's gradient has the activations' columns for rows: read as they lie, or from a copy by tiles where many
// panels need it. Any rows, part of a wider matrix, of any k, beside any number of columns.
TEST(MatmulOfTransposed, IsThatOfItsCopy) {
  const int threads = num_threads();
  for (DType dtype : {kFloat32, kFloat64})
    for (int64_t m : {1, 3, 5, 6, 7, 13, 64, 201})
      for (int64_t k : {1, 40, 256, 300, 1100, 9000})  // the last is shared out along k where rows are few
        for (int64_t n : {40, 130, 400}) {
          if (k > 1100 && m > 7) continue;
          const Tensor wide = randn({2, k, m + 9}, dtype), b = randn({2, k, n}, dtype);
          const Tensor a = wide.narrow(2, 4, m).transpose(1, 2), expected = matmul(a.contiguous(), b);
          set_num_threads(1 + static_cast<int>(m + n) % 3);
          EXPECT_TRUE(bytes_of(matmul(a, b)) == bytes_of(expected)) << m << " x " << k << " x " << n;
        }
  set_num_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(Ops, LargeContractions, testing::ValuesIn(kContractions));

// Rows whose operands come from memory fetch ahead, in smaller blocks: the same bits as of a part that does not.
TEST(LargeContractions, ConvolutionsFromMemory) {
  const int64_t l3 = std::clamp<int64_t>(runtime::cache_sizes().l3, 32 << 20, 256 << 20);
  constexpr int64_t kChannels = 40, kHeight = 61, kPart = 3;
  const int64_t width = l3 / 4 / (kHeight * kChannels * 4) + 7;
  const int threads = num_threads();
  // Channels innermost; and a part of more channels, lines and columns.
  const Tensor dense = randn({2, kHeight, width, kChannels}).permute({0, 3, 1, 2});
  const Tensor part = randn({2, kHeight + 1, width + 2, kChannels + 5})
                          .narrow(1, 1, kHeight)
                          .narrow(2, 1, width)
                          .narrow(3, 3, kChannels)
                          .permute({0, 3, 1, 2});
  for (const Tensor& x : {dense, part})
    for (int64_t stride : {1, 2}) {
      const Tensor depthwise = randn({kChannels, 1, 3, 3}), narrow = randn({24, kChannels, 1, 1}), bias = randn({24});
      for (int n : {1, 2, 3}) {
        set_num_threads(n);
        const Tensor y = conv2d(x, depthwise, {}, stride, 1, 1, kChannels);
        const Tensor first = conv2d(x.narrow(1, 16, kPart), depthwise.narrow(0, 16, kPart), {}, stride, 1, 1, kPart);
        EXPECT_TRUE(bytes_of(y.narrow(1, 16, kPart).contiguous()) == bytes_of(first.contiguous()))
            << stride << ", " << n << " threads";
        const Tensor z = conv2d(x, narrow, bias, stride);
        for (int64_t line : {int64_t{0}, z.size(2).value() - 1}) {
          const Tensor alone = conv2d(x.narrow(2, line * stride, 1), narrow, bias, stride);
          EXPECT_TRUE(bytes_of(z.narrow(2, line, 1).contiguous()) == bytes_of(alone.contiguous()))
              << stride << ", " << n << " threads";
        }
      }
    }
  set_num_threads(threads);
}

}  // namespace
}  // namespace ingot
