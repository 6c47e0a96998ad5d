// What the demo and the benchmarks say of a model: measured once, shown as a table or as JSON.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/measure.h"
#include "cli/models.h"
#include "cli/roof.h"

namespace ingot::cli {

/// One model at one batch size, times in microseconds a call.
struct Run {
  int batch = 0;
  Timing eager, compiled;
  double roof_us = 0;        // modelled: the sum over steps of max(operations / peak, bytes / bandwidth)
  double max_abs_error = 0;  // compiled against eager
  bool bitwise_equal = false;
  Statistics statistics;
  double roof_share() const { return compiled.median > 0 ? roof_us / compiled.median : 0; }
  double speedup() const { return compiled.median > 0 ? eager.median / compiled.median : 0; }
};

/// Checks compiled against eager, then times both in turns.
Run measure_run(const DemoModel& model, int batch, CompileMode mode, const Roof& roof, double seconds);

/// Modelled time of the program that ran last, in microseconds.
double modelled_us(const Explanation& explanation, const Roof& roof);

/// True if shapes, dtypes and every bit agree; all NaNs are equal.
bool same_bits(const Tensor& a, const Tensor& b);
double max_abs_difference(const Tensor& a, const Tensor& b);

/// "123.4 us", "1.23 ms".
std::string duration(double us);

}  // namespace ingot::cli
