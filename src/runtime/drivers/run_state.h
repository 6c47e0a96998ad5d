// What one run of a program owns, and how far its steps are.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/memory/weight_cache.h"
#include "runtime/thread_pool.h"

namespace ingot::runtime {

/// How far the shares of one phase of one step are. A share is begun by whoever claims it.
class alignas(64) Progress {
 public:
  void reset() {
    for (auto& word : claimed_) word.store(0, std::memory_order_relaxed);
    done.store(0, std::memory_order_relaxed);
  }
  bool claim(int share) {
    const uint64_t bit = uint64_t{1} << (share % 64);
    std::atomic<uint64_t>& word = claimed_[share / 64];
    return !(word.load(std::memory_order_relaxed) & bit) && !(word.fetch_or(bit, std::memory_order_relaxed) & bit);
  }
  std::atomic<int> done{0};

 private:
  std::atomic<uint64_t> claimed_[kMostThreads / 64] = {};
};

/// What a state keeps from run to run (see runtime/kept_values.h).
struct KeptMemory {
  struct Source {
    const void* data;
    uint64_t storage, version;
    friend bool operator==(const Source&, const Source&) = default;
  };
  char* memory = nullptr;
  int64_t bytes = 0;
  std::vector<Source> sources;    // that it was made of
  std::vector<uint64_t> scalars;  // and with
  bool known = false;             // the sources are told by their storages
  bool complete = false;          // a run has made all of it
  bool current = false;           // for this run: nothing of it is to be made
};

/// What a run gives to the driver of one step.
struct StepState {
  char* const* buffers;     // base address of each, as the step's form numbers them
  const uint64_t* scalars;  // as its kernels expect them
  WeightUse& weights;
  bool again = false;  // of a segment, a slice after the first
};

/// What one run of a program owns.
struct RunState {
  std::vector<char*> buffers;       // base address of each buffer of the program, then of each step's own
  std::vector<char*> step_buffers;  // the same, step by step as its form numbers them (see runtime/step_forms.h)
  std::vector<uint64_t> scalars;    // of all steps, as their kernels expect them
  std::vector<WeightUse> weights;   // one a step; without data where B is packed as it is used
  KeptMemory kept;
  bool again = false;  // see StepState
  char* arena = nullptr;
  int64_t arena_bytes = 0;
  std::unique_ptr<Progress[]> progress;  // one a phase, where threads share the run
  size_t phases = 0;
  std::vector<std::pair<uint32_t, double>> times;  // while a profile is on: ns of each step that ran, in order
  void add_time(uint32_t step, double ns) {
    const auto it = std::find_if(times.begin(), times.end(), [&](const auto& time) { return time.first == step; });
    it == times.end() ? static_cast<void>(times.emplace_back(step, ns)) : static_cast<void>(it->second += ns);
  }
  RunState() = default;
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;
  ~RunState();
};

}  // namespace ingot::runtime
