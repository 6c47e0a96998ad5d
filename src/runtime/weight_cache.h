// Packed weights, kept between calls for as long as the memory they came from is unchanged.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/allocator.h"
#include "runtime/program_runner.h"

namespace ingot::runtime {

/// Panels of one B, and which memory in which state they were packed from.
struct PackedWeight {
  const void* data = nullptr;
  InputIdentity identity;
  int64_t k = 0, n = 0;
  char* panels = nullptr;
  int64_t bytes = 0;
  explicit PackedWeight(int64_t size) : panels(static_cast<char*>(allocate(size))), bytes(size) {}
  PackedWeight(const PackedWeight&) = delete;
  PackedWeight& operator=(const PackedWeight&) = delete;
  ~PackedWeight() { deallocate(panels, bytes); }

  bool matches(const void* d, const InputIdentity& i, int64_t its_k, int64_t its_n) const {
    return data == d && identity.storage == i.storage && identity.version == i.version && k == its_k && n == its_n;
  }
};

/// Of one step: the weight packed last. After so many repacks it keeps none: B then changes from call to call.
struct WeightSlot {
  static constexpr int64_t kRepacks = 2;
  std::mutex mutex;
  std::shared_ptr<const PackedWeight> current;
  int64_t packs = 0;
  bool given_up() const { return packs > kRepacks; }
};

class WeightCache {
 public:
  explicit WeightCache(size_t steps) : slots(std::make_unique<WeightSlot[]>(steps)), count(steps) {}
  std::unique_ptr<WeightSlot[]> slots;
  size_t count;
};

}  // namespace ingot::runtime
