// The CUDA driver, opened at run time: device 0, its memory, loaded kernels and launches. One binary runs with and
// without a GPU. Any thread may call; the device's primary context is made current on it.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "base/cuda_launch.h"
#include "runtime/cuda/nvrtc.h"

namespace ingot::runtime::cuda {

/// Empty if the driver can be used and has a device; else why not. The first to ask makes the context of device 0,
/// which stays for as long as the process.
const std::string& driver_missing();

/// Device 0.
struct Device {
  std::string name;
  int arch = 0;  // compute capability: 90 for 9.0
  int multiprocessors = 0;
  int64_t shared_bytes = 0;  // that one block may ask for
  int64_t l2_bytes = 0, memory_bytes = 0;
  int driver_version = 0;  // of CUDA, the newest that the driver knows: 13000 for 13.0
  /// What of it shapes a launch.
  CudaDevice limits() const { return {multiprocessors, shared_bytes}; }
};
/// Throws Error if the driver is missing, as all below do. All that the driver refuses is an Error, too: what was
/// attempted, and the driver's words.
const Device& device();

/// What runs in order. None: the default stream, which waits for all others and they for it.
class Stream {
 public:
  Stream() = default;
  static Stream make();
  Stream(Stream&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  ~Stream();
  void* handle() const { return handle_; }

 private:
  void* handle_ = nullptr;
};
/// Waits for what the stream was given. Throws Error for what went wrong in kernels, too, as all later calls do then.
void synchronize(const Stream& stream = {});

/// Memory of the device, on a line of 256 bytes.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// Throws OutOfMemory. No bytes: null.
  explicit DeviceMemory(int64_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();
  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// Page-locked memory of the host, which the device reads and writes at the same address, over the bus.
void* allocate_pinned(int64_t bytes);
void free_pinned(void* data) noexcept;

/// Copies of bytes. Between host and device: done when they return, after what the default stream was given.
void copy_to_device(void* to, const void* from, int64_t bytes);
void copy_to_host(void* to, const void* from, int64_t bytes);
/// Within the device, and bytes of one value: in the stream's order.
void copy_on_device(void* to, const void* from, int64_t bytes, const Stream& stream = {});
void fill(void* to, uint8_t value, int64_t bytes, const Stream& stream = {});

/// An entry function of a module, usable while that is loaded.
struct Function {
  void* handle = nullptr;
  std::string entry;
  int64_t parameter_bytes = -1;  // of its argument struct; -1: the driver does not tell
};

/// Kernels in the device's memory.
class Module {
 public:
  /// Throws Error for what is no cubin, or another device's.
  explicit Module(const Cubin& cubin);
  Module(Module&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  ~Module();
  /// Throws Error if there is no such entry.
  Function function(const std::string& entry) const;

 private:
  void* handle_ = nullptr;
};

/// Starts a kernel whose only parameter is a struct of these words, by value. Returns at once.
void launch(const Function& function, const CudaLaunch& launch, std::span<const uint64_t> words,
            const Stream& stream = {});

/// A moment in a stream.
class Event {
 public:
  Event();
  Event(Event&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  ~Event();
  void record(const Stream& stream = {});
  void wait() const;
  /// From an earlier one to this, in milliseconds, about half a microsecond fine. Waits for this one.
  double milliseconds_since(const Event& earlier) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace ingot::runtime::cuda
