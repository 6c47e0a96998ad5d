// The kernels that are measured against the machine's roof: what each computes, on which sizes, and its floor.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/ceiling_kernels.h"
#include "ingot.h"

namespace ingot::cli {

using Tensors = std::vector<Tensor>;
using Sizes = std::vector<int64_t>;

/// A math function that is computed `calls` times; it counts at its own measured speed.
struct MathCalls {
  Tensor (*function)(const Tensor&);
  double calls;
};

/// What a kernel cannot do without.
struct Work {
  double operations = 0;  // multiplications and additions
  std::vector<MathCalls> math;
  double bytes = 0;                        // read and written once each
  CeilingLoop memory = CeilingLoop::copy;  // what it does with them
};

struct KernelCase {
  Sizes sizes;
  DType dtype = kFloat32;
  double tolerance = 1e-5;            // largest error against the same in f64, relative to the largest result
  std::optional<DType> weights = {};  // of the matrices that come unchanged from outside; none: dtype
};

struct KernelBench {
  const char* name;
  const char* sizes;  // what the sizes of a case are
  double target;      // share of the roof
  std::vector<KernelCase> cases;
  /// The operands' shapes; the last `constants` of them, or all but the first (-1), come unchanged from outside, as
  /// weights do. A matrix among them is as small as a layer's first weights, so that what it gives is of the size of
  /// what it is given.
  std::vector<Sizes> (*operands)(const Sizes& sizes);
  int constants;
  Tensor (*compute)(const Tensors& operands, const Sizes& sizes);
  Work (*work)(const Sizes& sizes, double element_bytes);
};

const std::vector<KernelBench>& kernel_benches();
/// Null if there is none of this name.
const KernelBench* find_kernel_bench(const std::string& name);

}  // namespace ingot::cli
