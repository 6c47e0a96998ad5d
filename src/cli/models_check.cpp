#include "cli/models_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "cli/zoo.h"
#include "compile/compare.h"
#include "conformance/json_text.h"

namespace ingot::cli {
namespace {

constexpr int kCalls = 3;  // of what is compiled: recorded, then run again
constexpr double kOutputBound = 1e-4, kLossBound = 1e-5, kGradientBound = 1e-3, kSmallGradientBound = 1e-6;
constexpr double kStatisticsFloor = 1e-6;  // some means are zero but for rounding

double largest(const Tensor& t) { return t.numel() ? t.to(kFloat64).abs().max().item<double>() : 0; }
double length(const Tensor& t) { return t.to(kFloat64).norm().item<double>(); }

/// What one step of training gave.
struct CheckedStep {
  Tensor output, loss;  // without gradients; a whole compiled step gives no output
  StateDict gradients, buffers;
};

class FileCheck {
 public:
  FileCheck(std::string name, const std::string& path, const ZooRow& row, ModelChecks& to)
      : name_(std::move(name)), row_(row), to_(to), file_(path), loss_(zoo_loss(file_.about)) {
    for (const char* needed : {"eval_output", "train_output", "loss", "input/0"})
      if (!file_.tensors.contains(needed)) throw Error(std::string("the file has no tensor '") + needed + "'");
    if (file_.tensors.at("loss").numel() != 1) throw Error("the file's loss is not one number");
    // Under the names of the model.
    auto own = [&](const StateDict& named) { return row_.own_names ? row_.own_names(named) : named; };
    file_.weights = own(file_.weights), gradients_ = own(file_.named("grad/"));
    for (const auto& [gradient, g] : gradients_) longest_ = std::max(longest_, length(g));
    (void)zoo_model(row_, file_);  // what does not fit is said once
  }

  void run() {
    mode("eager", [&] { eager(); });
    mode("checked", [&] { evaluated(CompileMode::checked); });
    mode("frozen", [&] { evaluated(CompileMode::frozen); });
    mode("whole_step", [&] { whole_step(); });
    mode("alone", [&] { alone(); });
  }

 private:
  template <class Body>
  void mode(const char* name, Body body) {
    mode_ = name;
    try {
      body();
    } catch (const std::exception& error) {
      fail("run", error.what());
    }
  }
  void fail(const std::string& what, const std::string& error) { to_.failures.push_back({name_, mode_, what, error}); }

  /// One comparison: an error is more than the bound, NaN, or another shape.
  void judge(const std::string& what, const Tensor& got, const Tensor& expected, double measure(const Tensor&),
             double bound) {
    ++to_.checks;
    if (!got.defined()) return fail(what, "got nothing");
    if (got.sizes() != expected.sizes()) return fail(what, "got another shape than the file has");
    const double error = measure(got.to(kFloat64) - expected.to(kFloat64));
    if (!(error <= bound * row_.slack))
      fail(what, fmt::format("off by {:.3g}, expected at most {:.3g}", error, bound * row_.slack));
  }
  void judge_output(const std::string& what, const Tensor& got) {
    const Tensor& expected = file_.tensors.at(what);
    judge(what, got, expected, largest, kOutputBound * largest(expected));
  }
  void same_bits(const std::string& what, const Tensor& got, const Tensor& eager) {
    ++to_.checks;
    if (got.defined() != eager.defined() || (got.defined() && !bitwise_equal(got, eager)))
      fail(what, "other bits than eager's");
  }

  void judge_step(const CheckedStep& step) {
    if (step.output.defined()) judge_output("train_output", step.output);
    const Tensor& loss = file_.tensors.at("loss");
    judge("loss", step.loss.reshape(loss.sizes()), loss, largest, kLossBound * std::max(1.0, largest(loss)));
    for (const auto& [name, expected] : gradients_) {
      const auto found = step.gradients.find(name);
      const size_t failed = to_.failures.size();
      judge("grad/" + name, found == step.gradients.end() ? Tensor() : found->second, expected, length,
            std::max(kGradientBound * length(expected), kSmallGradientBound * longest_));
      if (to_.failures.size() > failed) to_.failures.back().error += in_double(name, expected);
    }
    for (const auto& [name, g] : step.gradients) {
      ++to_.checks;
      if (!gradients_.contains(name)) fail("grad/" + name, "the file has no such gradient");
    }
    for (const auto& [name, expected] : file_.named("buffer_after/")) {
      const auto found = step.buffers.find(name);
      const double bound =
          is_floating(expected.dtype()) ? std::max(kOutputBound * largest(expected), kStatisticsFloor) : 0;
      judge("buffer_after/" + name, found == step.buffers.end() ? Tensor() : found->second, expected, largest, bound);
    }
  }
  /// What is left of a gradient's error where the step is computed in double: nothing, if an activation lies nearer to
  /// a kink than f32 rounds.
  std::string in_double(const std::string& name, const Tensor& expected) {
    if (of_double_.empty()) {
      const AutoGradMode grad(true);
      ZooModel model = zoo_model(row_, file_);
      model.module->to(kFloat64);
      model.module->train();
      Inputs inputs = file_.inputs;
      for (Tensor& t : inputs)
        if (is_floating(t.dtype())) t = t.to(kFloat64);
      loss_(model.forward(inputs), inputs).backward();
      for (const auto& [parameter, p] : model.module->named_parameters()) of_double_[parameter] = p.grad();
    }
    const auto found = of_double_.find(name);
    if (found == of_double_.end() || !found->second.defined() || found->second.sizes() != expected.sizes()) return "";
    return fmt::format("; in double off by {:.1g}", length(found->second - expected.to(kFloat64)));
  }
  void judge_compiled(const CheckedStep& step) {
    judge_step(step);
    if (step.output.defined()) same_bits("train_output", step.output, eager_.output);
    same_bits("loss", step.loss, eager_.loss);
    for (const auto& [name, expected] : eager_.gradients)
      same_bits("grad/" + name, step.gradients.contains(name) ? step.gradients.at(name) : Tensor(), expected);
    for (const auto& [name, expected] : eager_.buffers)
      same_bits("buffer_after/" + name, step.buffers.at(name), expected);
  }

