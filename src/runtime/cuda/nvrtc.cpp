#include "runtime/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "base/error.h"
#include "base/first_use.h"

namespace ingot::runtime::cuda {
namespace {

// The part of NVRTC's interface that we use, as its documentation has it; the same since CUDA 11.1.
using ProgramHandle = void*;
using NvrtcStatus = int;
constexpr NvrtcStatus kInvalidOption = 5;
struct NvrtcFunctions {
  const char* (*error_string)(NvrtcStatus) = nullptr;
  NvrtcStatus (*version)(int*, int*) = nullptr;
  NvrtcStatus (*arch_count)(int*) = nullptr;
  NvrtcStatus (*archs)(int*) = nullptr;
  NvrtcStatus (*create)(ProgramHandle*, const char*, const char*, int, const char* const*,
                        const char* const*) = nullptr;
  NvrtcStatus (*destroy)(ProgramHandle*) = nullptr;
  NvrtcStatus (*compile)(ProgramHandle, int, const char* const*) = nullptr;
  NvrtcStatus (*log_size)(ProgramHandle, size_t*) = nullptr;
  NvrtcStatus (*log)(ProgramHandle, char*) = nullptr;
  NvrtcStatus (*cubin_size)(ProgramHandle, size_t*) = nullptr;
  NvrtcStatus (*cubin)(ProgramHandle, char*) = nullptr;
  std::string missing;
};

NvrtcFunctions open_nvrtc() {
  NvrtcFunctions f;
  void* library = nullptr;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
  if (!library) {
    f.missing = "NVRTC was not found (libnvrtc.so.13, libnvrtc.so.12 or libnvrtc.so on the loader's path)";
    return f;
  }
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function && f.missing.empty()) f.missing = std::string("this NVRTC has no ") + name;
  };
  find(f.error_string, "nvrtcGetErrorString");
  find(f.version, "nvrtcVersion");
  find(f.arch_count, "nvrtcGetNumSupportedArchs");
  find(f.archs, "nvrtcGetSupportedArchs");
  find(f.create, "nvrtcCreateProgram");
  find(f.destroy, "nvrtcDestroyProgram");
  find(f.compile, "nvrtcCompileProgram");
  find(f.log_size, "nvrtcGetProgramLogSize");
  find(f.log, "nvrtcGetProgramLog");
  find(f.cubin_size, "nvrtcGetCUBINSize");
  find(f.cubin, "nvrtcGetCUBIN");
  return f;
}

/// Never closed.
const NvrtcFunctions& functions() {
  static constinit FirstUse<const NvrtcFunctions> library;
  return library.get(open_nvrtc);
}

const NvrtcFunctions& usable() {
  if (!functions().missing.empty()) throw Error(functions().missing);
  return functions();
}

void check_nvrtc(NvrtcStatus status, const char* what) {
  if (status != 0) throw Error(fmt::format("NVRTC: {}: {}", what, usable().error_string(status)));
}

class Unit {
 public:
  explicit Unit(const std::string& source) {
    check_nvrtc(usable().create(&handle_, source.c_str(), "ingot.cu", 0, nullptr, nullptr), "cannot make a program");
  }
  Unit(const Unit&) = delete;
  ~Unit() { usable().destroy(&handle_); }
  ProgramHandle handle() const { return handle_; }
  std::string log() const {
    size_t size = 0;
    check_nvrtc(usable().log_size(handle_, &size), "cannot read the log");
    std::string text(size, '\0');
    if (size) check_nvrtc(usable().log(handle_, text.data()), "cannot read the log");
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }

 private:
  ProgramHandle handle_ = nullptr;
};

/// The number before `what`, or after it where it stands first ("Used 14 registers").
int64_t number_before(const std::string& line, const std::string& what) {
  size_t at = line.find(what);
  if (at == std::string::npos) return 0;
  size_t begin = line.find_last_not_of("0123456789", at - 1);
  return std::stoll(line.substr(begin + 1, at - begin - 1));
}

}  // namespace

const std::string& nvrtc_missing() { return functions().missing; }

std::string nvrtc_version() {
  int major = 0, minor = 0;
  check_nvrtc(usable().version(&major, &minor), "cannot read the version");
  return fmt::format("{}.{}", major, minor);
}

std::vector<int> nvrtc_architectures() {
  int count = 0;
  check_nvrtc(usable().arch_count(&count), "cannot list architectures");
  std::vector<int> list(static_cast<size_t>(count));
  check_nvrtc(usable().archs(list.data()), "cannot list architectures");
  return list;
}

std::vector<KernelResources> parse_resources(const std::string& log) {
  std::vector<KernelResources> kernels;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view head = "Compiling entry function '";
    if (size_t at = line.find(head); at != std::string::npos) {
      size_t begin = at + head.size();
      kernels.push_back({line.substr(begin, line.find('\'', begin) - begin), 0, 0, 0, 0});
    }
    if (kernels.empty()) continue;
    KernelResources& k = kernels.back();
    if (line.find(" bytes stack frame") != std::string::npos) {
      k.stack_bytes = number_before(line, " bytes stack frame");
      k.spill_store_bytes = number_before(line, " bytes spill stores");
      k.spill_load_bytes = number_before(line, " bytes spill loads");
    }
    if (line.find(" registers") != std::string::npos) k.registers = static_cast<int>(number_before(line, " registers"));
  }
  return kernels;
}

Cubin compile(const std::string& source, int arch) {
  std::vector<int> known = nvrtc_architectures();
  if (std::find(known.begin(), known.end(), arch) == known.end())
    throw Error(fmt::format("NVRTC {} does not compile for sm_{}; it knows sm_{}", nvrtc_version(), arch,
                            fmt::join(known, ", sm_")));
  auto start = std::chrono::steady_clock::now();
  Unit unit(source);
  std::string architecture = fmt::format("--gpu-architecture=sm_{}", arch);
  // NVRTC keeps what it compiled, where there is a driver, and then tells no resources. Older ones know no such option.
  const char* options[] = {architecture.c_str(), "--std=c++17", "--fmad=false", "--ptxas-options=-v", "--no-cache"};
  constexpr int kOptions = std::size(options);
  NvrtcStatus status = usable().compile(unit.handle(), kOptions, options);
  if (status == kInvalidOption) status = usable().compile(unit.handle(), kOptions - 1, options);
  std::string log = unit.log();
  if (status != 0)
    throw InternalError(
        fmt::format("NVRTC refuses generated text ({}):\n{}\n{}", usable().error_string(status), log, source));
  Cubin out;
  size_t size = 0;
  check_nvrtc(usable().cubin_size(unit.handle(), &size), "cannot read the cubin");
  out.image.resize(size);
  check_nvrtc(usable().cubin(unit.handle(), out.image.data()), "cannot read the cubin");
  out.kernels = parse_resources(log);
  if (size_t at = log.find("warning"); at != std::string::npos) out.warnings = log;
  out.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace ingot::runtime::cuda
