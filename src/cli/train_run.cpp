#include "cli/train_run.h"

#include <fmt/format.h>

#include "runtime/cpu.h"
#include "runtime/files/files.h"

namespace ingot::cli {

Contender::Contender(Compiled what, const std::function<std::unique_ptr<Training>()>& make) {
  measured([&] { training_ = make(); });
  const std::string& name = training_->task().name;
  update_ = [this](const Batch& batch) { return training_->update(batch); };
  if (what == Compiled::step) {
    auto fast = std::make_shared<CompiledFunction<std::function<StepResult(const Batch&)>>>(
        compile(update_, {.name = name + "_step"}));
    update_ = [fast](const Batch& batch) { return (*fast)(batch); };
    explain_ = [fast] { return fast->explain(); };
  } else if (what == Compiled::parts) {
    auto loss = compile(training_->task().loss, {.name = name + "_loss"});
    auto use = compile([this] { return training_->use_gradients(); }, {.name = name + "_update"});
    update_ = [loss, use](const Batch& batch) {
      const EnableGradGuard grad;
      const Tensor value = loss(batch);
      value.backward();
      return StepResult{value.detach(), use()};
    };
    explain_ = [loss] { return loss.explain(); };
  }
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

double Contender::median_ms() const {
  // A step of a few is compiled, the first twice: for the state that it makes.
  return median(ms_.size() > 2 ? std::vector(ms_.begin() + 2, ms_.end()) : ms_);
}

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
  if (!options.checkpoint.empty()) runtime::OutputFile(options.checkpoint, "train: checkpoint: " + options.checkpoint);
  auto make = [&] {
    auto training = std::make_unique<Training>(options.name, options.data, options.text, options.numbers);
    if (!options.resume.empty()) training->load(options.resume, options.numbers);
    return training;
  };
  std::vector<std::unique_ptr<Contender>> contenders;
  if (options.mode != "compile") contenders.push_back(std::make_unique<Contender>(Compiled::nothing, make));
  if (options.mode != "eager") contenders.push_back(std::make_unique<Contender>(Compiled::step, make));
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

namespace {

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / (1 << 20)); }

}  // namespace

nlohmann::json to_json(const TrainReport& r) {
  nlohmann::json all = {{"name", r.name},           {"mode", r.mode},
                        {"threads", num_threads()}, {"isa", runtime::host_target().str()},
                        {"steps", r.recipe.steps},  {"batch", r.recipe.batch},
                        {"seed", r.recipe.seed},    {"loss", r.losses.back()},
                        {r.metric, r.value},        {"scratch_bytes", memory_stats().scratch_bytes}};
  if (r.mode != "compile")
    all.update({{"eager_ms_per_step", r.eager_ms},
                {"peak_bytes_eager", r.peak_bytes_eager},
                {"step_bytes_eager", r.step_bytes_eager}});
  if (r.mode != "eager")
    all.update({{"compiled_ms_per_step", r.compiled_ms},
                {"first_compiled_ms", r.compiled_first_ms},
                {"compile_ms", r.statistics.compile_ms},
                {"compilations", r.statistics.compilations},
                {"graph_breaks", r.statistics.graph_breaks},
                {"fallbacks", r.statistics.fallbacks},
                {"peak_bytes_compiled", r.peak_bytes_compiled},
                {"step_bytes_compiled", r.step_bytes_compiled}});
  if (r.mode == "compare") all.update({{"bitwise_equal", r.bitwise_equal}, {"speedup", r.speedup()}});
  return all;
}

void print_training(const TrainReport& r) {
  const bool both = r.mode == "compare";
  fmt::print("{}", curve(r.losses, 2));
  fmt::print("  {} after {} steps: {}\n", "loss " + fmt::format("{:.4f}", r.losses.back()), r.losses.size(),
             r.best_of ? fmt::format("{:.0f} of {} test images right", r.value, r.best_of)
                       : fmt::format("{:.4f} bits a byte", r.value));
  auto show = [&](const char* who, double ms, int64_t peak, const std::string& more) {
    const int width = std::max(1, static_cast<int>(30 * ms / std::max(r.eager_ms, r.compiled_ms)));
    fmt::print("  {:<9}{:<31}{:>10} a step  {:>10} at most  {}\n", who, std::string(width, '#'), duration(ms * 1e3),
               megabytes(peak), more);
  };
  if (r.mode != "compile") show("eager", r.eager_ms, r.peak_bytes_eager, "");
  if (r.mode != "eager")
    show("compiled", r.compiled_ms, r.peak_bytes_compiled,
         both ? fmt::format("{:.2f}x  {}", r.speedup(), r.bitwise_equal ? "same bits" : "BITS DIFFER") : "");
  if (r.mode != "eager")
    fmt::print("  compiled in {:.1f} ms: {} compilations, {} graph breaks, {} fallbacks\n", r.statistics.compile_ms,
               r.statistics.compilations, r.statistics.graph_breaks, r.statistics.fallbacks);
}

}  // namespace ingot::cli
