// The frozen calls of one function, by their arguments.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/read_epoch.h"
#include "compile/frozen_call.h"

namespace ingot::detail {

/// Bounded in entries and bytes: past them, a new call takes the place of one that was not used of late. Readers take
/// no lock; what they find stays until their ReadSection ends. Writers are kept apart by a lock of their own.
class FrozenTable {
 public:
  static constexpr size_t kMostEntries = 1024;
  static constexpr int64_t kMostBytes = 8 << 20;

  FrozenTable() = default;
  FrozenTable(const FrozenTable&) = delete;
  ~FrozenTable();
  /// Within no section and without a lock.
  bool empty() const { return !view_.load(std::memory_order_acquire); }
  /// The call for these arguments, or null. Within a ReadSection.
  const FrozenCall* find(const LeafList& arguments, const CallKey& key) const;

  using Call = std::shared_ptr<const FrozenCall>;
  /// What writers took out and no reader holds any more, to be destroyed without their lock: it may hold the user's.
  struct Retired;
  using Garbage = std::vector<Retired>;
  /// Adds a call; in the place of `instead`, unless that is null. False where it cannot be had now: `instead` has gone,
  /// the table is full and new calls come too often, or readers hold too much of what was taken out.
  bool put(Call call, const FrozenCall* instead, Garbage& garbage);
  void clear(Garbage& garbage);
  /// A call with this hash of which `is` holds, or null.
  template <class Is>
  const FrozenCall* first(uint64_t hash, Is is) const {
    for (const Call& call : calls_)
      if (call->hash == hash && is(*call)) return call.get();
    return nullptr;
  }
  size_t entries() const { return calls_.size(); }
  int64_t bytes() const { return bytes_; }
  int64_t evictions() const { return evictions_; }

  /// What readers see: never changed once it is there.
  struct View {
    std::vector<const FrozenCall*> calls;
    std::vector<uint32_t> index;  // a hash table: the number of a call, counted from 1
  };
  struct Retired {
    uint64_t epoch = 0;
    std::unique_ptr<const View> view;
    std::vector<Call> calls;
  };

 private:
  size_t victim();
  void show(std::vector<Call> removed, Garbage& garbage);
  void collect(Garbage& garbage);

  std::atomic<const View*> view_{nullptr};
  mutable std::atomic<uint32_t> latest_{0};  // number of the call that was found last, which is tried first
  std::vector<Call> calls_;
  Garbage retired_;
  int64_t bytes_ = 0, evictions_ = 0;
  size_t hand_ = 0, turned_away_ = 0;
};

}  // namespace ingot::detail
