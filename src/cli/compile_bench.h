// `ingot bench compile`: what compiling and replaying take against the length of a function.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "cli/commands.h"
#include "eager/tensor.h"

namespace ingot::cli {

/// A function of about n ops over a few small tensors: what is measured is the compiler. Two that are made alike hold
/// tensors of their own with the same values.
struct CompileForm {
  using Callable = std::function<std::vector<Tensor>(const Tensor&)>;  // of [rows, 16]
  const char* name;
  const char* what;
  Callable (*make)(int n);
};
std::span<const CompileForm> compile_forms();

/// Of functions of up to `length` ops, 16,000 by default.
int bench_compile(const BenchOptions& options);

}  // namespace ingot::cli
