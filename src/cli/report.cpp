#include "cli/report.h"

#include <algorithm>

namespace ingot::cli {

double modelled_us(const Explanation& explanation, const Roof& roof) {
  double us = 0;
  if (explanation.programs.empty()) return us;
  for (const auto& step : explanation.programs.back().steps) us += roof.floor_us(step.operations, step.bytes);
  return us;
}

Run measure_run(const DemoModel& model, int batch, CompileMode mode, const Roof& roof, double seconds) {
  auto fast = compile(model.forward, {.mode = mode, .name = model.name});
  Run run;
  run.batch = batch;
  static_cast<Comparison&>(run) = compare(model.forward, fast, model.input(batch), {.seconds = seconds});
  run.roof_us = modelled_us(fast.explain(), roof);
  run.statistics = fast.stats();
  return run;
}

double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

bool bitwise_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) { return ingot::bitwise_equal(x, y); });
}

}  // namespace ingot::cli
