#include "runtime/memory/allocator.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/first_use.h"
#include "base/hot.h"
#include "base/mutex.h"
#include "base/sanitizer.h"
#include "base/thread_object.h"
#include "runtime/control_group.h"
#include "runtime/memory/checked_memory.h"

#if INGOT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) (static_cast<void>(address), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) (static_cast<void>(address), static_cast<void>(bytes))
#define __lsan_register_root_region(address, bytes) (static_cast<void>(address), static_cast<void>(bytes))
#define __lsan_unregister_root_region(address, bytes) (static_cast<void>(address), static_cast<void>(bytes))
#endif

namespace ingot::runtime {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMaximum = int64_t{1} << 47;  // the user half of the address space
constexpr int64_t kSlabLimit = 32 << 10;        // up to here blocks are cut from slabs and never given back
constexpr int64_t kSlab = 256 << 10;
constexpr int64_t kThreadLimit = 1 << 20;  // up to here a thread keeps blocks of its own
constexpr int64_t kThreadBytes = 1 << 20;  // that a thread keeps in one class
constexpr int64_t kHuge = 2 << 20;
constexpr int64_t kFitsAnywhere = 256 << 20;  // up to here nobody asks how much memory there is
constexpr int64_t kMostPieces = 1 << 14;      // the system has 65,530 for a process, by default
constexpr int64_t kPeakEpoch = 256;           // large allocations in which a peak is looked for
constexpr int64_t kPeakStep = 64 << 10;       // by which a thread's small blocks grow unnoticed

// Classes: multiples of 64 up to 512, then eight steps between powers of two, so that at most an eighth is lost.
constexpr int class_of(int64_t bytes) {
  if (bytes <= 512) return static_cast<int>(std::max<int64_t>(bytes - 1, 0) / kAlignment);
  int shift = std::bit_width(static_cast<uint64_t>(bytes - 1)) - 4;  // the leading four bits give power and step
  return 8 * (shift - 6) + static_cast<int>((bytes - 1) >> shift);
}
constexpr int64_t class_bytes(int c) {
  if (c < 8) return (c + 1) * kAlignment;
  int shift = (c - 8) / 8 + 6, step = (c - 8) % 8 + 9;
  return static_cast<int64_t>(step) << shift;
}
constexpr int kClasses = class_of(kMaximum) + 1;
constexpr int kThreadClasses = class_of(kThreadLimit) + 1;

struct FreeBlock {
  FreeBlock* next;
};
struct Bin {
  FreeBlock* head = nullptr;
  int64_t count = 0;

  void push(void* memory, int64_t bytes) {
    auto* block = static_cast<FreeBlock*>(memory);
    block->next = head;
    head = block;
    ++count;
    ASAN_POISON_MEMORY_REGION(memory, bytes);
  }
  // Readable in its first word only; the caller opens as much as was asked for.
  void* pop() {
    FreeBlock* block = head;
    ASAN_UNPOISON_MEMORY_REGION(block, sizeof(FreeBlock));
    head = block->next;
    --count;
    return block;
  }
};

// Counters that one thread writes and any thread reads.
struct Counter {
  std::atomic<int64_t> value{0};
  void add(int64_t n) { set(get() + n); }
  void set(int64_t n) { value.store(n, std::memory_order_relaxed); }
  int64_t get() const { return value.load(std::memory_order_relaxed); }
};
struct Counters {
  Counter live, cached, allocations, reuses;
  void add_to(AllocatorStatistics& s) const {
    s.live_bytes += live.get(), s.cached_bytes += cached.get();
    s.allocations += allocations.get(), s.reuses += reuses.get();
  }
  void took(int64_t bytes, bool reused) {
    live.add(bytes), allocations.add(1);
    if (reused) cached.add(-bytes), reuses.add(1);
  }
  void gave(int64_t bytes) { live.add(-bytes), cached.add(bytes); }
};

struct ThreadCache {
  Bin bins[kThreadClasses];
  Counters counters;
  Counter noted;  // counters.live when the peak was last looked at

  bool grew() const { return counters.live.get() >= noted.get() + kPeakStep; }
};

// In front of a block that has a mapping of its own.
struct SystemMapping {
  char* base = nullptr;
  int64_t length = 0;
  int64_t pieces = 0;  // of it that moved here from other mappings: the system keeps book of each
};

[[noreturn]] void cannot_allocate(int64_t bytes, const char* why) {
  throw OutOfMemory("cannot allocate " + std::to_string(bytes) + " bytes: " + why);
}

// What all threads share.
class Central {
 public:
  static Central& instance() {
    static constinit FirstUse<Central> central;
    return *central;
  }

