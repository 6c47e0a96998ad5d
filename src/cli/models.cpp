#include "cli/models.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/first_use.h"
#include "conformance/json_text.h"
#include "runtime/files/files.h"

namespace ingot::cli {
namespace {

nlohmann::json expected_values(const std::string& folder) {
  return conformance::read_json(path_in(folder, "expected.json"));
}

std::string file_text(const std::string& folder) {
  const std::string path = path_in(folder, "text.txt");
  return runtime::read_file(path, path);
}

/// Throws Error for a batch of more examples than there are.
void check_batch(int64_t batch, int64_t most) {
  if (batch > most)
    throw Error("batch: got " + std::to_string(batch) + ", expected at most the " + std::to_string(most) +
                " examples of the demo's data");
}

// Byte values of text[begin, begin + windows * kWindow) as i64 [windows, kWindow].
Tensor windows_of(const std::string& text, int64_t begin, int64_t windows) {
  Tensor ids = empty({windows, kWindow}, kInt64);
  auto* out = static_cast<int64_t*>(ids.mutable_data_ptr());
  for (int64_t i = 0; i < windows * kWindow; ++i) out[i] = static_cast<unsigned char>(text[begin + i]);
  return ids;
}

DemoModel digits(const std::string& name, const std::string& folder, std::function<Tensor(const Tensor&)> forward,
                 Ints tail) {
  Digits data = load_digits(folder);
  tail.insert(0, data.labels.size(0));
  data.images = data.images.reshape(tail);
  DemoModel model;
  model.name = name;
  model.metric = "correct of 1797";
  model.expected = expected_values(folder)[name]["correct_of_1797"].get<double>();
  model.forward = std::move(forward);
  model.input = [images = data.images](int64_t batch) {
    check_batch(batch, images.size(0));
    return images.narrow(0, 0, batch).contiguous();
  };
  model.evaluate = [data](const std::function<Tensor(const Tensor&)>& run) {
    return static_cast<double>(data.correct(run));
  };
  return model;
}

template <class Model>
Model loaded(Model model, const std::string& path) {
  model->load_state_dict(load(path));
  model->eval();
  return model;
}

}  // namespace

nn::Sequential digits_mlp() {
  return nn::Sequential{nn::Linear(64, 256), nn::GELU(), nn::Linear(256, 256), nn::GELU(), nn::Linear(256, 10)};
}

Tensor DigitsCnnImpl::forward(const Tensor& x) {
  Tensor h = F::relu(bn1(conv1(x)));
  h = F::max_pool2d(F::relu(bn2(conv2(h))), 2);
  h = h + F::relu(bn3(conv3(h)));
  return fc(h.mean({2, 3}));
}

Tensor ByteGptBlockImpl::forward(const Tensor& x) {
  int64_t n = x.size(0), t = x.size(1);
  auto heads = [&](const Tensor& y) { return y.view({n, t, 4, 32}).transpose(1, 2); };
  auto qkv = attn_qkv(ln_1(x)).split(128, 2);
  Tensor y = F::scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {}, 0.0, /*is_causal=*/true);
  Tensor h = x + attn_out(y.transpose(1, 2).reshape({n, t, 128}));
  return h + mlp_down(F::gelu(mlp_up(ln_2(h)), "tanh"));
}

Tensor ByteGptImpl::forward(const Tensor& ids) {
  Tensor x = wte(ids) + wpe(arange(ids.size(1)));
  for (auto& block : h) x = block(x);
  return matmul(ln_f(x), wte->weight.t());
}

double bits_per_byte(const std::function<Tensor(const Tensor&)>& forward, const std::string& text) {
  constexpr int64_t kBatch = 8;
  int64_t windows = (static_cast<int64_t>(text.size()) - 1) / kWindow;
  double nats = 0;
  for (int64_t at = 0; at < windows; at += kBatch) {
    int64_t count = std::min(kBatch, windows - at);
    Tensor logits = forward(windows_of(text, at * kWindow, count)).reshape({count * kWindow, 256});
    Tensor targets = windows_of(text, at * kWindow + 1, count).reshape({count * kWindow});
    nats += F::cross_entropy(logits, targets).item<double>() * static_cast<double>(count * kWindow);
  }
  return nats / static_cast<double>(windows * kWindow) / std::log(2.0);
}

Digits load_digits(const std::string& folder) {
  auto data = load(path_in(folder, "digits.safetensors"));
  Tensor images = data.at("images").to(kFloat32) / 16.0;
  return {images.reshape({images.size(0), 1, 8, 8}), data.at("labels"), data.at("is_test")};
}

