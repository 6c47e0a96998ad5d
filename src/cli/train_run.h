// A training run: who trains, eager or compiled or both in turns, and what came of it.
#pragma once
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/train.h"

namespace ingot::cli {

/// What of a step is compiled: nothing; the whole step; or the loss alone and what follows the backward pass alone,
/// with backward() between them.
enum class Compiled : uint8_t { nothing, step, parts };

/// Who trains, with the memory and time that it takes.
class Contender {
 public:
  Contender(Compiled what, const std::function<std::unique_ptr<Training>()>& make);

  /// One step on a batch; waits for the loss.
  StepResult step(const Batch& batch);
  Training& training() const { return *training_; }
  bool compiled() const { return explain_ != nullptr; }
  /// Of the step, or of the loss.
  Explanation explain() const { return explain_(); }
  double last_ms() const { return ms_.back(); }
  double median_ms() const;
  double first_ms() const { return ms_.front(); }
  /// The most that its parameters, states and intermediate results had at once, others of the process left out. So is
  /// the scratch memory of threads, which all share: who needs it first would have it in his peak.
  int64_t peak_bytes() const { return peak_; }
  /// The most that a step after the first had beyond what was there before it: parameters, states, packed weights.
  int64_t step_bytes() const { return step_; }

 private:
  /// Returns the most that f had beyond what was there before.
  int64_t measured(const std::function<void()>& f);

  int64_t owned_ = 0, peak_ = 0, step_ = 0;
  std::unique_ptr<Training> training_;
  std::function<StepResult(const Batch&)> update_;
  std::function<Explanation()> explain_;
  std::vector<double> ms_;
};

/// Whether all that they learnt has the same bits.
bool same_state(Training& a, Training& b);

/// A step that was done. `result` has more than one where both trained: eager's comes first.
struct TrainStep {
  struct One {
    double loss = 0, ms = 0;
    std::optional<double> norm;
  };
  int64_t step = 0;  // from 1
  double lr = 0;     // that it used
  std::vector<One> of;
  bool bitwise_equal = true;  // loss and norm
  std::string sample;         // after some steps
};

struct TrainReport {
  Recipe recipe;
  std::string name, mode, unit, metric;
  int64_t units_each = 1, best_of = 0;
  double value = 0;  // of the metric, at the end
  std::vector<double> losses;
  bool bitwise_equal = true;                                    // every loss and norm, and all that was learnt
  double eager_ms = 0, compiled_ms = 0, compiled_first_ms = 0;  // of a step: medians; the first with its compilation
  int64_t peak_bytes_eager = 0, peak_bytes_compiled = 0, step_bytes_eager = 0, step_bytes_compiled = 0;
  Statistics statistics;  // of the compiled step
  double speedup() const { return compiled_ms > 0 ? eager_ms / compiled_ms : 0; }
};

/// Throws Error for options that cannot be followed. `each` is called after each step.
TrainReport train(const TrainOptions& options, const std::function<void(const TrainStep&, const TrainReport&)>& each);
/// For machines, and for a person: the curve of the loss, what came out, both sides' times and memory.
nlohmann::json to_json(const TrainReport& report);
void print_training(const TrainReport& report);

}  // namespace ingot::cli