  void attach(ThreadCache* cache) {
    std::lock_guard lock(mutex_);
    caches_.push_back(cache);
  }
  // Takes over what a thread that ends has kept.
  void detach(ThreadCache* cache) {
    std::lock_guard lock(mutex_);
    for (int c = 0; c < kThreadClasses; ++c)
      while (cache->bins[c].count) put(c, cache->bins[c].pop());
    AllocatorStatistics s;
    cache->counters.add_to(s);
    counters_.live.add(s.live_bytes), counters_.cached.add(s.cached_bytes);
    counters_.allocations.add(s.allocations), counters_.reuses.add(s.reuses);
    std::erase(caches_, cache);
    delete cache;
  }

  // One block for the caller, and some more of its class into `bin`.
  void* refill(int c, Bin* bin, Counters* counters) {
    std::lock_guard lock(mutex_);
    void* block = take(c, bin, counters);
    note_live();
    return block;
  }
  void note_peak() {
    std::lock_guard lock(mutex_);
    note_live();
  }
  void reset_peak() {
    std::lock_guard lock(mutex_);
    most_live_ = most_beyond_scratch_ = 0;
    note_live();
  }

  void take_back(int c, void* block) {
    int64_t bytes = class_bytes(c);
    std::lock_guard lock(mutex_);
    put(c, block);
    counters_.gave(bytes);
    if (bytes > kThreadLimit) large_ -= bytes;
    shrink(limit());
  }
  void take_back(int c, Bin& from, int64_t count) {
    std::lock_guard lock(mutex_);
    for (; count > 0; --count) put(c, from.pop());
    shrink(limit());
  }
  // It was no part of what comes and goes: the peaks are those of the rest.
  void unmap(int c, void* block) {
    int64_t bytes = class_bytes(c);
    std::lock_guard lock(mutex_);
    counters_.live.add(-bytes);
    if (bytes > kThreadLimit) large_ -= bytes, peak_ -= bytes, earlier_peak_ -= bytes;
    unmap(static_cast<char*>(block));
    shrink(limit());
  }

  void trim() {
    std::lock_guard lock(mutex_);
    shrink(0);
  }
  void forget_peak() {
    std::lock_guard lock(mutex_);
    peak_ = earlier_peak_ = large_;
    shrink(limit());
  }
  void set_limit(int64_t bytes) {
    std::lock_guard lock(mutex_);
    most_kept_ = bytes;
    shrink(limit());
  }
  void count_scratch(int64_t bytes) { scratch_.fetch_add(bytes, std::memory_order_relaxed); }
  AllocatorStatistics statistics() {
    std::lock_guard lock(mutex_);
    AllocatorStatistics s;
    s.cached_limit = limit();
    note_live();
    s.peak_bytes = most_live_, s.peak_beyond_scratch = most_beyond_scratch_;
    s.moved_bytes = moved_;
    s.scratch_bytes = scratch_.load(std::memory_order_relaxed);
    counters_.add_to(s);
    for (const ThreadCache* cache : caches_) cache->counters.add_to(s);
    return s;
  }

 private:
  // Bins of ours count what they keep of blocks that could be unmapped.
  void put(int c, void* block) {
    bins_[c].push(block, class_bytes(c));
    last_use_[c] = ++uses_;
    if (class_bytes(c) > kSlabLimit) kept_ += class_bytes(c);
  }
  void* get(int c) {
    last_use_[c] = ++uses_;
    return drop(c);
  }
  void* drop(int c) {
    if (class_bytes(c) > kSlabLimit) kept_ -= class_bytes(c);
    return bins_[c].pop();
  }

  void* take(int c, Bin* bin, Counters* counters) {
    int64_t bytes = class_bytes(c);
    Counters& count = counters ? *counters : counters_;
    int64_t batch = bin ? std::clamp<int64_t>((64 << 10) / bytes, 1, 32) : 1;
    if (!bins_[c].count && bytes <= kSlabLimit) {
      for (int64_t i = 0; i < batch; ++i) put(c, cut(bytes));
      counters_.cached.add(batch * bytes);
    }
    if (!bins_[c].count) {
      void* block = map(bytes);
      if (bytes > kThreadLimit) note_large(bytes);
      count.took(bytes, false);
      return block;
    }
    if (bytes > kThreadLimit) note_large(bytes);
    count.took(bytes, true);
    void* block = get(c);
    while (bin && --batch > 0 && bins_[c].count) bin->push(get(c), bytes);
    return block;
  }

