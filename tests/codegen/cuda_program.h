// Whole CUDA programs run kernel by kernel, on the processor or a device.
#pragma once
#include <span>
#include <vector>

#include "codegen/lower.h"
#include "cuda_unit.h"
#include "ir/reference.h"

namespace ingot::codegen::test {

/// Runs a program of loop and column steps, whose kernels are in `unit`, on dense inputs. Scalars are floating ones.
std::vector<ir::ReferenceTensor> run_cuda_program(const CudaUnit& unit, const ir::Graph& graph, const Program& program,
                                                  std::span<const ir::ReferenceTensor> inputs,
                                                  std::span<const double> scalars, std::span<const int64_t> symbols,
                                                  const CudaDevice& device = {});

}  // namespace ingot::codegen::test
