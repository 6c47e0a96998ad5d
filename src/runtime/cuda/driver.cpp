#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/first_use.h"

namespace ingot::runtime::cuda {
namespace {

// The part of the driver's interface that we use, as cuda.h declares it. Names with _v2 are what its macros make of the
// plain ones since CUDA 4: sizes and addresses have 64 bits.
using Status = int;
using Address = unsigned long long;
using Handle = void*;  // of a context, module, function, stream or event
constexpr Status kOutOfMemory = 2;
// CUdevice_attribute and CUfunction_attribute.
constexpr int kMultiprocessors = 16, kL2Bytes = 38, kUnifiedAddressing = 41, kMajor = 75, kMinor = 76,
              kSharedBytesOfABlock = 97;
constexpr int kDynamicSharedBytes = 8;
constexpr unsigned kPortable = 1, kMapped = 2;      // cuMemHostAlloc
constexpr int kEarlyLaunch = 6;                     // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
constexpr int64_t kSharedBytesUnasked = 48 * 1024;  // a kernel has them without asking

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id;
  alignas(8) int value[16];
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  Handle stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct DriverFunctions {
  Status (*error_name)(Status, const char**) = nullptr;
  Status (*error_string)(Status, const char**) = nullptr;
  Status (*init)(unsigned) = nullptr;
  Status (*driver_version)(int*) = nullptr;
  Status (*device_count)(int*) = nullptr;
  Status (*device)(int*, int) = nullptr;
  Status (*device_name)(char*, int, int) = nullptr;
  Status (*device_attribute)(int*, int, int) = nullptr;
  Status (*device_memory)(size_t*, int) = nullptr;
  Status (*retain_context)(Handle*, int) = nullptr;
  Status (*set_context)(Handle) = nullptr;
  Status (*allocate)(Address*, size_t) = nullptr;
  Status (*free)(Address) = nullptr;
  Status (*allocate_host)(void**, size_t, unsigned) = nullptr;
  Status (*free_host)(void*) = nullptr;
  Status (*copy_to_device)(Address, const void*, size_t) = nullptr;
  Status (*copy_to_host)(void*, Address, size_t) = nullptr;
  Status (*copy_on_device)(Address, Address, size_t, Handle) = nullptr;
  Status (*fill)(Address, unsigned char, size_t, Handle) = nullptr;
  Status (*load_module)(Handle*, const void*) = nullptr;
  Status (*unload_module)(Handle) = nullptr;
  Status (*function)(Handle*, Handle, const char*) = nullptr;
  Status (*set_function_attribute)(Handle, int, int) = nullptr;
  Status (*parameter)(Handle, size_t, size_t*, size_t*) = nullptr;  // since CUDA 12.4; may be missing
  Status (*launch)(const LaunchConfig*, Handle, void**, void**) = nullptr;
  Status (*make_stream)(Handle*, unsigned) = nullptr;
  Status (*destroy_stream)(Handle) = nullptr;
  Status (*wait_stream)(Handle) = nullptr;
  Status (*make_event)(Handle*, unsigned) = nullptr;
  Status (*destroy_event)(Handle) = nullptr;
  Status (*record_event)(Handle, Handle) = nullptr;
  Status (*wait_event)(Handle) = nullptr;
  Status (*elapsed)(float*, Handle, Handle) = nullptr;
};

struct Driver {
  DriverFunctions call;
  std::string missing;
  Device device;
  Handle context = nullptr;  // the primary one, which other libraries of the process share; never released
};

std::string words_of(const DriverFunctions& call, Status status) {
  const char *name = nullptr, *text = nullptr;
  if (call.error_name(status, &name) != 0 || !name) return fmt::format("error {}", status);
  if (call.error_string(status, &text) != 0 || !text) return name;
  return fmt::format("{} ({})", text, name);
}

/// The functions; what is missing, if anything.
std::string open_library(DriverFunctions& f) {
  void* library = nullptr;
  for (const char* name : {"libcuda.so.1", "libcuda.so"})
    if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
  if (!library) return "the CUDA driver was not found (libcuda.so.1 or libcuda.so on the loader's path)";
  std::string missing;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function && missing.empty()) missing = std::string("this CUDA driver has no ") + name;
  };
  find(f.error_name, "cuGetErrorName");
  find(f.error_string, "cuGetErrorString");
  find(f.init, "cuInit");
  find(f.driver_version, "cuDriverGetVersion");
  find(f.device_count, "cuDeviceGetCount");
  find(f.device, "cuDeviceGet");
  find(f.device_name, "cuDeviceGetName");
  find(f.device_attribute, "cuDeviceGetAttribute");
  find(f.device_memory, "cuDeviceTotalMem_v2");
  find(f.retain_context, "cuDevicePrimaryCtxRetain");
  find(f.set_context, "cuCtxSetCurrent");
  find(f.allocate, "cuMemAlloc_v2");
  find(f.free, "cuMemFree_v2");
  find(f.allocate_host, "cuMemHostAlloc");
  find(f.free_host, "cuMemFreeHost");
  find(f.copy_to_device, "cuMemcpyHtoD_v2");
  find(f.copy_to_host, "cuMemcpyDtoH_v2");
  find(f.copy_on_device, "cuMemcpyDtoDAsync_v2");
  find(f.fill, "cuMemsetD8Async");
  find(f.load_module, "cuModuleLoadData");
  find(f.unload_module, "cuModuleUnload");
  find(f.function, "cuModuleGetFunction");
  find(f.set_function_attribute, "cuFuncSetAttribute");
  find(f.launch, "cuLaunchKernelEx");
  find(f.make_stream, "cuStreamCreate");
  find(f.destroy_stream, "cuStreamDestroy_v2");
  find(f.wait_stream, "cuStreamSynchronize");
  find(f.make_event, "cuEventCreate");
  find(f.destroy_event, "cuEventDestroy_v2");
  find(f.record_event, "cuEventRecord");
  find(f.wait_event, "cuEventSynchronize");
  find(f.elapsed, "cuEventElapsedTime");
  if (missing.empty()) f.parameter = reinterpret_cast<decltype(f.parameter)>(dlsym(library, "cuFuncGetParamInfo"));
  return missing;
}

