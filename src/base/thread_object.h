// Objects of a thread that outlive its thread_local objects: the destructor of one of those may still use the library.
#pragma once
#include <utility>

namespace ingot {

/// Calls f(object) when this thread ends, after the destructors of its thread_local objects, the user's included. Not
/// for the thread that ends the process by exit().
void at_thread_end(void (*f)(void*), void* object);

/// One T a thread, made when it is first asked for. Stands in a thread_local; is never out of reach: who asks after the
/// thread's end has begun gets another one.
template <class T>
class ThreadObject {
 public:
  T& operator*() { return object_ ? *object_ : make(); }
  T* operator->() { return &**this; }

 private:
  [[gnu::noinline]] T& make() {
    object_ = new T();
    at_thread_end([](void* self) { delete std::exchange(static_cast<ThreadObject*>(self)->object_, nullptr); }, this);
    return *object_;
  }
  T* object_ = nullptr;
};

}  // namespace ingot
