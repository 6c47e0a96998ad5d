// NVRTC, opened at run time: CUDA C++ text becomes a cubin on any machine that has the library, with or without a GPU.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ingot::runtime::cuda {

/// What the assembler gave one entry function.
struct KernelResources {
  std::string entry;
  int registers = 0;
  int64_t stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
};

struct Cubin {
  std::vector<char> image;
  std::vector<KernelResources> kernels;
  std::string warnings;  // of the compiler; empty for our own text
  double milliseconds = 0;
};

/// Empty if NVRTC can be used; else why not.
const std::string& nvrtc_missing();
/// "13.0". Throws Error if NVRTC is missing.
std::string nvrtc_version();
/// Compute capabilities that this NVRTC compiles for.
std::vector<int> nvrtc_architectures();

/// Compiles one translation unit, without contraction. Throws Error if NVRTC is missing or does not know `arch`, and
/// InternalError with the log if the text is refused: all text is our own.
Cubin compile(const std::string& source, int arch);

/// The resources in the assembler's account, in its order.
std::vector<KernelResources> parse_resources(const std::string& log);

}  // namespace ingot::runtime::cuda