  /// The state of the file again, and no gradients.
  void begin(ZooModel& model) const {
    model.module->load_state_dict(file_.weights, true, Location::none());
    model.module->zero_grad();
    model.module->train();
  }
  CheckedStep end(ZooModel& model, const Tensor& output, const Tensor& loss) const {
    CheckedStep step{output.defined() ? output.detach() : Tensor(), loss.detach(), {}, {}};
    // A tied one has one gradient; the file may give it under each name.
    std::set<const void*> seen;
    for (const auto& [name, p] : model.module->named_parameters())
      if (p.grad().defined() && (seen.insert(p.impl()).second || gradients_.contains(name)))
        step.gradients[name] = p.grad();
    for (const auto& [name, b] : model.module->named_buffers()) step.buffers[name] = b.clone();
    return step;
  }

  void eager() {
    ZooModel model = zoo_model(row_, file_);
    {
      const NoGradGuard no_grad;
      model.module->eval();
      eval_output_ = model.forward(file_.inputs);
      judge_output("eval_output", eval_output_);
    }
    const AutoGradMode grad(true);
    begin(model);
    const Tensor output = model.forward(file_.inputs), loss = loss_(output, file_.inputs);
    loss.backward();
    eager_ = end(model, output, loss);
    judge_step(eager_);
  }
  void evaluated(CompileMode compiled) {
    const NoGradGuard no_grad;
    ZooModel model = zoo_model(row_, file_);
    model.module->eval();
    auto fast = compile(model.forward, {.mode = compiled, .name = name_});
    for (int call = 0; call <= kCalls; ++call) {  // frozen after the second
      const Tensor output = fast(file_.inputs);
      judge_output("eval_output", output);
      same_bits("eval_output", output, eval_output_);
    }
    ++to_.checks;
    if (compiled == CompileMode::frozen && !fast.stats().frozen_calls)
      fail("run", "never frozen: " + fast.explain().frozen);
  }
  void whole_step() {
    const AutoGradMode grad(true);
    ZooModel model = zoo_model(row_, file_);
    auto step = compile(
        [&](const Inputs& inputs) {
          const Tensor loss = loss_(model.forward(inputs), inputs);
          loss.backward();
          return loss.detach();
        },
        {.name = name_});
    for (int call = 0; call < kCalls; ++call) {
      begin(model);
      const Tensor loss = step(file_.inputs);
      judge_compiled(end(model, {}, loss));
    }
  }
  void alone() {
    const AutoGradMode grad(true);
    ZooModel model = zoo_model(row_, file_);
    auto fast = compile(model.forward, {.name = name_});
    for (int call = 0; call < kCalls; ++call) {
      begin(model);
      const Tensor output = fast(file_.inputs), loss = loss_(output, file_.inputs);
      loss.backward();
      judge_compiled(end(model, output, loss));
    }
  }

  std::string name_, mode_;
  const ZooRow& row_;
  ModelChecks& to_;
  ModelFile file_;
  std::function<Tensor(const Tensor&, const Inputs&)> loss_;
  StateDict gradients_;
  double longest_ = 0;
  Tensor eval_output_;
  CheckedStep eager_;
  StateDict of_double_;  // gradients, once they were asked for
};

/// Names of models in the folder: its safetensors files, and what its index names. An index that cannot be read fails.
std::set<std::string> names_in(const std::string& folder, ModelChecks& checks) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") names.insert(entry.path().stem().string());
  const std::string path = folder + "/index.json";
  if (std::filesystem::exists(path)) {
    try {
      const auto listed = conformance::read_json(path);
      if (!listed.is_object()) throw Error("expected an object, a model a name");
      for (const auto& item : listed.items()) names.insert(item.key());
    } catch (const std::exception& error) {
      checks.models.push_back("index.json");
      checks.failures.push_back({"index.json", "file", "load", error.what()});
    }
  }
  return names;
}

/// A file that says that it holds steps of optimizers.
bool is_of_optimizers(const std::string& path) {
  return std::filesystem::exists(path) && load_metadata(path).contains("configurations");
}

void check_file(const std::string& name, const std::string& path, ModelChecks& checks) {
  try {
    if (is_of_optimizers(path)) return checks.skipped.push_back(name);
    const ZooRow* row = find_zoo_row(name);
    if (!row) throw Error("unknown model '" + name + "'; `ingot models` lists those there are");
    FileCheck(name, path, *row, checks).run();
  } catch (const std::exception& error) {
    checks.failures.push_back({name, "file", "load", error.what()});
  }
  checks.models.push_back(name);
}

}  // namespace

ModelChecks check_models(const std::string& folder, const std::function<void(const std::string&)>& progress) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw Error("models check: got '" + folder + "', expected a folder");
  ModelChecks checks;
  for (const std::string& name : names_in(folder, checks)) {
    progress(name);
    check_file(name, folder + "/" + name + ".safetensors", checks);
  }
  return checks;
}

}  // namespace ingot::cli
