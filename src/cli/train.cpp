#include "cli/train.h"

#include <fmt/format.h>

#include <cmath>

#include "base/hash.h"
#include "cli/zoo.h"
#include "runtime/files/files.h"

namespace ingot::cli {
namespace {

constexpr int64_t kEvaluated = 64 << 10;  // bytes of a long text
constexpr int64_t kSampled = 64;          // bytes that a language model says
// Beside the recipe, the numbers of a checkpoint.
constexpr const char *kStep = "step", *kText = "text_print";

// Whole numbers up to here are doubles, and their products with a window's length are no overflow.
constexpr int64_t kMost = int64_t{1} << 40;

/// Throws Error for a number that `Field`, a whole number or a double, may not hold; `from`: whose it is.
template <class Field>
void check_number(const std::string& from, std::string_view name, double value) {
  constexpr bool whole = std::is_integral_v<Field>;
  constexpr int64_t most = std::is_same_v<Field, bool> ? 1 : kMost;
  const bool zero = name != "steps" && name != "batch" && name != "lr";
  const bool fits = whole ? value >= (zero ? 0 : 1) && value <= static_cast<double>(most) && value == std::floor(value)
                          : std::isfinite(value) && (value > 0 || (zero && value == 0));
  if (!fits)
    throw Error(fmt::format("{}: {}: got {}, expected a {}", from, name, value,
                            whole  ? fmt::format("whole number from {} to {}", zero ? 0 : 1, most)
                            : zero ? "finite number from 0 on"
                                   : "finite number above 0"));
}
const RecipeNumbers& checked(const RecipeNumbers& numbers, const std::string& from) {
  Recipe fields;
  for_each_field(fields, [&](std::string_view name, auto field) {
    if (auto at = numbers.find(std::string(name)); at != numbers.end())
      check_number<decltype(field)>(from, name, at->second);
  });
  return numbers;
}

/// Of a text, the same wherever it lies, as far as a double holds it.
double print_of(const std::string& text) { return static_cast<double>(hash_text(text) >> 11); }

void apply(Recipe& recipe, const RecipeNumbers& numbers) {
  for_each_field(recipe, [&](std::string_view name, auto& field) {
    if (auto at = numbers.find(std::string(name)); at != numbers.end())
      field = static_cast<std::remove_reference_t<decltype(field)>>(at->second);
  });
}
RecipeNumbers recipe_numbers(const Recipe& recipe) {
  RecipeNumbers numbers;
  for_each_field(recipe,
                 [&](std::string_view name, auto field) { numbers[std::string(name)] = static_cast<double>(field); });
  return numbers;
}

// Examples of a step, with repetition.
std::vector<int64_t> draw(int64_t among, int64_t step, const Recipe& recipe) {
  const Generator numbers(static_cast<uint64_t>(recipe.seed) * 1'000'003 + static_cast<uint64_t>(step));
  const Tensor drawn = randint(among, {recipe.batch}, kInt64, numbers);
  const auto* at = static_cast<const int64_t*>(drawn.data_ptr());
  return {at, at + recipe.batch};
}

std::string read_text(const std::string& path) {
  std::string text = runtime::read_file(path, "train: text: " + path);
  if (static_cast<int64_t>(text.size()) <= kWindow)
    throw Error(fmt::format("train: text: got {} of {} bytes, expected at least {}: a window and the byte after it",
                            path, text.size(), kWindow + 1));
  return text;
}

// A line of the text's own, from its middle.
std::string sample_prompt(const std::string& text) {
  const size_t line = text.find('\n', text.size() / 2);
  return text.substr(line == std::string::npos || line + 1 >= text.size() ? 0 : line + 1, kSampled / 2);
}

// As GPT-2: what is added to the residual path begins smaller, the deeper the model.
void start_as_gpt2(ByteGpt& gpt) {
  const double deep = 1 / std::sqrt(2.0 * static_cast<double>(gpt->h.size()));
  for (auto& [name, p] : gpt->named_parameters()) {
    const bool residual = name.ends_with("attn_out.weight") || name.ends_with("mlp_down.weight");
    if (p.dim() == 2) p.copy_(randn(p.sizes()) * (residual ? 0.02 * deep : 0.02));
    if (name.ends_with("bias")) p.zero_();
  }
}

using Forward = std::function<Tensor(const Tensor&)>;

std::function<Tensor(const Batch&)> cross_entropy_of(Forward forward) {
  return [forward = std::move(forward)](const Batch& batch) {
    const Tensor logits = forward(batch.x);
    return F::cross_entropy(logits.reshape({-1, logits.size(-1)}), batch.y.reshape({-1}));
  };
}

Task bytegpt(const std::string& path) {
  ByteGpt gpt;
  start_as_gpt2(gpt);
  auto text = std::make_shared<const std::string>(read_text(path));
  Task task;
  task.recipe = {.steps = 1200, .batch = 32, .warmup = 100, .lr = 1.5e-3, .weight_decay = 0.1, .clip = 1};
  task.model = gpt.ptr();
  const Forward forward = [gpt](const Tensor& x) { return gpt(x); };
  task.loss = cross_entropy_of(forward);
  task.optimizer = [gpt](const Recipe& r) {
    return std::make_unique<optim::AdamW>(
        gpt->parameters(), optim::AdamWOptions{.lr = r.lr, .betas = {0.9, 0.95}, .weight_decay = r.weight_decay});
  };
  task.batch = [text](int64_t step, const Recipe& r) {
    Batch batch{empty({r.batch, kWindow}, kInt64), empty({r.batch, kWindow}, kInt64)};
    auto* x = static_cast<int64_t*>(batch.x.mutable_data_ptr());
    auto* y = static_cast<int64_t*>(batch.y.mutable_data_ptr());
    for (int64_t begin : draw(static_cast<int64_t>(text->size()) - kWindow, step, r))
      for (int64_t i = begin; i < begin + kWindow; ++i)
        *x++ = static_cast<unsigned char>((*text)[i]), *y++ = static_cast<unsigned char>((*text)[i + 1]);
    return batch;
  };
  task.text_print = print_of(*text);
  task.unit = "tokens", task.units_each = kWindow;
  task.metric = "bits_per_byte";
  task.evaluate = [forward, text] { return bits_per_byte(forward, text->substr(0, kEvaluated)); };
  task.sample = [forward, prompt = sample_prompt(*text)] {
    return generate_greedily(forward, prompt, static_cast<int64_t>(prompt.size()) + kSampled);
  };
  return task;
}

Task digits_cnn(const std::string& folder) {
  DigitsCnn cnn;
  const Digits digits = load_digits(folder);
  const Digits train = digits.part(false), test = digits.part(true);
  Task task;
  task.recipe = {.steps = 660, .batch = 64, .warmup = 20, .lr = 0.05, .weight_decay = 1e-3};
  task.model = cnn.ptr();
  const Forward forward = [cnn](const Tensor& x) { return cnn(x); };
  task.loss = cross_entropy_of(forward);
  task.optimizer = [cnn](const Recipe& r) {
    return std::make_unique<optim::SGD>(
        cnn->parameters(),
        optim::SGDOptions{.lr = r.lr, .momentum = 0.9, .weight_decay = r.weight_decay, .nesterov = true});
  };
  task.batch = [train](int64_t step, const Recipe& r) {
    const Tensor at = tensor(draw(train.labels.size(0), step, r));
    return Batch{train.images.index_select(0, at), train.labels.index_select(0, at)};
  };
  task.unit = "images";
  task.best_of = test.labels.size(0);
  task.metric = fmt::format("correct_of_{}_test", task.best_of);
  task.evaluate = [forward, test] { return static_cast<double>(test.correct(forward)); };
  return task;
}

Task timed(const ZooRow& row) {
  const ZooModel model = row.make(nullptr);
  model.module->train();
  Task task;
  task.recipe = {.steps = 1000, .batch = 1, .lr = 1e-4, .weight_decay = 0.01};
  task.model = model.module;
  task.loss = [model](const Batch& batch) {
    Inputs inputs{batch.x};
    inputs.insert(inputs.end(), batch.others.begin(), batch.others.end());
    return (model.forward(inputs) - batch.y).square().mean();
  };
  task.optimizer = [module = model.module](const Recipe& r) {
    return std::make_unique<optim::AdamW>(module->parameters(),
                                          optim::AdamWOptions{.lr = r.lr, .weight_decay = r.weight_decay});
  };
  task.batch = [model](int64_t step, const Recipe& r) {
    const NoGradGuard no_grad;
    manual_seed(static_cast<uint64_t>(r.seed) * 1'000'003 + static_cast<uint64_t>(step));
    const Inputs inputs = model.example(r.batch, 0);
    return Batch{inputs.at(0), zeros({}), {inputs.begin() + 1, inputs.end()}};
  };
  task.unit = "examples";
  return task;
}

}  // namespace

std::vector<std::string> task_names() { return {"bytegpt", "digits_cnn"}; }

Task make_task(const std::string& name, const std::string& data, const std::string& text,
               const RecipeNumbers& numbers) {
  const NoGradGuard no_grad;
  const std::string folder = data_folder(data);
  if (!text.empty() && name != "bytegpt") throw Error("train: text: got one for " + name + ", expected it for bytegpt");
  auto seed = numbers.find("seed");
  manual_seed(seed == numbers.end() ? 1 : static_cast<uint64_t>(seed->second));
  Task task;
  if (name == "bytegpt")
    task = bytegpt(text.empty() ? path_in(folder, "text.txt") : text);
  else if (name == "digits_cnn")
    task = digits_cnn(folder);
  else if (const ZooRow* row = find_zoo_row(name))
    task = timed(*row);
  else
    throw Error("train: name: got " + name + ", expected bytegpt or digits_cnn");
  task.name = name;
  return task;
}

Training::Training(const std::string& name, const std::string& data, const std::string& text,
                   const RecipeNumbers& numbers)
    : task_(make_task(name, data, text, checked(numbers, "train"))), recipe_(task_.recipe), text_(text) {
  apply(recipe_, numbers);
  task_.loss = [this, loss = std::move(task_.loss)](const Batch& batch) {
    const AutocastGuard autocast(recipe_.autocast);
    return loss(batch);
  };
  optimizer_ = task_.optimizer(recipe_);
  rate_ = std::make_unique<optim::LambdaLR>(*optimizer_, [this](int64_t step) { return rate_at(step); });
}

double Training::rate_at(int64_t step) const {
  const auto at = static_cast<double>(step), warm = static_cast<double>(recipe_.warmup);
  if (at < warm) return (at + 1) / (warm + 1);
  const double all = std::max<double>(1, static_cast<double>(recipe_.steps) - warm);
  return 0.5 * (1 + std::cos(std::acos(-1.0) * std::min(1.0, (at - warm) / all)));
}

StepResult Training::update(const Batch& batch) {
  const EnableGradGuard grad;
  const Tensor loss = task_.loss(batch);
  loss.backward();
  return {loss.detach(), use_gradients()};
}

std::optional<Tensor> Training::use_gradients() {
  std::optional<Tensor> norm;
  if (recipe_.clip > 0) norm = nn::utils::clip_grad_norm_(task_.model->parameters(), recipe_.clip);
  optimizer_->step();
  optimizer_->zero_grad();
  return norm;
}

void Training::advance() {
  rate_->step();
  ++step_;
}

double Training::evaluate() {
  const NoGradGuard no_grad;
  task_.model->eval();
  const double value = task_.evaluate();
  task_.model->train();
  return value;
}

std::string Training::sample() {
  const NoGradGuard no_grad;
  return task_.sample ? task_.sample() : fmt::format("{} {:.0f}", task_.metric, evaluate());
}

StateDict Training::state() {
  StateDict all = task_.model->state_dict();
  for (const auto& [name, t] : optimizer_->state_dict()) all["optimizer." + name] = t;
  return all;
}

void Training::save(const std::string& path) {
  RecipeNumbers numbers = recipe_numbers(recipe_);
  numbers[kStep] = static_cast<double>(step_);
  if (task_.text_print) numbers[kText] = *task_.text_print;
  save_checkpoint(
      path, {.model = task_.model.get(), .optimizer = optimizer_.get(), .scheduler = rate_.get(), .numbers = numbers},
      Location::none());
}

void Training::load(const std::string& path, const RecipeNumbers& numbers) {
  const RecipeNumbers saved = load_checkpoint(
      path, {.model = task_.model.get(), .optimizer = optimizer_.get(), .scheduler = rate_.get()}, Location::none());
  auto step = saved.find(kStep);
  if (step == saved.end()) throw Error(path + ": got a checkpoint without a step, expected one of `ingot train`");
  check_number<int64_t>(path, kStep, step->second);
  // Another text goes on with the same weights, but is not what went on before: it has to be told.
  if (auto print = saved.find(kText); print != saved.end() && text_.empty() && print->second != task_.text_print)
    throw Error("train: text: got the one that ships, expected --text with the one that " + path +
                " has learnt so far");
  step_ = static_cast<int64_t>(step->second);
  apply(recipe_, checked(saved, path));
  apply(recipe_, numbers);
  if (numbers.contains("weight_decay")) *optimizer_->option<double>("weight_decay", 0) = recipe_.weight_decay;
  optimizer_->initial_lr() = recipe_.lr;
  optimizer_->set_lr(recipe_.lr * rate_at(step_));
}

}  // namespace ingot::cli