Digits Digits::part(bool test) const {
  const auto* is = static_cast<const bool*>(is_test.data_ptr());
  std::vector<int64_t> those;
  for (int64_t i = 0; i < is_test.size(0); ++i)
    if (is[i] == test) those.push_back(i);
  const Tensor at = tensor(those);
  return {images.index_select(0, at), labels.index_select(0, at), is_test.index_select(0, at)};
}

int64_t Digits::correct(const std::function<Tensor(const Tensor&)>& forward) const {
  constexpr int64_t kBatch = 64;
  int64_t count = 0;
  for (int64_t at = 0; at < images.size(0); at += kBatch) {
    const int64_t some = std::min<int64_t>(kBatch, images.size(0) - at);
    const Tensor best = forward(images.narrow(0, at, some)).argmax(1);
    count += best.eq(labels.narrow(0, at, some)).sum().item<int64_t>();
  }
  return count;
}

const std::vector<DemoRow>& demo_rows() {
  constinit static FirstUse<std::vector<DemoRow>> rows;
  return rows.get([] {
    return std::vector<DemoRow>{
        {"digits_mlp", "the demo's MLP", "f32 [N, 64]", [] { return digits_mlp().module(); }},
        {"digits_cnn", "the demo's CNN", "f32 [N, 1, 8, 8]", [] { return DigitsCnn().module(); }},
        {"bytegpt", "the demo's byte-level GPT", "i64 [N, T], T <= 128", [] { return ByteGpt().module(); }}};
  });
}
std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const DemoRow& row : demo_rows()) names.push_back(row.name);
  return names;
}

std::string data_folder(const std::string& given) {
  if (!given.empty()) return given;
  char self[4096];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length > 0) {
    // Installed, share/ stands beside bin/; in a build folder, beside the command.
    const auto folder = std::filesystem::path(std::string(self, length)).parent_path();
    for (const auto& place : {folder.parent_path(), folder})
      if (const auto data = place / "share" / "ingot"; std::filesystem::exists(data / "expected.json"))
        return data.string();
  }
  return "examples/data";
}

std::string path_in(const std::string& folder, const std::string& file) {
  std::string path = folder + "/" + file;
  if (!std::filesystem::exists(path))
    throw Error("the demo's data is incomplete: expected a file " + path + " (--data names the folder)");
  return path;
}

DemoModel demo_model(const std::string& name, const std::string& data) {
  std::string folder = data_folder(data);
  if (name == "digits_mlp") {
    auto model = loaded(digits_mlp(), path_in(folder, "digits_mlp.safetensors"));
    return digits(name, folder, [model](const Tensor& x) mutable { return model(x); }, {64});
  }
  if (name == "digits_cnn") {
    auto model = loaded(DigitsCnn(), path_in(folder, "digits_cnn.safetensors"));
    return digits(name, folder, [model](const Tensor& x) mutable { return model(x); }, {1, 8, 8});
  }
  if (name == "bytegpt") {
    auto gpt = loaded(ByteGpt(), path_in(folder, "bytegpt.safetensors"));
    auto text = std::make_shared<std::string>(file_text(folder));
    DemoModel model;
    model.name = name;
    model.metric = "bits per byte";
    model.expected = expected_values(folder)[name]["bits_per_byte_f64"].get<double>();
    model.large_batch = 8;
    model.prompt = expected_values(folder)[name]["greedy_prompt"].get<std::string>();
    model.forward = [gpt](const Tensor& x) mutable { return gpt(x); };
    model.input = [text](int64_t batch) {
      check_batch(batch, static_cast<int64_t>(text->size()) / kWindow);
      return windows_of(*text, 0, batch);
    };
    model.evaluate = [text](const std::function<Tensor(const Tensor&)>& run) { return bits_per_byte(run, *text); };
    return model;
  }
  throw Error("unknown model '" + name + "'; there are: digits_mlp, digits_cnn, bytegpt");
}

std::string generate_greedily(const std::function<Tensor(const Tensor&)>& forward, const std::string& prompt,
                              int64_t length) {
  std::string text = prompt;
  while (static_cast<int64_t>(text.size()) < length) {
    auto count = static_cast<int64_t>(text.size());
    Tensor ids = empty({1, count}, kInt64);
    auto* out = static_cast<int64_t*>(ids.mutable_data_ptr());
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<unsigned char>(text[i]);
    Tensor last = forward(ids).select(0, 0).select(0, count - 1);
    text += static_cast<char>(last.argmax().item<int64_t>());
  }
  return text.substr(prompt.size());
}

}  // namespace ingot::cli
