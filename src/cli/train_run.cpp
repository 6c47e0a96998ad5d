#include "cli/train_run.h"

#include <filesystem>

namespace ingot::cli {

Contender::Contender(bool compiled, const std::function<std::unique_ptr<Training>()>& make) {
  measured([&] { training_ = make(); });
  update_ = [this](const Batch& batch) { return training_->update(batch); };
  if (!compiled) return;
  auto fast = std::make_shared<CompiledFunction<std::function<StepResult(const Batch&)>>>(
      compile(update_, {.name = training_->task().name + "_step"}));
  update_ = [fast](const Batch& batch) { return (*fast)(batch); };
  explain_ = [fast] { return fast->explain(); };
}

StepResult Contender::step(const Batch& batch) {
  StepResult result;
  const int64_t bytes = measured([&] {
    const double start = now_us();
    result = update_(batch);
    (void)result.loss.item<double>();
    ms_.push_back((now_us() - start) / 1e3);
  });
  if (ms_.size() > 1) step_ = std::max(step_, bytes);
  training_->advance();
  return result;
}

double Contender::median_ms() const { return median(ms_); }

int64_t Contender::measured(const std::function<void()>& f) {
  reset_peak_memory_stats();
  auto own = [](const MemoryStats& s) { return s.allocated_bytes - s.scratch_bytes; };
  const int64_t before = own(memory_stats());
  f();
  const MemoryStats after = memory_stats();
  const int64_t most = after.peak_beyond_scratch_bytes - before;
  peak_ = std::max(peak_, owned_ + most);
  owned_ += own(after) - before;
  return most;
}

bool same_state(Training& a, Training& b) {
  const StateDict x = a.state(), y = b.state();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& p, const auto& q) {
    return p.first == q.first && ingot::bitwise_equal(p.second, q.second);
  });
}

TrainReport train(const TrainOptions& options, const std::function<void(const TrainStep&, const TrainReport&)>& each) {
  // Known before the work rather than after it.
  if (!options.checkpoint.empty() &&
      !std::filesystem::is_directory(std::filesystem::absolute(options.checkpoint).parent_path()))
    throw Error("train: checkpoint: got " + options.checkpoint + ", expected a file in a folder that is there");
  auto make = [&] {
    auto training = std::make_unique<Training>(options.name, options.data, options.text, options.numbers);
    if (!options.resume.empty()) training->load(options.resume, options.numbers);
    return training;
  };
  std::vector<std::unique_ptr<Contender>> contenders;
  if (options.mode != "compile") contenders.push_back(std::make_unique<Contender>(false, make));
  if (options.mode != "eager") contenders.push_back(std::make_unique<Contender>(true, make));
  Training& training = contenders.back()->training();  // of two, the compiled one

  TrainReport report;
  const Task& task = training.task();
  report.recipe = training.recipe();
  report.name = task.name, report.mode = options.mode, report.unit = task.unit, report.metric = task.metric;
  report.units_each = task.units_each, report.best_of = task.best_of;
  const int64_t last = options.until ? std::min(options.until, report.recipe.steps) : report.recipe.steps;
  if (training.step() >= last)
    throw Error("train: steps: got " + std::to_string(last) + ", expected more than the " +
                std::to_string(training.step()) + " that " + options.resume + " has done");

  const int64_t sample_every = options.sample_every < 0 ? std::max<int64_t>(1, last / 6) : options.sample_every;
  while (training.step() < last) {
    TrainStep done{.step = training.step() + 1, .lr = training.lr(), .of = {}, .sample = {}};
    const Batch batch = training.next_batch();
    done.of.resize(contenders.size());
    // In turns, and who is first changes.
    std::vector<StepResult> results(contenders.size());
    for (size_t i = 0; i < contenders.size(); ++i) {
      const size_t who = (i + static_cast<size_t>(done.step)) % contenders.size();
      results[who] = contenders[who]->step(batch);
    }
    for (size_t i = 0; i < contenders.size(); ++i) {
      done.of[i] = {results[i].loss.item<double>(), contenders[i]->last_ms(), {}};
      if (results[i].norm) done.of[i].norm = results[i].norm->item<double>();
      done.bitwise_equal = done.bitwise_equal && ingot::bitwise_equal(results[i].loss, results[0].loss) &&
                           (!results[i].norm || ingot::bitwise_equal(*results[i].norm, *results[0].norm));
    }
    report.bitwise_equal = report.bitwise_equal && done.bitwise_equal;
    report.losses.push_back(done.of.back().loss);
    if (sample_every && done.step % sample_every == 0 && done.step < last) done.sample = training.sample();
    if (!options.checkpoint.empty() && (done.step % options.checkpoint_every == 0 || done.step == last))
      training.save(options.checkpoint);
    each(done, report);
  }

  report.value = training.evaluate();
  for (const auto& c : contenders) {
    report.bitwise_equal = report.bitwise_equal && same_state(c->training(), contenders[0]->training());
    (c->compiled() ? report.compiled_ms : report.eager_ms) = c->median_ms();
    (c->compiled() ? report.peak_bytes_compiled : report.peak_bytes_eager) = c->peak_bytes();
    (c->compiled() ? report.step_bytes_compiled : report.step_bytes_eager) = c->step_bytes();
    if (!c->compiled()) continue;
    report.compiled_first_ms = c->first_ms();
    report.statistics = c->explain().statistics;
  }
  return report;
}

}  // namespace ingot::cli
