#include "runtime/storage.h"

#include <new>

#include "runtime/allocator.h"
#include "runtime/weight_cache.h"

namespace ingot::runtime {

std::atomic<uint64_t> Storage::epoch_{0};

namespace {
uint64_t next_id() {
  static std::atomic<uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed) + 1;
}
}  // namespace

StoragePtr Storage::allocate(int64_t bytes) {
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

void Storage::destroy() {
  if (packed_.load(std::memory_order_relaxed)) WeightCache::forget(id_);
  if (release_) release_(owner_);
  if (!external_) deallocate(data_, bytes_);
  this->~Storage();
  deallocate(this, sizeof(Storage));
}

}  // namespace ingot::runtime