  void note_live() {
    int64_t live = counters_.live.get();
    for (ThreadCache* cache : caches_) {
      cache->noted.set(cache->counters.live.get());
      live += cache->noted.get();
    }
    most_live_ = std::max(most_live_, live);
    most_beyond_scratch_ = std::max(most_beyond_scratch_, live - scratch_.load(std::memory_order_relaxed));
  }

  // The most that was in use at once in the latest 256 to 512 large allocations.
  void note_large(int64_t bytes) {
    large_ += bytes;
    if (++in_epoch_ > kPeakEpoch) in_epoch_ = 0, earlier_peak_ = std::exchange(peak_, large_);
    peak_ = std::max(peak_, large_);
  }
  // The most to keep, where `more` bytes of large blocks are about to be in use.
  int64_t limit(int64_t more = 0) const {
    return std::min(most_kept_, kKeptFree + std::max<int64_t>(std::max(peak_, earlier_peak_) - large_ - more, 0));
  }

  char* cut(int64_t bytes) {
    if (slab_end_ - slab_ < bytes) {
      void* slab = mmap(nullptr, kSlab, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (slab == MAP_FAILED) cannot_allocate(bytes, "out of memory");
      __lsan_register_root_region(slab, kSlab);
      slab_ = static_cast<char*>(slab), slab_end_ = slab_ + kSlab;
    }
    return std::exchange(slab_, slab_ + bytes);
  }

  void* map(int64_t bytes) {
    // Blocks differ by multiples of 512 modulo a page: a store never seems to hit a load 128 bytes further on.
    int64_t start = kAlignment + 512 * (mapped_++ * 3 % 8);
    int64_t length = (start + bytes + 4095) / 4096 * 4096;
    int64_t slack = bytes >= kHuge ? kHuge : 0;
    void* memory =
        mmap(nullptr, length + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED && shrink(0))
      memory =
          mmap(nullptr, length + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) cannot_allocate(bytes, "out of memory");
    char* base = static_cast<char*>(memory);
    if (slack) {
      int64_t before = -reinterpret_cast<intptr_t>(base) & (kHuge - 1);
      if (before) munmap(base, before);
      munmap(base + before + length, slack - before);
      base += before;
      madvise(base, length, MADV_HUGEPAGE);
    }
    const Filled filled = move_pages(base, length, limit(bytes));
#ifdef MADV_POPULATE_WRITE
    // One call instead of a fault a page; refused by old kernels, which then fault. Sizes near the machine's stay lazy.
    if (length <= populate_limit_ && filled.begin < filled.end)
      madvise(base + filled.begin, filled.end - filled.begin, MADV_POPULATE_WRITE);
#endif
    __lsan_register_root_region(base, length);
    char* block = base + start;
    new (block - sizeof(SystemMapping)) SystemMapping{base, length, filled.pieces};
    ASAN_POISON_MEMORY_REGION(block, bytes);
    return block;
  }

  // Of the classes from `first` on that have cached blocks, the one that was not used for the longest, or -1.
  int oldest_from(int first) const {
    int oldest = -1;
    for (int c = first; c < kClasses; ++c)
      if (bins_[c].count && (oldest < 0 || last_use_[c] < last_use_[oldest])) oldest = c;
    return oldest;
  }

  // Which bytes of a new mapping have pages already: up to `begin`, and from `end` on.
  struct Filled {
    int64_t begin, end, pieces;
  };
  // Fills a new mapping with pages of cached blocks, as long as more than `limit` bytes are kept: shrink() would unmap
  // them soon, and the system clear as many for the mapping, which costs more than the work on them where sizes
  // alternate (a step of training). Huge pages one by one, and for the end of the mapping that of a block.
  Filled move_pages(char* base, int64_t length, int64_t limit) {
    Filled filled{0, length, 0};
    const int64_t whole = length / kHuge * kHuge;
    while (filled.begin < whole && kept_ > limit && pieces_ < kMostPieces) {
      if (rest_.length == 0) {
        const int c = oldest_from(class_of(kHuge));
        if (c < 0) break;
        const SystemMapping block = forget(static_cast<char*>(drop(c)));
        const int64_t pages = block.length / kHuge * kHuge, end = block.length - pages;
        counters_.cached.add(pages - class_bytes(c)), kept_ += pages;
        pieces_ -= rest_.pieces;
        rest_ = {block.base, pages, block.pieces};
        const bool fits = filled.end > whole && end >= length - whole;
        const int64_t used = fits && move(block.base + pages, base + whole, length - whole) ? length - whole : 0;
        if (used) filled.end = whole, ++filled.pieces;
        if (end > used) munmap(block.base + pages + used, end - used);
        continue;
      }
      if (!move(rest_.base + rest_.length - kHuge, base + filled.begin, kHuge)) break;
      counters_.cached.add(-kHuge), kept_ -= kHuge;
      rest_.length -= kHuge, filled.begin += kHuge, ++filled.pieces;
    }
    return filled;
  }
  // Not if the process has as many mappings as it may have: then what was at `to` may have gone, and comes back empty.
  bool move(char* from, char* to, int64_t bytes) {
    if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to) {
      moved_ += bytes, ++pieces_;
      return true;
    }
    (void)mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return false;
  }

