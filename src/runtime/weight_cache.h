// Packed weights, kept between calls for as long as the memory they came from is unchanged.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "runtime/allocator.h"
#include "runtime/program_runner.h"

namespace ingot::runtime {

/// A weight in the order in which its step reads it, and which memory in which state it was made from.
struct PackedWeight {
  const void* source = nullptr;
  InputIdentity identity;
  int64_t rows = 0, columns = 0;  // sizes that may differ between two bindings of one step
  char* data = nullptr;
  int64_t bytes = 0;
  explicit PackedWeight(int64_t size) : data(static_cast<char*>(allocate(size))), bytes(size) {}
  PackedWeight(const PackedWeight&) = delete;
  PackedWeight& operator=(const PackedWeight&) = delete;
  ~PackedWeight() { deallocate(data, bytes); }
};

/// Of one step: the weight packed last. After so many repacks it keeps none: the weight then changes from call to call.
struct WeightSlot {
  static constexpr int64_t kRepacks = 2;
  std::mutex mutex;
  std::shared_ptr<const PackedWeight> current;
  int64_t packs = 0;
};

class WeightCache {
 public:
  explicit WeightCache(size_t steps) : slots(std::make_unique<WeightSlot[]>(steps)), count(steps) {}
  std::unique_ptr<WeightSlot[]> slots;
  size_t count;
};

/// Makes `mine` the packed form of `source`: as it is, from the slot, or fresh from `pack`; null if it is not kept.
void update_weight(std::shared_ptr<const PackedWeight>& mine, const void* source, const InputIdentity& identity,
                   int64_t rows, int64_t columns, WeightSlot& slot,
                   const std::function<std::shared_ptr<PackedWeight>()>& pack);

}  // namespace ingot::runtime
