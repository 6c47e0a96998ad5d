// What the demo and the benchmarks say of a model: measured once, shown as a table or as JSON.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/models.h"
#include "cli/roof.h"
#include "compile/compare.h"

namespace ingot::cli {

/// One model at one batch size, times in microseconds a call.
struct Run : Comparison {
  int batch = 0;
  double roof_us = 0;  // modelled: the sum over steps of max(operations / peak, bytes / bandwidth)
  Statistics statistics;
  double roof_share() const { return compiled.median > 0 ? roof_us / compiled.median : 0; }
};

/// Modelled time of the program that ran last, in microseconds.
double modelled_us(const Explanation& explanation, const Roof& roof);

/// Checks compiled against eager, then times both in turns.
template <class Forward, class Input>
Run measure_run(const std::string& name, const Forward& forward, const Input& input, int batch, CompileMode mode,
                const Roof& roof, double seconds) {
  auto fast = compile(forward, {.mode = mode, .name = name});
  Run run;
  run.batch = batch;
  static_cast<Comparison&>(run) = compare(forward, fast, input, {.seconds = seconds});
  run.roof_us = modelled_us(fast.explain(), roof);
  run.statistics = fast.stats();
  return run;
}

/// The one in the middle.
double median(std::vector<double> of);
/// Lists of as many tensors, each with the same bits.
bool bitwise_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

/// Shows one line of what is going on in place of the one before, where a person watches.
void progress(const std::string& text);
/// "[######....]"
std::string bar(double part, int width);
/// A curve of dots over the steps, `indent` spaces to the left.
std::string curve(const std::vector<double>& values, int indent);

/// A step of a program: what it took, the mean of many runs, and its floor.
struct StepReport {
  std::string name, kind;
  double mean_us, roof_us;
};
/// Those of the programs that `call` runs.
std::vector<StepReport> time_steps(const std::function<void()>& call, const Roof& roof);
/// Steps of one name: what they take above their floors.
struct StepLoss {
  std::string name, kind;
  int64_t steps = 0;
  double mean_us = 0, roof_us = 0;
  double lost_us() const { return mean_us - roof_us; }
};
/// Those that lose most, the largest first, up to three.
std::vector<StepLoss> largest_losses(const std::vector<StepReport>& steps);
/// Each step, then the sums of each kind and the largest losses.
void print_steps(const std::vector<StepReport>& steps);
nlohmann::json to_json(const std::vector<StepLoss>& losses);
nlohmann::json to_json(const std::vector<StepReport>& steps);

}  // namespace ingot::cli
