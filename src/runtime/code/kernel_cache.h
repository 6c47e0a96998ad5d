// The loaded kernels of the process, by key: equal kernels are loaded once.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/program.h"
#include "runtime/code/executable_memory.h"

namespace ingot::runtime {

/// A kernel that can be called: entry(frame), with frame.context = context.
struct LoadedKernel {
  KernelEntry entry = nullptr;
  const void* context = nullptr;
  KernelPtr source;
  double compile_ns = 0;                 // what generating and loading took
  mutable std::atomic<int64_t> hits{0};  // how often it was asked for again
  mutable uint64_t latest = 0;           // when it last was, as the cache counts
  ExecutableBlock code;
};
using LoadedKernelPtr = std::shared_ptr<const LoadedKernel>;

class KernelCache {
 public:
  static KernelCache& instance();

  /// The kernel with this key, or null.
  LoadedKernelPtr find(std::string_view key);
  /// What the kernel with this key was made of, or null. No use of it.
  KernelPtr source(std::string_view key);
  /// The kernel of this source, loaded if its key is new. Throws Error if the system refuses executable memory.
  LoadedKernelPtr load(const KernelPtr& source, double compile_ns = 0);
  /// All kernels, in order of name.
  std::vector<LoadedKernelPtr> kernels();
  /// Forgets all kernels; those in use stay loaded until their last user ends.
  void clear();

  /// Kernels that nobody uses are kept for those who compile the same again, up to this number and these bytes of code;
  /// those that were not asked for the longest go first.
  static constexpr size_t kMostUnused = 4096;
  static constexpr int64_t kMostUnusedBytes = int64_t{64} << 20;
  struct Figures {
    int64_t kernels = 0, code_bytes = 0, evictions = 0;
  };
  Figures figures();

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const;
  };
  void drop_unused();

  Mutex mutex_;
  std::unordered_map<std::string, LoadedKernelPtr, Hash, std::equal_to<>> kernels_;
  size_t fresh_ = 0;  // since unused ones were looked for: kernels, and bytes of their code
  int64_t fresh_bytes_ = 0;
  uint64_t uses_ = 0;
  int64_t evictions_ = 0;
};

}  // namespace ingot::runtime
