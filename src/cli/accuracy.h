// How far the generated kernels of functions of one f32 number are from the exact values.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/program.h"
#include "codegen/builder.h"

namespace ingot::cli {

/// A function of one f32 number: its definition over the kernel IR, and its values in double.
struct UnaryFunction {
  std::string name;
  std::function<codegen::Expr(codegen::Expr)> define;
  std::function<void(std::span<const float>, std::vector<double>&)> exact;
  double bound = 0;         // that its row states, in units in the last place
  bool of_operand = false;  // of the operand where that is larger than the exact value
};

/// Every row of the op table that states a bound, one function for each mode of the row; the values in double are the
/// reference interpreter's.
std::vector<UnaryFunction> unary_functions();

/// A kernel from one f32 buffer to another, loaded for `target`.
class UnaryKernel {
 public:
  UnaryKernel(const UnaryFunction& function, const Target& target);
  ~UnaryKernel();
  UnaryKernel(UnaryKernel&&) noexcept;
  void run(const float* x, float* y, int64_t count) const;

 private:
  struct Loaded;
  std::unique_ptr<Loaded> loaded_;
};

/// The largest error met, in units in the last place of the exact value (below the smallest normal number: of that).
struct Accuracy {
  uint64_t inputs = 0, over = 0;  // over: inputs whose error is beyond the bound
  double worst = 0;               // infinite: NaN, an infinity or the sign of a zero is wrong
  float input = 0, result = 0;
  double exact = 0;
  void join(const Accuracy& other);
};

/// Error of one result, in units in the last place of `exact`, or of `operand` where that is larger.
double error_in_ulps(float result, double exact, double operand = 0);

/// Measures the inputs first, first + step, ... (bit patterns, below `end`).
Accuracy measure(const UnaryFunction& function, const UnaryKernel& kernel, uint64_t first, uint64_t end, uint64_t step);

/// Every exponent and both signs, with `mantissas` mantissas each: the first, the last, the middle and seeded ones.
std::vector<float> sample_inputs(int mantissas, uint64_t seed);
Accuracy measure(const UnaryFunction& function, const UnaryKernel& kernel, std::span<const float> inputs);

}  // namespace ingot::cli
