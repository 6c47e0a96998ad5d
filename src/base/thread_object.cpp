#include "base/thread_object.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "base/error.h"

namespace ingot {
namespace {

struct Ending {
  void (*f)(void*);
  void* object;
  Ending* next;
};
constinit thread_local Ending* endings = nullptr;

// Destructors of keys run after those of thread_local objects. What one of them registers anew is called too.
void end_thread(void*) {
  while (Ending* ending = endings) {
    endings = ending->next;
    ending->f(ending->object);
    delete ending;
  }
}

// Without a lock, as locks are built on this: of threads that make it at once, one key is taken.
pthread_key_t key() {
  static constinit std::atomic<int64_t> made{-1};
  int64_t number = made.load(std::memory_order_acquire);
  if (number >= 0) return static_cast<pthread_key_t>(number);
  pthread_key_t mine{};
  INGOT_CHECK(pthread_key_create(&mine, end_thread) == 0, "no key is left for this library's data of threads");
  if (made.compare_exchange_strong(number, mine)) return mine;
  pthread_key_delete(mine);
  return static_cast<pthread_key_t>(number);
}

}  // namespace

void at_thread_end(void (*f)(void*), void* object) {
  endings = new Ending{f, object, endings};
  pthread_setspecific(key(), endings);  // any value but null
}

}  // namespace ingot
