// Whole CUDA programs run on the processor: steps, arguments and scalars become launches as a CUDA runtime will do it.
#pragma once
#include <span>
#include <vector>

#include "codegen/lower.h"
#include "cuda_host.h"
#include "ir/reference.h"

namespace ingot::codegen::test {

/// Runs a program of loop and column steps, whose kernels are in `unit`, on dense inputs.
std::vector<ir::ReferenceTensor> run_cuda_program(const HostUnit& unit, const ir::Graph& graph, const Program& program,
                                                  std::span<const ir::ReferenceTensor> inputs,
                                                  std::span<const double> scalars, std::span<const int64_t> symbols,
                                                  const CudaDevice& device = {});

}  // namespace ingot::codegen::test
