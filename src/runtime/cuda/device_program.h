// Programs of loop and column steps on the device: kernels compiled and loaded, a program bound to sizes and memory,
// its launches given to a stream.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/program.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/step_arguments.h"

namespace ingot::runtime::cuda {

/// The kernels of one translation unit (Program::device_source), compiled by NVRTC for the device and loaded.
class LoadedUnit {
 public:
  /// Throws Error without a driver or NVRTC, or if that does not compile for the device.
  explicit LoadedUnit(const std::string& source);
  /// Throws Error if the unit has no such entry.
  Function function(const std::string& entry) const { return module_.function(entry); }
  double compile_ms() const { return compile_ms_; }  // what NVRTC took

 private:
  explicit LoadedUnit(const Cubin& cubin);
  Module module_;
  double compile_ms_ = 0;
};

/// One launch of one kernel, ready.
struct Launch {
  Function function;
  CudaLaunch shape;
  std::vector<uint64_t> words;
};
/// The launches of a kernel. `scratch`: CudaPlan::scratch_bytes of the device, on a line of 256 bytes.
void add_launches(std::vector<Launch>& to, const LoadedUnit& unit, const KernelCall& call, const CudaPlan& plan,
                  char* scratch);
void run(std::span<const Launch> launches, const Stream& stream = {});

/// The data of a program's calls: addresses in memory that the device reaches. What it points to may change between
/// calls, not where it lies.
struct DeviceData {
  std::span<char*const> inputs, outputs;
  std::span<const uint64_t> scalars;  // as CallData has them
};

/// A program bound to sizes, memory and scalars. It holds its intermediate results; the unit stays for as long.
class DeviceProgram {
 public:
  /// `limits`: what shapes the launches (no result depends on it); no more shared memory than the device has is asked
  /// for. Throws Error for a step that is a library's and for steps that run over slices, and OutOfMemory.
  DeviceProgram(const Program& program, const LoadedUnit& unit, std::span<const int64_t> symbols,
                const DeviceData& data, CudaDevice limits = device().limits());
  /// Gives the stream all launches and returns. Runs share intermediate results: they go into one stream, or into
  /// others once they are done.
  void run(const Stream& stream = {}) const { cuda::run(launches_, stream); }
  size_t launches() const { return launches_.size(); }
  int64_t scratch_bytes() const { return scratch_.bytes(); }

 private:
  std::vector<DeviceMemory> arena_;  // a block a buffer
  DeviceMemory scratch_;             // shared by all steps: they run one after the other
  std::vector<Launch> launches_;
};

}  // namespace ingot::runtime::cuda
