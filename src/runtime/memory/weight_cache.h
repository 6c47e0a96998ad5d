// Packed weights of the process: each kept once, for as long as the memory that it was made from lives unchanged.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/program.h"
#include "runtime/memory/storage.h"

namespace ingot::runtime {

/// All that decides which bytes a packing holds, but for the memory that it is made from: what packs it, sizes,
/// strides, and how they are cut into panels.
class WeightFormat {
 public:
  /// `packer`: the kernel, or null where plain code packs.
  WeightFormat(KernelPtr packer, std::vector<int64_t> numbers);
  bool operator==(const WeightFormat& other) const;
  uint64_t hash() const { return hash_; }
  const std::vector<int64_t>& numbers() const { return numbers_; }

 private:
  KernelPtr packer_;
  std::vector<int64_t> numbers_;
  uint64_t hash_;
};

/// A weight in the order in which its steps read it. Pinned while a run reads it; once the cache has let go of it, its
/// memory is freed with the last pin.
class PackedWeight {
 public:
  PackedWeight(const void* source, const InputIdentity& identity, std::shared_ptr<const WeightFormat> format,
               int64_t bytes);
  ~PackedWeight();
  PackedWeight(const PackedWeight&) = delete;
  PackedWeight& operator=(const PackedWeight&) = delete;

  /// True if it was made from this memory in this state, in this format.
  bool holds(const void* source, const InputIdentity& identity,
             const std::shared_ptr<const WeightFormat>& format) const {
    return source == source_ && identity.version == version_ && identity.storage->id() == storage_id_ &&
           (format == format_ || *format == *format_);
  }
  /// Keeps the memory until unpin(); false if it is gone.
  bool pin();
  void unpin();
  /// Ends its life in the cache.
  void let_go();

  char* data() const { return data_.load(std::memory_order_relaxed); }
  int64_t bytes() const { return bytes_; }

 private:
  friend class WeightCache;
  friend class WeightUse;
  void free_data();

  const void* const source_;
  const uint64_t storage_id_, version_;
  const std::shared_ptr<const WeightFormat> format_;
  const int64_t bytes_;
  std::atomic<char*> data_;
  std::atomic<uint32_t> pins_{0};  // and kGone
  std::atomic<bool> reused_{false};
  std::atomic<uint64_t> last_use_{0};  // WeightCache::time_
};

/// What became of a step's weight in its latest run.
enum class WeightFate : uint8_t {
  none,       // it has not run, has no weight, or reads it as it lies
  kept,       // its packing is kept
  moves,      // it met the weight in another state each time: not packed until it meets one twice
  unseen,     // whoever owns the memory may write to it unseen
  no_room,    // packings are at their bound
  elsewhere,  // another thread was packing it
  no_memory
};
/// What became of the memory that a kept packing was made from.
enum class SourceFate : uint8_t {
  stays,       // nobody asked for it to go
  given_back,  // the file has it
  shared,      // the packing is of a part of its storage
  no_file      // it is in no file, or was written to
};
/// "packed, 4 MB"; "not packed: ..."; empty for none.
std::string describe(WeightFate fate, int64_t bytes, SourceFate source = SourceFate::stays);

/// What one step of one program knows of its weight's past: steps whose weights do not come back stop packing at first
/// sight.
struct WeightSlot {
  static constexpr int kTrust = 2;
  std::atomic<int> trust{kTrust};
  std::atomic<int64_t> packs{0}, bytes{0};
  std::atomic<WeightFate> fate{WeightFate::none};
  bool gives_back = false;  // once packed, the weight as it lies is not wanted in memory
  std::atomic<SourceFate> source{SourceFate::stays};
};

/// The weight that a step found for one run. What it holds between runs is looked at first.
class WeightUse {
 public:
  /// A packing (`bytes` bytes, written by `pack`) of what lies at `source` in `source_bytes` bytes, as many as its
  /// elements have: the one of before, the cache's, or a fresh one. After it, data() is null if none is kept. Throws
  /// what pack throws.
  void find(const void* source, int64_t source_bytes, const InputIdentity& identity,
            const std::shared_ptr<const WeightFormat>& format, int64_t bytes, WeightSlot& slot,
            const std::function<void(char*)>& pack);
  const char* data() const { return data_; }
  bool holds_any() const { return weight_ != nullptr; }
  /// The run has ended.
  void release();

 private:
  void note(WeightFate fate, int64_t bytes, const InputIdentity& identity, WeightSlot& slot, bool fresh) const;

  std::shared_ptr<PackedWeight> weight_;
  const char* data_ = nullptr;
};

/// Bytes of so many elements, which lie without gaps in some order of the dims (strides in bytes); 0 where they do not.
int64_t dense_bytes(std::initializer_list<int64_t> sizes, std::span<const int64_t> strides, int64_t element);

/// A packing is identified by storage, version, first address and format. It is dropped with its storage, when the
/// storage's version has moved, and for want of room. A weight whose version moved before its packing was used again is
/// packed once it has been met twice in the same state.
class WeightCache {
 public:
  static WeightCache& instance();

  struct Statistics {
    int64_t entries = 0;  // packings, and weights that are only remembered
    int64_t bytes = 0, limit_bytes = 0;
    int64_t packs = 0, evictions = 0, refusals = 0;  // refusals: runs that packed for themselves
  };
  Statistics statistics() const;
  /// Most bytes to keep; a quarter of the machine's memory by default.
  void set_limit(int64_t bytes);
  void clear();
  /// Drops the packings that no program holds.
  void drop_unheld();

  static constexpr size_t kMostEntries = 16384;

 private:
  friend class WeightUse;
  friend class Storage;
  struct State;
  std::shared_ptr<PackedWeight> find(const void* source, const InputIdentity& identity,
                                     const std::shared_ptr<const WeightFormat>& format, int64_t bytes, bool at_once,
                                     const std::function<void(char*)>& pack, WeightFate* fate, bool* fresh);
  /// The storage dies.
  static void forget(uint64_t storage_id);
  WeightCache();
  std::unique_ptr<State> state_;
  static std::atomic<uint64_t> time_;  // lookups that no step could answer itself
};

}  // namespace ingot::runtime
