// Training from scratch: what is learnt, from which data, and one step of it. `ingot train` and the demo (of the demo's
// models) and `ingot bench NAME --mode train` (of any) stand on this.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "cli/models.h"

namespace ingot::cli {

/// The numbers of a run. A checkpoint holds them; what is told again when it is resumed goes before.
struct Recipe {
  int64_t steps = 0, batch = 0, warmup = 0, seed = 1;
  double lr = 0, weight_decay = 0, clip = 0;  // clip: most of the norm of all gradients; 0: whatever it is
  bool autocast = false;                      // forward and loss in a region of bf16
  INGOT_ALL_FIELDS(Recipe, steps, batch, warmup, seed, lr, weight_decay, clip, autocast)
};
/// Of a recipe, by name.
using RecipeNumbers = std::map<std::string, double>;

struct Batch {
  Tensor x, y;
  std::vector<Tensor> others = {};  // that the model takes behind x
};
INGOT_FIELDS(Batch, x, y, others)
struct StepResult {
  Tensor loss;
  std::optional<Tensor> norm;  // of all gradients, where they are clipped
};
INGOT_FIELDS(StepResult, loss, norm)

/// What there is to learn, and a model with its first weights.
struct Task {
  std::string name;
  Recipe recipe;
  std::shared_ptr<nn::Module> model;
  std::function<Tensor(const Batch&)> loss;
  std::function<std::unique_ptr<optim::Optimizer>(const Recipe&)> optimizer;
  /// Of a step: the same for the same recipe, whatever came before.
  std::function<Batch(int64_t step, const Recipe&)> batch;
  std::string unit;        // what is counted: "tokens"
  int64_t units_each = 1;  // of an example
  std::string metric;      // "bits_per_byte"
  int64_t best_of = 0;     // of a metric that counts, what it would be at best
  std::function<double()> evaluate;
  std::function<std::string()> sample;  // what the model says now
  std::optional<double> text_print;     // tells the text that is learnt from others
};
std::vector<std::string> task_names();
/// `text`: a file to learn instead of the one that ships, for bytegpt. Another model of the table learns the mean
/// square of its output, on random inputs by AdamW: to be timed, not to be trained. Throws Error for a name that is not
/// there (digits-cnn is digits_cnn), and a file that is missing or too short.
Task make_task(const std::string& name, const std::string& data, const std::string& text, const RecipeNumbers& numbers);

/// A task, its optimizer and its rate.
class Training {
 public:
  Training(const std::string& name, const std::string& data, const std::string& text = {},
           const RecipeNumbers& numbers = {});
  Training(const Training&) = delete;

  /// Forward, backward, clipping, the optimizer's step: what is compiled. The rate is that of the step.
  StepResult update(const Batch& batch);
  /// Of that, the part behind the backward pass. The norm of all gradients, where they are clipped.
  std::optional<Tensor> use_gradients();
  Batch next_batch() const { return task_.batch(step_, recipe_); }
  /// To the next step's rate.
  void advance();

  int64_t step() const { return step_; }
  const Task& task() const { return task_; }
  const Recipe& recipe() const { return recipe_; }
  double lr() const { return optimizer_->lr(); }
  double evaluate();
  std::string sample();
  /// All that a step changes: parameters, statistics and the optimizer's state, by name.
  StateDict state();

  void save(const std::string& path);
  /// Goes on where save() was called; `numbers` go before those of the file. Throws Error for a file that save() did
  /// not write, and for one of another text unless a text was told.
  void load(const std::string& path, const RecipeNumbers& numbers);

 private:
  /// Of the rate, the part: up in a line, then down along half a cosine.
  double rate_at(int64_t step) const;

  Task task_;
  Recipe recipe_;
  std::string text_;  // the file, if one was told
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::LRScheduler> rate_;
  int64_t step_ = 0;
};

}  // namespace ingot::cli