Driver open_driver() {
  Driver d;
  if (d.missing = open_library(d.call); !d.missing.empty()) return d;
  // The first refusal says why nothing can be run.
  auto good = [&](Status status, const char* what) {
    if (status != 0 && d.missing.empty())
      d.missing = fmt::format("the CUDA driver cannot {}: {}", what, words_of(d.call, status));
    return d.missing.empty();
  };
  int count = 0, number = 0, major = 0, minor = 0, unified = 0, shared = 0, l2 = 0;
  if (!good(d.call.init(0), "begin") || !good(d.call.device_count(&count), "count devices")) return d;
  if (count == 0) {
    d.missing = "the CUDA driver has no device";
    return d;
  }
  char name[256] = {};
  size_t bytes = 0;
  good(d.call.driver_version(&d.device.driver_version), "tell its version");
  good(d.call.device(&number, 0), "give device 0");
  good(d.call.device_name(name, sizeof name - 1, number), "name device 0");
  good(d.call.device_memory(&bytes, number), "tell the memory of device 0");
  for (auto [to, attribute] : {std::pair{&d.device.multiprocessors, kMultiprocessors},
                               {&major, kMajor},
                               {&minor, kMinor},
                               {&unified, kUnifiedAddressing},
                               {&shared, kSharedBytesOfABlock},
                               {&l2, kL2Bytes}})
    good(d.call.device_attribute(to, attribute, number), "describe device 0");
  if (!good(d.call.retain_context(&d.context, number), "make a context on device 0")) return d;
  if (!unified) d.missing = "device 0 has no addresses in common with the host";
  d.device.name = name;
  d.device.arch = 10 * major + minor;
  d.device.shared_bytes = shared;
  d.device.l2_bytes = l2;
  d.device.memory_bytes = static_cast<int64_t>(bytes);
  return d;
}

/// Never closed.
const Driver& driver() {
  static constinit FirstUse<const Driver> driver;
  return driver.get(open_driver);
}

template <class... Arguments>
void check(Status status, fmt::format_string<Arguments...> what, Arguments&&... arguments) {
  if (status == 0) return;
  std::string text = fmt::format("CUDA: cannot {}: {}", fmt::format(what, std::forward<Arguments>(arguments)...),
                                 words_of(driver().call, status));
  if (status == kOutOfMemory) throw OutOfMemory(text);
  throw Error(text);
}

/// The functions, with the device's context current on this thread: another library may have set its own.
const DriverFunctions& call() {
  const Driver& d = driver();
  if (!d.missing.empty()) throw Error(d.missing);
  check(d.call.set_context(d.context), "use the context of {}", d.device.name);
  return d.call;
}

/// What gives something back: at the end of a process the driver may have gone first.
template <class Give>
void give_back(Give give) noexcept {
  const Driver& d = driver();
  if (d.missing.empty() && d.call.set_context(d.context) == 0) give(d.call);
}

Address address(const void* at) { return reinterpret_cast<Address>(at); }

}  // namespace

const std::string& driver_missing() { return driver().missing; }

const Device& device() {
  if (!driver().missing.empty()) throw Error(driver().missing);
  return driver().device;
}

Stream Stream::make() {
  Stream stream;
  check(call().make_stream(&stream.handle_, 0), "make a stream");
  return stream;
}

