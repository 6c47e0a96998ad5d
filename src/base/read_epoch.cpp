#include "base/read_epoch.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "base/first_use.h"
#include "base/hot.h"
#include "base/mutex.h"
#include "base/thread_object.h"

namespace ingot {
namespace {

/// Of one thread at a time; never freed, so that others may look at it at any time.
struct alignas(64) Reader {
  std::atomic<uint64_t> since{0};  // the epoch in which its section began; 0: it has none
  std::atomic<bool> taken{true};
  int depth = 0;
  Reader* next = nullptr;
};

std::atomic<uint64_t> epoch{1};
std::atomic<Reader*> readers{nullptr};

constinit thread_local Reader* mine = nullptr;

void give_back(Reader* reader) { reader->taken.store(false, std::memory_order_release); }

// A child has one thread; the sections of the others will not end.
void forget_other_threads() {
  for (Reader* r = readers.load(); r; r = r->next)
    if (r != mine) {
      r->since.store(0);
      r->depth = 0;
      give_back(r);
    }
}

Reader* acquire() {
  static constinit FirstUse<const bool> registered;
  registered.get([] { return at_fork(nullptr, forget_other_threads), true; });
  Reader* reader = readers.load();
  while (reader && reader->taken.exchange(true, std::memory_order_acquire)) reader = reader->next;
  if (!reader) {
    reader = new Reader;
    reader->next = readers.load();
    while (!readers.compare_exchange_weak(reader->next, reader)) {
    }
  }
  at_thread_end([](void*) { give_back(std::exchange(mine, nullptr)); }, nullptr);
  return mine = reader;
}

}  // namespace

INGOT_HOT ReadSection::ReadSection() {
  Reader* reader = mine ? mine : acquire();
  if (reader->depth++ == 0) reader->since.store(epoch.load());
}

INGOT_HOT ReadSection::~ReadSection() {
  Reader* reader = mine;
  if (--reader->depth == 0) reader->since.store(0, std::memory_order_release);
}

uint64_t end_epoch() { return epoch.fetch_add(1); }

uint64_t oldest_reader() {
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (Reader* r = readers.load(); r; r = r->next)
    if (uint64_t since = r->since.load()) oldest = std::min(oldest, since);
  return oldest;
}

}  // namespace ingot
