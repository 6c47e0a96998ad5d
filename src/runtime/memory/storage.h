// Storage: one block of bytes that tensors share, with a version that counts writes.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/counted_ptr.h"

namespace ingot::runtime {

class Storage;
using StoragePtr = CountedPtr<Storage>;

/// Counted references; made by allocate or adopt, deleted with the last reference.
class Storage {
 public:
  /// A fresh block of `bytes` bytes, not initialised.
  static StoragePtr allocate(int64_t bytes);
  /// Memory that someone else owns; `release(owner)` is called once, when the storage dies. release may be null.
  /// `written_unseen`: the owner may write to it without announcing it.
  static StoragePtr adopt(void* data, int64_t bytes, void (*release)(void*) = nullptr, void* owner = nullptr,
                          bool written_unseen = false);

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  bool external() const { return external_; }
  bool written_unseen() const { return written_unseen_; }
  /// Differs from that of every other storage of this process, past ones included. Never 0.
  uint64_t id() const { return id_; }
  /// Counts the writes that were announced.
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  /// Announces a write that may have been anywhere: the version of this storage moves on.
  void bump_version() {
    const uint64_t now = version_.fetch_add(1, std::memory_order_release) + 1;
    last_anywhere_.store(now, std::memory_order_relaxed);
  }
  /// The same of a write to these bytes only.
  void bump_version(const char* begin, const char* end);
  /// True if one of the writes after `version` is known to have touched these bytes. The latest kPartialWrites writes
  /// to parts are known, and all others.
  bool written_since(uint64_t version, const char* begin, const char* end) const;
  static constexpr size_t kPartialWrites = 16;

  /// A packing of it is kept, to be dropped with it.
  void mark_packed() { packed_.store(true, std::memory_order_relaxed); }
  /// It holds a weight: its memory is not kept for others when it dies.
  void mark_lasting() { lasting_.store(true, std::memory_order_relaxed); }
  /// It lies in a private mapping of a file that holds what nobody writes to it.
  void mark_mapped() { mapped_ = true; }
  /// Gives the pages of its file back to the system, which reads them again for whoever asks: bits and address stay.
  /// Whoever calls it reads all of the storage at that time, so a write that it could undo is a race already. False,
  /// and nothing is done, for memory that no file has: another kind, or one that was written to.
  bool give_back_pages();
  /// Bytes of the storages that are alive and were given back.
  static int64_t given_back_bytes();

  void retain() { references_.add(); }
  void release() {
    if (references_.drop()) destroy();
  }
  friend void add_reference(Storage& storage) { storage.retain(); }
  friend void drop_reference(Storage& storage) { storage.release(); }
  int32_t references() const { return references_.count(); }

 private:
  Storage() = default;
  ~Storage() = default;
  void destroy();

  ReferenceCount references_;
  bool external_ = false, written_unseen_ = false;
  bool mapped_ = false;
  std::atomic<bool> packed_{false}, lasting_{false}, given_back_{false};
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  uint64_t id_ = 0;
  struct PartialWrites;
  std::atomic<uint64_t> version_{0};
  std::atomic<uint64_t> last_anywhere_{0};               // the version after the latest write that was not to a part
  std::atomic<PartialWrites*> partial_writes_{nullptr};  // made when first needed
  void (*release_)(void*) = nullptr;
  void* owner_ = nullptr;
};

/// Which memory an input lies in, in which state. No storage: unknown, nothing of it is kept.
struct InputIdentity {
  Storage* storage = nullptr;
  uint64_t version = 0;
  static InputIdentity of(Storage& storage) {
    if (storage.written_unseen()) return {};
    return {&storage, storage.version()};
  }
};

}  // namespace ingot::runtime