Stream::~Stream() {
  if (handle_) give_back([&](const DriverFunctions& f) { f.destroy_stream(handle_); });
}

void synchronize(const Stream& stream) { check(call().wait_stream(stream.handle()), "wait for kernels"); }

DeviceMemory::DeviceMemory(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  Address at = 0;
  check(call().allocate(&at, static_cast<size_t>(bytes)), "allocate {} bytes on the device", bytes);
  data_ = reinterpret_cast<char*>(at);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (data_) give_back([&](const DriverFunctions& f) { f.free(address(data_)); });
}

void* allocate_pinned(int64_t bytes) {
  void* data = nullptr;
  check(call().allocate_host(&data, static_cast<size_t>(bytes), kPortable | kMapped), "lock {} bytes of the host",
        bytes);
  return data;
}

void free_pinned(void* data) noexcept {
  if (data) give_back([&](const DriverFunctions& f) { f.free_host(data); });
}

void copy_to_device(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  check(call().copy_to_device(address(to), from, static_cast<size_t>(bytes)), "copy {} bytes to the device", bytes);
  // From pageable memory the call may return before the last bytes have arrived.
  synchronize();
}

void copy_to_host(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  check(call().copy_to_host(to, address(from), static_cast<size_t>(bytes)), "copy {} bytes from the device", bytes);
}

void copy_on_device(void* to, const void* from, int64_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  check(call().copy_on_device(address(to), address(from), static_cast<size_t>(bytes), stream.handle()),
        "copy {} bytes on the device", bytes);
}

void fill(void* to, uint8_t value, int64_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  check(call().fill(address(to), value, static_cast<size_t>(bytes), stream.handle()), "fill {} bytes on the device",
        bytes);
}

Module::Module(const Cubin& cubin) {
  // The driver takes the image's size from its header.
  if (cubin.image.empty()) throw Error("CUDA: cannot load kernels: the cubin is empty");
  check(call().load_module(&handle_, cubin.image.data()), "load {} bytes of kernels on {}", cubin.image.size(),
        device().name);
}

Module::~Module() {
  if (handle_) give_back([&](const DriverFunctions& f) { f.unload_module(handle_); });
}

Function Module::function(const std::string& entry) const {
  const DriverFunctions& f = call();
  Function function{nullptr, entry, -1};
  check(f.function(&function.handle, handle_, entry.c_str()), "find the kernel {}", entry);
  size_t offset = 0, bytes = 0;
  if (f.parameter && f.parameter(function.handle, 0, &offset, &bytes) == 0)
    function.parameter_bytes = static_cast<int64_t>(bytes);
  return function;
}

void launch(const Function& function, const CudaLaunch& l, std::span<const uint64_t> words, const Stream& stream) {
  const DriverFunctions& f = call();
  // The driver copies as many bytes as the kernel's image says.
  INGOT_CHECK(function.parameter_bytes < 0 || function.parameter_bytes == static_cast<int64_t>(words.size_bytes()),
              fmt::format("{} takes {} bytes of arguments, got {}", function.entry, function.parameter_bytes,
                          words.size_bytes()));
  // To the most there is: threads that launch one kernel with more and with less do not meet.
  if (l.shared_bytes > kSharedBytesUnasked)
    check(f.set_function_attribute(function.handle, kDynamicSharedBytes, static_cast<int>(device().shared_bytes)),
          "give {} {} bytes of shared memory a block", function.entry, device().shared_bytes);
  void* parameter = const_cast<uint64_t*>(words.data());
  // A kernel's blocks are made ready while the one before it ends, and wait for that in the kernel's first line.
  const LaunchAttribute early{kEarlyLaunch, {1}};
  const LaunchConfig config{{l.grid[0], l.grid[1], l.grid[2]},
                            {l.block[0], l.block[1], l.block[2]},
                            static_cast<unsigned>(l.shared_bytes),
                            stream.handle(),
                            &early,
                            device().arch >= 90 ? 1u : 0u};
  check(f.launch(&config, function.handle, &parameter, nullptr),
        "launch {}: grid {} x {} x {}, block {} x {} x {}, {} bytes of shared memory", function.entry, l.grid[0],
        l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.shared_bytes);
}

Event::Event() { check(call().make_event(&handle_, 0), "make an event"); }

Event::~Event() {
  if (handle_) give_back([&](const DriverFunctions& f) { f.destroy_event(handle_); });
}

void Event::record(const Stream& stream) { check(call().record_event(handle_, stream.handle()), "record an event"); }

void Event::wait() const { check(call().wait_event(handle_), "wait for an event"); }

double Event::milliseconds_since(const Event& earlier) const {
  wait();
  float milliseconds = 0;
  check(call().elapsed(&milliseconds, earlier.handle_, handle_), "tell the time between two events");
  return milliseconds;
}

}  // namespace ingot::runtime::cuda
