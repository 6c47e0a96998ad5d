// Memory for the objects that a thread makes and drops at every op.
#pragma once
#include <cstddef>
#include <new>

#include "base/sanitizer.h"
#include "base/thread_object.h"

namespace ingot {

/// Blocks of kBytes: up to kMost that this thread has given back spare the allocator. Stands in a constinit
/// thread_local. Under AddressSanitizer every block is a new one, so that it sees what is used after it was dropped.
template <size_t kBytes, int kMost>
class FreeList {
 public:
  void* take() {
    if (!first_) return ::operator new(kBytes);
    Block* block = first_;
    first_ = block->next;
    --count_;
    return block;
  }
  void give(void* block) {
    if (INGOT_ASAN || count_ == kMost) return ::operator delete(block);
    if (!emptied_at_end_) {
      emptied_at_end_ = true;
      at_thread_end([](void* self) { static_cast<FreeList*>(self)->empty(); }, this);
    }
    first_ = new (block) Block{first_};
    ++count_;
  }

 private:
  struct Block {
    Block* next;
  };
  static_assert(kBytes >= sizeof(Block));

  void empty() {
    while (Block* block = first_) {
      first_ = block->next;
      ::operator delete(block);
    }
    count_ = 0;
    emptied_at_end_ = false;
  }

  Block* first_ = nullptr;
  int count_ = 0;
  bool emptied_at_end_ = false;
};

}  // namespace ingot
