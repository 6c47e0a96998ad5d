// The demo's three models, written as a user would write them, and the data they are judged on.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ingot.h"

namespace ingot::cli {

/// Linear(64, 256), GELU, Linear(256, 256), GELU, Linear(256, 10); input f32 [N, 64], output f32 [N, 10].
nn::Sequential digits_mlp();

/// Three convolutions with batch norm, one of them residual; input f32 [N, 1, 8, 8], output f32 [N, 10].
struct DigitsCnnImpl : nn::Module {
  nn::Conv2d conv1{1, 32, 3, {.padding = 1}}, conv2{32, 64, 3, {.padding = 1}}, conv3{64, 64, 3, {.padding = 1}};
  nn::BatchNorm2d bn1{32}, bn2{64}, bn3{64};
  nn::Linear fc{64, 10};
  Tensor forward(const Tensor& x);
};
INGOT_MODULE(DigitsCnn, conv1, conv2, conv3, bn1, bn2, bn3, fc);

/// One transformer block of width 128 with four heads.
struct ByteGptBlockImpl : nn::Module {
  nn::LayerNorm ln_1{128}, ln_2{128};
  nn::Linear attn_qkv{128, 384}, attn_out{128, 128}, mlp_up{128, 512}, mlp_down{512, 128};
  Tensor forward(const Tensor& x);
};
INGOT_MODULE(ByteGptBlock, ln_1, ln_2, attn_qkv, attn_out, mlp_up, mlp_down);

/// A byte-level GPT of 842,496 parameters; input i64 [N, T] of byte values, T <= 128, output logits f32 [N, T, 256].
struct ByteGptImpl : nn::Module {
  nn::Embedding wte{256, 128}, wpe{128, 128};
  std::vector<ByteGptBlock> h{ByteGptBlock(), ByteGptBlock(), ByteGptBlock(), ByteGptBlock()};
  nn::LayerNorm ln_f{128};
  Tensor forward(const Tensor& ids);
};
INGOT_MODULE(ByteGpt, wte, wpe, h, ln_f);

/// A model with its weights, what it is fed and what must come out.
struct DemoModel {
  std::string name;
  std::string metric;   // "correct of 1797" or "bits per byte"
  double expected = 0;  // of the metric
  int small_batch = 1, large_batch = 64;
  std::string prompt;  // what a language model continues; else empty
  std::function<Tensor(const Tensor&)> forward;
  std::function<Tensor(int64_t batch)> input;  // the first examples
  /// Runs the whole data set through `forward` in batches and computes the metric.
  std::function<double(const std::function<Tensor(const Tensor&)>& forward)> evaluate;
};

constexpr int64_t kWindow = 128;  // bytes of context of the byte-level GPT

/// Mean cross-entropy, in bits, of the text in windows of 128 bytes.
double bits_per_byte(const std::function<Tensor(const Tensor&)>& forward, const std::string& text);

struct Digits {
  Tensor images, labels, is_test;  // f32 [N, 1, 8, 8], i64 [N], bool [N]
  /// Those that are held out for tests, or the others.
  Digits part(bool test) const;
  int64_t correct(const std::function<Tensor(const Tensor&)>& forward) const;
};
Digits load_digits(const std::string& folder);

/// What can be said of a model without its weights.
struct DemoRow {
  const char *name, *title, *input;
  std::shared_ptr<nn::Module> (*make)();
};
const std::vector<DemoRow>& demo_rows();
std::vector<std::string> model_names();
/// Throws Error, listing what exists, for an unknown name, or if the data folder lacks a file.
DemoModel demo_model(const std::string& name, const std::string& data);
/// The folder of the demo's data: `given`, else share/ingot of the installation or the build folder that the command is
/// in, else examples/data below the current folder.
std::string data_folder(const std::string& given);
/// Throws Error if the folder lacks the file.
std::string path_in(const std::string& folder, const std::string& file);

/// Appends to the prompt the byte of largest logit at the last position until `length` bytes stand; returns what was
/// appended.
std::string generate_greedily(const std::function<Tensor(const Tensor&)>& forward, const std::string& prompt,
                              int64_t length);

}  // namespace ingot::cli
