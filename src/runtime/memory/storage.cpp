#include "runtime/memory/storage.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "base/hot.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/weight_cache.h"

namespace ingot::runtime {

namespace {
uint64_t next_id() {
  static std::atomic<uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::atomic<int64_t> given_back{0};
}  // namespace

// By version: entry version % kPartialWrites. Writers of different versions may meet in an entry, readers may come in
// between: `version` is 0 meanwhile, and what is torn counts as unknown.
struct Storage::PartialWrites {
  struct Entry {
    std::atomic<uint64_t> version{0};
    std::atomic<const char*> begin{nullptr}, end{nullptr};
  } entries[kPartialWrites];
};

void Storage::bump_version(const char* begin, const char* end) {
  const char* data = static_cast<const char*>(data_);
  if (begin == data && end == data + bytes_) return bump_version();
  PartialWrites* writes = partial_writes_.load(std::memory_order_acquire);
  if (!writes) {
    auto* fresh = new (runtime::allocate(sizeof(PartialWrites))) PartialWrites;
    if (partial_writes_.compare_exchange_strong(writes, fresh, std::memory_order_acq_rel))
      writes = fresh;
    else
      deallocate(fresh, sizeof(PartialWrites));
  }
  const uint64_t now = version_.fetch_add(1, std::memory_order_relaxed) + 1;
  PartialWrites::Entry& entry = writes->entries[now % kPartialWrites];
  entry.version.store(0, std::memory_order_relaxed);
  entry.begin.store(begin, std::memory_order_release);
  entry.end.store(end, std::memory_order_release);
  entry.version.store(now, std::memory_order_release);
}

bool Storage::written_since(uint64_t version, const char* begin, const char* end) const {
  if (this->version() == version) return false;
  if (last_anywhere_.load(std::memory_order_relaxed) > version) return true;
  const PartialWrites* writes = partial_writes_.load(std::memory_order_acquire);
  if (!writes) return false;
  for (const PartialWrites::Entry& entry : writes->entries) {
    const uint64_t known = entry.version.load(std::memory_order_acquire);
    const char *from = entry.begin.load(std::memory_order_acquire), *to = entry.end.load(std::memory_order_acquire);
    if (known > version && entry.version.load(std::memory_order_relaxed) == known && from < end && begin < to)
      return true;
  }
  return false;
}

INGOT_HOT StoragePtr Storage::allocate(int64_t bytes) {
  void* data = runtime::allocate(bytes);
  StoragePtr storage = adopt(data, bytes);
  storage->external_ = false;
  return storage;
}

StoragePtr Storage::adopt(void* data, int64_t bytes, void (*release)(void*), void* owner, bool written_unseen) {
  Storage* storage = new (runtime::allocate(sizeof(Storage))) Storage;
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->external_ = true;
  storage->written_unseen_ = written_unseen;
  storage->id_ = next_id();
  storage->release_ = release;
  storage->owner_ = owner;
  return StoragePtr::take(storage);
}

bool Storage::give_back_pages() {
  if (!mapped_ || version() != 0) return false;
  // Whole pages: what else lies in the first and the last one may have been written to.
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), from = reinterpret_cast<uintptr_t>(data_);
  const uintptr_t begin = (from + page - 1) / page * page, end = (from + static_cast<uintptr_t>(bytes_)) / page * page;
  if (begin < end && madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED) != 0) return false;
  if (!given_back_.exchange(true, std::memory_order_relaxed)) given_back.fetch_add(bytes_, std::memory_order_relaxed);
  return true;
}

int64_t Storage::given_back_bytes() { return given_back.load(std::memory_order_relaxed); }

INGOT_HOT void Storage::destroy() {
  if (given_back_.load(std::memory_order_relaxed)) given_back.fetch_sub(bytes_, std::memory_order_relaxed);
  const bool packed = packed_.load(std::memory_order_relaxed);
  if (packed) WeightCache::forget(id_);
  if (release_) release_(owner_);
  if (!external_) (packed || lasting_.load(std::memory_order_relaxed) ? deallocate_lasting : deallocate)(data_, bytes_);
  if (PartialWrites* writes = partial_writes_.load(std::memory_order_relaxed))
    deallocate(writes, sizeof(PartialWrites));
  this->~Storage();
  deallocate(this, sizeof(Storage));
}

}  // namespace ingot::runtime