  // Unmaps cached blocks, of the class that was not used for the longest first, until no more than `limit` bytes are
  // kept. Tells if it unmapped any.
  bool shrink(int64_t limit) {
    bool any = false;
    if (kept_ > limit && rest_.length) {
      const int64_t more = std::min(rest_.length, (kept_ - limit + kHuge - 1) / kHuge * kHuge);
      rest_.length -= more;
      munmap(rest_.base + rest_.length, more);
      counters_.cached.add(-more), kept_ -= more;
      any = true;
    }
    while (kept_ > limit) {
      const int oldest = oldest_from(class_of(kSlabLimit) + 1);
      if (oldest < 0) break;
      for (; bins_[oldest].count && kept_ > limit; any = true) {
        unmap(static_cast<char*>(drop(oldest)));
        counters_.cached.add(-class_bytes(oldest));
      }
    }
    return any;
  }
  static SystemMapping forget(char* block) {
    ASAN_UNPOISON_MEMORY_REGION(block - sizeof(SystemMapping), sizeof(SystemMapping));
    const SystemMapping mapping = *reinterpret_cast<SystemMapping*>(block - sizeof(SystemMapping));
    ASAN_UNPOISON_MEMORY_REGION(mapping.base, mapping.length);
    __lsan_unregister_root_region(mapping.base, mapping.length);
    return mapping;
  }
  void unmap(char* block) {
    const SystemMapping mapping = forget(block);
    pieces_ -= mapping.pieces;
    munmap(mapping.base, mapping.length);
  }

  Mutex mutex_;
  std::vector<ThreadCache*> caches_;
  Bin bins_[kClasses];
  Counters counters_;  // a block may be counted here and uncounted in a thread: only the sum over all means something
  int64_t most_live_ = 0, most_beyond_scratch_ = 0;  // since the peak was reset
  std::atomic<int64_t> scratch_{0};
  int64_t kept_ = 0, moved_ = 0, pieces_ = 0;
  uint64_t uses_ = 0, last_use_[kClasses] = {};
  int64_t large_ = 0;  // in use, in blocks that no thread keeps
  int64_t peak_ = 0, earlier_peak_ = 0, in_epoch_ = 0;
  char *slab_ = nullptr, *slab_end_ = nullptr;
  int64_t mapped_ = 0;
  SystemMapping rest_;  // of the block whose pages moved last, counted as kept
  int64_t populate_limit_ = int64_t{1} << 30;
  int64_t most_kept_ = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 4;
};

std::atomic<uint64_t> trims{0};

// Null before the first block, and again once the thread ends.
constinit thread_local ThreadCache* local_cache = nullptr;

// Memory and swap of the machine, or what our control group may have of them.
int64_t read_most_bytes() {
  struct sysinfo info;
  if (sysinfo(&info) != 0) return kMaximum;
  const int64_t swap = static_cast<int64_t>(info.totalswap) * info.mem_unit;
  int64_t most = static_cast<int64_t>(info.totalram) * info.mem_unit + swap;
  each_control_group("memory", [&](const std::string& folder, bool version2) {
    auto limit = [&](const char* file, int64_t without) {
      const std::string text = first_line(folder + file);
      if (text.empty()) return without;
      return text == "max" ? kMaximum : std::min<int64_t>(kMaximum, std::atoll(text.c_str()));
    };
    most = std::min(most, version2 ? limit("/memory.max", kMaximum) + limit("/memory.swap.max", swap)
                                   : limit("/memory.memsw.limit_in_bytes", kMaximum));
  });
  return most;
}

// A mapping takes no memory before it is written: what can never be written is refused here, as the kernel would end
// the process then.
void check_fits_machine(int64_t bytes) {
  static constinit FirstUse<const int64_t> bytes_there;
  const int64_t most = bytes_there.get(read_most_bytes);
  if (bytes > most) {
    const std::string why = "more than the " + std::to_string(most) + " bytes of memory and swap that there are";
    cannot_allocate(bytes, why.c_str());
  }
}

// Where memory is checked no thread ever has a cache, so that every small block comes here.
__attribute__((noinline)) void* allocate_slow(int c, int64_t bytes) {
  if (checks_memory()) return allocate_checked(bytes);
  if (!local_cache) {
    local_cache = new ThreadCache;
    Central::instance().attach(local_cache);
    at_thread_end([](void*) { Central::instance().detach(std::exchange(local_cache, nullptr)); }, nullptr);
  }
  return Central::instance().refill(c, &local_cache->bins[c], &local_cache->counters);
}

__attribute__((noinline)) void* allocate_large(int64_t bytes) {
  if (bytes < 0) cannot_allocate(bytes, "the size is negative");
  if (bytes > kMaximum) cannot_allocate(bytes, "more than the address space");
  if (bytes > kFitsAnywhere) check_fits_machine(bytes);
  if (checks_memory()) return allocate_checked(bytes);
  return Central::instance().refill(class_of(bytes), nullptr, nullptr);
}

}  // namespace

