#include "base/thread_object.h"

#include <pthread.h>

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

}  // namespace

void at_thread_end(void (*f)(void*), void* object) {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, end_thread);
    return made;
  }();
  endings = new Ending{f, object, endings};
  pthread_setspecific(key, endings);  // any value but null
}

}  // namespace ingot