INGOT_HOT void* allocate(int64_t bytes) {
  void* block;
  if (static_cast<uint64_t>(bytes) <= kThreadLimit) {
    int c = class_of(bytes);
    ThreadCache* cache = local_cache;
    if (cache && cache->bins[c].head) {
      block = cache->bins[c].pop();
      cache->counters.took(class_bytes(c), true);
      if (cache->grew()) Central::instance().note_peak();
    } else {
      block = allocate_slow(c, bytes);
    }
  } else {
    block = allocate_large(bytes);
  }
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  return block;
}

INGOT_HOT void deallocate(void* block, int64_t bytes) noexcept {
  if (!block) return;
  int c = class_of(bytes);
  ThreadCache* cache = local_cache;
  if (c >= kThreadClasses || !cache) {
    if (checks_memory()) return deallocate_checked(block, bytes);
    return Central::instance().take_back(c, block);
  }
  Bin& bin = cache->bins[c];
  int64_t size = class_bytes(c);
  ASAN_UNPOISON_MEMORY_REGION(block, sizeof(FreeBlock));
  bin.push(block, size);
  cache->counters.gave(size);
  if (bin.count * size > kThreadBytes) Central::instance().take_back(c, bin, (bin.count + 1) / 2);
}

void deallocate_lasting(void* block, int64_t bytes) noexcept {
  if (!block) return;
  const int c = class_of(bytes);
  if (class_bytes(c) <= kSlabLimit || checks_memory()) return deallocate(block, bytes);
  Central::instance().unmap(c, block);
}

// Counted while it is not there yet, or no more: a peak never takes it for something else.
void* allocate_scratch(int64_t bytes) {
  if (checks_memory()) return allocate(bytes);
  const int64_t counted = class_bytes(class_of(bytes));
  Central::instance().count_scratch(counted);
  try {
    return allocate(bytes);
  } catch (...) {
    Central::instance().count_scratch(-counted);
    throw;
  }
}

void deallocate_scratch(void* block, int64_t bytes) noexcept {
  deallocate(block, bytes);
  if (block && !checks_memory()) Central::instance().count_scratch(-class_bytes(class_of(bytes)));
}

AllocatorStatistics allocator_statistics() { return Central::instance().statistics(); }
void set_allocator_limit(int64_t bytes) { Central::instance().set_limit(bytes); }
void reset_allocator_peak() { Central::instance().reset_peak(); }
void forget_peak() { Central::instance().forget_peak(); }
uint64_t trim_epoch() { return trims.load(std::memory_order_relaxed); }
void trim_allocator() {
  trims.fetch_add(1, std::memory_order_relaxed);
  if (ThreadCache* cache = local_cache)
    for (int c = class_of(kSlabLimit) + 1; c < kThreadClasses; ++c)
      if (cache->bins[c].count) Central::instance().take_back(c, cache->bins[c], cache->bins[c].count);
  Central::instance().trim();
}

}  // namespace ingot::runtime
